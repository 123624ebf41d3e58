"""The tables on one attribute: four workloads on 64 to 4096 cells (paper, section 11.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, final

from hdmm import baselines, operators
from hdmm.operators.base import Operator
from hdmm.paper.errors import Case, published_error, strategy_error, svd_error
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell, Equal, Exempt, Rule, Within
from hdmm.paper.sections.printed import MISPRINTS, Printed, printed_tables
from hdmm.paper.sections.result_tables import strategy_cell, task_name

_TABLES = ("table_opt01_laplace_1d", "table_opt02_gaussian_1d")
_OPERATORS: dict[str, Operator] = {
    "H2": baselines.H2(),
    "Wavelet": baselines.Privelet(),
    "HB": baselines.HB(),
    "GreedyH": baselines.GreedyH(),
    "LRM": baselines.LRM(),
    "COA": baselines.COA(),
    "OPT_0": operators.Explicit(),
}
_SLOW_CELLS = {"LRM": 256, "COA": 1024, "OPT_0": 4096}
"""From this size on, optimised strategies are left out of a fast run."""
_LRM = "the paper does not print when its run stopped, and it stopped early: ours may only be better"
_COA_FAILED = "the paper's run failed (section 11.1, finding 2): ours may only be better"


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
                    if self.columns is None or column in self.columns:
                        yield table, case, column, paper


def _task(table: Printed, case: Case, column: str) -> Task:
    name = task_name(table, case, column)
    match column:
        case "SVDB":
            return Task(name, svd_error, (case, table.norm))
        case "Identity":
            return Task(name, published_error, (case, baselines.Identity(), table.norm))
    slow = int(case[1]) >= _SLOW_CELLS.get(column, inf)
    return Task(name, strategy_error, (case, _OPERATORS[column], table.norm), slow)


def _rule(table: Printed, case: Case, column: str) -> Rule:
    misprint = MISPRINTS.get((table.key, case, column))
    if misprint is not None:
        return Exempt(misprint)
    if column == "OPT_0":
        return AtMost()
    if column == "LRM":
        return AtMost(_LRM)
    if column == "COA":
        return AtMost(_COA_FAILED) if _failed(case) else Within(0.01)
    return Equal()


def _failed(case: Case) -> bool:
    """Whether the paper's run of COA ended far from the optimum of the problem, which is the one that OPT_0 solves."""
    columns = dict(printed_tables()["table_opt02_gaussian_1d"].rows)[case]
    coa, optimum = columns["COA"], columns["OPT_0"]
    assert coa is not None
    assert optimum is not None
    return coa > 1.1 * optimum
