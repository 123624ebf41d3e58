"""Selection: the best strategy wins, the predictions add up, and impossible requests are refused."""

from functools import cache
from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.optimise.descent import DEFAULT
from hdmm.plans import Goal
from hdmm.plans.describe import rounding_cost
from hdmm.privacy.calibrate import NORM, NoiseKind
from hdmm.progress import Progress
from tests.operators.proposals import proposed

SCHEMA = hdmm.Schema(a=range(4), b=range(6), c=["x", "y"])
PAIRS = hdmm.marginals(SCHEMA, k=2)
BUDGET = hdmm.Budget(epsilon=1)
WORKLOADS = {
    "pairs": PAIRS,
    "total": hdmm.Workload(SCHEMA).add("t"),
    "prefixes": hdmm.Workload(SCHEMA).add("p", b=hdmm.Prefix()),
}


@cache
def planned(name: str = "pairs", noise: NoiseKind = "laplace") -> hdmm.Plan:
    return hdmm.select(WORKLOADS[name], noise)


def test_the_candidate_with_the_least_error_wins():
    plan = planned()
    candidates = plan.candidates.to_pylist()
    found = [one for one in candidates if one["reason"] is None]
    assert plan.operator == min(found, key=lambda one: one["rmse"])["operator"]
    assert {one["operator"] for one in found} == {
        "Identity",
        "Plain",
        "Marginals",
        "Marginal",
        "Explicit",
        "Union",
        "Kron",
    }


def test_an_operator_that_does_not_apply_is_listed_with_its_reason():
    (aside,) = [one for one in planned().candidates.to_pylist() if one["reason"] is not None]
    assert aside["operator"] == "MarginalPlus"
    assert aside["rmse"] is None
    assert "Marginal weighs these" in aside["reason"]


class Broken(hdmm.operators.Operator):
    """An operator with a fault."""

    def propose(self, workload, norm, effort=DEFAULT):
        raise ZeroDivisionError("by nobody's fault but ours")


ALL = [hdmm.operators.Explicit(), hdmm.baselines.Identity(), hdmm.baselines.Marginals()]


def test_a_fault_in_one_operator_does_not_end_the_search():
    operators = [Broken(), hdmm.baselines.Identity()]
    with pytest.warns(RuntimeWarning, match="Broken: an internal error"):
        plan = hdmm.select(WORKLOADS["pairs"], operators=operators)
    assert plan.operator == "Identity"
    assert "ZeroDivisionError" in plan.candidates.to_pylist()[0]["reason"]


def test_where_no_operator_is_left_every_reason_is_given():
    operators = [hdmm.operators.Residual(), hdmm.operators.Union()]
    workload = hdmm.Workload(SCHEMA).add("one", a=hdmm.Prefix())
    with pytest.raises(hdmm.errors.InputError, match=r"Residual: it is for Gaussian noise; Union: there is only one"):
        hdmm.select(workload, operators=operators)


def test_the_columns_of_candidates_and_errors():
    plan = planned()
    assert plan.candidates.column_names == ["operator", "rmse", "seconds", "certificate", "seed", "reason"]
    assert plan.errors(BUDGET).column_names == [
        "product",
        "queries",
        "rmse",
        "stderr_max",
        "margin95",
        "identity",
        "plain",
        "bound",
    ]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_rmse_of_all_queries_is_that_of_the_products(noise):
    budget = BUDGET if noise == "laplace" else hdmm.Budget(epsilon=1, delta="1e-6")
    plan = planned(noise=noise)
    rows = plan.errors(budget).to_pylist()
    pooled = sqrt(sum(row["queries"] * row["rmse"] ** 2 for row in rows) / sum(row["queries"] for row in rows))
    assert plan.rmse(budget) == pytest.approx(pooled)


def test_a_weight_counts_twice_over_in_the_error():
    light = hdmm.Workload(SCHEMA).add("w", a=hdmm.Identity())
    heavy = hdmm.Workload(SCHEMA).add("w", a=hdmm.Identity(), weight=3)
    only = [hdmm.baselines.Identity()]
    plans = [hdmm.select(workload, operators=only) for workload in (light, heavy)]
    assert plans[1].rmse(BUDGET) == pytest.approx(3 * plans[0].rmse(BUDGET))
    assert plans[1].errors(BUDGET)["rmse"].to_pylist() == pytest.approx(plans[0].errors(BUDGET)["rmse"].to_pylist())


def test_progress_is_reported_for_each_candidate():
    seen: list[Progress] = []
    hdmm.select(PAIRS, on_progress=seen.append)
    done = [one for one in seen if one.error is not None]
    assert [one.stage for one in done][:3] == ["Identity", "Plain", "Marginals"]
    assert all(one.best == min(other.error or 0 for other in done[: place + 1]) for place, one in enumerate(done))
    assert {one.stage for one in done} <= {one.stage for one in seen if one.error is None}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "20"])
def test_no_plan_is_better_than_its_bound(noise, epsilon):
    """Coarse noise included: a discrete Laplace has less variance than a continuous one."""
    budget = hdmm.Budget(epsilon=epsilon, delta=None if noise == "laplace" else "1e-6")
    for name in WORKLOADS:
        plan = planned(name, noise)
        bound = plan.bound(budget)
        assert bound is not None
        assert plan.rmse(budget) >= bound * (1 - 1e-12)
        assert plan.certificate is not None
        assert plan.certificate >= -1e-12


def test_margins_are_between_those_of_few_and_of_many_terms():
    row = planned().errors(hdmm.Budget(epsilon="0.01")).to_pylist()[0]
    assert 1.95 < row["margin95"] / row["stderr_max"] < 2.13


def test_a_plan_describes_itself():
    text = planned().describe(BUDGET)
    assert "Laplace noise, ε = 1, 1 row per person, add-remove" in text
    assert all(product.name in text for product in PAIRS.products)
    assert "rounding" not in text, "its marginals are integers as they are"


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_plan_tells_what_rounding_to_integers_cost(noise, tmp_path):
    workload = hdmm.Workload(hdmm.Schema(a=range(2), b=range(40))).add("r", a=hdmm.Identity(), b=hdmm.AllRange())
    plan = hdmm.select(workload, noise, operators=[hdmm.operators.Kron()])
    exact = proposed(hdmm.operators.Kron(), workload.encoded, NORM[noise])
    cost = (
        sqrt(
            loss(plan.mechanism.strategy, workload.encoded, NORM[noise])
            / loss(exact.strategy, workload.encoded, NORM[noise])
        )
        - 1
    )
    assert rounding_cost(plan) == pytest.approx(cost, abs=1e-12)
    assert 0 < abs(rounding_cost(plan)) <= 1e-4
    assert f"rounding changed the RMSE by {100 * rounding_cost(plan):+.2g}%" in plan.describe(Goal().budgets(noise)[0])
    plan.save(tmp_path / "p.plan")
    assert rounding_cost(hdmm.Plan.load(tmp_path / "p.plan")) == rounding_cost(plan)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workload": hdmm.Workload(SCHEMA)}, "the workload is empty"),
        ({"workload": "by sex"}, "expected a Workload"),
        ({"noise": "uniform"}, "expected 'laplace' or 'gaussian'"),
        ({"operators": []}, "expected operators"),
        ({"operators": ["Identity"]}, "expected operators"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, message):
    with pytest.raises(hdmm.errors.InputError, match=message):
        hdmm.select(**({"workload": PAIRS} | arguments))


def test_a_domain_that_fits_no_memory_is_planned_where_no_vector_is_needed():
    wide = hdmm.Schema({f"a{i}": range(10) for i in range(30)})
    plan = hdmm.select(hdmm.marginals(wide, k=1))
    assert plan.operator in ("Plain", "Marginals")


def test_a_domain_that_fits_no_memory_is_refused_where_the_vector_is_needed():
    wide = hdmm.Schema({f"a{i}": range(10) for i in range(30)})
    workload = hdmm.Workload(wide).add("all", {name: hdmm.Identity() for name in wide})
    with pytest.raises(hdmm.errors.TooLargeError, match=r"1.0e30 cells.*ask for fewer"):
        hdmm.select(workload)


def test_real_valued_queries_are_answered_from_integer_measurements():
    workload = hdmm.Workload(SCHEMA).add("mean", a=hdmm.Custom([[0, 0.5, 1.5, 2.25]]))
    plan = hdmm.select(workload)
    assert plan.operator == "Explicit"
    assert all(block.integral for block in plan.mechanism.blocks)


def test_a_new_operator_is_a_class_with_one_method():
    from hdmm.matrix import Identity
    from hdmm.operators.base import Proposal
    from hdmm.strategy import Block, Strategy

    class Everything(hdmm.operators.Operator):
        def propose(self, workload, norm, effort=DEFAULT):
            sizes = workload.sizes
            return Proposal(Strategy(sizes, (Block(tuple(range(len(sizes))), tuple(map(Identity, sizes))),), "kron"))

    plan = hdmm.select(hdmm.Workload(SCHEMA).add("t"), operators=[Everything()])
    assert plan.operator == "Everything"
    assert loss(plan.mechanism.strategy, plan.workload.encoded, 1) == pytest.approx(np.prod(SCHEMA.sizes))


def test_a_product_of_many_attributes_is_not_split_into_all_its_marginals():
    wide = hdmm.Schema({f"a{i}": [False, True] for i in range(20)})
    either = hdmm.Identity() | hdmm.Total()
    plan = hdmm.select(hdmm.Workload(wide).add("all", dict.fromkeys(list(wide)[:12], either)))
    reasons = {one["operator"]: one["reason"] for one in plan.candidates.to_pylist()}
    assert "12 attributes" in reasons["Marginals"]


def test_the_description_says_by_how_much_the_winner_won():
    plan = planned()
    found = [one for one in plan.candidates.to_pylist() if one["rmse"] is not None]
    ranked = sorted(found, key=lambda one: one["rmse"])
    second = ranked[1]["rmse"] / ranked[0]["rmse"]
    told = plan.describe(hdmm.Budget("1"))
    assert f"as a multiple of its own: {ranked[1]['operator']} {second:,.2f}, " in told


def test_an_operator_for_which_the_workload_is_too_large_stands_aside():
    schema = hdmm.Schema({f"a{i}": range(100) for i in range(5)})
    plan = hdmm.select(hdmm.marginals(schema, k=2), "gaussian", operators=ALL)
    reasons = {one["operator"]: one["reason"] for one in plan.candidates.to_pylist()}
    assert "10,000,000,000 cells" in reasons["Explicit"]
    assert "10,000,000,000 cells" in reasons["Identity"]
    assert reasons["Marginals"] is None


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("operators", [None, [hdmm.baselines.Plain()]])
def test_the_same_total_may_be_asked_for_many_times(noise, operators):
    workload = hdmm.Workload(SCHEMA)
    for name in "abcd":
        workload = workload.add(name)
    plan = hdmm.select(workload, noise, operators=operators)
    assert plan.rmse(hdmm.Budget("0.01", None if noise == "laplace" else "1e-6")) > 0


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_cell_may_never_be_asked_for(noise):
    """Then no base of an attribute needs to tell that cell apart, and one that does not is of no use."""
    workload = hdmm.Workload(SCHEMA).add("later", a=~hdmm.Prefix(), b=~hdmm.Prefix()).add("total")
    plan = hdmm.select(workload, noise, operators=[hdmm.operators.MarginalPlus()])
    assert all(plan.mechanism.local.supports(product) for product in workload.encoded.products)
