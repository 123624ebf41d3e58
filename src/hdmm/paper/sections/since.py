"""Systems newer than the paper, beside ours: marginals, marginals with prefixes, counts, and prefixes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, final

from hdmm.paper.sections.base import Outcome, Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell
from hdmm.paper.since import counts_error, marginals_error, prefix_error

_COUNTS = (4, 16, 64, 256)
_PREFIXES = (64, 256, 1024)
_MARGINALS = {"identity marginals": "Marginals", "prefix marginals": "Marginals with prefixes"}


@cache
def published() -> dict[str, Any]:
    """What others published, with sources."""
    content: dict[str, Any] = json.loads((files("hdmm.paper") / "since.json").read_text(encoding="utf-8"))
    return content


@final
class Since(Section):
    """ResidualPlanner, ResidualPlanner+, correlated noise and the normalised square root."""

    name: ClassVar[str] = "since"
    title: ClassVar[str] = "Newer than the paper: Gaussian noise at ρ = 0.5"
    row_names: ClassVar[tuple[str, ...]] = ("workload",)
    counterpart: ClassVar[str] = "other"

    def tasks(self) -> Sequence[Task]:
        return [
            *(Task(f"prefixes {n}", prefix_error, (n,)) for n in reversed(_PREFIXES)),
            *(
                Task(f"{kind} {survey} {ways}", marginals_error, (survey, ways, kind == "prefix marginals"))
                for kind, survey, ways, _ in _printed()
            ),
            *(Task(f"counts {d}", counts_error, (d,)) for d in _COUNTS),
        ]

    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        return [*self._marginals(outcomes), *self._counts(outcomes), *self._prefixes(outcomes)]

    def remarks(self, outcomes: Outcomes) -> Sequence[str]:
        sources = [
            f"{name}: {system['authors']}, {system['title']} ({system['published']})"
            for name, system in published()["systems"].items()
        ]
        return ["Numbers of the first two systems are published ones; the others are formulas, evaluated.", *sources]

    def _marginals(self, outcomes: Outcomes) -> Iterator[Cell]:
        for kind, survey, ways, other in _printed():
            outcome = outcomes[f"{kind} {survey} {ways}"]
            notes = [f"{outcome['seconds']:.1f} s"]
            if outcome["bound"] is not None:
                notes.append(f"{outcome['rmse'] / outcome['bound'] - 1:.1e} above the SVD bound")
            heading = f"{_MARGINALS[kind]}, beside {published()[kind]['system']}: RMSE"
            cell = Cell(self.name, heading, (survey,), ways, outcome["rmse"], other, AtMost(), ", ".join(notes))
            yield replace(cell, rounding=outcome["rounding"], digits=3)

    def _counts(self, outcomes: Outcomes) -> Iterator[Cell]:
        heading = "Counts of d attributes of two values, beside correlated noise: largest error"
        for d in _COUNTS:
            outcome = outcomes[f"counts {d}"]
            numbers = outcome["largest"], outcome["other"]
            yield Cell(
                self.name, heading, (f"d = {d}",), "largest error", *numbers, AtMost(), _bounded(outcome), digits=4
            )

    def _prefixes(self, outcomes: Outcomes) -> Iterator[Cell]:
        heading = "Prefixes of n values, beside the normalised square root"
        for n in _PREFIXES:
            outcome = outcomes[f"prefixes {n}"]
            gap = f"at most {outcome['rmse'] / outcome['rmse bound'] - 1:.1e} above optimal"
            for column, ours, other, note in (
                ("RMSE", outcome["rmse"], outcome["other rmse"], gap),
                ("largest error", outcome["largest"], outcome["other"], _bounded(outcome)),
            ):
                yield Cell(self.name, heading, (f"n = {n}",), column, ours, other, AtMost(), note, digits=4)


def _printed() -> Iterator[tuple[str, str, str, float]]:
    """Kind of marginals, data set, number of attributes and what the other system reaches."""
    for kind in _MARGINALS:
        for survey, columns in published()[kind].items():
            if survey != "system":
                yield from ((kind, survey, ways, other) for ways, other in columns.items())


def _bounded(outcome: Outcome) -> str:
    """How long it took, and how far from optimal it is at most."""
    above = f", at most {outcome['largest'] / outcome['bound'] - 1:.1e} above optimal" if outcome["bound"] else ""
    return f"{outcome['seconds']:.1f} s{above}"
