"""Plans for a budget: candidates are compared by the noise that will really be added."""

import pytest

import hdmm

PREFIXES = {n: hdmm.Workload(hdmm.Schema(a=range(n))).add("low", a=hdmm.Prefix()) for n in (10, 24)}
OPERATORS = [hdmm.baselines.Identity(), hdmm.operators.Explicit(), hdmm.operators.Explicit(p=1)]


@pytest.mark.parametrize("n", PREFIXES)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_no_operator_alone_does_better_at_the_budget(n, epsilon):
    budget = hdmm.Budget(epsilon)
    found = hdmm.select(PREFIXES[n], budget=budget).rmse(budget)
    for operator in OPERATORS:
        alone = hdmm.select(PREFIXES[n], operators=[operator]).rmse(budget)
        assert found <= alone * (1 + 1e-9)


def test_at_a_large_budget_counts_do_better_than_what_is_best_at_small_ones():
    large, small = (hdmm.select(PREFIXES[24], budget=hdmm.Budget(epsilon)) for epsilon in ("4", "0.1"))
    assert large.operator == "Identity"
    assert small.operator == "Explicit"
    assert small.rmse(hdmm.Budget("4")) > 1.4 * large.rmse(hdmm.Budget("4"))


def test_without_a_budget_a_plan_is_good_over_the_usual_range():
    for workload in PREFIXES.values():
        plan = hdmm.select(workload)
        for epsilon in ("0.1", "0.3", "1", "3"):
            budget = hdmm.Budget(epsilon)
            best = hdmm.select(workload, budget=budget).rmse(budget)
            assert plan.rmse(budget) < 1.2 * best


@pytest.mark.parametrize(
    ("noise", "budget"),
    [
        ("laplace", hdmm.Budget("0.25")),
        ("gaussian", hdmm.Budget("0.25", "1e-9")),
        ("gaussian", hdmm.Budget(rho="2")),
    ],
)
def test_the_plan_and_its_file_say_for_which_budget_it_was_made(noise, budget, tmp_path):
    plan = hdmm.select(PREFIXES[10], noise, budget=budget, restarts=0)
    plan.save(tmp_path / "plan")
    assert plan.budget == hdmm.Plan.load(tmp_path / "plan").budget == budget
    best = min(error for error in plan.candidates["rmse"].to_pylist() if error is not None)
    assert plan.rmse(budget) == pytest.approx(best)


@pytest.mark.parametrize(
    ("noise", "given", "message"),
    [
        ("laplace", {"budget": "1"}, "expected a Budget"),
        ("laplace", {"budget": hdmm.Budget("1", "1e-6")}, "Laplace noise takes epsilon alone"),
        ("gaussian", {"budget": hdmm.Budget("1")}, "Gaussian noise needs it"),
        ("laplace", {"budget": hdmm.Budget("1"), "targets": {"low": "5@95%"}}, "a budget or targets, not both"),
    ],
)
def test_a_budget_that_does_not_fit_is_refused(noise, given, message):
    with pytest.raises(hdmm.errors.InputError, match=message):
        hdmm.select(PREFIXES[10], noise, **given)
