"""OPT_R: the SVD bound on marginals, true errors against matrices written out, and never below a proved optimum."""

from math import prod, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hdmm
from hdmm import operators
from hdmm.bounds import svd_bound
from hdmm.estimators.least_squares import local_least_squares
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.paper import workloads
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import gaussian_sigma
from hdmm.strategy import Strategy, sensitivity
from tests.contract.zoo import dense_blocks
from tests.operators.proposals import proposed, reason_aside

SIGMA = gaussian_sigma(Budget(1, "1e-6"))
SCHEMA = hdmm.Schema(a=range(3), b=range(4), c=range(5), d=range(1))
MIXED = (
    hdmm.Workload(SCHEMA)
    .add("prefixes", a=hdmm.Identity(), c=hdmm.Prefix(), weight=2)
    .add("ranges", b=hdmm.AllRange(), c=hdmm.Identity() | hdmm.Total())
    .add("some", b=hdmm.Ranges([(0, 1), (2, 3)]), d=hdmm.Identity())
    .add("either", c=hdmm.Identity(), where="a = 1 OR b >= 2")
    .add("real", a=hdmm.Custom([[1, -0.5, 2]]), c=hdmm.Where("c >= 2"))
)
COARSE = (
    hdmm.Workload(SCHEMA).add("groups", a=hdmm.Identity(), c=hdmm.Ranges([(0, 1), (2, 4)])).add("b", b=hdmm.Prefix())
)


def residuals(workload: hdmm.Workload) -> Strategy:
    strategy = proposed(operators.Residual(), workload.encoded, 2).strategy
    assert strategy.family == "residual"
    return strategy


def dense_loss(strategy: Strategy, workload: hdmm.Workload) -> float:
    """Global least squares on all blocks, written out."""
    blocks = zip(strategy.blocks, dense_blocks(strategy, workload.encoded), strict=True)
    A = np.vstack([float(block.weight) * rows for block, rows in blocks])
    W = np.vstack([float(p.weight) * workload.encoded.of(p).dense() for p in workload.encoded.products])
    inverse = np.linalg.pinv(A, rcond=1e-10)
    np.testing.assert_allclose(W @ inverse @ A, W, atol=1e-6)
    return float((A**2).sum(axis=0).max() * np.sum((W @ inverse) ** 2))


@pytest.mark.parametrize("workload", [MIXED, COARSE], ids=["mixed", "coarse"])
def test_the_loss_is_that_of_least_squares_written_out(workload):
    strategy = residuals(workload)
    assert all(local_least_squares(strategy).supports(product) for product in workload.encoded.products)
    assert loss(strategy, workload.encoded, 2) == pytest.approx(dense_loss(strategy, workload), rel=1e-5)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.data())
def test_marginals_meet_the_svd_bound(sizes, data):
    schema = hdmm.Schema({f"a{i}": range(size) for i, size in enumerate(sizes)})
    names = list(schema)
    workload = hdmm.Workload(schema)
    for number in range(data.draw(st.integers(1, 4))):
        chosen = data.draw(st.sets(st.sampled_from(names), min_size=1))
        weight = data.draw(st.integers(1, 3))
        workload = workload.add(f"m{number}", {name: hdmm.Identity() for name in chosen}, weight=weight)
    assert loss(residuals(workload), workload.encoded, 2) == pytest.approx(svd_bound(workload.encoded.gram()), rel=1e-5)


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (workloads.adult_marginals, 45.06),
        (workloads.loans_small, 34.67),
        (workloads.cps_prefix, 29.48),
        (workloads.adult_prefix, 71.5),
        (workloads.loans_small_prefix, 54.2),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_it_is_ahead_of_the_paper(build, most):
    encoded = build().encoded
    strategy = proposed(operators.Residual(), encoded, 2).strategy
    assert sqrt(SIGMA**2 * loss(strategy, encoded, 2) / encoded.query_count) <= most + 0.005


@pytest.mark.parametrize("workload", [MIXED, COARSE], ids=["mixed", "coarse"])
def test_it_is_never_below_the_certified_optimum(workload):
    bound = opt0_gaussian(DenseGram(workload.encoded.gram().dense()), tolerance=1e-4).bound
    assert bound is not None
    assert loss(residuals(workload), workload.encoded, 2) >= bound * (1 - 1e-9)


def test_a_hundred_attributes_are_planned():
    schema = hdmm.Schema({f"a{i}": range(3) for i in range(100)})
    encoded = hdmm.marginals(schema, up_to=1).encoded
    strategy = proposed(operators.Residual(), encoded, 2).strategy
    assert len(strategy.blocks) == 101
    assert loss(strategy, encoded, 2) == pytest.approx(svd_bound(encoded.gram()), rel=1e-5)


def test_laplace_noise_is_for_others():
    assert reason_aside(operators.Residual(), MIXED.encoded, 1)


def test_a_plan_of_residuals_is_kept_and_read_back(tmp_path):
    plan = hdmm.select(MIXED, "gaussian", operators=[operators.Residual()])
    plan.save(tmp_path / "x.plan")
    read, budget = hdmm.Plan.load(tmp_path / "x.plan"), hdmm.Budget("1", "1e-6")
    assert read.mechanism.strategy.family == "residual"
    assert read.rmse(budget) == pytest.approx(plan.rmse(budget), rel=1e-9)
    assert sensitivity(read.mechanism.blocks, 2) == pytest.approx(sensitivity(plan.mechanism.blocks, 2))
    assert prod(read.mechanism.strategy.sizes) == 60
