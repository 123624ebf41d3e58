"""Releases as users hold them: the errors of their tables over many releases, and what the tables say of these errors.

Unbiased answers are linear in the measurements. So it is enough to publish each measurement alone, once, and then to
multiply. The first releases are also published one by one, and must have the same answers, errors and intervals.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import hdmm
from hdmm.estimators import joint, split
from hdmm.measure import add_noise
from tests.audit.simulate import counts, releases

_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class Case:
    """A plan at a budget, with what a user asks of its tables."""

    plan: hdmm.Plan
    budget: hdmm.Budget
    estimator: Literal["global", "local"] = "global"
    large: bool = False
    """Whether the plan is taken to be too large for its errors to be written out."""
    exact: bool = False
    """Whether the errors of a large plan are worked out, with one solve for each answer."""
    fine: bool = True
    """Whether the steps of the noise are small beside it."""

    @property
    def bounded(self) -> bool:
        """Whether errors are told as upper bounds."""
        return self.large and not self.exact

    def tables(self, measured: np.ndarray, **options: Any) -> dict[str, pa.Table]:
        """All tables of a release, from the measurements of all blocks side by side."""
        plan = _copy(self.plan) if self.large else self.plan
        written = {module: 0 if self.large else module._MAX_COORDINATES for module in (joint, split)}
        with ExitStack() as stack:
            for module, most in written.items():
                stack.enter_context(patch.object(module, "_MAX_COORDINATES", most))
            release = release_of(plan, self.budget, measured)
            return dict(release.tables(estimator=self.estimator, exact=self.exact, **options))


@dataclass(frozen=True)
class Stated:
    """What a table says of every answer's error."""

    stderr: np.ndarray
    margin: np.ndarray

    @classmethod
    def of(cls, table: pa.Table) -> "Stated":
        """The columns of a table."""
        return cls(column(table, "stderr"), (column(table, "high") - column(table, "low")) / 2)


State = Callable[[Case], Mapping[str, Stated]]
"""What is said of the errors in every table of a case: the thing that audits of errors test."""


@cache
def stated(case: Case, *, level: float = 0.95, simultaneous: bool = False) -> dict[str, Stated]:
    """What the tables of every release of a case say; it does not depend on what was measured."""
    measured = releases(case.plan, case.budget, counts(case.plan.workload.schema.sizes), 1, add_noise)
    tables = case.tables(measured[0], level=level, simultaneous=simultaneous)
    return {name: Stated.of(table) for name, table in tables.items()}


def of_one_block(case: Case) -> dict[str, Stated]:
    """The fault: what is said of answers from one block, where answers are from all."""
    return stated(replace(case, estimator="local", exact=False))


def errors(case: Case, count: int, published: int = 3) -> dict[str, np.ndarray]:
    """The errors of the answers in every table, one row for every release; the first are published one by one."""
    population = counts(case.plan.workload.schema.sizes)
    true = truth(case.plan.workload, population)
    estimator = _estimator(case.plan, case.budget, case.estimator)
    found = []
    step = _AT_ONCE // len(estimator)
    for start in range(0, count, step):
        measured = releases(case.plan, case.budget, population, min(step, count - start), add_noise)
        found.append(measured @ estimator - np.concatenate(list(true.values())))
        if not start:
            some = published // (100 if case.exact else 10) if case.large else published  # large ones take long
            _check(case, measured[:some], found[0][:some], true)
    parts = np.split(np.concatenate(found), np.cumsum([len(answers) for answers in true.values()])[:-1], axis=1)
    return dict(zip(true, parts, strict=True))


def release_of(plan: hdmm.Plan, budget: hdmm.Budget, measured: np.ndarray) -> hdmm.Release:
    """The release with these measurements of all blocks side by side."""
    ends = np.cumsum([block.queries for block in plan.mechanism.blocks])
    return hdmm.Release(plan, budget, tuple(np.split(measured, ends[:-1])))


def within(error: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Which intervals hold their true answers; sums that are whole have rounding errors here, but not in a table."""
    return abs(error) <= margin + 1e-7


def truth(workload: hdmm.Workload, population: np.ndarray) -> dict[str, np.ndarray]:
    """The true answers to every product."""
    encoded = workload.encoded
    pairs = zip(workload.products, encoded.products, strict=True)
    return {product.name: encoded.of(code).apply(population.reshape(-1)) for product, code in pairs}


def column(table: pa.Table, name: str) -> np.ndarray:
    """One column of numbers."""
    return table[name].to_numpy()


def _check(case: Case, measured: np.ndarray, found: np.ndarray, true: Mapping[str, np.ndarray]) -> None:
    """Publish some releases, and compare them with what multiplying gave."""
    expected = stated(case)
    for one, error in zip(measured, found, strict=True):
        tables = case.tables(one)
        ends = np.cumsum([len(answers) for answers in true.values()])
        for (name, table), own in zip(tables.items(), np.split(error, ends[:-1]), strict=True):
            np.testing.assert_allclose(column(table, "answer") - true[name], own, rtol=1e-9, atol=1e-6)
            said = Stated.of(table)
            np.testing.assert_array_equal(said.stderr, expected[name].stderr)
            np.testing.assert_allclose(said.margin, expected[name].margin, rtol=1e-9)
            holds = (column(table, "low") <= true[name]) & (true[name] <= column(table, "high"))
            np.testing.assert_array_equal(holds, within(own, said.margin))


@cache
def _estimator(plan: hdmm.Plan, budget: hdmm.Budget, estimator: Literal["global", "local"]) -> np.ndarray:
    """What one more in each measurement adds to all answers, side by side."""
    case = Case(plan, budget, estimator)
    units = np.eye(sum(block.queries for block in plan.mechanism.blocks), dtype=np.int64)
    rows = [[column(table, "answer") for table in case.tables(unit).values()] for unit in units]
    return np.stack([np.concatenate(row) for row in rows])


@cache
def _copy(plan: hdmm.Plan) -> hdmm.Plan:
    """The same plan, which has not yet looked at its size."""
    return replace(plan, mechanism=replace(plan.mechanism))
