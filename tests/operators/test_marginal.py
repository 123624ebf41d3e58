"""OPT_M: its objective against matrices written out, its optima against certificates and the paper, its plans."""

from functools import cache
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.optimize import minimize

from hdmm import baselines, marginals
from hdmm.bounds import svd_bound
from hdmm.estimators.estimator import LinearEstimator
from hdmm.estimators.least_squares import local_least_squares
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.matrix import Norm
from hdmm.operators.marginal import Marginal
from hdmm.operators.marginals.convex import among_all, closed_form, convex_weights
from hdmm.operators.marginals.demand import Demand, contained, demand_of
from hdmm.operators.marginals.weights import AllMarginals, ListedMarginals, WeightedMarginals, initial_marginals, settle
from hdmm.optimise.descent import Effort
from hdmm.paper import census, workloads
from hdmm.paper.errors import WORKLOADS
from hdmm.paper.sections.printed import tables
from hdmm.schema import Schema
from hdmm.strategy import Strategy
from hdmm.workload import AllRange, Encoded, Identity, Prefix, Total, Where, Workload
from tests.contract.zoo import WORKLOAD
from tests.operators.proposals import proposed, reason_aside
from tests.oracles.marginal_algebra import marginal_matrix

QUICK = Effort(restarts=1)
MIXED = WORKLOAD.encoded
"""Prefixes, ranges, reals, conditions across attributes, weights."""
SIGMA = 4.224678889
WEIGHTS = arrays(float, 8, elements=st.sampled_from([0.0, 0.2, 0.5, 1.0, 3.0]))


def demand(encoded: Encoded) -> Demand:
    found = demand_of(encoded, [axis for axis in encoded.axes if encoded.sizes[axis] > 1])
    assert found is not None
    return found


def planned(encoded: Encoded, norm, effort: Effort = QUICK) -> Strategy:
    strategy = proposed(Marginal(), encoded, norm, effort).strategy
    assert strategy.family == "marginal"
    return strategy


@cache
def rmse(table: str, place: tuple[str, str]) -> float:
    encoded = WORKLOADS[place]().encoded
    norm: Norm = 1 if table == "table_hd1_laplace" else 2
    variance = 2.0 if norm == 1 else SIGMA**2
    # One restart is enough for all but SF1, whose few marginals have many local optima.
    strategy = planned(encoded, norm, Effort() if place[1] == "SF1" else QUICK)
    assert all(local_least_squares(strategy).supports(product) for product in encoded.products)
    return sqrt(variance * loss(strategy, encoded, norm) / encoded.query_count)


def dense_error(encoded: Encoded, weights: np.ndarray) -> float:
    """‖WA⁺‖²_F for the marginals of all sets; infinite where the workload is not supported."""
    d = len(encoded.sizes)
    cube = weights.reshape([2] * d).transpose()  # the first attribute is the lowest bit
    strategy, queries = marginal_matrix(encoded.sizes, cube).dense(), encoded.matrix().dense()
    inverse = np.linalg.pinv(strategy, rcond=1e-12)
    if not np.allclose(queries @ inverse @ strategy, queries, atol=1e-8):
        return np.inf
    return float(np.sum((queries @ inverse) ** 2))


@given(WEIGHTS)
def test_thm_margobj_the_error_is_that_of_matrices_written_out(weights):
    if not weights.any():
        return
    asked = demand(MIXED)
    assert AllMarginals(asked).evaluate(weights)[0] == pytest.approx(dense_error(MIXED, weights), rel=1e-9)


@given(WEIGHTS)
def test_listed_marginals_and_all_marginals_agree(weights):
    asked = demand(MIXED)
    chosen = np.flatnonzero(weights)
    if not len(chosen):
        return
    error, slopes = ListedMarginals(asked, chosen).evaluate(weights[chosen])
    expected, all_slopes = AllMarginals(asked).evaluate(weights)
    assert error == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slopes, all_slopes[chosen], rtol=1e-12)


@given(arrays(float, 8, elements=st.floats(0.1, 3)))
def test_the_slopes_are_finite_differences(weights):
    error = AllMarginals(demand(MIXED))
    _, slopes = error.evaluate(weights)
    for place, step in enumerate(np.eye(8) * 1e-5):
        ahead, behind = (error.evaluate(np.sqrt(weights**2 + move))[0] for move in (step, -step))
        assert (behind - ahead) / 2e-5 == pytest.approx(slopes[place], rel=1e-5, abs=1e-6)


@given(st.sets(st.integers(0, 63), min_size=1), st.sets(st.integers(0, 63), min_size=1))
def test_contained_finds_every_pair(sets, among):
    first, second = np.array(sorted(sets)), np.array(sorted(among))
    expected = [(i, j) for i, one in enumerate(first) for j, other in enumerate(second) if one & other == other]
    assert list(zip(*(found.tolist() for found in contained(first, second)), strict=True)) == expected


@pytest.mark.parametrize("norm", [1, 2])
@given(start=arrays(float, 8, elements=st.floats(0.01, 3)))
def test_no_step_makes_weights_worse(start, norm):
    asked = AllMarginals(demand(MIXED))
    found = WeightedMarginals.of(asked, start, norm)
    for _ in range(20):
        step = settle(asked, found.weights, norm, QUICK, iterations=1, tolerance=0)
        assert step.error <= found.error * (1 + 1e-12)
        found = step


@given(start=arrays(float, 8, elements=st.floats(0.01, 3)))
def test_the_gap_of_any_weights_is_no_promise_too_much(start):
    found = WeightedMarginals.of(AllMarginals(demand(MIXED)), start, 2)
    assert found.error / (1 + found.gap) <= gaussian_optimum() * (1 + 1e-6)


@cache
def gaussian_optimum() -> float:
    return convex_weights(demand(MIXED), QUICK).error


def test_the_gaussian_optimum_is_that_of_a_general_solver():
    asked = AllMarginals(demand(MIXED))

    def logarithm(logs: np.ndarray) -> float:
        return log(WeightedMarginals.of(asked, np.exp(logs), 2).error)

    general = minimize(logarithm, np.zeros(8), method="L-BFGS-B", jac="3-point")
    assert gaussian_optimum() == pytest.approx(np.exp(general.fun), rel=1e-4)


def test_adult_is_proved_optimal_among_all_marginals_under_gaussian_noise():
    encoded = workloads.adult_marginals().encoded
    found = convex_weights(demand(encoded), QUICK)
    assert among_all(found).gap <= 1e-4
    assert sqrt(SIGMA**2 * found.error / encoded.query_count) == pytest.approx(46.18, abs=0.005)


def test_the_certificate_sees_a_marginal_that_is_missing():
    """The workload's own marginals are not enough for Adult: with them alone it is 46.19."""
    asked = demand(workloads.adult_marginals().encoded)
    alone = settle(initial_marginals(asked), np.ones(len(asked.sets)), 2, QUICK, iterations=500, tolerance=1e-6)
    assert alone.gap <= 1e-6
    assert among_all(alone).gap > 1e-3


def test_thm_optsvdbmarg_where_it_is_real_the_closed_form_is_optimal():
    encoded = workloads.cps_marginals().encoded
    asked = initial_marginals(demand(encoded))
    found = WeightedMarginals.of(asked, closed_form(asked), 2)
    assert found.gap <= 1e-9
    assert found.error == pytest.approx(svd_bound(encoded.gram()), rel=1e-9)


@pytest.mark.parametrize("place", WORKLOADS, ids=" ".join)
@pytest.mark.parametrize("table", ["table_hd1_laplace", "table_hd2_gaussian"])
def test_tables_it_is_no_worse_than_the_paper(table, place):
    (printed,) = (row["OPT_M"] for row in tables()[table] if (row["dataset"], row["workload"]) == place)
    if (table, place[1]) == ("table_hd2_gaussian", "SF1+"):
        # The closed form is real, so that 15.894 is the least there is. It is the paper's own 14.31 for SF1, which is
        # 14.307, times 1.11095 for Identity ∪ Total on 51 states; 15.88 is below what marginals can reach.
        printed = 15.8945
    assert rmse(table, place) <= printed + 0.005


def test_hops_find_what_descent_does_not():
    """Descent from the workload's own marginals ends at 104.9, the paper's at 100.9."""
    encoded = workloads.loans_small().encoded
    hopped = planned(encoded, 1, Effort(restarts=0))
    assert sqrt(2 * loss(hopped, encoded, 1) / encoded.query_count) <= 92.7
    assert rmse("table_hd1_laplace", ("Adult (14D)", "<= 3D Marginals")) <= 219


def test_table_margexample_marginals():
    encoded = marginals(Schema(a=range(2), b=range(5), c=range(50), d=range(100)), k=2).encoded
    assert loss(planned(encoded, 1), encoded, 1) <= 62_886.5


@pytest.mark.parametrize("norm", [1, 2])
def test_the_loss_of_the_blocks_is_what_was_optimised(norm):
    """Weights are rounded and small ones are left out, at no cost."""
    encoded = workloads.loans_small().encoded
    strategy = planned(encoded, norm)
    asked = demand(encoded)
    sets = np.array([sum(1 << axis for axis in block.axes) for block in strategy.blocks])
    weights = np.array([float(block.weight) for block in strategy.blocks])
    best = settle(ListedMarginals(asked, sets), weights, norm, QUICK, iterations=2000, tolerance=1e-12)
    assert loss(strategy, encoded, norm) == pytest.approx(best.error, rel=2e-6)


@pytest.mark.parametrize("norm", [1, 2])
def test_any_workload_is_supported_at_the_error_of_matrices_written_out(norm):
    strategy = planned(MIXED, norm)
    assert all(local_least_squares(strategy).supports(product) for product in MIXED.products)
    weights = np.zeros(8)
    for block in strategy.blocks:
        weights[sum(1 << axis for axis in block.axes)] = float(block.weight)
    expected = np.sum(weights**norm) ** (2 / norm) * dense_error(MIXED, weights)
    assert loss(strategy, MIXED, norm) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("norm", [1, 2])
def test_predicates_that_hold_for_all_or_for_none_cost_nothing(norm):
    schema = Schema(a=range(3), b=range(4), c=range(5))
    plain = Workload(schema).add("a", a=Identity())
    hollow = plain.add("c", b=Where("b >= 0"), c=Where("c > 1")).add("none", b=Where("b > 9"), c=Where("c > 9"))
    whole = plain.add("c", c=Where("c > 1"))
    strategy = planned(hollow.encoded, norm)
    assert all(local_least_squares(strategy).supports(product) for product in hollow.encoded.products)
    least = loss(planned(whole.encoded, norm), whole.encoded, norm)
    assert loss(strategy, hollow.encoded, norm) == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("norm", [1, 2])
def test_attributes_of_one_value_change_nothing(norm):
    sets = {"a": Prefix(), "c": Identity() | Total()}
    one = Workload(Schema(a=range(3), b=range(1), c=range(4), d=range(1)))
    one = one.add("p", sets | {"b": Identity()}).add("q", d=AllRange()).add("r", a=Identity(), d=Identity() | Total())
    none = Workload(Schema(a=range(3), c=range(4))).add("p", sets).add("q")
    none = none.add("r", a=Identity()).add("again", a=Identity())
    strategy = planned(one.encoded, norm)
    assert all(local_least_squares(strategy).supports(product) for product in one.encoded.products)
    assert loss(strategy, one.encoded, norm) == pytest.approx(loss(planned(none.encoded, norm), none.encoded, norm))


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [1, 5])
def test_a_workload_of_totals_is_one_count(norm, size):
    encoded = Workload(Schema(a=range(size))).add("t").add("u", a=Total()).encoded
    assert loss(planned(encoded, norm), encoded, norm) == pytest.approx(2)


@pytest.mark.parametrize("norm", [1, 2])
def test_weights_scale_the_loss_and_draw_effort_to_their_products(norm):
    schema = Schema(a=range(3), b=range(40), c=range(5))

    def build(first, second):
        return Workload(schema).add("x", a=Identity(), b=Identity(), weight=first).add("y", c=Prefix(), weight=second)

    even, double, tilted = (build(*weights).encoded for weights in [(1, 1), (2, 2), (1, 8)])
    assert loss(planned(double, norm), double, norm) == pytest.approx(4 * loss(planned(even, norm), even, norm))
    y = Workload(schema).add("y", c=Prefix()).encoded
    assert loss(planned(tilted, norm), y, norm) < 0.5 * loss(planned(even, norm), y, norm)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("attributes", "size"), [(20, 10**5), (62, 10**5), (70, 10)], ids=["1e100", "1e310", "70"])
def test_domains_of_any_size(attributes, size, norm):
    """Of more cells than a float can count, and of more attributes than a word has bits."""
    workload = Workload(Schema({f"a{i}": range(size) for i in range(attributes)})).add("total")
    for i in range(attributes):
        workload = workload.add(f"{i}", {f"a{i}": Identity()}, weight=1 + i % 3)
    encoded = workload.encoded
    strategy = planned(encoded, norm, Effort(restarts=0))
    plain = proposed(baselines.Marginals(), encoded, norm)
    assert all(local_least_squares(strategy).supports(product) for product in encoded.products)
    assert 0 < loss(strategy, encoded, norm) <= loss(plain.strategy, encoded, norm) * (1 + 1e-6)


def test_products_of_too_many_attributes_are_left_to_other_operators():
    schema = Schema({f"a{i}": range(2) for i in range(25)})
    encoded = Workload(schema).add("all", {name: Identity() for name in schema}).encoded
    assert "too many" in reason_aside(Marginal(), encoded, 1)


@pytest.mark.parametrize("norm", [1, 2])
def test_of_too_many_marginals_the_most_useful_are_measured(norm):
    """All marginals of 13 attributes have 3^13 residuals."""
    schema = Schema({f"a{i}": range(2) for i in range(13)})
    encoded = Workload(schema).add("all", {name: Identity() | Total() for name in schema}).encoded
    strategy = planned(encoded, norm, Effort(restarts=0))
    assert sum(2 ** len(block.axes) for block in strategy.blocks) <= 2**20
    bound = svd_bound(encoded.gram()) if norm == 2 else 2.0**13 * 2**13
    assert bound is not None
    assert loss(strategy, encoded, norm) < 1.15 * bound


@pytest.mark.parametrize("norm", [1, 2])
def test_without_time_there_is_still_a_plan(norm):
    encoded = workloads.adult_marginals().encoded
    strategy = planned(encoded, norm, Effort(deadline=0.0))
    assert all(local_least_squares(strategy).supports(product) for product in encoded.products)


def test_the_same_seed_gives_the_same_plan():
    encoded = workloads.adult_prefix().encoded
    first, second = (planned(encoded, 1, Effort(restarts=1, seed=7)) for _ in range(2))
    assert first.blocks == second.blocks


def test_more_restarts_are_never_worse():
    encoded = census.sf1().encoded
    losses = [loss(planned(encoded, 1, Effort(restarts=count)), encoded, 1) for count in (0, 1, 3)]
    assert losses == sorted(losses, reverse=True)
    assert loss(proposed(Marginal(restarts=0), encoded, 1).strategy, encoded, 1) == losses[0]


REPEATS = 1000


@pytest.mark.parametrize("norm", [1, 2])
def test_the_observed_variance_of_every_query_is_the_predicted_one(norm):
    """Float noise of a fixed seed. With another seed, one test in a million would fail by chance.

    The error of an answer is Gaussian, or a weighted sum of Laplace variables, whose kurtosis is at most 6: the mean of
    R squares then has a relative standard deviation of at most √(2/R) and √(5/R).
    """
    strategy = planned(MIXED, norm)
    estimator = local_least_squares(strategy)
    scale = float(sum(block.weight**norm for block in strategy.blocks)) ** (1 / norm)
    scales = [scale / float(block.weight) for block in strategy.blocks]
    noise = [one**2 * (2 if norm == 1 else 1) for one in scales]
    rng = np.random.default_rng(17)
    draw = rng.laplace if norm == 1 else rng.normal
    squares = [np.zeros(product.queries) for product in MIXED.products]
    for _ in range(REPEATS):
        drawn = [draw(0, one, block.queries) for one, block in zip(scales, strategy.blocks, strict=True)]
        state = estimator.reconstruct(drawn, noise)
        for sums, product in zip(squares, MIXED.products, strict=True):
            sums += estimator.answer(product, state) ** 2
    observed = np.concatenate(squares) / REPEATS
    predicted = np.concatenate([variances(estimator, product, noise) for product in MIXED.products])
    quantile = stats.norm.isf(1e-6 / (2 * len(predicted)))
    bound = quantile * sqrt((5 if norm == 1 else 2) / REPEATS)
    certain = predicted == 0  # conditions that no record satisfies
    assert observed[certain].max(initial=0) == 0
    observed, predicted = observed[~certain], predicted[~certain]
    assert abs(observed / predicted - 1).max() <= bound
    assert abs(observed / (predicted * 2) - 1).max() > bound  # a planted fault


def variances(estimator: LinearEstimator[Any], product, noise) -> np.ndarray:
    types = [estimator.row_types(product, axis) for axis in product.axes]
    total = np.zeros([len(one) for one in types])
    for one in estimator.coefficients(product, types, noise):
        total = total + noise[one.block] * one.power_sum(2)
    grid = total[np.ix_(*[one.labels for one in types])] if types else total * product.multiples**2
    assert grid.size == product.queries
    return grid.reshape(-1)
