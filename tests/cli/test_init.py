"""`hdmm init`: what it writes, asks and refuses."""

import io
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import hdmm
from tests.cli.workplace import SECRETS, Done, refused


@pytest.fixture
def public(workplace: Path) -> Path:
    """A public file whose columns can be read today."""
    lines = [f"{'FM'[at % 2]},{at % 90},{['CA', 'NY', 'TX'][at % 3]}" for at in range(300)]
    (workplace / "public.csv").write_text("\n".join(["sex,age,state", *lines]) + "\n")
    return workplace / "public.csv"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch):
    """A terminal on which some answers are typed."""

    def type_answers(*answers: str) -> None:
        typed = io.StringIO("".join(f"{answer}\n" for answer in answers))
        typed.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", typed)

    return type_answers


def test_a_spec_of_public_data_can_be_planned(run, public: Path) -> None:
    assert run("init", "--public", "public.csv", "-o", "new.yaml").code == 0
    assert run("plan", "new.yaml").code == 0


def test_what_is_written_is_reported(run, public: Path) -> None:
    done = run("init", "--public", "public.csv", "-o", "new.yaml")
    assert "wrote new.yaml: 3 attributes, 0 columns left out" in done.out


def test_the_next_commands_are_printed(run, public: Path) -> None:
    done = run("init", "--public", "public.csv", "-o", "new.yaml")
    assert "hdmm check new.yaml public.csv\n" in done.out
    assert "hdmm plan new.yaml\n" in done.out


def test_the_next_commands_read_the_same_data(run, workplace: Path) -> None:
    (workplace / "semi.csv").write_bytes("sex;état\nF;1\nM;2\n".encode("latin-1"))
    done = run("init", "--public", "semi.csv", "-o", "new.yaml", "--encoding", "latin-1")
    assert "hdmm check new.yaml semi.csv --delimiter ';' --encoding latin-1\n" in done.out


@pytest.mark.parametrize("delimiter", ["tab", "\\t", "\t"])
def test_a_tab_can_be_written_as_people_write_it(run, workplace: Path, delimiter: str) -> None:
    (workplace / "tabs.csv").write_text("sex\tage\nF\t1\nM\t2\n")
    assert run("init", "--public", "tabs.csv", "-o", "new.yaml", "--delimiter", delimiter).code == 0
    assert list(hdmm.Spec.load(workplace / "new.yaml").schema) == ["sex", "age"]


def test_with_yes_every_default_is_taken(run, workplace: Path) -> None:
    assert run("init", "people.csv", "--yes", "-o", "new.yaml").code == 0
    assert list(hdmm.Spec.load(workplace / "new.yaml").schema) == ["sex", "age"]


def test_the_columns_of_a_table_schema_need_no_data(run, workplace: Path) -> None:
    (workplace / "s.json").write_text(
        '{"fields": [{"name": "ok", "type": "boolean", "constraints": {"required": true}}]}'
    )
    assert run("init", "--codes", "s.json", "--yes", "-o", "new.yaml").code == 0
    assert list(hdmm.Spec.load(workplace / "new.yaml").schema) == ["ok"]


def test_a_table_of_a_database_is_looked_at(run, workplace: Path) -> None:
    import duckdb

    with duckdb.connect(workplace / "t.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT range % 7 AS n, range % 2 = 0 AS even FROM range(100)")
    done = run("init", "--public", "t.duckdb", "--table", "t", "-o", "new.yaml")
    assert "hdmm check new.yaml t.duckdb --table t\n" in done.out
    assert hdmm.Spec.load(workplace / "new.yaml").schema.sizes == (7, 2)


def test_answers_on_a_terminal_make_a_spec(run, workplace: Path, terminal) -> None:
    terminal("", "", "n", "i", "0, 9", "n", "?", "s", "o", "", "", "", "")
    done = run("init", "people.csv", "-o", "new.yaml")
    assert (done.code, hdmm.Spec.load(workplace / "new.yaml").schema.sizes) == (0, (2, 10))


def test_columns_can_be_typed(run, workplace: Path, terminal) -> None:
    terminal("sex, is_member", *[""] * 20)
    assert run("init", "-o", "new.yaml").code == 0
    assert list(hdmm.Spec.load(workplace / "new.yaml").schema) == ["sex", "is_member"]


def test_answers_that_end_early_write_nothing(run, workplace: Path, terminal) -> None:
    terminal("", "")
    refused(run, workplace, ["init", "people.csv", "-o", "new.yaml"], "not answered to the end; nothing was written")


REFUSED = {
    "exists": (["init", "people.csv", "--yes", "-o", "spec.yaml"], "replace it with --force"),
    "no directory": (["init", "people.csv", "--yes", "-o", "none/new.yaml"], "parent directory does not exist"),
    "no terminal": (["init", "people.csv", "-o", "new.yaml"], "give --yes to take every default"),
    "no file": (["init", "none.csv", "--yes", "-o", "new.yaml"], "there is no such file"),
    "nothing": (["init", "--yes", "-o", "new.yaml"], "there are no columns"),
    "public nothing": (["init", "--public", "-o", "new.yaml"], "there is no data to look at"),
    "encoding": (["init", "people.csv", "--yes", "-o", "new.yaml", "--encoding", "klingon"], "is not an encoding"),
    "bytes": (["init", "people.csv", "--yes", "-o", "new.yaml", "--encoding", "base64"], "is not an encoding"),
    "delimiter": (
        ["init", "people.csv", "--yes", "-o", "new.yaml", "--delimiter", "ab"],
        "expected one ASCII character",
    ),
    "table": (["init", "--table", "t", "--yes", "-o", "new.yaml"], "goes with a database"),
    "no database": (
        ["init", "people.csv", "--table", "t", "--yes", "-o", "new.yaml"],
        "is no file of DuckDB or SQLite",
    ),
    "codes": (["init", "people.csv", "--codes", "none.csv", "--yes", "-o", "new.yaml"], "no column is called 'none'"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_mistakes_are_refused_and_nothing_is_written(run, workplace, monkeypatch, arguments, message) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    refused(run, workplace, arguments, message)


def test_without_a_terminal_the_message_says_what_public_means(run, workplace: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    message = "a domain that was chosen by looking at private records is not covered by the guarantee"
    refused(run, workplace, ["init", "people.csv", "-o", "new.yaml"], message)


def test_columns_without_a_domain_are_no_spec(run, workplace: Path) -> None:
    (workplace / "odd.csv").write_text("a,b\n1,2\n")
    refused(run, workplace, ["init", "odd.csv", "--yes", "-o", "new.yaml"], "no column has a domain yet")


def test_force_replaces_a_spec(run, workplace: Path) -> None:
    assert run("init", "people.csv", "--yes", "-o", "spec.yaml", "--force").code == 0


def test_without_public_no_record_is_shown(run, workplace: Path) -> None:
    (workplace / "secret.csv").write_text("sex,age\n" + "\n".join(f"{secret},{secret}" for secret in SECRETS) + "\n")
    done: Done = run("init", "secret.csv", "--yes", "-o", "new.yaml")
    text = done.out + done.err + (workplace / "new.yaml").read_text()
    assert [secret for secret in SECRETS if secret in text] == []


def test_a_password_is_not_written(run, workplace: Path, monkeypatch) -> None:
    from hdmm.cli.init import _base

    assert _base("postgresql://me:secret@host/db") == "postgresql://…"


def test_questions_are_asked_on_a_real_terminal(workplace: Path) -> None:
    command = [sys.executable, "-m", "hdmm", "init", "people.csv", "-o", "new.yaml"]
    here, there = pty.openpty()
    shown = b""
    with subprocess.Popen(command, stdin=there, stdout=there, stderr=there) as process:
        os.close(there)
        with suppress(OSError):  # the process has ended
            while piece := os.read(here, 4096):
                shown += piece
                if shown.rstrip().endswith(b":"):
                    os.write(here, b"\n")
    os.close(here)
    assert (process.returncode, b"What is it?" in shown) == (0, True)
    assert list(hdmm.Spec.load(workplace / "new.yaml").schema) == ["sex", "age"]


def test_without_a_terminal_a_process_does_not_wait(workplace: Path) -> None:
    command = [sys.executable, "-m", "hdmm", "init", "people.csv", "-o", "new.yaml"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
