"""What both kinds of result tables share: cells from the outcomes of strategies, bounds and published answers."""

from __future__ import annotations

from hdmm.paper.errors import Case, root_mean_square
from hdmm.paper.rounding import Loss
from hdmm.paper.sections.base import Outcome
from hdmm.paper.sections.cells import Cell, Rule
from hdmm.paper.sections.printed import Printed

LEFT_OUT = "takes long: left out by --fast"
COLUMN_TITLES = {"OPT_kron": "OPT_⊗", "OPT_union": "OPT_+", "OPT_0": "OPT_0"}
"""How columns are shown, where it is not by their name."""


def task_name(table: Printed, case: Case, column: str) -> str:
    """Names the task of a cell within its section."""
    return f"{'Laplace' if table.norm == 1 else 'Gaussian'} {' '.join(case)} {column}"


def strategy_cell(
    section: str, table: Printed, case: Case, column: str, paper: float | None, outcome: Outcome | None, rule: Rule
) -> Cell:
    """The cell of one strategy or bound."""
    title = COLUMN_TITLES.get(column, column)
    if outcome is None or "reason" in outcome:
        note = LEFT_OUT if outcome is None else outcome["reason"]
        return Cell(section, table.heading, case, title, None, paper, rule, footnote=note)
    rmse = root_mean_square(outcome)
    notes = []
    rounding = None
    if "seconds" in outcome:
        notes.append(f"{outcome['seconds']:.1f} s")
        if outcome["bound"] is not None:
            notes.append(f"at most {outcome['squared'] / outcome['bound'] - 1:.1e} above optimal")
        loss = loss_of(outcome)
        rounding = loss.rounding
        notes.append(loss.note)
    return Cell(section, table.heading, case, title, rmse, paper, rule, ", ".join(notes), rounding=rounding)


def loss_of(outcome: Outcome) -> Loss:
    """The error before and after rounding."""
    return Loss(outcome["squared"], outcome["rounded"])
