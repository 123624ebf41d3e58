"""The least largest error of prefixes, against the same problem written out."""

from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm.estimators.least_squares import exact_least_squares
from hdmm.objective import Objective
from hdmm.operators import Explicit, Kron
from hdmm.operators.base import Proposal
from hdmm.operators.minimax.explicit import _least_largest
from hdmm.operators.minimax.prefix import MAX_PREFIX_CELLS, least_largest_prefix, square_root
from hdmm.operators.minimax.search import least_worst
from hdmm.optimise.descent import Effort


def largest(queries: np.ndarray) -> float:
    """The largest variance of a prefix if these queries are measured with unit noise."""
    n = queries.shape[1]
    return float(((np.tri(n) @ np.linalg.inv(queries)) ** 2).sum(axis=1).max())


@pytest.mark.parametrize("n", [1, 2, 3, 16, 65])
def test_the_value_is_that_of_the_queries(n):
    queries, value, bound = least_largest_prefix(n, 1e-3, Effort())
    np.testing.assert_allclose((queries**2).sum(axis=0), 1)
    assert value == pytest.approx(largest(queries))
    assert bound <= value <= 1.001 * bound


def test_two_prefixes_have_the_optimum_known_in_closed_form():
    """X = [[1, x], [x, 1]] makes both variances 1/(1 − x²) and 2/(1 + x); they are equal at x = ½."""
    queries, value, bound = least_largest_prefix(2, 1e-9, Effort())
    assert value == pytest.approx(4 / 3)
    assert bound == pytest.approx(4 / 3)
    assert (queries.T @ queries)[0, 1] == pytest.approx(0.5, abs=1e-4)


def test_the_bound_is_that_of_the_search_over_any_rows():
    _, bound = _least_largest(np.tri(24), None, Effort())
    _, value, own = least_largest_prefix(24, 1e-4, Effort())
    assert max(bound, own) <= value * (1 + 1e-9)
    assert own == pytest.approx(bound, rel=2e-3)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_the_square_root_is_one(n):
    """With its columns multiplied back it is T with T² = W."""
    queries = square_root(n)
    np.testing.assert_allclose((queries**2).sum(axis=0), 1)
    root = queries / np.diagonal(queries)
    np.testing.assert_allclose(root @ root, np.tri(n), atol=1e-12)


def test_the_search_starts_from_the_square_root_and_improves_on_it():
    """Out of time after one step, it is no worse; with time, it is better by some percent."""
    start = largest(square_root(64))
    assert least_largest_prefix(64, 1e-3, Effort(deadline=0.0))[1] <= start
    assert sqrt(least_largest_prefix(64, 1e-3, Effort())[1] / start) < 0.96


@pytest.mark.parametrize("operator", [Explicit(), Kron()], ids=["explicit", "kron"])
def test_prefixes_of_more_cells_than_other_rows_are_certified(operator):
    """Of 1,024 prefixes no error is above 2.9636; the normalised square root has 3.0807."""
    n = 1024
    encoded = hdmm.Workload(hdmm.Schema(a=range(n))).add("prefixes", a=hdmm.Prefix()).encoded
    proposal = least_worst(operator, encoded, (1.0,), 2, Effort())
    assert isinstance(proposal, Proposal)
    assert proposal.bound is not None
    value = Objective((1.0,)).value(exact_least_squares(proposal.strategy), encoded, 2)
    assert proposal.bound <= value <= 1.001 * proposal.bound
    assert sqrt(value) < 2.9636
    assert sqrt(largest(square_root(n))) == pytest.approx(3.0807, abs=1e-4)


def test_prefixes_of_too_many_cells_are_left_to_the_general_search():
    n = MAX_PREFIX_CELLS + 1
    encoded = hdmm.Workload(hdmm.Schema(a=range(n))).add("prefixes", a=hdmm.Prefix()).encoded
    assert Explicit().propose_worst(encoded, (1.0,), 2, Effort()) is None
