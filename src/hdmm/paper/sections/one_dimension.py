"""The tables on one attribute: four workloads on 64 to 4096 cells (paper, section 11.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from hdmm import baselines, operators
from hdmm.operators.base import Operator
from hdmm.paper.errors import Case, published_error, strategy_error, svd_error
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell, Equal, Exempt, Rule, Within
from hdmm.paper.sections.printed import MISPRINTS, Printed, printed_tables
from hdmm.paper.sections.result_tables import strategy_cell, task_name

_TABLES = ("table_opt01_laplace_1d", "table_opt02_gaussian_1d")
_CLASSES = {"H2": "H2", "Wavelet": "Privelet", "HB": "HB", "GreedyH": "GreedyH", "LRM": "LRM", "COA": "COA"}
_OPERATORS: dict[str, Operator] = {
    column: getattr(baselines, name)() for column, name in _CLASSES.items() if hasattr(baselines, name)
}
_PERMUTED = "depends on the permutation, which the paper does not print"
_TREES = ("H2", "Wavelet", "HB", "GreedyH")
_TOLERANCES = {"H2": 0.01, "Wavelet": 0.01, "HB": 0.01, "GreedyH": 0.05, "LRM": 0.05, "COA": 0.01}
_SLOW_CELLS = 4096
"""From this size on, optimised strategies are left out of a fast run."""


@final
@dataclass(frozen=True)
class OneDimension(Section):
    """All systems on one attribute, or only the columns given."""

    columns: tuple[str, ...] | None = None
    name: ClassVar[str] = "one-d"
    title: ClassVar[str] = "One attribute: all ranges, prefixes, ranges of width 32, and all ranges of shuffled values"
    row_names: ClassVar[tuple[str, ...]] = ("workload", "domain")

    def tasks(self) -> Sequence[Task]:
        tasks = [_task(table, case, column) for table, case, column, _ in self._places()]
        return sorted(tasks, key=lambda task: -int(task.arguments[0][1]))  # type: ignore[index]

    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        return [
            strategy_cell(self.name, table, case, column, paper, outcomes.get(task_name(table, case, column)), rule)
            for table, case, column, paper in self._places()
            for rule in (_rule(table, case, column),)
        ]

    def _places(self) -> Iterator[tuple[Printed, Case, str, float | None]]:
        for key in _TABLES:
            table = printed_tables()[key]
            for case, columns in table.rows:
                for column, paper in columns.items():
                    wanted = self.columns is None or column in self.columns
                    if wanted and (column in ("Identity", "OPT_0", "SVDB") or column in _OPERATORS):
                        yield table, case, column, paper


def _task(table: Printed, case: Case, column: str) -> Task:
    name = task_name(table, case, column)
    match column:
        case "SVDB":
            return Task(name, svd_error, (case, table.norm))
        case "Identity":
            return Task(name, published_error, (case, baselines.Identity(), table.norm))
    operator = operators.Explicit() if column == "OPT_0" else _OPERATORS[column]
    slow = column in ("OPT_0", "LRM", "COA") and int(case[1]) >= _SLOW_CELLS
    return Task(name, strategy_error, (case, operator, table.norm), slow)


def _rule(table: Printed, case: Case, column: str) -> Rule:
    misprint = MISPRINTS.get((table.key, case, column))
    if misprint is not None:
        return Exempt(misprint)
    if column in ("Identity", "SVDB"):
        return Equal()
    if column == "OPT_0":
        return AtMost()
    if column in _TREES and case[0] == "permuted":
        return Exempt(_PERMUTED)
    return Within(_TOLERANCES[column])
