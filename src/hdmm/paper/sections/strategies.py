"""The picture of three strategies for all ranges of 256 cells (paper, section 4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, final

from hdmm.paper.pictured import CELLS, pictured
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell, Equal, Rule

if TYPE_CHECKING:
    import altair

_PANELS: dict[str, tuple[str, str, float, Rule]] = {
    "cholesky": ("Cholesky", "Gaussian", 12.26, AtMost()),
    "p-identity": ("p-Identity, p = 16", "Laplace", 8.07, AtMost()),
    "hierarchy": ("Hierarchy, b = 16", "Laplace", 8.90, Equal()),
}
"""The titles of the panels, their noise, and the RMSE that the paper's tables have for them."""
_EXTRA_QUERIES = 13
"""How many of 16 extra queries the paper found to be other than zero."""


@final
class Strategies(Section):
    """What is measured, to be seen."""

    name: ClassVar[str] = "strategies"
    title: ClassVar[str] = f"Three strategies for all ranges of {CELLS} cells, drawn with --out"
    row_names: ClassVar[tuple[str, ...]] = ("strategy",)

    def tasks(self) -> Sequence[Task]:
        return [Task(kind, pictured, (kind,)) for kind in _PANELS]

    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        cells = []
        for kind, (title, noise, paper, rule) in _PANELS.items():
            outcome, row = outcomes[kind], (f"{title} ({noise})",)
            cells.append(Cell(self.name, "RMSE", row, "RMSE", outcome["rmse"], paper, rule))
            extra = len(outcome["queries"])
            printed = float(_EXTRA_QUERIES if kind == "p-identity" else extra)
            cells.append(Cell(self.name, "RMSE", row, "queries", extra, printed, AtMost(), digits=0))
        return cells

    def charts(self, outcomes: Outcomes) -> Mapping[str, altair.TopLevelMixin]:
        import altair as alt

        from hdmm.paper.report.pictures import panel

        panels = []
        for kind, (title, noise, _, _) in _PANELS.items():
            outcome = outcomes[kind]
            count = f"{len(outcome['queries'])} queries, one per row"
            count += f"; {CELLS} single cells as the row on top" if outcome["diagonal"] else ""
            subtitle = [f"{noise} noise, RMSE {outcome['rmse']:.2f}", count]
            panels.append(panel(title, subtitle, outcome["diagonal"], outcome["queries"], CELLS))
        drawn = (
            alt.hconcat(*panels, spacing=28)
            .configure_view(stroke=None)
            .configure_axis(labelFontSize=12, titleFontSize=12)
        )
        return {self.name: drawn}
