"""Summaries of columns, however many texts they have."""

import numpy as np
import pytest

from hdmm.data.look import Column
from hdmm.proposal import summary
from hdmm.proposal.readings import Amounts
from hdmm.proposal.summary import Collector
from tests.proposal.summaries import summarise


def test_every_text_is_counted():
    seen = summarise(["a", "b", "a", ""])
    assert (dict(seen.counts), seen.records, seen.empty, seen.distinct, seen.complete) == (
        {"a": 2, "b": 1},
        4,
        1,
        2,
        True,
    )


def test_the_most_frequent_text_comes_first():
    assert list(summarise(["b", "a", "c", "c", "a", "a"]).counts) == ["a", "c", "b"]


def test_numbers_are_in_order_with_their_records():
    seen = summarise(["10", "9", "9.0", "NA"])
    assert (seen.values.tolist(), seen.weights.tolist(), dict(seen.unread)) == ([9, 10], [2, 1], {"NA": 1})


@pytest.mark.parametrize(
    ("text", "pointed", "padded"), [("7", False, False), ("7.0", True, False), ("07", False, True)]
)
def test_the_way_numbers_are_written_is_noticed(text, pointed, padded):
    seen = summarise(["1", text])
    assert (seen.pointed, seen.padded) == (pointed, padded)


def test_a_point_between_thousands_is_no_decimal_point():
    assert not summarise(["1.200", "3.400.000", "5,5"] * 20 + ["7,0"]).whole
    assert not summarise(["1.200.000", "3.400.000"]).pointed


def test_missing_words_and_empty_fields_are_not_filled():
    assert summarise(["a", "NA", "", "b"]).filled == 2


@pytest.fixture
def few(monkeypatch):
    """Only a few texts and numbers are kept."""
    monkeypatch.setattr(summary, "MAX_TEXTS", 100)
    monkeypatch.setattr(summary, "_MAX_NUMBERS", 64)


@pytest.mark.usefixtures("few")
def test_with_too_many_texts_the_frequent_ones_are_kept():
    collector = Collector(Column("x"))
    for step in range(50):
        collector.add(["often", *(f"{step}-{at}" for at in range(20))], [30, *[1] * 20])
    seen = collector.summary()
    assert (next(iter(seen.counts.items())), seen.complete, len(seen.counts) <= 100) == (("often", 1500), False, True)


@pytest.mark.usefixtures("few")
def test_with_too_many_texts_their_number_is_estimated():
    collector = Collector(Column("x"))
    collector.add([f"t{at}" for at in range(20_000)], [1] * 20_000)
    assert collector.summary().distinct == pytest.approx(20_000, rel=0.15)


@pytest.mark.usefixtures("few")
def test_with_too_many_numbers_their_distribution_stays():
    collector = Collector(Column("x"))
    numbers = [f"{at / 7:.4f}" for at in range(7_000)]
    for part in np.array_split(numbers, 10):
        collector.add(list(map(str, part)), [1] * len(part))
    seen = collector.summary()
    median = seen.values[np.searchsorted(np.cumsum(seen.weights), 3_500)]
    assert (len(seen.values) <= 65, seen.weights.sum()) == (True, 7_000)
    assert median == pytest.approx(500, rel=0.1)


@pytest.mark.usefixtures("few")
def test_with_too_many_numbers_the_ends_stay_exact():
    seen = summarise([f"{at / 7:.4f}" for at in range(1, 7_000)])
    assert (seen.values[0], seen.values[-1]) == (0.1429, 999.8571)


@pytest.mark.usefixtures("few")
def test_numbers_after_the_first_ones_may_have_decimals():
    seen = summarise([*map(str, range(500)), "0.5"])
    assert (seen.reading, seen.whole, seen.pointed) == (Amounts(), False, True)
