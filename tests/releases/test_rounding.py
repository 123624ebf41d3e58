"""Integer tables that add up: every bound that the docstring states, on tables of one to four ways."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import hdmm
from hdmm.errors import InputError, TooLargeError
from hdmm.releases import rounding
from hdmm.releases.rounding import round_table

tables = arrays(float, array_shapes(min_dims=1, max_dims=4, max_side=5), elements=st.floats(0, 100))


def controlled(d):
    """The sets of attributes whose sums stay within 1: the first ones and the last ones."""
    return {tuple(range(k)) for k in range(d + 1)} | {tuple(range(k, d)) for k in range(d + 1)}


def sums(table, kept):
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept))


@given(tables)
def test_cells_and_sums_are_neighbouring_integers(table):
    found = round_table(table)
    assert found.dtype == np.int64
    assert found.shape == table.shape
    assert found.min() >= 0
    for kept in controlled(table.ndim):
        assert (abs(sums(found, kept) - sums(table, kept)) < 1 + 1e-6).all()
    assert abs(found.sum() - table.sum()) <= 0.5 + 1e-6


@given(arrays(np.int64, array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 9)))
def test_integers_stay_as_they_are(table):
    np.testing.assert_array_equal(round_table(table), table)


@pytest.mark.parametrize("seed", range(20))
def test_no_one_way_rounding_changes_its_cells_less(seed):
    table = np.random.default_rng(seed).uniform(0, 2, 8)
    floor = np.floor(table)
    roundings = [floor + ups for ups in product((0, 1), repeat=8) if (floor + ups).sum() == np.floor(table.sum() + 0.5)]
    best = min(abs(rounded - table).max() for rounded in roundings)
    assert abs(round_table(table) - table).max() == pytest.approx(best)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_way_rounding_changes_its_cells_less(seed):
    table = np.random.default_rng(seed).uniform(0, 2, (3, 3))
    floor = np.floor(table)
    best = np.inf
    for ups in product((0, 1), repeat=9):
        rounded = floor + np.reshape(ups, (3, 3))
        rows = all((abs(sums(rounded, kept) - sums(table, kept)) < 1).all() for kept in ((0,), (1,)))
        if rows and rounded.sum() == np.floor(table.sum() + 0.5):
            best = min(best, abs(rounded - table).max())
    assert abs(round_table(table) - table).max() <= best + 0.01


def test_rounding_each_cell_by_itself_would_not_add_up():
    table = np.full((10, 10), 0.4)
    assert np.rint(table).sum() == 0
    found = round_table(table)
    assert found.sum() == 40
    np.testing.assert_array_equal(found.sum(axis=0), 4)
    np.testing.assert_array_equal(found.sum(axis=1), 4)


def test_a_large_table_is_rounded():
    table = np.random.default_rng(0).exponential(1, (300, 200))
    found = round_table(table)
    for kept in ((0,), (1,), ()):
        assert (abs(sums(found, kept) - sums(table, kept)) < 1).all()


def test_many_pieces_are_rounded_like_each_of_them():
    schema = hdmm.Schema(age=range(115), sex=["F", "M", "X"])
    asked = hdmm.Workload(schema).add("ranges", age=hdmm.AllRange(), sex=hdmm.Identity()).encoded.products[0]
    answers = np.random.default_rng(1).uniform(-5, 5, (6670, 3))
    found = rounding.round_answers(answers.reshape(-1), asked).reshape(6670, 3)
    for place in range(0, 6670, 100):
        np.testing.assert_array_equal(found[place], round_table(answers[place]))


def test_a_product_of_too_many_cells_together_is_refused_by_its_name(monkeypatch):
    monkeypatch.setattr(rounding, "_MAX_CELLS", 10)
    schema = hdmm.Schema(a=range(4), b=range(4))
    asked = hdmm.Workload(schema).add("both", a=hdmm.Identity(), b=hdmm.Identity()).encoded.products[0]
    with pytest.raises(TooLargeError, match="product 'both': has 16 answers that add up"):
        rounding.round_answers(np.ones(16), asked)


def test_a_table_of_no_ways_is_its_total():
    assert round_table(np.array(2.6)) == 3


@pytest.mark.parametrize("table", [np.array([np.nan, 1]), np.array([np.inf]), np.empty(0), np.array([1e300])])
def test_what_is_no_estimate_is_refused(table):
    with pytest.raises(InputError, match="table: expected"):
        round_table(table)


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr(rounding, "_MAX_CELLS", 3)
    with pytest.raises(TooLargeError, match="has 4 cells; at most 3"):
        round_table(np.zeros((2, 2)))
