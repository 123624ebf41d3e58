"""Small plans with the two neighbouring tables that each of them tells apart best, to be attacked."""

from functools import cache
from itertools import product

import numpy as np

import hdmm
from hdmm import baselines, operators
from hdmm.operators.base import Operator
from hdmm.privacy.calibrate import NoiseKind
from tests.audit.replay import Rows, neighbours
from tests.audit.simulate import counts, exact

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(4))
WORKLOAD = (
    hdmm.Workload(SCHEMA)
    .add("table", sex=hdmm.Identity(), age=hdmm.Identity())
    .add("prefixes", age=hdmm.Prefix(), weight=2)
)
CASES: list[tuple[Operator, hdmm.Unit]] = [
    (baselines.Identity(), hdmm.Unit()),
    (baselines.Marginals(), hdmm.Unit()),
    (operators.Explicit(), hdmm.Unit()),
    (operators.Explicit(), hdmm.Unit(rows=2)),
    (baselines.Identity(), hdmm.Unit(neighbours="replace-one")),
]


@cache
def plan(operator: Operator, noise: NoiseKind, unit: hdmm.Unit) -> hdmm.Plan:
    """The plan of an operator for the workload of this module."""
    return hdmm.select(WORKLOAD, noise, unit=unit, operators=[operator], restarts=1)


@cache
def worst_pair(plan: hdmm.Plan) -> tuple[np.ndarray, np.ndarray]:
    """Two neighbouring tables whose exact answers are furthest apart in the norm of the plan's noise."""
    cells = list(product(*map(range, SCHEMA.sizes)))
    found = [(_table(one), _table(other)) for one, other in neighbours(plan.unit, cells, np.random.default_rng(3))]
    return max(found, key=lambda pair: _distance(plan, *pair))


def _distance(plan: hdmm.Plan, before: np.ndarray, after: np.ndarray) -> float:
    p = 1 if plan.noise == "laplace" else 2
    answers = zip(plan.mechanism.blocks, exact(plan, before), exact(plan, after), strict=True)
    return sum(float(block.weight) ** p * float((abs(b - a) ** p).sum()) for block, a, b in answers)


def _table(person: Rows) -> np.ndarray:
    """Counts of some people, and of one more with these records."""
    table = counts(SCHEMA.sizes).copy()
    for cell in person:
        if min(cell) >= 0:
            table[cell] += 1
    return table
