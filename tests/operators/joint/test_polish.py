"""Queries improved together: the loss that is descended on is that of least squares, and the result is not worse."""

import numpy as np
import pytest

import hdmm
from hdmm import Identity, Prefix, Ranges, Total, Values, Where, Workload, operators
from hdmm.estimators.estimator import loss
from hdmm.estimators.least_squares import exact_least_squares
from hdmm.operators.joint import polish
from hdmm.operators.joint.parts import split_blocks
from hdmm.optimise.descent import Effort
from hdmm.strategy import Strategy
from tests.contract.zoo import dense_blocks
from tests.operators.proposals import proposed

EFFORT = Effort(restarts=1)
SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(12), region=range(5), income=range(6))
GROUPS = Ranges([(0, 3), (4, 9), (10, 11)])
WORKLOADS = {
    "one ordered attribute": Workload(SCHEMA)
    .add("ages", sex=Identity() | Total(), age=Prefix())
    .add("regions", age=Where("age >= 4"), region=Identity())
    .add("groups", age=GROUPS, sex=Identity(), region=Identity()),
    "two ordered attributes": Workload(SCHEMA)
    .add("ages", sex=Identity(), age=Prefix())
    .add("incomes", income=Prefix(), region=Identity(), weight=3)
    .add("both", age=GROUPS, income=Values([0, 5])),
    "none alike": Workload(hdmm.Schema(age=range(8), income=range(6)))
    .add("ages", age=Prefix())
    .add("incomes", income=Prefix())
    .add("both", age=Ranges([(0, 2), (3, 7)]), income=Ranges([(0, 3), (2, 5)])),
    "a disjunction": Workload(SCHEMA)
    .add("ages", age=Prefix(), sex=Identity())
    .add_sql("either", "SELECT region, COUNT(*) FROM t WHERE age < 5 OR sex = 'F' GROUP BY region"),
}


def start_of(workload: Workload) -> Strategy:
    """OPT_+ as it is without polishing: every product is a group of its own."""
    groups = tuple((product.name,) for product in workload.products)
    return proposed(operators.Union(groups=groups), workload.encoded, 1, EFFORT).strategy


def dense_loss(strategy: Strategy, workload: Workload) -> float:
    """S²·‖WA⁺‖² with everything written out over all cells."""
    full = dense_blocks(strategy, workload.encoded)
    queries = np.vstack([float(block.weight) * rows for block, rows in zip(strategy.blocks, full, strict=True)])
    inverse, total = np.linalg.pinv(queries, rcond=1e-10), 0.0
    for product in workload.encoded.products:
        asked = workload.encoded.of(product).dense()
        total += float(product.weight) ** 2 * float(((asked @ inverse) ** 2).sum())
    return float(abs(queries).sum(axis=0).max()) ** 2 * total


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_polished_loss_is_that_of_least_squares_over_all_cells_and_is_lower(name):
    workload = WORKLOADS[name]
    start = start_of(workload)
    better = polish.polished(start, workload.encoded, EFFORT)
    assert better is not None
    losses = [loss(exact_least_squares(strategy), workload.encoded, 1) for strategy in (start, better)]
    np.testing.assert_allclose(losses, [dense_loss(strategy, workload) for strategy in (start, better)], rtol=1e-7)
    assert losses[1] < 0.999 * losses[0]


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_loss_that_is_descended_on_is_the_strategys_and_its_gradient_is_right(name):
    workload, rng = WORKLOADS[name], np.random.default_rng(0)
    parts = split_blocks(start_of(workload))
    assert parts is not None
    coordinates = polish._coordinates(workload.encoded.sizes, parts)
    assert coordinates is not None
    problem = polish._Polish(workload.encoded.sizes, workload.encoded, parts, coordinates)
    start = problem.start()
    point = start * rng.uniform(0.5, 1.5, start.shape) + 0.01
    value, gradient = problem.loss(point)
    # Column sums of blocks on several attributes enter by their maxima: the value may be too large.
    written = np.log(dense_loss(problem.strategy(point), workload))
    assert written <= value + 1e-5
    if all(len(part.others) < 2 for part in parts):
        assert written == pytest.approx(value, abs=1e-5)
    for _ in range(3):
        direction = rng.normal(size=point.shape) * point
        ends = [problem.loss(point + step * direction)[0] for step in (1e-5, -1e-5)]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(gradient @ direction, rel=1e-4, abs=1e-7)


def test_what_is_too_large_or_has_one_block_is_left_alone(monkeypatch):
    workload = WORKLOADS["one ordered attribute"]
    start = start_of(workload)
    assert polish.polished(Strategy(start.sizes, start.blocks[:1], "union"), workload.encoded, EFFORT) is None
    monkeypatch.setattr(polish, "_MAX_COORDINATES", 3)
    assert polish.polished(start, workload.encoded, EFFORT) is None


def test_blocks_that_do_not_answer_every_question_are_left_alone():
    workload = WORKLOADS["one ordered attribute"]
    start = start_of(workload)
    assert polish.polished(Strategy(start.sizes, start.blocks[:2], "union"), workload.encoded, EFFORT) is None


def test_the_default_plan_is_polished_and_predicts_its_error_exactly():
    workload = WORKLOADS["one ordered attribute"]
    plan = hdmm.select(workload, "laplace", operators=[operators.Union()])
    assert not plan.mechanism.estimator.bounded
    budget = hdmm.Budget(epsilon="1e-3")  # integer noise is nearly continuous
    predicted = plan.rmse(budget) ** 2 * workload.query_count / 2e6
    assert predicted == pytest.approx(dense_loss(plan.mechanism.strategy, workload), rel=1e-5)
    assert predicted < 0.98 * loss(exact_least_squares(start_of(workload)), workload.encoded, 1)
