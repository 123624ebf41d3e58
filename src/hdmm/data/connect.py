"""Why a database server cannot be reached, said without its own words: these may hold the password."""

from __future__ import annotations

from urllib.parse import urlsplit

from hdmm.errors import DataError

_REASONS = (
    (
        ("connection refused", "no such file or directory"),
        "no server answers there; check the host and the port, and that it runs",
    ),
    (
        (
            "could not translate host name",
            "failed to resolve host",
            "name or service not known",
            "nodename nor servname",
        ),
        "there is no host of this name; check it",
    ),
    (
        ("password authentication failed", "no password supplied", "authentication failed"),
        "it does not accept this user and password; check them (a password may also be in ~/.pgpass or PGPASSWORD)",
    ),
    (("no pg_hba.conf entry",), "it does not admit this user from here; ask its administrator"),
    (("timeout", "timed out"), "no server answers there in time; check the host and the port, and firewalls between"),
    (
        ("network is unreachable", "no route to host"),
        "the network does not lead there; check the host and the connection",
    ),
    (("too many clients", "too many connections"), "it has too many connections; try again later"),
    (("starting up", "shutting down"), "it is starting or stopping; try again later"),
)
"""Parts of the server's or the system's words, in lower case, and what they mean."""


def no_connection(address: str, error: Exception) -> DataError:
    """The error for a server that cannot be reached, or does not let this user in; nothing of its words is shown."""
    place, database = _place(address)
    words = str(error).lower()
    if "database" in words and "does not exist" in words:
        reason = f"it has no database {database}; check the name after the last slash of the address"
    elif "role" in words and "does not exist" in words:
        reason = "it does not know this user; check the name before the @ of the address"
    else:
        reason = next(
            (reason for parts, reason in _REASONS if any(part in words for part in parts)),
            f"the connection failed ({type(error).__name__}); check the address, the user and the password",
        )
    return DataError(f"{place}: {reason}")


def _place(address: str) -> tuple[str, str]:
    """The server and the database of an address, without its user and password.

    A sign of a password that should have been written as %2F or the like may cut an address elsewhere. Then nothing of
    it is shown.
    """
    hidden = "postgresql://…", "of this name"
    try:
        parts = urlsplit(address)
        host, port, path = parts.hostname, parts.port, parts.path.removeprefix("/")
    except ValueError:
        return hidden
    if "@" in f"{path}{parts.query}{parts.fragment}" or parts.netloc.count("@") > 1:
        return hidden
    server = host or "the local server"
    return server if port is None else f"{server}:{port}", repr(path) if path else "of this name"
