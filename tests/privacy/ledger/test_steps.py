"""A release is reserved, then published or abandoned, in that order, once; and the description shows it."""

import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from hdmm.errors import BudgetError, InputError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import AlreadyPublished, Entry, Ledger
from hdmm.privacy.unit import Unit
from tests.privacy.ledger.steps import OTHER, PLAN, RELEASE, UNIT


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
        with pytest.raises(
            BudgetError, match=r"release 'a': was abandoned on .*; reserve it again, which is charged again"
        ):
            step()


def test_an_unknown_release_is_neither_published_nor_abandoned(ledger: Ledger):
    for step in (lambda: ledger.publish("a", RELEASE), lambda: ledger.abandon("a")):
        with pytest.raises(BudgetError, match=r"release 'a': is not in the ledger"):
            step()


def test_a_release_is_published_once(ledger: Ledger):
    ledger.reserve("a", Budget("0.6"), UNIT, PLAN)
    published = ledger.publish("a", RELEASE)
    assert ledger.publish("a", RELEASE) == published
    with pytest.raises(BudgetError, match=r"release 'a': was published on .* with another digest; reserve another id"):
        ledger.publish("a", OTHER)
    with pytest.raises(BudgetError, match=r"release 'a': was published on .* and cannot be abandoned"):
        ledger.abandon("a")
    assert ledger.verify().steps == 2


def test_a_ledger_is_bound_to_one_unit(ledger: Ledger):
    with pytest.raises(
        BudgetError, match=r"the plan protects 3 rows per person, add-remove, and the ledger .* accounts for 1 row per"
    ):
        ledger.reserve("a", Budget("0.1"), Unit(rows=3), PLAN)
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
