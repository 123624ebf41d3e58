"""Budgets so large that integer noise nearly vanishes: nothing is lost, and predictions and bounds stay true."""

import numpy as np
import pyarrow as pa
import pytest

import hdmm
from hdmm import baselines, operators

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(6), region=range(3))
W = (
    hdmm.Workload(SCHEMA)
    .add("prefixes", sex=hdmm.Identity(), age=hdmm.Prefix(), weight=20)
    .add("either", age=hdmm.Identity(), where="sex = 'F' OR age >= 4")
    .add("ranges", age=hdmm.AllRange(), region=hdmm.Identity())
) + hdmm.marginals(SCHEMA, up_to=2)
SIMPLE = [baselines.Identity(), baselines.Plain(), baselines.Marginals()]
OPERATORS = [operators.Kron(), operators.Explicit(), operators.Marginal(), operators.MarginalPlus(), operators.Union()]
CASES = [("laplace", one) for one in (*OPERATORS, *SIMPLE)]
CASES += [("gaussian", one) for one in (*OPERATORS, operators.Residual(), operators.Symmetric(), *SIMPLE)]
BUDGETS = {
    "laplace": [hdmm.Budget(amount) for amount in (10, 60, 200, 500)],
    "gaussian": [hdmm.Budget(rho=amount) for amount in (5, 30, 1000, 3000, 100_000)],
}


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]} {type(case[1]).__name__}")
def plan(request):
    noise, operator = request.param
    return hdmm.select(W, noise, operators=[operator], restarts=1)


def test_answers_err_as_predicted(plan):
    """By Chebyshev, one of 17 · 5 · 200 answers errs by 1e6 standard errors with a probability below 1e-7."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, size, 2000) for size in SCHEMA.sizes]
    people = pa.table({"sex": np.array(["F", "M"])[codes[0]], "age": codes[1], "region": codes[2]})
    x = np.zeros(SCHEMA.sizes)
    np.add.at(x, tuple(codes), 1)
    for budget in BUDGETS[plan.noise]:
        release = hdmm.release(plan, people, budget, ledger=None)
        for product in W.encoded.products:
            truth = product.answers(x.reshape(-1), dict(enumerate(SCHEMA.sizes)))
            table = release.table(product.name)
            error, stderr = abs(table["answer"].to_numpy() - truth), table["stderr"].to_numpy()
            assert np.isfinite(stderr).all()
            assert (error <= 1e6 * stderr + 1e-6).all()
            assert np.isfinite(table["low"].to_numpy()).all()


def test_the_bounds_hold(plan):
    for budget in BUDGETS[plan.noise]:
        assert plan.bound(budget) <= plan.rmse(budget) * (1 + 1e-9)
        for row in plan.errors(budget).to_pylist():
            assert row["bound"] <= min(row["rmse"], row["identity"], row["plain"]) * (1 + 1e-9)


def test_non_negative_estimates_settle(plan):
    people = pa.table({"sex": ["F", "M"] * 50, "age": [1, 4] * 50, "region": [0, 2] * 50})
    for budget in BUDGETS[plan.noise][-2:]:
        table = hdmm.release(plan, people, budget, ledger=None).table("sex", estimator="nonnegative")
        stderr = plan.accuracy("sex", budget).stderr.max()
        np.testing.assert_allclose(table["answer"].to_numpy(), [50, 50], atol=0.1 + 30 * stderr)
