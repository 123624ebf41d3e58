"""The least largest error: values are those of the worst row written out, bounds hold, and marginals are solved."""

from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm import operators
from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import Norm
from hdmm.objective import Objective
from hdmm.operators.base import Aside, Proposal
from hdmm.operators.minimax.explicit import worst_explicit
from hdmm.operators.minimax.residual import worst_residuals
from hdmm.operators.minimax.search import least_worst
from hdmm.operators.minimax.weighted import bound_of, initial_weights
from hdmm.optimise.descent import Effort
from hdmm.paper import workloads
from hdmm.privacy.calibrate import gaussian_sigma
from hdmm.strategy import Strategy, sensitivity
from tests.contract.zoo import dense_blocks
from tests.operators.proposals import proposed

SIGMA = gaussian_sigma(hdmm.Budget(1, "1e-6"))
SCHEMA = hdmm.Schema(a=range(3), b=range(4), c=["x", "y"])
MIXED = (
    hdmm.Workload(SCHEMA)
    .add("prefixes", a=hdmm.Identity(), b=hdmm.Prefix())
    .add("ranges", b=hdmm.AllRange(), c=hdmm.Identity() | hdmm.Total(), weight=2)
    .add("either", b=hdmm.Identity(), where="a = 1 OR b >= 2")
    .add("total")
)


def bounded(proposal: Proposal | Aside | None) -> tuple[Strategy, float]:
    """The strategy and the bound of a proposal that has both."""
    assert isinstance(proposal, Proposal), proposal
    assert proposal.bound is not None
    return proposal.strategy, proposal.bound


def dense_ratios(strategy, workload: hdmm.Workload, limits, norm: Norm) -> list[float]:
    """Least squares on all blocks written out; the worst row of every product."""
    blocks = zip(strategy.blocks, dense_blocks(strategy, workload.encoded), strict=True)
    A = np.vstack([float(block.weight) * rows for block, rows in blocks])
    inverse = np.linalg.pinv(A, rcond=1e-12)
    squared = float(sensitivity(strategy.blocks, norm)) ** (2 / norm)
    rows = [workload.encoded.of(product).dense() @ inverse for product in workload.encoded.products]
    pairs = zip(rows, limits, strict=True)
    return [0 if limit is None else squared * float((row**2).sum(axis=1).max()) / limit for row, limit in pairs]


@pytest.mark.parametrize("limits", [(1.0, 1.0, 1.0, 1.0), (2.0, 0.5, None, 1.0), (None, None, 3.0, None)])
@pytest.mark.parametrize(
    ("operator", "norm"),
    [(operators.Residual(), 2), (operators.Explicit(), 2), (operators.Explicit(), 1), (operators.Kron(), 1)],
    ids=["residual", "explicit", "explicit, Laplace", "kron, Laplace"],
)
def test_it_is_the_worst_row_that_counts(operator, norm, limits):
    encoded = MIXED.encoded
    proposal = least_worst(operator, encoded, limits, norm, Effort(restarts=1), rounds=3)
    assert isinstance(proposal, Proposal), proposal
    objective = Objective(limits)
    value = objective.value(local_least_squares(proposal.strategy), encoded, norm)
    assert value == pytest.approx(max(dense_ratios(proposal.strategy, MIXED, limits, norm)), rel=1e-6)
    if proposal.bound is not None:
        assert proposal.bound <= value * (1 + 1e-9)
    first = least_worst(operator, encoded, limits, norm, Effort(restarts=1))
    assert isinstance(first, Proposal), first
    assert value <= objective.value(local_least_squares(first.strategy), encoded, norm) * (1 + 1e-9)


@pytest.mark.parametrize("limits", [None, (4.0, 1.0, 9.0, None, 1.0, 1.0)])
def test_marginals_are_solved_up_to_a_gap(limits):
    workload = hdmm.marginals(hdmm.Schema(a=range(3), b=range(7), c=range(2)), up_to=2)
    workload = hdmm.Workload(workload.schema, [p for p in workload.products if p.name != "total"])
    limits = limits or (1.0,) * 6
    strategy, bound = bounded(worst_residuals(workload.encoded, limits, Effort()))
    gap = Objective(limits).value(local_least_squares(strategy), workload.encoded, 2) / bound - 1
    assert -1e-9 <= gap <= (5e-4 if None not in limits else 0.03)


def test_any_weights_on_the_answers_give_a_bound():
    """No strategy is below it, among them ones from all over the place."""
    encoded, limits = MIXED.encoded, (1.0, 1.0, 1.0, 1.0)
    bound = bound_of(encoded, initial_weights(encoded, limits))
    found = [operators.Residual(), operators.Kron(), operators.Explicit(), hdmm.baselines.Identity()]
    values = [
        Objective(limits).value(local_least_squares(proposed(one, encoded, 2).strategy), encoded, 2) for one in found
    ]
    assert 0 < bound <= min(values)


def test_residuals_are_near_the_best_there_is():
    """Beside the optimum over all cells, with a weight on every row."""
    encoded, limits = MIXED.encoded, (1.0, 1.0, 1.0, 1.0)
    residual, residual_bound = bounded(worst_residuals(encoded, limits, Effort()))
    best, best_bound = bounded(worst_explicit(encoded, limits, Effort()))
    ratio = [Objective(limits).value(local_least_squares(strategy), encoded, 2) for strategy in (residual, best)]
    assert max(residual_bound, best_bound) <= min(ratio) * (1 + 1e-9)
    assert ratio[1] <= 1.002 * best_bound
    assert ratio[0] <= 1.2 * best_bound


def test_a_single_product_is_solved_attribute_by_attribute():
    schema = hdmm.Schema(a=range(40), b=range(30), c=range(2))
    sets = {"a": hdmm.Prefix(), "b": hdmm.AllRange(), "c": hdmm.Identity() | hdmm.Total()}
    encoded = hdmm.Workload(schema).add("all", sets).encoded
    strategy, bound = bounded(least_worst(operators.Kron(), encoded, (4.0,), 2, Effort()))
    found = Objective((4.0,)).value(local_least_squares(strategy), encoded, 2)
    assert bound <= found <= 1.01 * bound
    residual = worst_residuals(encoded, (4.0,), Effort()).strategy
    assert found < Objective((4.0,)).value(local_least_squares(residual), encoded, 2)


def test_the_prefixes_of_one_attribute_have_the_known_optimum():
    """Every prefix is as accurate as any other: the square of the factorisation norm γ₂ of the prefix matrix."""
    workload = hdmm.Workload(hdmm.Schema(a=range(32))).add("prefixes", a=hdmm.Prefix())
    strategy, bound = bounded(worst_explicit(workload.encoded, (1.0,), Effort()))
    found = Objective((1.0,)).value(local_least_squares(strategy), workload.encoded, 2)
    odd = 1 / np.sin((2 * np.arange(1, 33) - 1) * np.pi / 65)  # half the sum of singular values over n: a lower bound
    assert (odd.sum() / 64) ** 2 < bound <= found < 1.002 * bound
    assert found < (1 + np.log(32) / np.pi) ** 2  # the square root factorisation reaches as much (Fichtenberger 2023)


def test_the_largest_standard_error_of_adult():
    """67.28, and 633.5 where the total is minimised."""
    encoded = workloads.adult_marginals().encoded
    objective = Objective.largest(encoded)
    assert objective.limits is not None
    strategy, bound = bounded(worst_residuals(encoded, objective.limits, Effort()))
    value = objective.value(local_least_squares(strategy), encoded, 2)
    assert SIGMA * sqrt(value) <= 67.5
    assert value / bound - 1 <= 5e-4
    total = proposed(operators.Residual(), encoded, 2).strategy
    assert SIGMA * sqrt(objective.value(local_least_squares(total), encoded, 2)) == pytest.approx(633.5, abs=0.1)
