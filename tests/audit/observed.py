"""Audit: plans of OPT_S for five everyday workloads, released with the real noise, have the predicted total error."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

import hdmm
from hdmm import Identity, Level, Prefix, Ranges, Total, Where
from tests.audit.published import column, truth
from tests.audit.statistics import LEVEL, squares_chance, together
from tests.audit.verdict import Audit, Verdict

BUDGET = hdmm.Budget("1", "1e-6")
RECORDS = 1_000
Predict = Callable[[hdmm.Plan], float]
"""The predicted RMSE of a plan: the thing under test."""

_PLACES = hdmm.Schema(sex=["F", "M"], age=range(40), region=[f"region {number}" for number in range(25)])
_AGES = Ranges([(0, 4), (5, 9), (10, 19), (20, 39)])
_MIXED = (
    hdmm.Workload(_PLACES)
    .add("age distribution", sex=Identity() | Total(), age=Prefix())
    .add("from 6", age=Where("age >= 6"), region=Identity())
    .add("age groups", age=_AGES, sex=Identity(), region=Identity())
) + hdmm.marginals(_PLACES, up_to=1)
_EITHER = (
    hdmm.Workload(_PLACES)
    .add("either", region=Identity(), where="age < 6 OR sex = 'M'", weight=2)
    .add("age groups", age=_AGES, sex=Identity())
    .add("places", sex=Identity(), region=Identity())
)
_VISITS = hdmm.Schema(
    age=hdmm.Integers(0, 49, levels={"stage": {"young": [(0, 17)], "old": [(18, 49)]}}),
    ward=hdmm.Listed(list("ABCDEFGH"), other=True, missing=True),
    urgent=[False, True],
)
_STAGES = (
    hdmm.Workload(_VISITS)
    .add("stages", age=Level("stage"), ward=Identity(), urgent=Identity() | Total())
    .add("ages", age=Identity(), urgent=Identity())
    .add("total", weight=5)
)


@dataclass(frozen=True)
class Observed:
    """A workload whose plan is released again and again, with the options of `select`."""

    workload: hdmm.Workload
    options: dict[str, Any] = field(default_factory=dict)


OBSERVED = {
    "people.yaml": Observed(hdmm.Spec.load(Path(__file__).parents[2] / "examples" / "people.yaml").workload),
    "mixed": Observed(_MIXED),
    "disjunction": Observed(_EITHER),
    "largest error": Observed(_MIXED, {"objective": "max"}),
    "two rows of a person": Observed(_STAGES, {"unit": hdmm.Unit(2, id="person")}),
}


@cache
def plan(name: str) -> hdmm.Plan:
    """The plan that a user gets without choosing operators."""
    case = OBSERVED[name]
    selected = hdmm.select(case.workload, "gaussian", **case.options)
    assert selected.operator == "Symmetric", f"{name}: found by {selected.operator}"
    return selected


@cache
def squared_errors(name: str, releases: int) -> np.ndarray:
    """The total squared error of each of so many releases, weights included."""
    workload = OBSERVED[name].workload
    codes = np.random.default_rng(len(name)).integers(0, workload.schema.sizes, (RECORDS, len(workload.schema)))
    counts = np.zeros(workload.schema.sizes, np.int64)
    np.add.at(counts, tuple(codes.T), 1)
    true = np.concatenate(list(truth(workload, counts).values()))
    weights = np.concatenate([np.full(product.queries, float(product.weight)) for product in workload.encoded.products])
    totals = []
    with TemporaryDirectory() as directory:
        records = Path(directory) / "records.csv"
        _write(records, workload.schema, codes)
        for _ in range(releases):
            tables = hdmm.release(plan(name), records, BUDGET, ledger=None).tables()
            answers = np.concatenate([column(table, "answer") for _, table in tables])
            totals.append(np.sum((weights * (answers - true)) ** 2))
    return np.array(totals)


def _write(path: Path, schema: hdmm.Schema, codes: np.ndarray) -> None:
    """Records as CSV, two for every person: of an interval its lower edge, and an empty field for a missing value."""
    columns = {"person": [str(row // 2) for row in range(len(codes))]}
    for (name, domain), cells in zip(schema.items(), codes.T, strict=True):
        texts = [str(label).strip("[").split(",")[0].replace("missing", "") for label in domain.labels()]
        columns[name] = [texts[cell] for cell in cells]
    pa.csv.write_csv(pa.table(columns), path)


@cache
def eigenvalues(name: str) -> np.ndarray:
    """Those of the covariance of all answers in one release, weights included, but for zeros.

    Answers of one release share noise: a prefix holds those before it, a total all cells. Their squared errors do not
    average out as independent ones would: what counts is how many eigenvalues are large, not how many answers.
    """
    mechanism, workload = plan(name).mechanism, OBSERVED[name].workload
    noise = mechanism.calibrate(BUDGET).variances
    queries = [block.queries for block in mechanism.blocks]
    columns = []
    for block, variance in enumerate(noise):
        for query in range(queries[block]):
            measured = [np.zeros(count) for count in queries]
            measured[block][query] = sqrt(variance)
            state = mechanism.estimator.reconstruct(measured, noise)
            answers = (
                float(product.weight) * mechanism.estimator.answer(code, state)
                for product, code in zip(workload.products, workload.encoded.products, strict=True)
            )
            columns.append(np.concatenate(list(answers)))
    errors = np.stack(columns)
    return np.linalg.eigvalsh(errors @ errors.T if len(errors) < errors.shape[1] else errors.T @ errors)


def run(predict: Predict, releases: int) -> Verdict:
    """The mean squared error over so many releases beside the predicted one: for each plan, and for all together.

    A release's total squared error is a sum of squares of independent normal variables, one for each eigenvalue, whose
    steps are less than a thousandth of their scale; releases are independent. `squares_chance` bounds the tails of such
    sums. For all together, each plan counts by the number of equal eigenvalues that would spread as much as its own.
    """
    ratios, values, numbers = [], [], []
    for name in OBSERVED:
        predicted = predict(plan(name)) ** 2 * plan(name).workload.query_count
        ratios.append(float(squared_errors(name, releases).mean()) / predicted)
        values.append(eigenvalues(name) / eigenvalues(name).sum())
        numbers.append(1 / np.sum(values[-1] ** 2))
    shares = np.array(numbers) / sum(numbers)
    all_values = np.concatenate([share * own for share, own in zip(shares, values, strict=True)])
    chances = [squares_chance(ratio, own, releases) for ratio, own in zip(ratios, values, strict=True)]
    chances.append(squares_chance(float(shares @ ratios), all_values, releases))
    roots = ", ".join(f"{name} {sqrt(ratio):.3f}" for name, ratio in zip(OBSERVED, ratios, strict=True))
    return Verdict("p", together(chances), ">=", LEVEL, f"RMSE over the predicted one: {roots}")


def predicted_rmse(selected: hdmm.Plan) -> float:
    """What a plan says."""
    return selected.rmse(BUDGET)


def scaled(selected: hdmm.Plan, *, rmse: float) -> float:
    """The fault: a prediction that is off by a factor."""
    return rmse * predicted_rmse(selected)


def without_weights(selected: hdmm.Plan) -> float:
    """The fault: the error of the answers without their weights."""
    rows = selected.errors(BUDGET).to_pylist()
    return sqrt(sum(row["queries"] * row["rmse"] ** 2 for row in rows) / selected.workload.query_count)


AUDITS = [
    Audit(
        "five plans of OPT_S have the predicted error",
        run,
        predicted_rmse,
        {
            "RMSE +5%": partial(scaled, rmse=1.05),
            "RMSE −5%": partial(scaled, rmse=0.95),
            "without weights": without_weights,
        },
        300,
        75,
        "releases of each",
    )
]
