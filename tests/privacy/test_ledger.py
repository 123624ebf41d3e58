"""The ledger never lets more be spent than was granted, whatever races, crashes or edits happen to its file."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import exp, sqrt
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from hdmm.errors import ArtefactError, BudgetError, FaultError, InputError
from hdmm.privacy import ledger as module
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import certified_sigma
from hdmm.privacy.ledger import AlreadyPublished, Entry, Ledger
from hdmm.privacy.unit import Unit

PLAN, RELEASE, OTHER = "a" * 64, "b" * 64, "c" * 64
UNIT = Unit()


def another_unit() -> Unit:
    """A unit that this version cannot build, as a later one might."""
    unit = object.__new__(Unit)
    object.__setattr__(unit, "rows", 3)
    object.__setattr__(unit, "neighbours", "add-remove")
    return unit


def spend(ledger: Ledger, *budgets: Budget) -> None:
    for budget in budgets:
        ledger.reserve(f"release {len(ledger.entries())}", budget, UNIT, PLAN)


def refused(ledger: Ledger, budget: Budget) -> bool:
    """Whether a budget is refused for what is left; the ledger is the same afterwards."""
    before = ledger.entries()
    try:
        ledger.reserve("too much", budget, UNIT, PLAN)
    except BudgetError as error:
        message = str(error)
    else:
        return False
    assert "left of" in message or "no Laplace release after a Gaussian one" in message
    assert ledger.entries() == before
    return True


def delta_of(mu_squared: float, epsilon: float) -> float:
    """The exact δ of Gaussian releases at ε."""
    mu = sqrt(mu_squared)
    return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", Budget("1"), UNIT)


@contextmanager
def in_memory() -> Iterator[Path]:
    """A directory without a disk below it, for tests with many ledgers."""
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=fast) as directory:
        yield Path(directory)


# The file


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
    monkeypatch.setattr(module, "_check_new", lambda path: None)
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
    monkeypatch.setattr(module, "FORMAT", 2)
    path = Ledger.create(tmp_path / "budget.db", Budget("1"), UNIT).path
    monkeypatch.undo()
    with pytest.raises(ArtefactError, match=r"budget.db: has format 2, this version reads 1; update hdmm"):
        Ledger.open(path)


def test_a_read_only_ledger_is_shown_but_not_charged(ledger: Ledger):
    spend(ledger, Budget("0.1"))
    ledger.path.chmod(0o444)
    for step in (lambda: spend(ledger, Budget("0.1")), lambda: ledger.publish("release 0", RELEASE)):
        with pytest.raises(FaultError, match=r"budget.db: the ledger cannot be written to; allow writing to the file"):
            step()
    assert len(Ledger.open(ledger.path).entries()) == ledger.verify().steps == 1


def test_a_locked_ledger_says_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
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
    with module._transaction(ledger.path, ledger.path, writing=True) as connection:
        extra = 3
        assert connection.execute("PRAGMA synchronous").fetchone() == (extra,)


# The steps of a release


def test_a_release_is_reserved_then_published(ledger: Ledger):
    reserved = ledger.reserve("a", Budget("0.25"), UNIT, PLAN)
    assert reserved == Entry("a", "reserved", Budget("0.25"), None, reserved.time, PLAN, None, 1)
    published = ledger.publish("a", RELEASE)
    assert published == Entry("a", "published", Budget("0.25"), None, published.time, PLAN, RELEASE, 1)
    assert Ledger.open(ledger.path).entries() == (published,)


def test_times_are_utc(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "XXX-9")
    time.tzset()
    try:
        noted = datetime.fromisoformat(ledger.reserve("a", Budget("0.25"), UNIT, PLAN).time)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert abs(datetime.now(UTC) - noted) < timedelta(minutes=5)


def test_a_published_id_is_not_charged_again(ledger: Ledger):
    ledger.reserve("a", Budget("1"), UNIT, PLAN)
    published = ledger.publish("a", RELEASE)
    before = ledger.path.read_bytes()
    with pytest.raises(
        AlreadyPublished, match=r"id='a': was published on .* with ε = 1; nothing was charged"
    ) as caught:
        ledger.reserve("a", Budget("1"), UNIT, PLAN)
    assert caught.value.entry == published
    assert ledger.path.read_bytes() == before


def test_a_reserved_id_stops_and_says_how_to_go_on(ledger: Ledger):
    ledger.reserve("a", Budget("0.1"), UNIT, PLAN)
    with pytest.raises(
        BudgetError, match=r"id='a': was reserved on .*: choose another id, or abandon this one"
    ) as caught:
        ledger.reserve("a", Budget("0.1"), UNIT, PLAN)
    assert not isinstance(caught.value, AlreadyPublished)
    assert ledger.spent().epsilon == Fraction(1, 10)


def test_an_abandoned_release_stays_charged(ledger: Ledger):
    ledger.reserve("a", Budget("0.6"), UNIT, PLAN)
    assert ledger.abandon("a").state == "abandoned"
    assert str(ledger.left()) == "ε = 0.4"
    with pytest.raises(BudgetError, match="left of"):
        ledger.reserve("a", Budget("0.6"), UNIT, PLAN)
    ledger.reserve("a", Budget("0.4"), UNIT, PLAN)
    ledger.publish("a", RELEASE)
    assert [entry.state for entry in ledger.entries()] == ["abandoned", "published"]
    assert ledger.verify().steps == 4


def test_an_abandoned_release_cannot_be_published(ledger: Ledger):
    ledger.reserve("a", Budget("0.6"), UNIT, PLAN)
    ledger.abandon("a")
    for step in (lambda: ledger.publish("a", RELEASE), lambda: ledger.abandon("a")):
        with pytest.raises(BudgetError, match=r"id='a': was abandoned on .*; reserve it again, which is charged again"):
            step()


def test_an_unknown_release_is_neither_published_nor_abandoned(ledger: Ledger):
    for step in (lambda: ledger.publish("a", RELEASE), lambda: ledger.abandon("a")):
        with pytest.raises(BudgetError, match=r"id='a': is not in the ledger .*; reserve it first"):
            step()


def test_a_release_is_published_once(ledger: Ledger):
    ledger.reserve("a", Budget("0.6"), UNIT, PLAN)
    published = ledger.publish("a", RELEASE)
    assert ledger.publish("a", RELEASE) == published
    with pytest.raises(BudgetError, match=r"id='a': was published on .* with another release; reserve another id"):
        ledger.publish("a", OTHER)
    with pytest.raises(BudgetError, match=r"id='a': was published on .* and cannot be abandoned"):
        ledger.abandon("a")
    assert ledger.verify().steps == 2


def test_a_ledger_is_bound_to_one_unit(ledger: Ledger):
    with pytest.raises(
        BudgetError, match=r"unit='3 rows per person, add-remove': the ledger .* accounts for 1 row per"
    ):
        ledger.reserve("a", Budget("0.1"), another_unit(), PLAN)
    assert not ledger.entries()


@pytest.mark.parametrize("id", ["", "a\nb", "\x1b[31m", "\ud800", "a" * 201, None, 1])
def test_an_id_that_cannot_be_shown_is_refused(ledger: Ledger, id):
    with pytest.raises(InputError, match=r"id=.*: expected 1 to 200 printable characters"):
        ledger.reserve(id, Budget("0.1"), UNIT, PLAN)


@pytest.mark.parametrize("digest", ["", "a" * 63, "A" * 64, "a" * 64 + "\n", None])
def test_a_digest_that_is_none_is_refused(ledger: Ledger, digest):
    with pytest.raises(InputError, match=r"plan_digest=.*: expected a SHA-256 digest"):
        ledger.reserve("a", Budget("0.1"), UNIT, digest)
    with pytest.raises(InputError, match=r"release_digest=.*: expected a SHA-256 digest"):
        ledger.publish("a", digest)


def test_the_description_shows_all(ledger: Ledger):
    ledger.reserve("2026 — März", Budget("0.25"), UNIT, PLAN)
    ledger.publish("2026 — März", RELEASE)
    text = ledger.describe()
    shown = ["1 row per person, add-remove", "ε = 1\n", "ε = 0.25", "ε = 0.75", "2026 — März  published", PLAN[:12]]
    assert all(part in text for part in [*shown, RELEASE[:12], ledger.entries()[0].time])


def test_an_empty_ledger_is_described(tmp_path: Path):
    text = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT).describe()
    assert "spent    ε = 0 by Laplace noise and ρ = 0 by Gaussian noise" in text
    assert "left     ε = 1 by Laplace noise or ρ = 0.0280144 by Gaussian noise" in text


# What adds up, and to what


def test_ten_tenths_fit_one_and_the_eleventh_does_not(ledger: Ledger):
    spend(ledger, *[Budget("0.1")] * 10)
    assert (str(ledger.spent()), str(ledger.left())) == ("ε = 1", "ε = 0")
    with pytest.raises(BudgetError, match=r"budget ε = 0.1: the ledger .* has ε = 0 left of ε = 1; spend less, or"):
        ledger.reserve("eleven", Budget("0.1"), UNIT, PLAN)
    assert ledger.verify().steps == 10


def test_a_very_small_epsilon_is_recorded_exactly(ledger: Ledger):
    spend(ledger, Budget("1e-17"))
    assert ledger.entries()[0].budget.epsilon == Fraction(1, 10**17)
    assert str(ledger.left()) == "ε = 0.99999999999999999"
    assert refused(ledger, Budget("1"))
    spend(ledger, Budget("0.99999999999999999"))


def test_fractions_that_are_no_decimals_add_up_exactly(ledger: Ledger):
    spend(ledger, *[Budget(Fraction(1, 3))] * 3)
    assert refused(ledger, Budget("1e-100"))


@pytest.mark.parametrize("budget", [Budget("0.1", "1e-6"), Budget(rho="0.001")], ids=str)
def test_epsilon_alone_takes_no_gaussian_release(ledger: Ledger, budget: Budget):
    with pytest.raises(BudgetError, match="grants ε = 1 alone, which Gaussian noise cannot keep; plan with Laplace"):
        ledger.reserve("a", budget, UNIT, PLAN)


def test_rho_adds_up_exactly(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="1"), UNIT)
    spend(ledger, *[Budget(rho="0.1")] * 9, Budget(rho="0.09999999999999999999999999"))
    assert str(ledger.left()) == "ρ = 1e-26"
    assert refused(ledger, Budget(rho="1.1e-26"))
    spend(ledger, Budget(rho="1e-26"))


def test_laplace_costs_half_epsilon_squared_of_rho(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="0.5"), UNIT)
    assert refused(ledger, Budget("1.0000000000000000000001"))
    spend(ledger, Budget("1"))
    assert str(ledger.left()) == "ρ = 0"


def test_an_epsilon_with_delta_costs_its_noise_of_rho(tmp_path: Path):
    budget = Budget("1", "1e-6")
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="0.5"), UNIT)
    spend(ledger, budget)
    rho = ledger.spent().rho
    exact = 1 / certified_sigma(budget) ** 2 / 2
    assert rho is not None
    assert exact <= rho <= exact * (1 + Fraction(1, 10**19))


@pytest.mark.parametrize("total", [("1", "1e-6"), ("0.1", "1e-9"), ("10", "1e-15"), ("1e-17", "0.01")], ids=str)
def test_one_gaussian_release_may_take_everything(tmp_path: Path, total: tuple[str, str]):
    ledger = Ledger.create(tmp_path / "b.db", Budget(*total), UNIT)
    spend(ledger, Budget(*total))
    ledger.verify()
    assert refused(ledger, Budget(*total))
    assert refused(ledger, Budget("1e-20"))
    assert refused(ledger, Budget(rho="1e-20"))
    left = ledger.left()
    assert (left.epsilon, left.rho) == (None, 0)


def test_one_gaussian_release_keeps_the_granted_delta(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-9"), UNIT)
    assert refused(ledger, Budget("1", "1e-6"))
    spend(ledger, Budget("0.5", "1e-6"))  # more noise than (1, 1e-9) needs
    assert delta_of(2 * float(ledger.spent().rho or 0), 1.0) < 1e-9


def test_gaussian_releases_compose_by_their_noise(tmp_path: Path):
    """Four releases of twice the standard deviation are one; their ε would add up to much more."""
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    quarter = Budget(rho=ledger.left().rho / 4 if ledger.left().rho else None)
    spend(ledger, *[quarter] * 4)
    assert refused(ledger, Budget(rho="1e-7"))
    assert delta_of(2 * float(ledger.spent().rho or 0), 1.0) == pytest.approx(1e-6, rel=1e-3)


def test_laplace_takes_its_epsilon_from_the_gaussian_releases(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    spend(ledger, Budget("0.4"))
    assert refused(ledger, Budget("0.6000000001", "1e-6"))
    spend(ledger, Budget("0.6", "1e-6"))
    assert refused(ledger, Budget("1e-9"))


def test_what_is_left_can_be_spent_and_no_more(tmp_path: Path):
    for number, (kind, before) in enumerate(
        {"epsilon": [], "rho": [Budget("0.3", "1e-7"), Budget("0.2", "1e-6")]}.items()
    ):
        ledger = Ledger.create(tmp_path / f"{number}.db", Budget("1", "1e-6"), UNIT)
        spend(ledger, Budget("0.1"), *before)
        left = getattr(ledger.left(), kind)
        assert left > 0
        assert refused(ledger, Budget(**{kind: left * Fraction(100_002, 100_000)}))
        spend(ledger, Budget(**{kind: left}))
        ledger.verify()


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([("1", "1e-6"), ("3", "1e-3"), ("0.2", "1e-10")]),
    st.lists(st.tuples(st.sampled_from(["laplace", "delta", "rho"]), st.integers(1, 60)), min_size=1, max_size=8),
)
def test_accepted_mixtures_are_as_private_as_granted(total: tuple[str, str], asked: list[tuple[str, int]]):
    """The exact δ of randomised responses, the worst of all ε-private releases, beside the Gaussian releases."""
    granted = Budget(*total)
    assert granted.epsilon is not None
    charged, accepted = module._Charged(), 0
    for kind, percent in asked:
        share = Fraction(percent, 100)
        budget = {
            "laplace": Budget(granted.epsilon * share),
            "delta": Budget(granted.epsilon * share, granted.delta),
            "rho": Budget(rho=share / certified_sigma(granted) ** 2 / 2),
        }[kind]
        wider = charged.plus(budget, module._mu_squared(budget))
        charged, accepted = (wider, accepted + 1) if wider.fits(granted) else (charged, accepted)
    assert accepted
    worst, pure = 0.0, float(charged.epsilon)
    for loss in (pure, -pure):
        likely = exp(loss) / (1 + exp(loss)) if pure else 0.5
        rest = float(granted.epsilon) - loss
        worst += likely * (delta_of(float(charged.mu_squared), rest) if charged.mu_squared else max(0, 1 - exp(rest)))
    assert worst <= float(granted.delta or 0) * (1 + 1e-9) + 1e-15


def test_what_floats_cannot_tell_is_not_granted():
    """At ε = δ = 1e-17 a σ found in floats is far too small; the capacity must not rest on it."""
    tiny = Fraction(1, 10**17)
    truth = 8 * Fraction(355, 113) * tiny**2  # above μ²: μ = δ·√(2π) at ε = 0, and less than twice that at ε = δ
    assert module._capacity(tiny, tiny) <= truth


# A model in memory


class Model:
    """What a ledger of exact amounts must do, in a few lines."""

    def __init__(self, total: Fraction) -> None:
        self.left = total
        self.states: dict[str, str] = {}
        self.releases: dict[str, str] = {}

    def reserve(self, id: str, cost: Fraction) -> bool:
        if self.states.get(id) in ("reserved", "published") or cost > self.left:
            return False
        self.left -= cost
        self.states[id] = "reserved"
        return True

    def publish(self, id: str, digest: str) -> bool:
        if self.states.get(id) == "published":
            return self.releases[id] == digest
        if self.states.get(id) != "reserved":
            return False
        self.states[id], self.releases[id] = "published", digest
        return True

    def abandon(self, id: str) -> bool:
        if self.states.get(id) != "reserved":
            return False
        self.states[id] = "abandoned"
        return True


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "publish", "abandon"]),
        st.sampled_from("abc"),
        st.sampled_from(["0.1", "0.25", "0.3", "1e-17"]),
        st.sampled_from([RELEASE, OTHER]),
    ),
    max_size=16,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.booleans())
def test_any_steps_end_as_in_the_model(steps: list[tuple[str, str, str, str]], of_rho: bool):
    model = Model(Fraction(1))
    with in_memory() as directory:
        ledger = Ledger.create(directory / "b.db", Budget(rho=1) if of_rho else Budget(1), UNIT)
        for step, id, cost, digest in steps:
            budget = Budget(rho=cost) if of_rho else Budget(cost)
            try:
                if step == "reserve":
                    expected = model.reserve(id, Fraction(cost))
                    ledger.reserve(id, budget, UNIT, PLAN)
                elif step == "publish":
                    expected = model.publish(id, digest)
                    ledger.publish(id, digest)
                else:
                    expected = model.abandon(id)
                    ledger.abandon(id)
                happened = True
            except BudgetError:
                happened = False
            assert happened == expected
        assert {entry.id: entry.state for entry in ledger.entries()} == model.states
        left = ledger.left().rho if of_rho else ledger.left().epsilon
        assert left == model.left
        assert ledger.verify().left == ledger.left()


# Damage


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


def append(ledger: Ledger, **content: object) -> None:
    """Add an entry that is not allowed, with a hash that is right."""
    with module._transaction(ledger.path, ledger.path, writing=True) as connection:
        number, previous = connection.execute("SELECT max(number) + 1, hash FROM ledger").fetchone()
        module._append(connection, number, previous, {**content, "time": "2026-01-01T00:00:00Z"})
        connection.execute("COMMIT")


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
    canonical = module._canonical
    with monkeypatch.context() as patch:
        patch.setattr(module, "_canonical", lambda content: canonical(content).replace("{", '{"id":"a",', 1))
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


# Several processes, and crashes

PRELUDE = f"""
import os, signal, sys
from hdmm.errors import BudgetError
from hdmm.privacy import ledger as module
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger
from hdmm.privacy.unit import Unit
PLAN, RELEASE = {PLAN!r}, {RELEASE!r}
"""
RACER = """
for line in sys.stdin:
    path = line.strip()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        Ledger.open(path).reserve(sys.argv[1], Budget("0.1"), Unit(), PLAN)
        print("won", flush=True)
    except BudgetError as error:
        print("lost" if "left of" in str(error) else error, flush=True)
"""


def test_of_two_processes_that_race_for_the_last_budget_one_wins_each_time():
    with in_memory() as directory:
        command = [sys.executable, "-c", PRELUDE + RACER]
        racers = [
            subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            for name in ("one", "two")
        ]
        winners = []
        for number in range(100):
            ledger = Ledger.create(directory / f"{number}.db", Budget("0.15"), UNIT)
            tell(racers, str(ledger.path))
            assert [heard(racer) for racer in racers] == ["ready", "ready"]
            tell(racers[:: -1 if number % 2 else 1], "go")
            results = [heard(racer) for racer in racers]
            assert sorted(results) == ["lost", "won"]
            assert [entry.id for entry in ledger.entries()] == [("one", "two")[results.index("won")]]
            winners.append(results.index("won"))
        for racer in racers:
            racer.communicate()
    assert set(winners) == {0, 1}  # or nobody raced


def tell(racers: list[subprocess.Popen[str]], line: str) -> None:
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(line + "\n")


def heard(racer: subprocess.Popen[str]) -> str:
    assert racer.stdout is not None
    return racer.stdout.readline().strip()


KILLED = """
commit = module._commit
def killed(connection):
    if sys.argv[3] == "after":
        commit(connection)
    os.kill(os.getpid(), signal.SIGKILL)
ledger = Ledger.open(sys.argv[1])
if sys.argv[2] == "publish":
    ledger.reserve("a", Budget("0.6"), Unit(), PLAN)
module._commit = killed
if sys.argv[2] == "reserve":
    ledger.reserve("a", Budget("0.6"), Unit(), PLAN)
else:
    ledger.publish("a", RELEASE)
"""


@pytest.mark.parametrize(
    ("step", "when", "states"),
    [
        ("reserve", "before", []),
        ("reserve", "after", ["reserved"]),
        ("publish", "before", ["reserved"]),
        ("publish", "after", ["published"]),
    ],
)
def test_a_process_killed_at_a_commit_leaves_the_entry_whole_or_not_at_all(
    ledger: Ledger, step: str, when: str, states: list[str]
):
    done = subprocess.run([sys.executable, "-c", PRELUDE + KILLED, str(ledger.path), step, when], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [entry.state for entry in Ledger.open(ledger.path).entries()] == states
    assert ledger.verify().steps == len(states) + (states == ["published"])
    assert refused(ledger, Budget("0.6")) == bool(states)


BUSY = """
ledger = Ledger.open(sys.argv[1])
for number in range(10_000):
    ledger.reserve(f"{os.getpid()} {number}", Budget("1e-9"), Unit(), PLAN)
    print(f"{os.getpid()} {number}", flush=True)
"""


def test_what_was_reserved_is_there_whenever_the_process_is_killed(ledger: Ledger):
    acknowledged: list[str] = []
    for wanted in (1, 2, 3, 5):
        busy = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + BUSY, str(ledger.path)], stdout=subprocess.PIPE, text=True
        )
        assert busy.stdout is not None
        lines = [busy.stdout.readline() for _ in range(wanted)]
        busy.kill()
        acknowledged += [line.strip() for line in [*lines, *busy.communicate()[0].splitlines()]]
        ids = [entry.id for entry in ledger.entries()]
        ledger.verify()
        assert [id for id in ids if id in acknowledged] == acknowledged
        assert len(ids) - len(acknowledged) <= 4  # one for each kill, at most
