"""Noise is calibrated to what one person can change in all blocks together, exactly for Laplace noise."""

from fractions import Fraction
from math import exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import hdmm
from hdmm.errors import BudgetError, HdmmError
from hdmm.matrix import AllRange, Dense, Identity, Matrix, Prefix, Total
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import gaussian_sigma, rounded_variance, unit_variance
from hdmm.privacy.scale import laplace_variance
from hdmm.strategy import Block, sensitivity
from tests.contract.zoo import noise_for

SIZES = (2, 3, 2)


def leaked(sigma: float, epsilon: float) -> float:
    """The δ of Gaussian noise at sensitivity one, by integrating where one density exceeds e^ε times the other."""

    def density(x: float, mean: float) -> float:
        return exp(-(((x - mean) / sigma) ** 2) / 2) / (sigma * sqrt(2 * pi))

    start = epsilon * sigma**2 + 0.5  # from here on the densities differ by more than e^ε
    return float(quad(lambda x: density(x, 1) - exp(epsilon) * density(x, 0), start, start + 20 * sigma, epsabs=0)[0])


def written_out(block: Block) -> np.ndarray:
    """A block's queries over the full domain, as rows of Python integers."""
    matrix = np.ones((1, 1), object)
    for axis, size in enumerate(SIZES):
        factor = block.factors[block.axes.index(axis)] if axis in block.axes else Total(size)
        matrix = np.kron(matrix, factor.dense().astype(object))
    return matrix


@st.composite
def block_lists(draw: st.DrawFn) -> list[Block]:
    blocks = []
    for _ in range(draw(st.integers(1, 4))):
        axes = tuple(sorted(draw(st.sets(st.sampled_from(range(len(SIZES)))))))
        factors: list[Matrix] = []
        for axis in axes:
            size = SIZES[axis]
            entries = st.lists(st.lists(st.integers(-3, 3), min_size=size, max_size=size), min_size=1, max_size=3)
            simple = st.sampled_from([Identity(size), Total(size), Prefix(size), AllRange(size)])
            factors.append(draw(simple | entries.map(lambda rows: Dense(np.array(rows)))))
        weight = draw(st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 3), Fraction(1, 10)]))
        blocks.append(Block(axes, tuple(factors), weight))
    return blocks


@pytest.mark.parametrize("p", [1, 2])
@given(blocks=block_lists())
def test_the_joint_sensitivity_is_the_largest_column_of_all_blocks_together(p, blocks: list[Block]) -> None:
    columns = sum(
        (block.weight**p * (abs(written_out(block)) ** p).sum(axis=0) for block in blocks), np.zeros(12, object)
    )
    assert sensitivity(blocks, p) == max(columns)


def test_the_joint_sensitivity_is_less_than_the_sum_where_no_cell_has_both_maxima() -> None:
    left, right = Dense(np.array([[5, 0]])), Dense(np.array([[0, 5]]))
    assert sensitivity([Block((0,), (left,)), Block((0,), (right,))], 1) == 5


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("rows", [[[300], [1]], [[-1000]] * 3, [[60_000], [-60_000]]])
def test_the_sensitivity_of_large_entries_is_exact(p, rows: list[list[int]]) -> None:
    assert sensitivity([Block((0,), (Dense(np.array(rows)),))], p) == sum(abs(row[0]) ** p for row in rows)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(
    "rows",
    [[[2**62]] * 4 + [[1]], [[-(2**63)]] * 2 + [[1]], [[2**32], [1]], [[3 * 10**9]] * 3],
    ids=["sums past 64 bits", "the least 64-bit integer", "squares past 64 bits", "sums of squares"],
)
def test_a_sensitivity_is_never_understated_because_an_integer_overflowed(p, rows: list[list[int]]) -> None:
    exact = sum(abs(row[0]) ** p for row in rows)
    try:
        found = sensitivity([Block((0,), (Dense(np.array(rows, np.int64)),))], p)
    except (HdmmError, ValueError):
        return  # refusing what cannot be computed is as good
    assert found >= exact


@pytest.mark.parametrize("table", [[[2**63], [2**63], [2**64 - 1]], [[2**62]] * 4 + [[1]], [[-(2**63)]] * 2 + [[1]]])
def test_a_plan_never_gets_less_noise_because_an_integer_overflowed(table: list[list[int]]) -> None:
    schema = hdmm.Schema(a=["x"])
    try:
        workload = hdmm.Workload(schema).add("x", a=hdmm.Custom(np.array(table)))
        plan = hdmm.select(workload, operators=[hdmm.baselines.Plain()])
        scales = plan.mechanism.calibrate(Budget(1)).scales
    except HdmmError:
        return  # refusing what cannot be measured is as good
    assert scales[0] >= sum(abs(row[0]) for row in table)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("entry", [300, 60_000, 10**6, 2**40])
def test_a_workload_of_large_numbers_is_planned(noise, entry: int) -> None:
    workload = hdmm.Workload(hdmm.Schema(a=["x", "y"])).add("x", a=hdmm.Custom([[entry, 1]]))
    budget = Budget("1") if noise == "laplace" else Budget("1", "1e-6")
    assert hdmm.select(workload, noise).rmse(budget) > 0


def test_a_laplace_scale_is_the_exact_sensitivity_over_weight_and_epsilon() -> None:
    blocks = [Block((0,), (Prefix(2),), Fraction(1, 3)), Block((1,), (Identity(3),), Fraction(2))]
    delta = Fraction(2, 3) + 2
    noise = noise_for(blocks, "laplace", Budget("0.7"))
    assert noise.scales == (delta / (Fraction(1, 3) * Fraction(7, 10)), delta / (2 * Fraction(7, 10)))


def test_a_laplace_variance_is_that_of_the_discrete_law() -> None:
    noise = noise_for([Block((0,), (Identity(2),))], "laplace", Budget("0.5"))
    assert noise.variances == (laplace_variance(Fraction(2)),)


def test_a_laplace_scale_that_cannot_be_sampled_is_rounded_up() -> None:
    exact = 1 / Fraction("0.123456789012345678901")
    (scale,) = noise_for([Block((0,), (Identity(2),))], "laplace", Budget("0.123456789012345678901")).scales
    assert exact < scale < exact * (1 + Fraction(1, 2**44))


def test_an_epsilon_too_small_to_sample_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"epsilon is too small for this strategy.*raise epsilon"):
        noise_for([Block((0,), (Identity(2),))], "laplace", Budget("1e-17"))


def test_the_shares_of_the_blocks_add_up_to_epsilon() -> None:
    blocks = [Block((), (), Fraction(1, 10)), Block((0,), (Identity(2),), Fraction(3)), Block((1,), (Identity(3),))]
    noise = noise_for(blocks, "laplace", Budget("0.3"))
    assert sum(1 / Fraction(scale) for scale in noise.scales) == Fraction(3, 10)


def test_the_gaussian_sigma_of_the_reference_budget_is_known() -> None:
    assert gaussian_sigma(Budget("1", "1e-6")) == pytest.approx(4.224678889, abs=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.1", "1e-3"), ("1", "1e-6"), ("1", "0.1"), ("8", "1e-9"), ("20", "1e-5")]
)
def test_the_gaussian_sigma_leaks_delta_and_no_more(epsilon: str, delta: str) -> None:
    sigma = gaussian_sigma(Budget(epsilon, delta))
    assert leaked(sigma, float(epsilon)) == pytest.approx(float(delta), rel=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-3"), ("1", "1e-6"), ("8", "1e-9")])
def test_a_sigma_one_percent_smaller_would_leak_more(epsilon: str, delta: str) -> None:
    sigma = gaussian_sigma(Budget(epsilon, delta))
    assert leaked(0.99 * sigma, float(epsilon)) > 1.001 * float(delta)


@pytest.mark.parametrize(("rho", "sigma"), [("0.5", 1.0), ("2", 0.5), ("0.005", 10.0)])
def test_the_sigma_of_rho_is_one_over_the_root_of_two_rho(rho: str, sigma: float) -> None:
    assert gaussian_sigma(Budget(rho=rho)) == pytest.approx(sigma, rel=1e-15)


def test_a_gaussian_deviation_is_sigma_times_the_sensitivity_over_the_weight() -> None:
    blocks = [Block((0,), (Prefix(2),), Fraction(1, 3)), Block((1,), (Identity(3),), Fraction(2))]
    noise = noise_for(blocks, "gaussian", Budget(rho="0.5"))
    root = sqrt(2 / 9 + 4)
    assert noise.scales == pytest.approx((3 * root, root / 2))


def test_a_gaussian_variance_counts_the_rounding_to_integers() -> None:
    noise = noise_for([Block((0,), (Identity(2),))], "gaussian", Budget(rho="0.5"))
    assert noise.variances == pytest.approx((1 + 1 / 12,))


@pytest.mark.parametrize(
    ("kind", "budget", "message"),
    [
        ("laplace", Budget("1", "1e-6"), "delta: Laplace noise takes epsilon alone"),
        ("laplace", Budget(rho="1"), "rho: Laplace noise takes epsilon"),
        ("gaussian", Budget("1"), "delta: Gaussian noise needs it beside epsilon"),
    ],
)
def test_a_budget_that_does_not_fit_the_noise_is_refused(kind, budget: Budget, message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        noise_for([Block((0,), (Identity(2),))], kind, budget)


@pytest.mark.parametrize("budget", [Budget("500", "1e-100"), Budget("1e-100", "1e-6"), Budget(rho="1e-100")], ids=str)
def test_the_gaussian_sigma_of_an_extreme_budget_is_a_positive_number(budget: Budget) -> None:
    assert 0 < gaussian_sigma(budget) < float("inf")


@pytest.mark.parametrize(("kind", "budget"), [("laplace", Budget("0.5")), ("gaussian", Budget("1", "1e-6"))])
def test_no_strategy_of_integer_queries_has_less_noise_than_the_unit_variance(kind, budget: Budget) -> None:
    assert noise_for([Block((0,), (Identity(2),))], kind, budget).variances[0] >= unit_variance(kind, budget)


def test_no_scale_has_less_noise_for_its_size_than_the_unit_variance_says() -> None:
    """f(s)/s² for all larger scales, at every budget: what the docstring of unit_variance proves."""
    scales = np.geomspace(0.01, 100, 4000)
    ratios = np.array([rounded_variance(scale) / scale**2 for scale in scales.tolist()])
    for place in range(0, len(scales), 40):
        s = float(scales[place])
        budget = Budget(rho=Fraction(1 / (2 * s**2)))
        assert unit_variance("gaussian", budget) <= s**2 * ratios[place:].min() * (1 + 1e-12)
        laplace = Budget(Fraction(1 / s))
        least = min(laplace_variance(scale) / scale**2 for scale in scales[place:].tolist())
        assert unit_variance("laplace", laplace) <= s**2 * least * (1 + 1e-12)
