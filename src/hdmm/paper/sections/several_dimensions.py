"""The tables on several attributes: Census, CPS, Adult and Loans (paper, section 11.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

from hdmm import baselines, operators
from hdmm.matrix import Norm
from hdmm.operators.base import Operator
from hdmm.paper.errors import Case, plain_error, published_error, root_mean_square, strategy_error, svd_error
from hdmm.paper.rounding import best_loss
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell, Equal, Exempt, Rule
from hdmm.paper.sections.printed import MISPRINTS, Printed, printed_tables
from hdmm.paper.sections.result_tables import LEFT_OUT, loss_of, strategy_cell, task_name

_TABLES = ("table_hd1_laplace", "table_hd2_gaussian")
_OPERATORS: dict[str, Operator] = {
    "OPT_kron": operators.Kron(),
    "OPT_union": operators.Union(),
    "OPT_M": operators.Marginal(),
}
_BEYOND: dict[Norm, dict[str, Operator]] = {
    1: {"OPT_M+": operators.MarginalPlus()},
    2: {"OPT_R": operators.Residual(), "OPT_S": operators.Symmetric()},
}
"""Operators that the paper does not have."""


@final
@dataclass(frozen=True)
class SeveralDimensions(Section):
    """All systems on several attributes, or only the columns given."""

    columns: tuple[str, ...] | None = None
    name: ClassVar[str] = "multi-d"
    title: ClassVar[str] = "Several attributes: the Census, CPS, Adult and Loans"
    row_names: ClassVar[tuple[str, ...]] = ("dataset", "workload")

    def tasks(self) -> Sequence[Task]:
        return [task for table, case, column, _ in self._places() for task in _tasks(table, case, column)]

    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        return [
            _best_cell(self.name, table, case, column, paper, outcomes)
            if column in ("HDMM", "beyond")
            else _cell(self.name, table, case, column, paper, outcomes)
            for table, case, column, paper in self._places()
        ]

    def _places(self) -> Iterator[tuple[Printed, Case, str, float | None]]:
        for key in _TABLES:
            table = printed_tables()[key]
            for case, columns in table.rows:
                places = {column: paper for column, paper in columns.items() if column != "SVDB"}
                places |= {"beyond": columns["HDMM"], "SVDB": columns["SVDB"]}
                for column, paper in places.items():
                    if self.columns is None or column in self.columns:
                        yield table, case, column, paper


def _tasks(table: Printed, case: Case, column: str) -> list[Task]:
    name, norm = task_name(table, case, column), table.norm
    match column:
        case "Identity":
            return [Task(name, published_error, (case, baselines.Identity(), norm))]
        case "Baseline":
            return [Task(name, plain_error, (case, norm))]
        case "SVDB":
            return [Task(name, svd_error, (case, norm))]
        case "DataCube":
            return [Task(name, strategy_error, (case, baselines.DataCube(), norm))]
        case "HDMM":
            return []
        case "beyond":
            return [
                Task(task_name(table, case, beyond), strategy_error, (case, operator, norm))
                for beyond, operator in _BEYOND[norm].items()
            ]
    return [Task(name, strategy_error, (case, _OPERATORS[column], norm))]


def _cell(section: str, table: Printed, case: Case, column: str, paper: float | None, outcomes: Outcomes) -> Cell:
    outcome = outcomes.get(task_name(table, case, column))
    rule: Rule = AtMost() if column in _OPERATORS else Equal()
    misprint = MISPRINTS.get((table.key, case, column))
    if misprint is not None:
        rule = Exempt(misprint)
    cell = strategy_cell(section, table, case, column, paper, outcome, rule)
    if column == "Baseline" and outcome is not None:
        exact, ours = root_mean_square(outcome, "exact"), root_mean_square(outcome)
        if abs(exact - ours) > 0.005:
            note = f"the paper adds up the products' norms; the norm of their stack gives {exact:,.2f}"
            return replace(cell, footnote=note)
    return cell


def _best_cell(section: str, table: Printed, case: Case, column: str, paper: float | None, outcomes: Outcomes) -> Cell:
    """HDMM is the best of its three operators; "beyond" also takes those that the paper does not have."""
    names = [*_OPERATORS, *(_BEYOND[table.norm] if column == "beyond" else {})]
    found = {name: outcomes.get(task_name(table, case, name)) for name in names}
    missing = [name for name, outcome in found.items() if outcome is None]
    if missing:
        return Cell(section, table.heading, case, column, None, paper, AtMost(), footnote=LEFT_OUT)
    strategies = {name: outcome for name, outcome in found.items() if outcome is not None and "reason" not in outcome}
    best = best_loss([loss_of(outcome) for outcome in strategies.values()])
    scale = next(iter(strategies.values()))["scale"]
    winner = min(strategies, key=lambda name: strategies[name]["squared"])
    notes = [f"{winner}, {best.note}"]
    for name in _BEYOND[table.norm] if column == "beyond" else ():
        outcome = strategies.get(name)
        said = "does not apply" if outcome is None else f"{root_mean_square(outcome):,.2f}, {outcome['seconds']:.1f} s"
        notes.append(f"{name} {said}")
    rmse = (scale * best.squared) ** 0.5
    return Cell(section, table.heading, case, column, rmse, paper, AtMost(), "; ".join(notes), rounding=best.rounding)
