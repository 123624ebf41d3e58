"""The sizes of the census workloads in every form (paper, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell, Rule, Within
from hdmm.paper.sizes import census_sizes

_PRINTED = {"SF1": (8.3e9, 3.3e6, 3.3e6, 335e3), "SF1+": (22e12, 200e6, 50e6, 687e3)}
"""What the paper says, in bytes."""
_FORMS: dict[str, Rule] = {
    "explicit matrix": Within(0.01),
    "single queries": Within(0.1),
    "SQL statements": Within(0.1),
    "compacted": AtMost(),
}
"""Every form, and how close its sizes are to the paper's, which has only one digit for some of them."""


@final
class Sizes(Section):
    """SF1 and SF1+ from an explicit matrix to a few products."""

    name: ClassVar[str] = "sizes"
    title: ClassVar[str] = "The census workloads, read from SQL: numbers of 4 bytes in every form"
    row_names: ClassVar[tuple[str, ...]] = ("workload",)

    def tasks(self) -> Sequence[Task]:
        return [Task(name, census_sizes, (name == "SF1+",)) for name in reversed(_PRINTED)]

    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        return [
            Cell(self.name, "Bytes", (name,), form, size, paper, rule, f"{parts:,} parts", unit="bytes", digits=0)
            for name, printed in _PRINTED.items()
            for outcome in (outcomes[name],)
            for (form, rule), size, paper, parts in zip(
                _FORMS.items(), outcome["bytes"], printed, outcome["parts"], strict=True
            )
        ]

    def remarks(self, outcomes: Outcomes) -> Sequence[str]:
        said = []
        for name in _PRINTED:
            outcome = outcomes[name]
            queries, _, statements, products = outcome["parts"]
            said.append(
                f"{name}: {queries:,} queries on {outcome['cells']:,} cells, from {statements:,} SQL statements to "
                f"{products} products in {outcome['seconds']:.1f} s"
            )
        return said
