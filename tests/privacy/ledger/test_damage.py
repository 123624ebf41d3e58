"""Damage, edits of entries, and entries that were never allowed are found, and nothing is spent then."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hdmm.errors import ArtefactError, InputError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger, chain
from tests.privacy.ledger.steps import OTHER, PLAN, RELEASE, UNIT, spend


def used(path: Path) -> Ledger:
    ledger = Ledger.create(path, Budget("1"), UNIT)
    ledger.reserve("a", Budget("0.5"), UNIT, PLAN)
    ledger.publish("a", RELEASE)
    ledger.reserve("b", Budget("0.25"), UNIT, PLAN)
    return ledger


def edit(ledger: Ledger, *statements: str) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount


SWAP = "UPDATE ledger SET number = CASE number WHEN 1 THEN -3 ELSE -1 END WHERE number IN (1, 3)"
EDITS: dict[str, tuple[list[str], str]] = {
    "an amount lowered": (["UPDATE ledger SET content = replace(content, '0.5', '0.1')"], "entry 1 was changed"),
    "the grant raised": (["UPDATE ledger SET content = replace(content, ':\"1\"', ':\"9\"')"], "entry 0 was changed"),
    "the unit changed": (["UPDATE ledger SET content = replace(content, 'add', 'odd')"], "entry 0 was changed"),
    "a state changed": (["UPDATE ledger SET content = replace(content, 'published', 'abandoned')"], "entry 2 was"),
    "a digest changed": ([f"UPDATE ledger SET content = replace(content, '{RELEASE}', '{OTHER}')"], "entry 2 was"),
    "a time changed": (["UPDATE ledger SET content = replace(content, 'Z', 'Y') WHERE number = 3"], "entry 3 was"),
    "one hash changed": (
        ["UPDATE ledger SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE number = 2"],
        "entry 2",
    ),
    "an entry deleted": (["DELETE FROM ledger WHERE number = 1"], "entry 1 is missing"),
    "the head deleted": (["DELETE FROM ledger WHERE number = 0"], "entry 0 is missing"),
    "the last deleted": (["DELETE FROM ledger WHERE number = 3"], "entry 3, the last one, is missing"),
    "entries swapped": ([SWAP, "UPDATE ledger SET number = -number WHERE number < 0"], "entry 1 was changed"),
    "not JSON": (["UPDATE ledger SET content = '{' WHERE number = 1"], "entry 1 was changed"),
    "not text": (["UPDATE ledger SET content = x'ff' WHERE number = 1"], "entry 1 was changed"),
    "not UTF-8": (["UPDATE ledger SET content = CAST(x'ff' AS TEXT) WHERE number = 1"], "SQLite cannot read it"),
}


@pytest.mark.parametrize(("statements", "found"), EDITS.values(), ids=EDITS)
def test_an_edit_is_found_and_nothing_is_spent(tmp_path: Path, statements: list[str], found: str):
    ledger = used(tmp_path / "budget.db")
    edit(ledger, *statements)
    steps = (ledger.verify, lambda: Ledger.open(ledger.path), lambda: spend(ledger, Budget("0.1")), ledger.describe)
    for step in steps:
        with pytest.raises(
            ArtefactError, match=f"budget.db: the ledger is damaged: {found}.*; spend nothing, and look"
        ):
            step()


def test_an_untouched_ledger_verifies(tmp_path: Path):
    report = used(tmp_path / "budget.db").verify()
    assert (report.steps, str(report.spent), str(report.left)) == (3, "ε = 0.75", "ε = 0.25")


def append(ledger: Ledger, **content: Any) -> None:
    """Add an entry that is not allowed, with a hash that is right."""
    with chain.transaction(ledger.path, ledger.path, writing=True) as connection:
        number, previous = connection.execute("SELECT max(number) + 1, hash FROM ledger").fetchone()
        chain.append(connection, number, previous, content)
        chain.commit(connection)


COST = {"state": "reserved", "plan": PLAN}
UNSOUND: dict[str, tuple[dict[str, object], str]] = {
    "overspent": ({**COST, "id": "c", "budget": {"epsilon": "0.26"}}, "entry 4 spends more than was left of ε = 1"),
    "Gaussian": ({**COST, "id": "c", "budget": {"rho": "1e-9"}, "mu_squared": "2e-9"}, "entry 4 spends more than"),
    "reserved twice": ({**COST, "id": "b", "budget": {"epsilon": "0.1"}}, "entry 4 does not follow from what was res"),
    "published twice": ({"state": "published", "id": "a", "release": OTHER}, "entry 4 does not follow from what was"),
    "unreserved": ({"state": "published", "id": "x", "release": OTHER}, "entry 4 does not follow from what was rec"),
    "unknown state": ({"state": "refunded", "id": "b"}, "entry 4 is not one that this version writes"),
    "negative": ({**COST, "id": "c", "budget": {"epsilon": "-1"}}, "entry 4 is not one that this version writes"),
    "no μ²": ({**COST, "id": "c", "budget": {"rho": "1"}}, "entry 4 is not one that this version writes"),
}


@pytest.mark.parametrize(("content", "found"), UNSOUND.values(), ids=UNSOUND)
def test_an_unsound_entry_is_found_although_its_hash_is_right(tmp_path: Path, content: dict[str, object], found: str):
    ledger = used(tmp_path / "budget.db")
    append(ledger, **content)
    with pytest.raises(ArtefactError, match=f"the ledger is damaged: {found}"):
        ledger.verify()
    with pytest.raises(InputError):
        spend(ledger, Budget("0.2"))


def test_a_key_that_stands_twice_is_found_although_the_hash_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ledger = used(tmp_path / "budget.db")
    canonical = chain.canonical
    with monkeypatch.context() as patch:
        patch.setattr(chain, "canonical", lambda content: canonical(content).replace("{", '{"id":"a",', 1))
        append(ledger, **COST, id="c", budget={"epsilon": "0.1"})
    with pytest.raises(ArtefactError, match="the ledger is damaged: entry 4 was changed"):
        ledger.verify()


def test_a_sound_entry_appended_in_the_same_way_is_taken(tmp_path: Path):
    ledger = used(tmp_path / "budget.db")
    append(ledger, **COST, id="c", budget={"epsilon": "0.25"})
    assert str(ledger.verify().left) == "ε = 0"


def test_any_flipped_bit_of_an_entry_is_found(tmp_path: Path):
    ledger = used(tmp_path / "budget.db")
    with closing(sqlite3.connect(ledger.path)) as connection:
        texts = [text for row in connection.execute("SELECT content, hash FROM ledger") for text in row]
    original = ledger.path.read_bytes()
    for text in texts:
        start = original.index(text.encode())
        for offset in range(0, len(text), 7):
            damaged = bytearray(original)
            damaged[start + offset] ^= 1
            ledger.path.write_bytes(damaged)
            with pytest.raises(ArtefactError, match=r"budget.db: (the ledger is damaged|has format|is not an hdmm)"):
                ledger.verify()
    ledger.path.write_bytes(original)
    ledger.verify()


def test_damage_outside_the_entries_is_found_by_verify(tmp_path: Path):
    ledger = used(tmp_path / "budget.db")
    damaged = bytearray(ledger.path.read_bytes())
    damaged[39] ^= 1  # of the number of unused pages
    ledger.path.write_bytes(damaged)
    with pytest.raises(ArtefactError, match="the ledger is damaged: SQLite finds errors in its pages; spend nothing"):
        ledger.verify()


def test_a_ledger_cut_short_is_refused(tmp_path: Path):
    ledger = used(tmp_path / "budget.db")
    ledger.path.write_bytes(ledger.path.read_bytes()[:-4096])
    with pytest.raises(ArtefactError, match="the ledger is damaged"):
        Ledger.open(ledger.path)


def test_only_what_is_listed_is_stored(tmp_path: Path):
    with closing(sqlite3.connect(used(tmp_path / "budget.db").path)) as connection:
        contents = [json.loads(row[0]) for row in connection.execute("SELECT content FROM ledger ORDER BY number")]
    assert [sorted(content) for content in contents] == [
        ["format", "granted", "hdmm", "time", "unit"],
        ["budget", "id", "plan", "state", "time"],
        ["id", "release", "state", "time"],
        ["budget", "id", "plan", "state", "time"],
    ]
