"""Rounding a strategy to integers: what it costs is computed, told and small, and few precisions are tried for it."""

from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm import operators
from hdmm.errors import TooLargeError
from hdmm.estimators.estimator import loss
from hdmm.estimators.least_squares import strategy_loss
from hdmm.matrix import Dense, Norm, Restricted
from hdmm.optimise.descent import Effort
from hdmm.selection import quantise as integer
from hdmm.selection.quantise import Quantised, quantise
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded
from tests.operators.proposals import proposed

LIMIT = 2e-4  # of the total squared error: 1e-4 of the RMSE
IDENTITY = hdmm.Workload(hdmm.Schema(a=range(4))).add("q", a=hdmm.Identity()).encoded


def one(predicates, size):
    return hdmm.Workload(hdmm.Schema(a=range(size))).add("q", a=predicates).encoded


CASES: dict[str, tuple[Encoded, Norm]] = {
    "prefix 5": (one(hdmm.Prefix(), 5), 2),
    "prefix 64": (one(hdmm.Prefix(), 64), 1),
    "range 128": (one(hdmm.AllRange(), 128), 2),
    "width 256": (one(hdmm.Width(8), 256), 2),
}


def quantised(strategy: Strategy, encoded: Encoded, norm: Norm) -> Quantised:
    found = quantise(strategy, encoded, norm)
    assert isinstance(found, Quantised), found
    return found


@pytest.fixture
def losses(monkeypatch):
    """Every loss that is computed while a strategy is rounded: that of the strategy itself comes first."""
    found = []

    def counted(*given):
        found.append(loss(*given))
        return found[-1]

    monkeypatch.setattr("hdmm.objective.loss", counted)
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_cost_that_is_told_is_that_of_the_strategy_returned(case):
    encoded, norm = CASES[case]
    strategy = proposed(operators.Explicit(), encoded, norm, Effort(restarts=1)).strategy
    found = quantised(strategy, encoded, norm)
    ratio = strategy_loss(found.strategy, encoded, norm) / strategy_loss(strategy, encoded, norm)
    assert found.cost == pytest.approx(sqrt(ratio) - 1, abs=1e-12)
    assert 0 < found.cost <= 1e-4
    assert all(block.integral for block in found.strategy.blocks)


def test_integers_cost_nothing_and_stay_as_they_are():
    strategy = proposed(hdmm.baselines.Identity(), IDENTITY, 1).strategy
    found = quantised(strategy, IDENTITY, 1)
    assert (found.strategy, found.cost) == (strategy, 0)
    assert found.strategy is strategy


@pytest.mark.parametrize("predicates", [hdmm.Prefix(), hdmm.AllRange(), hdmm.Width(8)], ids=repr)
def test_on_one_large_attribute_the_first_precision_tried_is_the_right_one(predicates, losses):
    encoded = one(predicates, 256)
    quantise(proposed(operators.Explicit(), encoded, 2).strategy, encoded, 2)
    before, *tried = losses
    assert [growth <= LIMIT for growth in (np.array(tried) / before - 1)] == [True]


def attempts(growth, likely):
    """What comes of a search, given the growth at every precision, and the precisions that it tried."""
    tried = []

    def rounded(k):
        tried.append(k)
        return None if growth(k) is None else Quantised(k, growth(k))

    return integer.fewest_bits(rounded, likely), tried


@pytest.mark.parametrize("likely", [0, 9, 14, 99])
@pytest.mark.parametrize("needed", [8, 11, 14, 16])
def test_where_the_law_holds_the_least_precision_is_found_in_three_attempts(needed, likely):
    (k, found), tried = attempts(lambda k: 1.5e-4 * 4.0 ** (needed - k), likely)
    assert k == needed
    assert found.growth <= LIMIT
    assert len(tried) <= 3


@pytest.mark.parametrize("seed", range(20))
def test_where_the_law_fails_the_result_still_costs_little(seed):
    off = 10 ** np.random.default_rng(seed).uniform(-3, 3, 99)
    off[16] = 1
    (k, found), tried = attempts(lambda k: 1e-4 * 4.0 ** (12 - k) * off[k], 10)
    assert found.growth <= LIMIT
    assert k in tried
    assert len(set(tried)) == len(tried)


def test_precisions_that_cannot_tell_cells_apart_are_passed_over():
    (k, _), tried = attempts(lambda k: None if k < 13 else 1e-5, 8)
    assert k == 13
    assert tried == list(range(8, 14))


def test_where_nothing_costs_little_the_finest_is_taken_and_its_cost_told():
    (k, found), _ = attempts(lambda k: 1.0, 8)
    assert k == 16
    assert found.cost == pytest.approx(sqrt(2) - 1)


def test_where_even_the_coarsest_queries_are_too_large_factors_are_not_tried_one_by_one(losses):
    encoded = hdmm.marginals(hdmm.Schema({f"a{i}": range(8) for i in range(14)}), k=1).encoded
    entries = np.linalg.qr(np.random.default_rng(5).normal(size=(8, 8)))[0]
    block = Block(tuple(range(14)), tuple(Dense(entries) for _ in range(14)))
    with pytest.raises(TooLargeError, match="fewer attributes"):
        quantise(Strategy(encoded.sizes, (block,), "kron"), encoded, 2)
    assert len(losses) < 14


@pytest.mark.parametrize("norm", [1, 2])
def test_a_block_as_light_as_nothing_leaves_the_others_their_precision(norm):
    w = hdmm.Workload(hdmm.Schema(a=range(6)))
    w = w.add("total", weight="1000").add("again").add("pair", a=hdmm.Values([0, 5]), weight="1e-9")
    strategy = proposed(hdmm.baselines.Plain(), w.encoded, norm).strategy
    found = quantised(strategy, w.encoded, norm).strategy
    shares = np.array([float(block.weight) ** norm for block in found.blocks])
    assert 1e-7 <= shares.min() / shares.max() <= 1e-6
    assert shares.sum() <= sum(float(block.weight) ** norm for block in strategy.blocks) * (1 + 2e-6)


def test_errors_of_products_whose_weights_are_far_apart_are_those_of_least_squares():
    w = hdmm.Workload(hdmm.Schema(a=range(6)))
    w = w.add("total", weight="1000").add("again").add("pair", a=hdmm.Values([0, 5]), weight="1e-9")
    plan = hdmm.select(w, noise="laplace", operators=[hdmm.baselines.Plain()])
    total, again, _ = plan.errors(hdmm.Budget("1"))["rmse"].to_pylist()
    variance = plan.mechanism.calibrate(hdmm.Budget("1")).variances
    assert total == again == pytest.approx((1 / variance[0] + 1 / variance[1]) ** -0.5, rel=1e-6)


def test_a_strategy_is_in_the_form_in_which_a_file_holds_it(tmp_path):
    w = hdmm.Workload(hdmm.Schema(a=range(8), b=range(3), c=range(5)))
    w = w.add("some", a=~hdmm.Values([7]), b=hdmm.Identity()).add("many", a=hdmm.Identity(), c=hdmm.Identity())
    w = w.add("heavy", b=~hdmm.Values([1]), weight=10**9)
    plan = hdmm.select(w, noise="laplace", operators=[operators.Union()])
    plan.save(tmp_path / "a.plan")
    loaded = hdmm.Plan.load(tmp_path / "a.plan")
    kinds, loaded_kinds = ([type(f) for block in p.mechanism.blocks for f in block.factors] for p in (plan, loaded))
    assert kinds == loaded_kinds
    assert Dense in kinds, "a factor that is neither all cells nor their total"


def test_a_row_that_counts_nobody_has_no_error_beside_others_that_do():
    schema = hdmm.Schema(a=range(10))
    w = hdmm.Workload(schema).add("total")
    w = w.add("rows", {"a": ~(hdmm.Identity() | hdmm.Where("a >= 5"))}, where="a >= 5")
    plan = hdmm.select(w, noise="laplace", operators=[operators.Explicit()])
    factor = w.encoded.products[1].factors[0]
    assert isinstance(factor, Restricted)
    coefficients = Restricted(factor.inner, np.arange(10) >= 5)
    assert not coefficients.apply(np.random.default_rng(0).normal(size=10))[-1].any()
    found = plan.accuracy("rows", hdmm.Budget("1"))
    assert found.expand(found.stderr)[-1] == 0


def test_what_no_block_tells_is_not_answered_however_far_apart_their_weights_are():
    w = hdmm.Workload(hdmm.Schema(a=range(6), b=range(2)))
    w = w.add("rough", {"a": ~hdmm.Values([0]), "b": hdmm.Custom([[0, -1], [0, 0], [-1, -1]])}, weight="1e-9")
    w = w.add("some", a=hdmm.Identity("a >= 3"))
    plan = hdmm.select(w, noise="laplace", operators=[hdmm.baselines.Plain()])
    asked = hdmm.Workload(w.schema).add("all", a=hdmm.Total()).add("most", a=~hdmm.Values([0]))
    everybody, most = asked.encoded.products
    assert plan.mechanism.estimator.supports(most)
    assert not plan.mechanism.estimator.supports(everybody), "the records with a = 0 are never counted"


def test_errors_of_a_budget_so_large_that_there_are_none_are_not_negative():
    w = hdmm.Workload(hdmm.Schema(a=range(8))).add("all", weight="1e-9").add("some", a=~hdmm.Where("a <= 3"))
    plan = hdmm.select(w, noise="laplace", unit=hdmm.Unit(rows=2), operators=[hdmm.baselines.Plain()])
    assert plan.rmse(hdmm.Budget("100")) >= 0
    assert min(plan.errors(hdmm.Budget("100"))["rmse"].to_pylist()) >= 0


@pytest.mark.parametrize("sizes", [(8, 5, 3, 2), (3,) * 7])
def test_products_of_many_factors_are_rounded_so_coarsely_that_their_noise_can_be_drawn(sizes):
    schema = hdmm.Schema({f"a{axis}": range(size) for axis, size in enumerate(sizes)})
    workload = hdmm.Workload(schema).add("all", {name: hdmm.Prefix() for name in schema})
    plan = hdmm.select(workload, "gaussian", operators=[hdmm.operators.Kron()])
    assert plan.rmse(hdmm.Budget(epsilon="0.6", delta="1e-6")) > 0
    assert plan.certificate is not None
    assert plan.certificate < 0.1
