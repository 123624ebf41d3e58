"""Every Gram over one attribute does what its entries, written out, do."""

import numpy as np
import pytest

from hdmm.matrix.axis_gram import AllRangeGram, AxisGram, PrefixGram, RestrictedGram, SelectedGram
from hdmm.matrix.intervals import interval_rows
from tests.contract.zoo import GRAMS

every = pytest.mark.parametrize(("gram", "entries"), GRAMS.values(), ids=GRAMS.keys())


@every
def test_its_size_is_that_of_its_entries(gram: AxisGram, entries: np.ndarray):
    assert (gram.size, gram.size) == entries.shape


@every
@pytest.mark.parametrize("columns", [(), (3,)], ids=["vector", "columns"])
def test_apply_is_the_product(gram: AxisGram, entries: np.ndarray, columns: tuple[int, ...]):
    x = np.random.default_rng(3).normal(size=(gram.size, *columns))
    before = x.copy()
    answer = gram.apply(x)
    np.testing.assert_allclose(answer, entries @ x, atol=1e-12)
    answer[:] = 0
    np.testing.assert_array_equal(x, before, err_msg="the argument was changed")


@every
def test_the_diagonal_is_that_of_its_entries(gram: AxisGram, entries: np.ndarray):
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(entries), atol=1e-12)


@every
def test_the_trace_is_the_sum_of_the_diagonal(gram: AxisGram, entries: np.ndarray):
    assert gram.trace() == pytest.approx(np.trace(entries))


@every
def test_the_total_is_the_sum_of_all_entries(gram: AxisGram, entries: np.ndarray):
    assert gram.total() == pytest.approx(entries.sum())


@every
def test_it_can_be_written_out(gram: AxisGram, entries: np.ndarray):
    np.testing.assert_allclose(gram.dense(), entries, atol=1e-12)


@every
def test_two_eigenvalues_are_known_if_the_entries_have_only_two(gram: AxisGram, entries: np.ndarray):
    n = gram.size
    apart, same = entries[~np.eye(n, dtype=bool)], np.diagonal(entries)
    pair = same[0] - apart[0], same[0] + (n - 1) * apart[0]
    only_two = np.ptp(apart) < 1e-12 and np.ptp(same) < 1e-12
    assert gram.two_eigenvalues() == (pytest.approx(pair) if only_two else None)


def test_a_gram_restricted_on_both_sides_alike_is_symmetric():
    some, others = np.array([1, 0, 1]), np.array([0, 1, 1])
    assert RestrictedGram(PrefixGram(3), some, some.copy()).symmetric
    assert not RestrictedGram(PrefixGram(3), some, others).symmetric


@every
def test_it_is_the_sum_of_its_squares(gram: AxisGram, entries: np.ndarray):
    squares = gram.as_squares()
    if squares is None:
        return
    indicators = interval_rows(*squares.intervals, gram.size)
    total = (squares.interval_weights * indicators.T) @ indicators
    total = total + (squares.vector_weights * squares.vectors) @ squares.vectors.T
    np.testing.assert_allclose(total, entries, atol=1e-12)


def test_grams_of_intervals_are_sums_of_squares():
    written = {name for name, (gram, _) in GRAMS.items() if gram.as_squares() is not None}
    assert written >= {"rows", "identity", "total", "prefix", "all ranges", "width", "sum", "deviations"}


def test_padded_and_restricted_grams_of_neighbours_are_sums_of_squares():
    middle = np.array([0, 1, 1, 1, 0])
    for gram in (SelectedGram(AllRangeGram(3), np.arange(1, 4), 5), RestrictedGram(AllRangeGram(5), middle, middle)):
        test_it_is_the_sum_of_its_squares(gram, gram.dense())
        assert gram.as_squares() is not None
