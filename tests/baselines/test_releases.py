"""Every baseline all the way: its plan file, and the errors of real releases of data."""

import csv
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

import hdmm
from hdmm import baselines
from hdmm.measure import add_noise
from hdmm.operators.base import Operator
from hdmm.privacy.calibrate import NORM

RUNS = 300
BUDGETS = {"laplace": hdmm.Budget("1"), "gaussian": hdmm.Budget("1", "1e-6")}
LINE = hdmm.Workload(hdmm.Schema(x=range(20))).add("q", x=hdmm.Identity() | hdmm.Width(4))
LONG = hdmm.Workload(hdmm.Schema(x=range(256))).add("q", x=hdmm.Width(9) | hdmm.Width(100))
FEW = hdmm.Workload(hdmm.Schema(x=range(8))).add("q", x=hdmm.Identity() | hdmm.Width(2))
PLANE = (
    hdmm.Workload(hdmm.Schema(x=range(5), y=range(4)))
    .add("ranges", x=hdmm.AllRange(), y=hdmm.Identity(), weight=2)
    .add("prefixes", y=hdmm.Prefix())
    .add("total")
)
TABLES = hdmm.marginals(hdmm.Schema(a=["x", "y"], b=[False, True], c=range(2)), up_to=2)
CUBES = hdmm.marginals(hdmm.Schema(a=range(2), b=range(3), c=range(4)), all=True)
BOXES = (
    hdmm.Workload(hdmm.Schema(x=range(7), y=range(4))).add("boxes", x=hdmm.AllRange(), y=hdmm.AllRange()).add("total")
)
WORKLOADS: dict[Operator, hdmm.Workload] = {
    baselines.COA(): LINE,
    baselines.DataCube(): CUBES,
    baselines.EigenDesign(): LINE,
    baselines.Fourier(): TABLES,
    baselines.GreedyH(): LONG,
    baselines.H2(): PLANE,
    baselines.HB(): LONG,
    baselines.Identity(): PLANE,
    baselines.KdTree("uniform"): BOXES,
    baselines.LRM(): LINE,
    baselines.Marginals(): CUBES,
    baselines.MatrixMechanism(): FEW,
    baselines.Plain(): PLANE,
    baselines.Privelet(): PLANE,
    baselines.Quadtree(): BOXES,
}
"""A workload for every baseline."""
GAUSSIAN_ALONE = {"COA", "EigenDesign"}
CASES = {
    f"{operator.name}, {noise}": (operator, workload, noise)
    for operator, workload in WORKLOADS.items()
    for noise in BUDGETS
    if noise == "gaussian" or operator.name not in GAUSSIAN_ALONE
}
every = pytest.mark.parametrize(("operator", "workload", "noise"), CASES.values(), ids=CASES.keys())


def squared_errors(plan: hdmm.Plan, folder: Path) -> np.ndarray:
    """The weighted sum of the squared errors of all answers, for each of many releases."""
    schema, random = plan.workload.schema, np.random.default_rng(3)
    codes = [random.integers(0, size, 60) for size in schema.sizes]
    labels = [schema[name].labels() for name in schema]
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(schema.names)
        rows.writerows(
            zip(*([names[code] for code in column] for names, column in zip(labels, codes, strict=True)), strict=True)
        )
    counts = np.zeros(schema.sizes)
    np.add.at(counts, tuple(codes), 1)
    mechanism, encoded, budget = plan.mechanism, plan.workload.encoded, BUDGETS[plan.noise]
    truth = {product: encoded.of(product).apply(counts.reshape(-1)) for product in encoded.products}
    noise = mechanism.calibrate(budget).variances
    errors = []
    for _ in range(RUNS):
        release = hdmm.release(plan, folder / "people.csv", budget, ledger=None)
        state = mechanism.estimator.reconstruct(release.measurements, noise)
        squares = [
            float(product.weight) ** 2 * np.sum((mechanism.estimator.answer(product, state) - exact) ** 2)
            for product, exact in truth.items()
        ]
        errors.append(float(sum(squares)))
    return np.array(errors)


def agrees(errors: np.ndarray, expected: float) -> bool:
    """Whether the mean is the expected one; beyond 5.5 standard errors is a false alarm in less than one of 100,000."""
    return bool(abs(errors.mean() - expected) < 5.5 * errors.std() / sqrt(len(errors)))


def predicted(plan: hdmm.Plan) -> float:
    """What the plan says of the same sum."""
    return float(plan.rmse(BUDGETS[plan.noise]) ** 2 * plan.workload.query_count)


def test_no_baseline_is_left_out():
    assert {operator.name for operator in WORKLOADS} == set(baselines.__all__)


@every
def test_real_releases_err_as_predicted(operator, workload, noise, tmp_path):
    """An error that is predicted as twice or a third of what it is would be seen."""
    plan = hdmm.select(workload, noise, operators=[operator])
    assert plan.operator == operator.name
    errors, expected = squared_errors(plan, tmp_path), predicted(plan)
    assert agrees(errors, expected)
    assert not agrees(errors, 2 * expected)
    assert not agrees(errors, expected / 3)


@pytest.mark.parametrize("factor", [Fraction(2, 3), Fraction(3, 2)], ids=["too little", "too much"])
@pytest.mark.parametrize(("name", "noise"), [("H2", "laplace"), ("COA", "gaussian"), ("DataCube", "gaussian")])
def test_releases_with_other_noise_are_noticed(name, noise, factor, tmp_path, monkeypatch):
    monkeypatch.setattr("hdmm.measure.add_noise", lambda answers, kind, scale: add_noise(answers, kind, factor * scale))
    operator, workload, _ = CASES[f"{name}, {noise}"]
    plan = hdmm.select(workload, noise, operators=[operator])
    assert not agrees(squared_errors(plan, tmp_path), predicted(plan))


@every
def test_a_plan_is_kept_and_read_back(operator, workload, noise, tmp_path):
    plan = hdmm.select(workload, noise, operators=[operator])
    plan.save(tmp_path / "x.plan")
    read = hdmm.Plan.load(tmp_path / "x.plan")
    assert read.operator == operator.name
    assert type(read.mechanism.estimator) is type(plan.mechanism.estimator)
    assert read.rmse(BUDGETS[noise]) == pytest.approx(plan.rmse(BUDGETS[noise]), rel=1e-12)
    assert read.mechanism.strategy.unit_noise(NORM[noise]) == plan.mechanism.strategy.unit_noise(NORM[noise])
