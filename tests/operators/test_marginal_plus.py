"""OPT_M+: true errors over bases, and numbers ahead of the paper's."""

from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm import operators
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.optimise.descent import Effort
from hdmm.paper import workloads
from tests.contract.zoo import dense_blocks
from tests.operators.proposals import proposed, reason_aside

SCHEMA = hdmm.Schema(a=range(3), b=range(4), c=range(17), d=range(1))
MIXED = (
    hdmm.Workload(SCHEMA)
    .add("prefixes", a=hdmm.Identity(), c=hdmm.Prefix(), weight=2)
    .add("ranges", b=hdmm.Identity(), c=hdmm.AllRange(), d=hdmm.Identity())
    .add("either", c=hdmm.Identity(), where="a = 1 OR b >= 2")
    .add("total")
)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_loss_is_that_of_least_squares_written_out(norm):
    encoded = MIXED.encoded
    strategy = proposed(operators.MarginalPlus(), encoded, norm, Effort(restarts=1)).strategy
    assert strategy.family == "marginal"
    blocks = zip(strategy.blocks, dense_blocks(strategy, encoded), strict=True)
    A = np.vstack([float(block.weight) * rows for block, rows in blocks])
    W = np.vstack([float(product.weight) * encoded.of(product).dense() for product in encoded.products])
    inverse = np.linalg.pinv(A, rcond=1e-12)
    np.testing.assert_allclose(W @ inverse @ A, W, atol=1e-6)
    squared = (abs(A) ** norm).sum(axis=0).max() ** (2 / norm)
    assert loss(strategy, encoded, norm) == pytest.approx(squared * np.sum((W @ inverse) ** 2), rel=1e-5)


def test_bases_are_at_least_as_good_as_cells():
    encoded = MIXED.encoded
    based, cells = (
        proposed(operator, encoded, 1).strategy for operator in (operators.MarginalPlus(), operators.Marginal())
    )
    assert loss(based, encoded, 1) < 0.99 * loss(cells, encoded, 1)


def test_workloads_of_cells_and_totals_are_for_plain_marginals():
    assert reason_aside(operators.MarginalPlus(), hdmm.marginals(SCHEMA, up_to=2).encoded, 1)


@pytest.mark.parametrize(
    ("build", "most"),
    [(workloads.adult_prefix, 415), (workloads.loans_small_prefix, 235), (workloads.cps_prefix, 40.6)],
    ids=["Adult", "Loans", "CPS"],
)
def test_it_is_ahead_of_the_paper(build, most):
    encoded = build().encoded
    strategy = proposed(operators.MarginalPlus(restarts=0), encoded, 1).strategy
    assert sqrt(2 * loss(strategy, encoded, 1) / encoded.query_count) <= most
