"""A ledger's file is made whole and never over another; other files, and systems that fail, are told apart."""

import resource
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from hdmm.errors import ArtefactError, FaultError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger, chain
from hdmm.privacy.ledger import ledger as module
from tests.privacy.ledger.steps import PLAN, RELEASE, UNIT, spend


def test_a_ledger_is_read_back(tmp_path: Path):
    for number, total in enumerate([Budget("0.3"), Budget("1", "1e-17"), Budget(rho="0.5"), Budget(Fraction(1, 3))]):
        made = Ledger.create(tmp_path / f"{number} #?%.db", total, UNIT)
        assert Ledger.open(str(made.path)) == made
        assert (made.granted, made.unit, made.entries()) == (total, UNIT, ())
    assert len(list(tmp_path.iterdir())) == 4


def test_a_ledger_is_never_overwritten(ledger: Ledger):
    before = ledger.path.read_bytes()
    with pytest.raises(ArtefactError, match=r"budget.db: exists already and is never overwritten; choose another name"):
        Ledger.create(ledger.path, Budget("2"), UNIT)
    assert ledger.path.read_bytes() == before


def test_a_ledger_made_meanwhile_is_not_overwritten(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "check_new", lambda path: None)
    with pytest.raises(ArtefactError, match="exists already and is never overwritten"):
        Ledger.create(ledger.path, Budget("2"), UNIT)
    assert Ledger.open(ledger.path).granted == Budget("1")
    assert list(ledger.path.parent.iterdir()) == [ledger.path]


def test_a_ledger_needs_a_directory(tmp_path: Path):
    with pytest.raises(ArtefactError, match="its parent directory does not exist; create it first"):
        Ledger.create(tmp_path / "no" / "budget.db", Budget("1"), UNIT)


@pytest.mark.parametrize("name", ["budget.db", "."])
def test_a_missing_ledger_is_refused_and_not_made(tmp_path: Path, name: str):
    with pytest.raises(ArtefactError, match=r"there is no such ledger; create it, for example with hdmm ledger create"):
        Ledger.open(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_ledger_that_went_missing_is_not_made_again(ledger: Ledger):
    ledger.path.unlink()
    with pytest.raises(ArtefactError, match="there is no such ledger"):
        spend(ledger, Budget("0.1"))
    assert not ledger.path.exists()


@pytest.mark.parametrize("data", [b"", b"x", b"id,age\n1,2\n" * 400, b"SQLite format 3\0" + b"\0" * 4080])
def test_another_file_is_refused(tmp_path: Path, data: bytes):
    path = tmp_path / "budget.db"
    path.write_bytes(data)
    with pytest.raises(ArtefactError, match=r"budget.db: (is not an hdmm ledger; name the file|the ledger is damaged)"):
        Ledger.open(path)
    assert path.read_bytes() == data


@pytest.mark.parametrize("table", ["people (a)", "ledger (a)", "ledger (number, content, hash)"])
def test_another_database_is_refused(tmp_path: Path, table: str):
    with closing(sqlite3.connect(tmp_path / "budget.db")) as connection:
        connection.execute(f"CREATE TABLE {table}")
        connection.execute("CREATE TABLE tip (hash)")
    with pytest.raises(ArtefactError, match=r"budget.db: is not an hdmm ledger; name the file"):
        Ledger.open(tmp_path / "budget.db")


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chain, "FORMAT", 3)
    path = Ledger.create(tmp_path / "budget.db", Budget("1"), UNIT).path
    monkeypatch.undo()
    with pytest.raises(ArtefactError, match=r"budget.db: has format 3, this version reads 1 and 2; update hdmm"):
        Ledger.open(path)


def test_a_read_only_ledger_is_shown_but_not_charged(ledger: Ledger):
    spend(ledger, Budget("0.1"))
    ledger.path.chmod(0o444)
    for step in (lambda: spend(ledger, Budget("0.1")), lambda: ledger.publish("release 0", RELEASE)):
        with pytest.raises(FaultError, match=r"budget.db: the ledger cannot be written to; allow writing to the file"):
            step()
    assert len(Ledger.open(ledger.path).entries()) == ledger.verify().steps == 1


def test_a_locked_ledger_says_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chain, "_PATIENCE", 0.1)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for step in (lambda: spend(ledger, Budget("0.1")), lambda: Ledger.open(ledger.path)):
            with pytest.raises(FaultError, match=r"locked for 0.1 seconds; nothing was charged: try again when"):
                step()
    spend(ledger, Budget("1"))


def test_a_full_disk_charges_nothing(ledger: Ledger):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (256, hard))
        with pytest.raises(FaultError, match=r"budget.db: the ledger cannot be read or written: .*; free some space"):
            ledger.reserve("a", Budget("0.1"), UNIT, PLAN)
        with pytest.raises(FaultError, match=r"second.db: the ledger cannot be read or written"):
            Ledger.create(ledger.path.with_name("second.db"), Budget("1"), UNIT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (ledger.entries(), ledger.verify().steps) == ((), 0)
    assert [path.name for path in ledger.path.parent.iterdir()] == ["budget.db"]


def test_a_step_outlasts_a_power_failure(ledger: Ledger):
    with chain.transaction(ledger.path, ledger.path, writing=True) as connection:
        extra = 3
        assert connection.execute("PRAGMA synchronous").fetchone() == (extra,)
