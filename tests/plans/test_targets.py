"""Objectives and accuracy targets: what is asked for is what is made small, and the returned budget is the least."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

import hdmm
from hdmm.errors import BudgetError, InputError, WorkloadError
from hdmm.plans import Goal
from hdmm.privacy.calibrate import NORM

PERSON = hdmm.Schema(sex=["F", "M"], age=range(8), hispanic=[False, True])
W = (
    hdmm.Workload(PERSON)
    .add("by sex and age", sex=hdmm.Identity(), age=hdmm.Prefix())
    .add("hispanic: age", age=hdmm.Identity(), hispanic=hdmm.Where("hispanic"))
    .add("hispanic: total", hispanic=hdmm.Where("hispanic"))
    .add("either", sex=hdmm.Identity(), where="hispanic OR age >= 4")
)
TARGETS = {"by sex and age": "50@95%", "hispanic": "20@90%"}


@pytest.fixture(scope="module", params=["laplace", "gaussian"])
def plan(request):
    return hdmm.select(W, request.param, targets=TARGETS, restarts=1)


def budgets(plan):
    return [(None, "epsilon")] if plan.noise == "laplace" else [(None, "rho"), ("1e-6", "epsilon")]


def test_the_budget_is_the_least_that_meets_the_targets(plan):
    for delta, name in budgets(plan):
        budget = plan.least_budget(delta)
        rows = plan.target_margins(budget).to_pylist()
        assert [row["product"] for row in rows] == ["by sex and age", "hispanic: age", "hispanic: total"]
        assert all(row["margin"] <= row["wanted"] for row in rows)
        assert any(row["drives"] for row in rows)
        less = Decimal(str(float(getattr(budget, name)) * 0.997))
        rows = plan.target_margins(hdmm.Budget(**{name: less, "delta": delta})).to_pylist()
        assert any(row["margin"] > row["wanted"] for row in rows)


SMALL = {
    "total": hdmm.Workload(PERSON).add("total"),
    "two": hdmm.Workload(PERSON).add("total").add("by age", age=hdmm.Identity()),
    "prefix": hdmm.Workload(PERSON).add("by age", age=hdmm.Prefix()),
    "weighted": hdmm.Workload(PERSON).add("total", weight=5).add("by sex", sex=hdmm.Identity()),
}
STEPS = ["1@95%", "2@99%", "5@60%", "15.9@95%"]  # a single Gaussian count is coarse from a margin of 16 on


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", SMALL)
def test_no_smaller_budget_of_four_digits_meets_the_targets_where_margins_move_in_steps(name, noise):
    """Every amount down to 3% below, and one in 1% further down, where margins are larger by more than any step."""
    workload = SMALL[name]
    for target in STEPS:
        targets = {product.name: target for product in workload.products}
        plan = hdmm.select(workload, noise, targets=targets, operators=[hdmm.baselines.Identity()])
        for delta, kind in budgets(plan):
            found = Decimal(hdmm.privacy.budget.decimal_text(getattr(plan.least_budget(delta), kind)))
            digit = Decimal(1).scaleb(found.adjusted() - 3)
            near = int(found * Decimal("0.03") / digit)
            less = [found - digit * step for step in [*range(1, near + 1, 1 + near // 60), near]]
            less += [found * Decimal(share).scaleb(-2) for share in range(60, 97, 2)]
            assert met(plan, kind, found, delta)
            assert not any(met(plan, kind, amount, delta) for amount in less)


def met(plan, kind, amount, delta):
    rows = plan.target_margins(hdmm.Budget(**{kind: amount, "delta": delta})).to_pylist()
    return all(row["margin"] <= row["wanted"] for row in rows)


def test_the_least_budget_of_a_single_step_is_known_in_closed_form():
    """P(|k| ≤ 1) is 1 − 2e^(−2ε)/(1 + e^(−ε)), at least 0.95 from ε = 1.7658 on; or σ is at most 1.5/1.95996."""
    laplace, gaussian = (hdmm.select(SMALL["total"], noise, targets={"total": "1@95%"}) for noise in NORM)
    assert laplace.least_budget() == hdmm.Budget("1.766")
    assert gaussian.least_budget() == hdmm.Budget(rho="0.8537")


def test_a_target_so_wide_that_any_noise_keeps_it_needs_the_least_budget_that_can_be_measured():
    for noise in ("laplace", "gaussian"):
        plan = hdmm.select(SMALL["total"], noise, targets={"total": f"{10**25}@95%"})
        (*_, (delta, kind)) = budgets(plan)
        budget = plan.least_budget(delta)
        assert getattr(budget, kind) < Fraction(1, 10**12)


def test_the_margins_are_those_that_are_predicted(plan):
    delta, _ = budgets(plan)[-1]
    budget = plan.least_budget(delta)
    errors = {row["product"]: row for row in plan.errors(budget).to_pylist()}
    found = {row["product"]: row["margin"] for row in plan.target_margins(budget).to_pylist()}
    assert found["by sex and age"] == pytest.approx(errors["by sex and age"]["margin95"])
    assert errors["hispanic: age"]["stderr_max"] < found["hispanic: age"] < errors["hispanic: age"]["margin95"]
    assert f"{budget}" in plan.describe(budget)
    assert "all targets are met" in plan.describe(budget)


def test_a_plan_for_all_needs_more_budget(plan):
    other = hdmm.select(W, plan.noise, restarts=1)
    other = replace(other, goal=Goal(targets=plan.targets))
    delta, name = budgets(plan)[-1]
    assert getattr(plan.least_budget(delta), name) < getattr(other.least_budget(delta), name)


def test_targets_are_kept_in_the_file(plan, tmp_path):
    plan.save(tmp_path / "a.plan")
    loaded = hdmm.Plan.load(tmp_path / "a.plan")
    assert loaded.targets == plan.targets
    assert loaded.least_budget() == plan.least_budget()
    assert loaded.certificate == plan.certificate


def test_the_largest_error_is_made_small():
    largest, total = (hdmm.select(W, "gaussian", objective=objective) for objective in ("max", "total"))
    budget = hdmm.Budget(1, "1e-6")
    assert largest.worst(budget) < total.worst(budget)
    assert largest.rmse(budget) > total.rmse(budget)
    assert largest.worst(budget) == pytest.approx(max(largest.errors(budget)["stderr_max"].to_pylist()))
    bound = largest.bound(budget)
    assert bound is not None
    assert bound <= largest.worst(budget)
    assert "largest standard error, which the plan minimises" in largest.describe(budget)


def test_a_weight_makes_an_error_count_more_often():
    products = [hdmm.Product(p.name, p.predicates, 5 if p.name == "either" else 1, p.where) for p in W.products]
    heavy = hdmm.Workload(PERSON, products)
    budget = hdmm.Budget(1, "1e-6")
    plans = [hdmm.select(w, "gaussian", objective="max") for w in (W, heavy)]
    errors = [{row["product"]: row["stderr_max"] for row in plan.errors(budget).to_pylist()} for plan in plans]
    assert errors[1]["either"] < 0.8 * errors[0]["either"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "mean"}, "expected 'total' or 'max'"),
        ({"objective": "max", "targets": TARGETS}, "an objective or targets"),
        ({"targets": {"by age and sex": "5"}}, "no such product; did you mean 'by sex and age'"),
        ({"targets": {"either": "5@95"}}, "for example '50@95%'"),
        ({"targets": {"either": "0@95%"}}, "for example '50@95%'"),
        ({"targets": {"either": "5@100%"}}, "a level from 50%"),
        ({"targets": {"either": 5}}, "for example '50@95%'"),
        ({"targets": ["either=5"]}, "expected a mapping"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        hdmm.select(W, **arguments)


def test_a_plan_without_targets_needs_no_budget_in_particular():
    plan = hdmm.select(hdmm.Workload(PERSON).add("total"))
    with pytest.raises(InputError, match="has no targets"):
        plan.least_budget()


def test_targets_that_no_budget_meets_are_refused():
    with pytest.raises(BudgetError, match="Laplace noise takes epsilon alone"):
        hdmm.select(hdmm.Workload(PERSON).add("total"), targets={"total": "5"}).least_budget("1e-6")
    tiny = hdmm.select(hdmm.Workload(PERSON).add("by age", age=hdmm.Prefix()), "gaussian", targets={"by age": "0.001"})
    with pytest.raises(InputError, match="the targets cannot be met"):
        tiny.least_budget("1e-6")


def test_specs_hold_objectives_and_targets(tmp_path):
    targets = {name: hdmm.Target(text) for name, text in TARGETS.items()}
    for spec in (hdmm.Spec(PERSON, W, objective="max"), hdmm.Spec(PERSON, W, targets=targets)):
        spec.save(tmp_path / "spec.yaml")
        assert hdmm.Spec.load(tmp_path / "spec.yaml") == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objective: least", "line 5: objective: unknown word 'least'"),
        ("targets: {all: 5}", "line 5: targets.all: target 'all': no such product; known: 'total'"),
        ("targets: {total: about 5}", "line 5: targets.total: product 'total': target 'about 5': expected"),
        ("targets: {total: 5}\nobjective: max", "line 6: objective: give an objective or targets"),
    ],
)
def test_mistakes_in_specs_are_told_with_their_line(tmp_path, text, message):
    path = tmp_path / "spec.yaml"
    path.write_text("schema:\n  a: {min: 0, max: 3}\nworkload:\n  - {name: total}\n" + text + "\n")
    with pytest.raises(InputError, match=message):
        hdmm.Spec.load(path)


def test_a_target_reads_back():
    for text in ("50@95%", "0.5@99.9%", "1000000@50%"):
        assert str(hdmm.Target(text)) == text
        assert hdmm.Target(str(hdmm.Target(text))) == hdmm.Target(text)
    assert hdmm.Target("7") == hdmm.Target(" 7 @ 95 % ")
    with pytest.raises(WorkloadError):
        hdmm.Target("-3@95%")


def test_the_margins_of_coarse_noise_are_those_of_the_tables():
    """Where noise is rounded to so few integers that its steps show, the targets must see them too."""
    plan = hdmm.select(W, "gaussian", operators=[hdmm.baselines.Identity()], targets={"hispanic: age": "3@95%"})
    budget = hdmm.Budget("30", "1e-6")
    margins = {row["product"]: row["margin95"] for row in plan.errors(budget).to_pylist()}
    stderrs = {row["product"]: row["stderr_max"] for row in plan.errors(budget).to_pylist()}
    (row,) = plan.target_margins(budget).to_pylist()
    assert row["margin"] == margins["hispanic: age"] > 1.97 * stderrs["hispanic: age"]
