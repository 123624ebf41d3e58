"""Round edges that hold every number."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm import Bins
from hdmm.proposal.edges import even_edges, nice_edges, roundest


def edges_of(numbers):
    values, counts = np.unique(np.array(numbers, float), return_counts=True)
    return nice_edges(values, counts)


finite = st.floats(-1e12, 1e12, allow_nan=False).map(lambda number: float(f"{number:.6g}"))


@given(st.lists(finite, min_size=2, max_size=200).filter(lambda numbers: len(set(numbers)) > 1))
def test_every_number_is_in_a_bin(numbers):
    edges = edges_of(numbers)
    bins = Bins(edges, closed=edges.closed)
    assert (bins.encode([f"{Decimal(repr(number)):f}".encode() for number in numbers]) >= 0).all()


@given(st.lists(finite, min_size=2, max_size=200).filter(lambda numbers: len(set(numbers)) > 1))
def test_there_are_not_too_many_bins(numbers):
    assert 1 <= len(edges_of(numbers)) - 1 <= 15


def test_evenly_spread_numbers_get_bins_of_equal_width():
    assert [*map(str, edges_of(np.linspace(10.9, 100.1, 1000)))] == [str(edge) for edge in range(10, 120, 10)]


def test_skewed_numbers_get_bins_with_about_as_many_records():
    numbers = np.exp(np.linspace(0, 10, 10_001))
    edges = [float(edge) for edge in edges_of(numbers)]
    shares = np.histogram(numbers, edges)[0] / len(numbers)
    assert 8 <= len(shares) <= 13
    assert shares.max() < 0.2


def test_a_frequent_least_number_has_a_bin_of_its_own():
    edges = edges_of([0] * 900 + list(range(114, 99_999, 997)))
    assert (edges[0], edges[1]) == (0, 100)


def test_few_numbers_have_a_bin_each():
    numbers = [17.5, 22, 27, 32, 37, 42]
    edges = edges_of(numbers * 3)
    assert [*map(str, edges)] == ["15", "20", "25", "30", "35", "40", "45"]


def test_edges_of_integers_are_integers():
    assert all(edge == int(edge) for edge in edges_of([*range(-43, 60), *range(60, 1300, 31)] * 2))


def test_the_last_bin_is_closed_if_its_edge_is_a_value():
    assert edges_of(np.linspace(0, 100, 501)).closed


def test_limits_are_kept_if_bins_of_equal_width_fit():
    edges = even_edges(0, 250_000)
    assert (len(edges), int(edges[-1]), edges.closed) == (11, 250_000, True)


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [(41, 58, "50"), (0.0231, 0.0274, "0.025"), (-3, 5, "0"), (114, 118, "115"), (-59, -41, "-50"), (7, 7, "7")],
)
def test_the_roundest_number_is_between_the_limits(low, high, number):
    assert str(roundest(low, high)) == number
