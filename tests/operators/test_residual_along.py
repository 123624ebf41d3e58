"""Residuals along one attribute of many cells: the error that they promise, and how near it is to the best."""

import pytest

import hdmm
from hdmm.estimators.along import ResidualsAlong
from hdmm.estimators.least_squares import least_squares, strategy_loss
from hdmm.operators import MarginalPlus, Residual, Symmetric
from hdmm.operators.residual_along import long_axis
from hdmm.workload import Identity, Level, Prefix, Workload
from tests.operators.proposals import proposed

BUDGET = hdmm.Budget("1", "1e-6")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty cells count as many."""
    for name in ("residual_along.MANY_CELLS", "opt0.gaussian._MAX_CHAIN_CELLS", "opt0.gaussian._MAX_UNION_CELLS"):
        monkeypatch.setattr(f"hdmm.operators.{name}", 16)
    monkeypatch.setattr("hdmm.operators.marginal_plus._MAX_BASE_CELLS", 16)


def workload() -> Workload:
    days = hdmm.Integers(0, 19, levels={"week": {f"w{i}": [(5 * i, 5 * i + 4)] for i in range(4)}})
    w = Workload(hdmm.Schema(day=days, sex=["F", "M"], region=range(3), age=range(4)))
    w = (
        w.add("by day", day=Prefix())
        .add("by week", day=Level("week"))
        .add("up to, by sex", day=Prefix(), sex=Identity())
    )
    w = w.add("week and region", day=Level("week"), region=Identity(), weight=2)
    w = w.add("day and region", day=Identity(), region=Identity()).add(
        "sex and region", sex=Identity(), region=Identity()
    )
    return w.add("ages", day=Prefix(), age=Prefix())


@pytest.mark.usefixtures("few")
def test_it_is_near_the_best_and_below_marginals():
    encoded = workload().encoded
    strategy = proposed(Residual(), encoded, 2).strategy
    assert isinstance(least_squares(strategy), ResidualsAlong)
    best = proposed(Symmetric(), encoded, 2)
    assert best.bound is not None
    loss = strategy_loss(strategy, encoded, 2)
    assert best.bound <= loss <= 1.1 * strategy_loss(best.strategy, encoded, 2)
    assert loss <= strategy_loss(proposed(MarginalPlus(), encoded, 2).strategy, encoded, 2)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("operator", [Residual(), MarginalPlus()], ids=lambda operator: operator.name)
def test_releases_at_a_huge_budget_are_the_truth(operator: hdmm.operators.Operator, tmp_path):
    w = workload()
    plan = hdmm.select(w, noise="gaussian", operators=[operator])
    plan.save(tmp_path / "a.plan")
    rows = [(3 * i % 20, "FM"[i % 2], i % 3, i * i % 4) for i in range(200)]
    (tmp_path / "a.csv").write_text("day,sex,region,age\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows))
    huge = hdmm.Budget(rho="100000")
    release = hdmm.release(hdmm.Plan.load(tmp_path / "a.plan"), tmp_path / "a.csv", huge, ledger=None)
    weeks = release.table("week and region")["answer"].to_pylist()
    assert weeks == pytest.approx(
        [sum(a // 5 == x and c == z for a, _, c, _ in rows) for x in range(4) for z in range(3)], abs=0.5
    )
    days = release.table("by day")["answer"].to_pylist()
    assert days == pytest.approx([sum(a <= x for a, *_ in rows) for x in range(20)], abs=0.5)


@pytest.mark.usefixtures("few")
def test_errors_that_are_printed_are_those_of_the_estimator():
    plan = hdmm.select(workload(), noise="gaussian", operators=[Residual()])
    for row in plan.errors(BUDGET).to_pylist():
        assert row["rmse"] <= row["stderr_max"] * (1 + 1e-9)
        assert row["margin95"] == pytest.approx(1.96 * row["stderr_max"], rel=1e-3)


def test_only_one_attribute_may_be_long():
    schema = hdmm.Schema(a=range(3000), b=range(3000), c=range(3))
    one = Workload(schema).add("q", a=Prefix(), c=Identity())
    two = one.add("r", b=Prefix())
    assert long_axis(one.encoded.gram()) == 0
    assert long_axis(two.encoded.gram()) is None
    assert long_axis(Workload(schema).add("q", a=Identity(), c=Prefix()).encoded.gram()) is None
