"""Every baseline on several attributes, all the way: its plan file, and the errors of real releases of data."""

import csv
from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm import baselines
from hdmm.privacy.calibrate import NORM

_RUNS = 300
BUDGETS = {"laplace": hdmm.Budget("1"), "gaussian": hdmm.Budget("1", "1e-6")}
TABLES = hdmm.marginals(hdmm.Schema(a=["x", "y"], b=[False, True], c=range(2)), up_to=2)
CUBES = hdmm.marginals(hdmm.Schema(a=range(2), b=range(3), c=range(4)), all=True)
BOXES = (
    hdmm.Workload(hdmm.Schema(x=range(7), y=range(4))).add("boxes", x=hdmm.AllRange(), y=hdmm.AllRange()).add("total")
)
CASES = {
    f"{operator.name}, {noise}": (operator, workload, noise)
    for operator, workload in (
        (baselines.DataCube(), CUBES),
        (baselines.Fourier(), TABLES),
        (baselines.Quadtree(), BOXES),
        (baselines.KdTree("uniform"), BOXES),
    )
    for noise in BUDGETS
}
every = pytest.mark.parametrize(("operator", "workload", "noise"), CASES.values(), ids=CASES.keys())


def observed(plan, folder):
    """The sum of the squared errors of all answers, for each of many releases."""
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
    for _ in range(_RUNS):
        release = hdmm.release(plan, folder / "people.csv", budget, ledger=None)
        state = mechanism.estimator.reconstruct(release.measurements, noise)
        squares = [
            np.sum((mechanism.estimator.answer(product, state) - exact) ** 2) for product, exact in truth.items()
        ]
        errors.append(float(sum(squares)))
    return np.array(errors)


def agrees(errors, expected):
    """Whether the mean is the expected one; beyond 5.5 standard errors is a false alarm in less than one of 100,000."""
    return abs(errors.mean() - expected) < 5.5 * errors.std() / sqrt(len(errors))


@every
def test_real_releases_err_as_predicted(operator, workload, noise, tmp_path):
    plan = hdmm.select(workload, noise, operators=[operator])
    expected = plan.rmse(BUDGETS[noise]) ** 2 * workload.query_count
    errors = observed(plan, tmp_path)
    assert agrees(errors, expected)
    assert not agrees(errors, 2 * expected)
    assert not agrees(errors, expected / 3)


@every
def test_a_plan_is_kept_and_read_back(operator, workload, noise, tmp_path):
    plan = hdmm.select(workload, noise, operators=[operator])
    plan.save(tmp_path / "x.plan")
    read = hdmm.Plan.load(tmp_path / "x.plan")
    assert read.operator == operator.name
    assert type(read.mechanism.estimator) is type(plan.mechanism.estimator)
    assert read.rmse(BUDGETS[noise]) == pytest.approx(plan.rmse(BUDGETS[noise]), rel=1e-12)
    assert read.mechanism.strategy.unit_noise(NORM[noise]) == plan.mechanism.strategy.unit_noise(NORM[noise])


@pytest.mark.parametrize("operator", [baselines.Quadtree(), baselines.DataCube(), baselines.Fourier()], ids=repr)
def test_a_refusal_reaches_the_user_with_the_name_of_the_baseline(operator):
    workload = CUBES.add("waves", c=hdmm.Custom([[1, -1, 2, 5]]))
    with pytest.raises(hdmm.errors.InputError, match=rf"{operator.name}: .*('c'|'b')"):
        hdmm.select(workload, operators=[operator])
