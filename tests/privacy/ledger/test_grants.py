"""A grant is raised by an entry of its own, as lasting and as checked as any other."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdmm.errors import ArtefactError, BudgetError, FaultError, InputError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger, chain, composition
from hdmm.privacy.ledger.account import raised
from hdmm.privacy.ledger.composition import Charged, capacity, mu_squared_of
from tests.privacy.ledger.steps import UNIT, in_memory, refused, spend
from tests.privacy.ledger.test_damage import COST, append
from tests.privacy.ledger.test_processes import PRELUDE, heard, tell


def test_a_raised_grant_can_be_spent_and_no_more(ledger: Ledger):
    spend(ledger, Budget("1"))
    assert refused(ledger, Budget("0.1"))
    grant = ledger.grant(Budget("0.5"), "the board")
    assert (grant.budget, grant.total, grant.note) == (Budget("0.5"), Budget("1.5"), "the board")
    assert (ledger.granted, str(ledger.left())) == (Budget("1.5"), "ε = 0.5")
    assert refused(ledger, Budget("0.500000001"))
    spend(ledger, Budget("0.5"))
    assert (ledger.verify().steps, str(ledger.verify().left)) == (3, "ε = 0")


def test_grants_are_kept_with_their_time(ledger: Ledger):
    ledger.grant(Budget("0.25"))
    first, second = ledger.grants()
    assert [grant.budget for grant in (first, second)] == [Budget("1"), Budget("0.25")]
    assert [grant.number for grant in (first, second)] == [0, 1]
    assert second.time >= first.time


def test_grants_are_shown(ledger: Ledger):
    assert "in all" not in ledger.describe()
    grant = ledger.grant(Budget("0.25"), "the board, 3 May")
    shown = " ".join(ledger.describe().split())
    assert f"ε = 0.25 ε = 1.25 {grant.time} the board, 3 May" in shown


def test_rho_is_raised_by_rho(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="0.5"), UNIT)
    spend(ledger, Budget(rho="0.5"))
    ledger.grant(Budget(rho="0.25"))
    spend(ledger, Budget(rho="0.25"))
    assert refused(ledger, Budget(rho="1e-9"))


@pytest.mark.parametrize("more", [Budget("1"), Budget("1", "1e-7")], ids=str)
def test_gaussian_releases_are_held_to_the_total(tmp_path: Path, more: Budget):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    spend(ledger, Budget("0.25"), Budget("0.5", "1e-6"))
    ledger.grant(more)
    delta = Fraction(1, 10**6) + (more.delta or 0)
    assert ledger.granted == Budget("2", delta)
    free = capacity(Fraction(7, 4), delta) - (mu_squared_of(Budget("0.5", "1e-6")) or 0)
    assert ledger.left().rho == pytest.approx(float(free / 2), rel=1e-5)
    assert refused(ledger, Budget(rho=free / 2 * Fraction(1_000_001, 1_000_000)))
    spend(ledger, Budget(rho=free / 2 * Fraction(999_999, 1_000_000)))
    ledger.verify()


OTHERS = {
    "rho for epsilon": (Budget("1"), Budget(rho="1")),
    "delta for epsilon": (Budget("1"), Budget("1", "1e-6")),
    "epsilon for rho": (Budget(rho="1"), Budget("1")),
    "rho for epsilon and delta": (Budget("1", "1e-6"), Budget(rho="1")),
    "too much": (Budget("1"), Budget("499.1")),
    "a delta of one": (Budget("1", "0.5"), Budget("1", "0.5")),
}


@pytest.mark.parametrize(("granted", "more"), OTHERS.values(), ids=OTHERS)
def test_a_grant_that_does_not_fit_is_refused(tmp_path: Path, granted: Budget, more: Budget):
    ledger = Ledger.create(tmp_path / "b.db", granted, UNIT)
    with pytest.raises(BudgetError, match=r"budget .*: the ledger .* grants"):
        ledger.grant(more)
    assert (ledger.granted, ledger.verify().steps) == (granted, 0)


@pytest.mark.parametrize("note", ["", "two\nlines", "x" * 501, 7])
def test_a_note_is_printable_text(ledger: Ledger, note):
    with pytest.raises(InputError, match=r"note=.*: expected 1 to 500 printable characters"):
        ledger.grant(Budget("1"), note)
    assert ledger.verify().steps == 0


def test_a_release_before_a_grant_is_held_to_the_earlier_one(ledger: Ledger):
    append_reserved = {**COST, "id": "early", "budget": {"epsilon": "1.5"}}
    ledger.grant(Budget("0.25"))
    append(ledger, **append_reserved)
    append(ledger, state="granted", format=2, budget={"epsilon": "9"})
    with pytest.raises(ArtefactError, match=r"entry 2 spends more than was left of ε = 1\.25"):
        ledger.verify()


EDITS = {
    "raised": "UPDATE ledger SET content = replace(content, '0.25', '9.25') WHERE number = 1",
    "deleted": "DELETE FROM ledger WHERE number = 1",
    "another note": "UPDATE ledger SET content = replace(content, 'board', 'court') WHERE number = 1",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS)
def test_an_edited_grant_is_found(ledger: Ledger, statement: str):
    ledger.grant(Budget("0.25"), "the board")
    spend(ledger, Budget("0.1"))
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        assert connection.execute(statement).rowcount == 1
    for step in (ledger.verify, ledger.left, lambda: ledger.grant(Budget("1"))):
        with pytest.raises(ArtefactError, match="the ledger is damaged: entry 1"):
            step()


UNSOUND: dict[str, dict[str, object]] = {
    "negative": {"budget": {"epsilon": "-0.5"}},
    "of another kind": {"budget": {"rho": "1"}},
    "without a format": {"format": 1},
    "a note that is no text": {"note": 7},
    "too much": {"budget": {"epsilon": "499.5"}},
}


@pytest.mark.parametrize("content", UNSOUND.values(), ids=UNSOUND)
def test_an_unsound_grant_is_found_although_its_hash_is_right(ledger: Ledger, content: dict[str, object]):
    append(ledger, **{"state": "granted", "format": 2, "budget": {"epsilon": "1"}, **content})
    with pytest.raises(ArtefactError, match="damaged: entry 1 is not one that this version writes"):
        ledger.verify()


def test_a_version_that_knows_no_grants_refuses_the_entry(ledger: Ledger):
    """It reads the id of every entry after the first, and this one has none; later ones read its format."""
    ledger.grant(Budget("0.25"), "the board")
    with closing(sqlite3.connect(ledger.path)) as connection:
        (text,) = connection.execute("SELECT content FROM ledger WHERE number = 1").fetchone()
    assert sorted(json.loads(text)) == ["budget", "format", "note", "state", "time"]
    assert json.loads(text)["format"] == 2


def test_an_entry_of_a_later_format_asks_for_an_update(ledger: Ledger):
    append(ledger, state="lowered", format=3)
    with pytest.raises(ArtefactError, match="has format 3, this version reads 1 and 2; update hdmm"):
        ledger.verify()


def test_a_read_only_ledger_is_not_raised(ledger: Ledger):
    ledger.path.chmod(0o444)
    with pytest.raises(FaultError, match="cannot be written to"):
        ledger.grant(Budget("1"))
    assert ledger.granted == Budget("1")


KILLED = """
commit = chain.commit
def killed(connection):
    if sys.argv[2] == "after":
        commit(connection)
    os.kill(os.getpid(), signal.SIGKILL)
chain.commit = killed
Ledger.open(sys.argv[1]).grant(Budget("0.5"))
"""


@pytest.mark.parametrize(("when", "granted"), [("before", "1"), ("after", "1.5")])
def test_a_process_killed_at_a_grant_leaves_it_whole_or_not_at_all(ledger: Ledger, when: str, granted: str):
    done = subprocess.run([sys.executable, "-c", PRELUDE + KILLED, str(ledger.path), when], check=False)
    assert done.returncode == -signal.SIGKILL
    assert ledger.granted == Budget(granted)
    ledger.verify()
    assert refused(ledger, Budget("1.2")) == (when == "before")


RACER = """
for line in sys.stdin:
    path = line.strip()
    print("ready", flush=True)
    sys.stdin.readline()
    ledger = Ledger.open(path)
    try:
        if sys.argv[1] == "grant":
            ledger.grant(Budget("0.1"))
        else:
            ledger.reserve(sys.argv[1], Budget("0.1"), Unit(), PLAN)
        print("done", flush=True)
    except BudgetError:
        print("refused", flush=True)
"""


@pytest.mark.parametrize("other", ["grant", "release"])
def test_no_grant_is_lost_to_another_process(other: str):
    """A release that races with a grant is admitted if it comes after it, and refused before."""
    with in_memory() as directory:
        command = [sys.executable, "-c", PRELUDE + RACER]
        racers = [
            subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            for name in ("grant", other)
        ]
        for number in range(40):
            ledger = Ledger.create(directory / f"{number}.db", Budget("0.05"), UNIT)
            tell(racers, str(ledger.path))
            assert [heard(racer) for racer in racers] == ["ready", "ready"]
            tell(racers[:: -1 if number % 2 else 1], "go")
            results = [heard(racer) for racer in racers]
            assert results[0] == "done"
            assert ledger.granted == Budget("0.25" if other == "grant" else "0.15")
            admitted = [entry.number for entry in ledger.entries()]
            assert admitted == ([2] if other == "release" and results[1] == "done" else [])
            ledger.verify()
        for racer in racers:
            racer.communicate()


SPENT = st.lists(st.tuples(st.sampled_from(["laplace", "delta", "rho"]), st.integers(1, 60)), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([("1", "1e-6"), ("3", "1e-3"), ("0.2", "1e-10")]),
    SPENT,
    st.sampled_from(["1e-9", "0.1", "2"]),
    st.sampled_from([None, "1e-12", "1e-3"]),
)
def test_whatever_fits_a_grant_fits_a_raised_one(
    total: tuple[str, str], asked: list[tuple[str, int]], epsilon: str, delta: str | None
):
    granted, charged = Budget(*total), Charged()
    assert granted.epsilon is not None
    for kind, percent in asked:
        share = Fraction(percent, 100)
        budget = {
            "laplace": Budget(granted.epsilon * share),
            "delta": Budget(granted.epsilon * share, granted.delta),
            "rho": Budget(rho=share / 100),
        }[kind]
        wider = charged.plus(budget, mu_squared_of(budget))
        charged = wider if wider.fits(granted) else charged
    assert charged.fits(raised(granted, Budget(epsilon, delta)))


def test_a_grant_outlasts_a_power_failure(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    """It is committed in a transaction that syncs, and read back before it is committed."""
    extra, modes = 3, []
    commit = chain.commit

    def watched(connection: sqlite3.Connection) -> None:
        modes.append(connection.execute("PRAGMA synchronous").fetchone()[0])
        commit(connection)

    monkeypatch.setattr(chain, "commit", watched)
    ledger.grant(Budget("1"))
    assert modes == [extra]


def test_a_total_that_cannot_be_accounted_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If no noise could be verified at the total, its capacity is zero, and the ledger would count as overspent."""
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    spend(ledger, Budget(rho="0.001"))
    monkeypatch.setattr(composition, "capacity", lambda epsilon, delta: Fraction(0))
    with pytest.raises(BudgetError, match=r"a total of ε = 3, δ = 0.000001 cannot be accounted for; add less"):
        ledger.grant(Budget("2"))
    assert ledger.granted == Budget("1", "1e-6")
