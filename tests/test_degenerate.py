"""Questions off the usual path: answered like any others, whatever was written."""

import numpy as np
import pytest

import hdmm
from hdmm import Custom, Identity, Prefix, Ranges, Schema, Total, Values, Where, Workload

SCHEMA = Schema(sex=["F", "M"], age=range(5), state=["CA", "NY", "TX"], flag=[False, True], one=["x"])
W = Workload(SCHEMA)
CASES = {
    "one value": W.add("a", one=Identity()),
    "one value beside others": W.add("a", one=Prefix(), sex=Identity()).add("b", age=Prefix()),
    "two products on one attribute beside one value": W.add("a", sex=Values(["M", "F"])).add("b", sex=Identity()),
    "a total twice": W.add("a", sex=Total() | Total()),
    "a total twice beside cells": W.add("a", sex=Total() | Total(), age=Identity()),
    "the same table twice": W.add("a", sex=Identity(), state=Total() | Total()).add("b", sex=Identity()),
    "a range of all": W.add("a", age=Ranges([(0, 4)]), sex=Identity()).add("b", sex=Identity(), age=Prefix()),
    "a condition for all": W.add("a", age=Where("age >= 0"), sex=Identity()).add("b", age=Prefix()),
    "nobody": W.add("a", sex=~Total()),
    "nobody beside others": W.add("a", sex=~Total(), age=Identity()).add("b", age=Prefix(), sex=Identity()),
    "a contradiction": W.add("a", sex=Identity(), where="age < 1 AND age > 3"),
    "a contradiction beside others": W.add("a", where="flag AND NOT flag").add("b", age=Identity()),
    "zeros": W.add("a", age=Custom([[0] * 5])).add("b", sex=Identity()),
    "zeros among others": W.add("a", age=Custom([[0] * 5, [1, 0, 0, 0, 0]]), sex=Identity()).add("b"),
    "a total and a condition": W.add("a").add("b", sex=Identity(), where="age >= 3 OR flag"),
    "a difference": W.add("a", sex=Custom([[1, -1]])),
    "a difference beside cells": W.add("a", sex=Custom([[1, -1]]), age=Identity()),
    "weights far apart": W.add("a", sex=Identity(), weight=10**9).add("b", age=Prefix(), weight="1e-9"),
    "weights far apart on one attribute": W.add("a", weight=10**9).add("b", age=Identity(), weight="1e-9"),
    "weights far apart and a complement": W.add(
        "a", age=~Ranges([(2, 4), (1, 4)]), sex=Identity(), state=Where("state < 'TX'"), weight=10**9
    ).add("b", age=Prefix()),
    "values in another order": W.add("a", sex=Values(["M", "F"])).add("b", sex=Identity(), age=Identity()),
    "some values beside all": W.add("a", age=Where("age > 0")).add("b", age=Identity(), sex=Identity()),
    "all but one value": W.add("a", age=~Values([0])).add("b", age=Identity(), sex=Identity()),
}
NOISES = {"laplace": hdmm.Budget("400"), "gaussian": hdmm.Budget(rho="50000")}
every = pytest.mark.parametrize("name", CASES)


def truth(workload: Workload, cells: np.ndarray) -> list[np.ndarray]:
    """The answers, from the predicates of every product alone."""
    from tests.workload.test_essential import written

    return [rows @ cells.reshape(-1) for rows in written(workload)]


@every
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("objective", ["total", "max"])
def test_it_is_planned_and_answered(name, noise, objective, tmp_path):
    workload, budget = CASES[name], NOISES[noise]
    cells = np.random.default_rng(1).integers(0, 9, SCHEMA.sizes)
    places = np.repeat(np.arange(cells.size), cells.reshape(-1))
    lines = zip(*np.unravel_index(places, SCHEMA.sizes), strict=True)
    text = [f"{'FM'[s]},{a},{['CA', 'NY', 'TX'][t]},{bool(f)},x" for s, a, t, f, _ in lines]
    (tmp_path / "data.csv").write_text("\n".join([",".join(SCHEMA), *text]) + "\n")
    plan = hdmm.select(workload, noise, objective=objective, restarts=0)
    plan.save(tmp_path / "plan")
    release = hdmm.release(hdmm.Plan.load(tmp_path / "plan"), tmp_path / "data.csv", budget, ledger=None)
    release.save(tmp_path / "out")
    for product, expected in zip(workload.products, truth(workload, cells), strict=True):
        table = hdmm.Release.load(tmp_path / "out").table(product.name)
        found, stderr = table["answer"].to_numpy(), table["stderr"].to_numpy()
        assert (abs(found - expected) <= 6 * stderr + 1e-6).all()


@every
@pytest.mark.parametrize("noise", NOISES)
def test_what_counts_nobody_is_zero_without_error(name, noise):
    workload = CASES[name]
    budget = hdmm.Budget("1") if noise == "laplace" else hdmm.Budget("1", "1e-6")
    plan = hdmm.select(workload, noise, restarts=0)
    for product, rows in zip(workload.products, truth(workload, np.ones(SCHEMA.sizes)), strict=True):
        predicted = plan.accuracy(product.name, budget)
        nobody = rows == 0 if product.name == "a" and "difference" not in name else np.zeros(len(rows), bool)
        np.testing.assert_array_equal(predicted.expand(predicted.stderr)[nobody], 0)
        np.testing.assert_array_equal(predicted.expand(predicted.margin)[nobody], 0)
        assert (predicted.expand(predicted.stderr)[~nobody] > 0).all()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("estimator", ["global", "local", "nonnegative"])
def test_new_questions_about_all_or_no_values_of_what_was_not_measured_are_answered(noise, estimator, tmp_path):
    """All values only of an attribute that was read: otherwise records without a value count as well."""
    plan = hdmm.select(W.add("a", sex=Identity(), age=Where("age >= 0")), noise, restarts=0)
    (tmp_path / "data.csv").write_text(",".join(SCHEMA) + "\nF,1,CA,true,x\nM,2,NY,false,x\nF,0,TX,true,x\n")
    release = hdmm.release(plan, tmp_path / "data.csv", NOISES[noise], ledger=None)
    asked = W.add("all", sex=Identity(), age=Where("age >= 0")).add("none", sex=Identity(), state=~Total())
    answers = release.answer(asked, estimator=estimator)
    np.testing.assert_allclose(answers["all"]["answer"].to_numpy(), [2, 1], atol=1e-3)
    np.testing.assert_array_equal(answers["none"]["answer"].to_numpy(), [0, 0])
    with pytest.raises(hdmm.errors.HdmmError):
        release.answer(W.add("some", sex=Identity(), age=Where("age > 0")), estimator=estimator)
    with pytest.raises(hdmm.errors.WorkloadError, match="measured nothing about 'state'"):
        release.answer(W.add("all", sex=Identity(), state=~~Total()), estimator=estimator)


@every
def test_the_rmse_is_the_mean_of_the_standard_errors(name):
    budget = hdmm.Budget("1")
    plan = hdmm.select(CASES[name], "laplace", operators=[hdmm.baselines.Plain()], restarts=0)
    for row in plan.errors(budget).to_pylist():
        predicted = plan.accuracy(row["product"], budget)
        mean = np.sqrt(np.mean(predicted.expand(predicted.stderr) ** 2))
        assert row["rmse"] == pytest.approx(mean, rel=1e-7)
