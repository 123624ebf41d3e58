"""A server that does not answer, or lets nobody in, is reported as that, and its password is not shown."""

from pathlib import Path

import pytest

from hdmm.data import open_source
from hdmm.data.connect import no_connection
from hdmm.data.table import DatabaseTable
from hdmm.errors import DataError
from hdmm.schema import Schema
from tests.servers import Absent, postgres_server

SCHEMA = Schema(sex=["F", "M"], age=range(3))
SECRET = "Zx9Qk"


def refusal(address: str, table: str = "people") -> str:
    with pytest.raises(DataError) as caught:
        open_source(DatabaseTable(address, table)).columns_check(SCHEMA)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="needs the extra hdmm[postgres]")
    import psycopg

    try:
        with postgres_server() as address:
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
                connection.execute("CREATE TABLE people (sex text, age integer)")
                (path,) = connection.execute("SHOW hba_file").fetchone() or ("",)
                rules = Path(path).read_text()
                Path(path).write_text(
                    "host all guarded 127.0.0.1/32 scram-sha-256\nhost all barred 127.0.0.1/32 reject\n" + rules
                )
                connection.execute("SELECT pg_reload_conf()")
            yield address
    except Absent as reason:
        pytest.skip(str(reason))


def test_a_server_that_is_not_there_is_reported_with_its_place():
    pytest.importorskip("psycopg", reason="needs the extra hdmm[postgres]")
    assert refusal(f"postgresql://hdmm:{SECRET}@127.0.0.1:1/census") == (
        "127.0.0.1:1: no server answers there; check the host and the port, and that it runs"
    )


def test_an_unknown_host_is_reported():
    pytest.importorskip("psycopg", reason="needs the extra hdmm[postgres]")
    message = refusal(f"postgresql://hdmm:{SECRET}@no-such-host.invalid/census")
    assert message.startswith("no-such-host.invalid: ")
    assert "there is no host of this name" in message or "connection" in message or "network" in message


def test_a_wrong_password_is_reported(server: str):
    message = refusal(server.replace("hdmm@", f"guarded:{SECRET}-not@"))
    assert "it does not accept this user and password; check them" in message


def test_a_missing_password_is_reported(server: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert "it does not accept this user and password" in refusal(server.replace("hdmm@", "guarded@"))


def test_an_unknown_user_is_reported(server: str):
    assert "it does not know this user; check the name before the @" in refusal(server.replace("hdmm@", f"{SECRET}@"))


def test_an_unknown_database_is_reported(server: str):
    message = refusal(server.replace("/postgres", "/census"))
    assert "it has no database 'census'; check the name after the last slash" in message


def test_a_table_with_a_typo_is_reported(server: str):
    message = refusal(server, "peopel")
    assert message == "there is no table 'peopel'; did you mean 'people'? If it is in another schema, write schema.name"


WORDS = {
    "refused": ('connection to server at "x" failed: Connection refused', "no server answers there"),
    "resolved": ("could not translate host name", "there is no host of this name"),
    "barred": ('FATAL: no pg_hba.conf entry for host "1.2.3.4"', "it does not admit this user from here"),
    "slow": ("connection timeout expired", "no server answers there in time"),
    "full": ("FATAL: sorry, too many clients already", "it has too many connections"),
    "other": ("something else", "the connection failed (RuntimeError); check the address, the user and the password"),
}


@pytest.mark.parametrize(("words", "reason"), WORDS.values(), ids=WORDS)
def test_the_words_of_a_server_are_explained_and_not_shown(words: str, reason: str):
    message = str(no_connection("postgresql://a@b:5/c", RuntimeError(f"{words} {SECRET}")))
    assert message.startswith(f"b:5: {reason}")
    assert SECRET not in message


@pytest.mark.parametrize(
    "password", ["Zx9Qk/x", "x/Zx9Qk", "Zx9Qk@x", "x@Zx9Qk", "x#Zx9Qk", "x?Zx9Qk", "Zx9Qk:x", "[Zx9Qk"]
)
def test_a_password_that_is_not_encoded_is_not_taken_for_another_part(password: str):
    message = str(
        no_connection(f"postgresql://hdmm:{password}@host:5/census", RuntimeError(f"{password} does not exist"))
    )
    assert SECRET not in message
