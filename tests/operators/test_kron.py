"""OPT_⊗ and OPT_+: worked examples of the paper, true errors, the budget split, and integers at the end."""

from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm import operators
from hdmm.demand.kron_loss import Problem
from hdmm.errors import WorkloadError
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.operators.base import Aside
from hdmm.operators.opt0.two_scalars import TwoScalars
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.selection.quantise import Quantised, quantise
from hdmm.strategy import sensitivity
from hdmm.strategy.integers import round_columns, round_lengths
from tests.contract.zoo import dense_blocks
from tests.operators.proposals import proposed

EXAMPLE = hdmm.marginals(hdmm.Schema(a=range(2), b=range(5), c=range(50), d=range(100)), k=2).encoded
SMALL = hdmm.Schema(a=range(3), b=range(4), c=range(6))
MIXED = (
    hdmm.Workload(SMALL)
    .add("prefixes", b=hdmm.Identity(), c=hdmm.Prefix())
    .add("cells", a=hdmm.Identity(), b=hdmm.Identity(), weight=2)
    .add("either", c=hdmm.Identity(), where="a = 1 OR b >= 2")
)
EFFORT = Effort(restarts=1)


def test_table_margexample_opt_kron():
    strategy = proposed(operators.Kron(), EXAMPLE, 1).strategy
    assert loss(strategy, EXAMPLE, 1) <= 213_270.5


def test_table_margexample_opt_union():
    strategy = proposed(operators.Union(), EXAMPLE, 1).strategy
    assert loss(strategy, EXAMPLE, 1) <= 85_070.5


def test_example_optkk():
    """P⊗T + T⊗P on 100 × 100: one product 33,385, two groups 14,252."""
    schema = hdmm.Schema(a=range(100), b=range(100))
    encoded = hdmm.Workload(schema).add("a", a=hdmm.Prefix()).add("b", b=hdmm.Prefix()).encoded
    assert loss(proposed(operators.Union(), encoded, 1, EFFORT).strategy, encoded, 1) <= 14_252.5


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("operator", [operators.Kron(), operators.Union()], ids=["Kron", "Union"])
def test_the_loss_is_that_of_the_dense_strategy(operator, norm):
    """Global least squares: these unions are small."""
    encoded = MIXED.encoded
    strategy = operator.propose(encoded, norm, EFFORT).strategy
    full = dense_blocks(strategy, encoded)
    sizes = [float(block.weight) for block in strategy.blocks]
    stacked = np.vstack([weight * rows for weight, rows in zip(sizes, full, strict=True)])
    squared = (abs(stacked) ** norm).sum(axis=0).max() ** (2 / norm)
    total = 0.0
    for product in encoded.products:
        rows = encoded.of(product).dense()
        coefficients = rows @ np.linalg.pinv(stacked, rcond=1e-10)
        total += float(product.weight) ** 2 * squared * (coefficients**2).sum()
    assert loss(strategy, encoded, norm) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("norm", [1, 2])
def test_shared_factors_are_answered_by_global_least_squares(norm):
    encoded = hdmm.marginals(SMALL, up_to=2, prefix=["c"]).encoded
    assert proposed(operators.Union(groups=()), encoded, norm, EFFORT).strategy.family == "marginal"


def test_groups_of_the_user_are_kept():
    groups = (("prefixes", "either"), ("cells",))
    strategy = proposed(operators.Union(groups=groups), MIXED.encoded, 1, EFFORT).strategy
    assert [block.axes for block in strategy.blocks] == [(0, 1, 2), (0, 1)]


@pytest.mark.parametrize(
    ("groups", "message"),
    [((("prefixe",),), "did you mean 'prefixes'"), ((("cells",), ("cells",)), "is in two groups")],
)
def test_groups_that_do_not_fit_are_refused(groups, message):
    with pytest.raises(WorkloadError, match=message):
        operators.Union(groups=groups).propose(MIXED.encoded, 1, EFFORT)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_errors_of_two_scalars_and_their_slopes(norm):
    even, pairs = TwoScalars(5, norm), np.array([[1.0, 1.0], [0.0, 5.0], [2.0, 7.0]])
    matrix = even.matrix(0.3).dense()
    inverse = np.linalg.inv(matrix.T @ matrix)
    errors, slopes = even.errors(0.3, pairs)
    grams = [rest * np.eye(5) + (constant - rest) / 5 for rest, constant in pairs]
    np.testing.assert_allclose(errors, [np.trace(inverse @ gram) for gram in grams])
    step = (even.errors(0.3 + 1e-6, pairs)[0] - even.errors(0.3 - 1e-6, pairs)[0]) / 2e-6
    np.testing.assert_allclose(slopes, step, rtol=1e-6)
    assert (abs(matrix) ** norm).sum(axis=0).max() == pytest.approx(1)


def test_the_surrogate_gram_is_the_slope_of_the_loss():
    problem = Problem(MIXED.encoded.gram(), (0, 1, 2))
    errors = [np.array([factor.trace() for factor in factors]) for factors in problem.factors]
    for place in range(3):
        assert problem.surrogate(errors, place).trace() == pytest.approx(problem.loss(errors))


def test_a_single_gaussian_product_carries_a_certificate():
    encoded = hdmm.Workload(SMALL).add("q", a=hdmm.Prefix(), c=hdmm.AllRange()).encoded
    proposal = proposed(operators.Kron(), encoded, 2)
    assert proposal.bound is not None
    assert 1 - 1e-9 <= loss(proposal.strategy, encoded, 2) / proposal.bound <= 1 + 1e-2


FAMILIES = [
    operators.Explicit(),
    operators.Kron(),
    operators.Union(),
    operators.Marginal(),
    operators.MarginalPlus(),
    operators.Residual(),
]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("operator", FAMILIES, ids=[operator.name for operator in FAMILIES])
def test_a_plan_of_an_optimised_strategy_is_measured_in_integers(operator, noise, tmp_path):
    if noise == "laplace" and isinstance(operator, operators.Residual):
        return
    plan = hdmm.select(MIXED, noise, operators=[operator], restarts=1)
    assert all(block.integral for block in plan.mechanism.blocks)
    assert not isinstance(sensitivity(plan.mechanism.blocks, 1 if noise == "laplace" else 2), float)
    plan.save(tmp_path / "x.plan")
    again = hdmm.Plan.load(tmp_path / "x.plan")
    budget = hdmm.Budget(1, None if noise == "laplace" else "1e-6")
    assert again.rmse(budget) == pytest.approx(plan.rmse(budget))


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("operator", FAMILIES, ids=[operator.name for operator in FAMILIES])
def test_integers_cost_next_to_nothing(operator, norm):
    encoded = MIXED.encoded
    proposal = operator.propose(encoded, norm, EFFORT)
    if isinstance(proposal, Aside):
        assert (operator, norm) == (operators.Residual(), 1)
        return
    quantised = quantise(proposal.strategy, encoded, norm)
    assert isinstance(quantised, Quantised), quantised
    ratio = loss(quantised.strategy, encoded, norm) / loss(proposal.strategy, encoded, norm)
    assert sqrt(ratio) <= 1 + 1e-4


@pytest.mark.parametrize("k", [6, 10, 16])
def test_no_rounded_column_is_longer_than_before(k):
    entries = np.random.default_rng(4).normal(size=(9, 50))
    entries /= np.sqrt((entries**2).sum(axis=0))
    entries[:, 7] *= 0.3
    entries[:, 8] = 0
    lengths = (round_lengths(entries, k) ** 2).sum(axis=0)
    assert (lengths <= 4**k * (entries**2).sum(axis=0) * (1 + 1e-9)).all()
    assert (lengths >= 4**k * (entries**2).sum(axis=0) * (1 - 4 / 2**k)).all()
    assert abs(round_lengths(entries, k) - 2**k * entries).max() <= 4


def test_no_rounded_column_sums_to_more_than_the_power_of_two():
    entries = np.random.default_rng(3).normal(size=(7, 40))
    entries /= abs(entries).sum(axis=0)
    rounded = round_columns(entries, 9)
    assert abs(rounded).sum(axis=0).tolist() == [512] * 40
    assert abs(rounded - 512 * entries).max() <= 1


def test_queries_published_as_asked_are_never_rounded():
    encoded = hdmm.Workload(SMALL).add("q", a=hdmm.Custom([[0.5, 1, 2]])).encoded
    assert isinstance(quantise(proposed(hdmm.baselines.Plain(), encoded, 1).strategy, encoded, 1), str)


def test_the_same_seed_gives_the_same_plan():
    plans = [hdmm.select(MIXED, operators=[operators.Kron()], restarts=2, seed=7) for _ in range(2)]
    first, second = ([factor.dense() for block in plan.mechanism.blocks for factor in block.factors] for plan in plans)
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_time_limit_keeps_the_best_so_far():
    plan = hdmm.select(MIXED, operators=[hdmm.baselines.Identity(), operators.Kron()], time_limit=1e-9)
    assert plan.operator == "Identity"


def test_an_interrupt_keeps_the_best_so_far():
    class Interrupted(hdmm.operators.Operator):
        def propose(self, workload, norm, effort=DEFAULT):
            raise KeyboardInterrupt

    assert hdmm.select(MIXED, operators=[hdmm.baselines.Identity(), Interrupted()]).operator == "Identity"
    with pytest.raises(KeyboardInterrupt):
        hdmm.select(MIXED, operators=[Interrupted()])


def test_a_strategy_is_drawn(tmp_path):
    from hdmm.picture import draw

    plan = hdmm.select(MIXED, operators=[operators.Kron()], restarts=0)
    draw(plan, tmp_path / "strategy.svg")
    assert (tmp_path / "strategy.svg").read_text().startswith("<svg")
