"""The ledger's file: SQLite transactions that outlast a power failure, and entries that are chained by their hashes."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hdmm.errors import ArtefactError, FaultError
from hdmm.files.atomic import check_regular

FORMAT = 1
"""The format of a new ledger. An entry of a kind that came later states the first format that has it: versions that do
not know the kind refuse the ledger."""
GRANTS_FORMAT = 2
"""The first format in which a grant can be raised."""

_MAX_BYTES = 1 << 28  # of a ledger: several hundred thousand releases
_MAX_ENTRY = 1 << 16  # characters of an entry
_BESIDE = ("", "-journal", "-wal", "-shm")  # the ledger, and what SQLite opens beside it
_PATIENCE = 5.0  # seconds for which another process may keep the file locked
_TABLES = (
    "CREATE TABLE ledger (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE tip (hash TEXT NOT NULL)",  # of the last entry: no later one would miss it
    "INSERT INTO tip VALUES ('')",
)


@contextmanager
def transaction(file: Path, name: Path, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a ledger for one transaction, which is undone unless it was committed; ``name`` is for messages."""
    try:
        mode = _check_files(file, name)
        if writing and not mode & 0o222:  # the administrator may write to it, and should not
            raise _read_only(name)
        address = f"{file.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)) as connection:
            # EXTRA is FULL that also makes the end of a transaction outlast a power failure.
            connection.execute("PRAGMA synchronous=EXTRA")
            connection.execute("PRAGMA fullfsync=1")  # macOS
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            yield connection
    except OSError as error:
        raise FaultError(f"{name}: cannot be read: {error.strerror}; check its permissions") from None
    except sqlite3.Error as error:
        raise _explained(error, name) from None


def _check_files(file: Path, name: Path) -> int:
    """Refuse what is not a regular file, the journal beside it included, which SQLite opens too; return the mode.

    The files are not opened here: closing one would release the locks that this process has on it elsewhere.
    """
    mode = 0
    for suffix in _BESIDE:
        try:
            status = os.stat(f"{file}{suffix}")
            check_regular(status)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError) as error:
            if suffix and not isinstance(error, IsADirectoryError):
                continue
            raise ArtefactError(
                f"{name}: there is no such ledger; create it, for example with hdmm ledger create {name} --epsilon 1"
            ) from None
        except PermissionError:
            raise
        except OSError as error:
            raise ArtefactError(
                f"{name}{suffix}: is not an hdmm ledger: {error.strerror}; name the file that hdmm ledger create made"
            ) from None
        if status.st_size > _MAX_BYTES:
            raise ArtefactError(
                f"{name}{suffix}: {status.st_size} bytes are more than a ledger may have ({_MAX_BYTES}); grant the "
                "rest in a new one"
            )
        mode = mode if suffix else status.st_mode
    return mode


def _check_tables(connection: sqlite3.Connection, name: Path) -> None:
    """Refuse tables that are not as they were made: a view in their place could have rows without end."""
    tables = connection.execute("SELECT type, substr(sql, 1, 200) FROM sqlite_master LIMIT 3").fetchall()
    if sorted(tables, key=str) != sorted((("table", statement) for statement in _TABLES[:2]), key=str):
        raise _no_ledger(name)


def commit(connection: sqlite3.Connection) -> None:
    """Make the transaction durable."""
    connection.execute("COMMIT")


def begin(connection: sqlite3.Connection, head: dict[str, Any]) -> None:
    """Make the tables of a new ledger, and its first entry: what kind of file it is, and what is granted."""
    for statement in _TABLES:
        connection.execute(statement)
    append(connection, 0, "", {"hdmm": "ledger", "format": FORMAT, **head})


def append(connection: sqlite3.Connection, number: int, previous: str, content: dict[str, Any]) -> None:
    """Add an entry, with the time, after the one whose hash is ``previous``."""
    text = canonical({**content, "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")})
    digest = _link(previous, text)
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?)", (number, text, digest))
    connection.execute("UPDATE tip SET hash = ?", (digest,))


def contents(connection: sqlite3.Connection, name: Path) -> tuple[list[dict[str, Any]], str]:
    """The content of all entries and the hash of the last one, checked link by link."""
    _check_tables(connection, name)
    rows = connection.execute("SELECT number, content, hash FROM ledger ORDER BY number")  # read one by one
    tips = connection.execute("SELECT hash FROM tip LIMIT 2").fetchall()
    entries: list[dict[str, Any]] = []
    previous = ""
    for expected, (number, text, digest) in enumerate(rows):
        if number != expected:
            raise damaged(name, f"entry {expected} is missing")
        content = _parsed(text) if isinstance(text, str) and len(text) <= _MAX_ENTRY else None
        if number == 0 and content is not None and content.get("hdmm") == "ledger":
            _check_format(content.get("format"), name)
        if content is None or digest != _link(previous, text):
            raise damaged(name, f"entry {number} was changed: its hash does not match")
        _check_format(content.get("format", FORMAT), name)
        entries.append(content)
        previous = digest
    if not entries or entries[0].get("hdmm") != "ledger":
        raise _no_ledger(name)
    if tips != [(previous,)]:
        raise damaged(name, f"entry {len(entries)}, the last one, is missing")
    return entries, previous


def _check_format(format: object, name: Path) -> None:
    if format not in (FORMAT, GRANTS_FORMAT) or isinstance(format, bool):
        known = f"{FORMAT} and {GRANTS_FORMAT}"
        raise ArtefactError(f"{name}: has format {format}, this version reads {known}; update hdmm")


def check_pages(connection: sqlite3.Connection, name: Path) -> None:
    """Refuse a file in which SQLite finds errors, even outside the entries."""
    if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
        raise damaged(name, "SQLite finds errors in its pages")


def damaged(name: Path, reason: str) -> ArtefactError:
    """The error for a ledger that nothing may be charged to any more."""
    return ArtefactError(f"{name}: the ledger is damaged: {reason}; spend nothing, and look for an intact copy")


def canonical(content: Any) -> str:
    """The one form in which an entry is written, so that equal content has equal hashes."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _link(previous: str, text: str) -> str:
    return hashlib.sha256((previous + text).encode()).hexdigest()


def _parsed(text: object) -> dict[str, Any] | None:
    """A JSON object in the one form that is written; None for anything else."""
    try:
        content = json.loads(text) if isinstance(text, str) else None
        return content if isinstance(content, dict) and canonical(content) == text else None
    except (ValueError, RecursionError):
        return None


def _explained(error: sqlite3.Error, name: Path) -> ArtefactError | FaultError:
    code = str(getattr(error, "sqlite_errorname", ""))
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return FaultError(
            f"{name}: another process has kept the ledger locked for {_PATIENCE:g} seconds; nothing was charged: try "
            "again when it is done"
        )
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return _read_only(name)
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM")):
        return FaultError(
            f"{name}: the ledger cannot be read or written: {error}; free some space or check the disk, then see "
            f"what is charged with hdmm ledger show {name}"
        )
    if code in ("SQLITE_NOTADB", "SQLITE_ERROR"):
        return _no_ledger(name)
    return damaged(name, "SQLite cannot read it")


def _no_ledger(name: Path) -> ArtefactError:
    return ArtefactError(f"{name}: is not an hdmm ledger; name the file that hdmm ledger create made")


def _read_only(name: Path) -> FaultError:
    return FaultError(f"{name}: the ledger cannot be written to; allow writing to the file and its directory")
