"""The worked examples with their strategies (paper, sections 6.2 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

from hdmm import baselines, operators
from hdmm.operators.base import Operator
from hdmm.paper.examples import EXAMPLES, example_error
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell, Equal, Rule
from hdmm.text import text_table

_MARGINALS, _PREFIXES = EXAMPLES
_AS_DEFINED = "OPT_+ as defined"
"""One group for each product, each product answered from its own block."""
_SYSTEMS: dict[tuple[str, str], tuple[Operator, float, Rule]] = {
    (_MARGINALS, "the workload"): (baselines.Marginals(), 206_964, Equal()),
    (_MARGINALS, "Identity"): (baselines.Identity(), 300_000, Equal()),
    (_MARGINALS, "OPT_⊗"): (operators.Kron(), 213_270, AtMost()),
    (_MARGINALS, _AS_DEFINED): (operators.Union(groups=()), 85_070, Equal()),
    (_MARGINALS, "OPT_+"): (operators.Union(), 85_070, AtMost()),
    (_MARGINALS, "OPT_M"): (operators.Marginal(), 62_886, AtMost()),
    (_PREFIXES, "OPT_⊗"): (operators.Kron(), 33_385, AtMost()),
    (_PREFIXES, _AS_DEFINED): (operators.Union(groups=()), 14_252, AtMost()),
    (_PREFIXES, "OPT_+"): (operators.Union(), 14_252, AtMost()),
}
"""The operators, and what the paper prints for them."""
_HEADINGS = {
    _MARGINALS: "All two-way marginals of attributes with 2, 5, 50 and 100 values: squared error",
    _PREFIXES: "Prefixes on each of two attributes of 100 values: squared error",
}


@final
class Examples(Section):
    """Two workloads with strategies small enough to be written down."""

    name: ClassVar[str] = "examples"
    title: ClassVar[str] = "The worked examples, Laplace noise of scale 1"
    row_names: ClassVar[tuple[str, ...]] = ("workload",)

    def tasks(self) -> Sequence[Task]:
        return [
            Task(f"{example} {system}", example_error, (example, operator, system == _AS_DEFINED))
            for (example, system), (operator, _, _) in _SYSTEMS.items()
        ]

    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        cells = []
        for (example, system), (_, paper, rule) in _SYSTEMS.items():
            outcome = outcomes[f"{example} {system}"]
            note = f"{outcome['queries']:,} queries, {outcome['seconds']:.1f} s"
            cells.append(
                Cell(self.name, _HEADINGS[example], (example,), system, outcome["squared"], paper, rule, note, digits=0)
            )
        return cells

    def remarks(self, outcomes: Outcomes) -> Sequence[str]:
        remarks = []
        for example, build in EXAMPLES.items():
            names = build().schema.names
            rows = [
                [system if first else "", *line]
                for found, system in _SYSTEMS
                if found == example
                for first, line in _numbered(outcomes[f"{example} {system}"]["strategy"])
            ]
            remarks.append(f"Strategies for {example} (I: every value, T: the total)\n")
            remarks.append(text_table(["system", "weight", *names], rows) + "\n")
        return remarks


def _numbered(lines: Sequence[Sequence[str]]) -> list[tuple[bool, Sequence[str]]]:
    return [(place == 0, line) for place, line in enumerate(lines)]
