"""A draft of a spec: its attributes, the columns that are left out, the questions, noise and privacy unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final

from hdmm.privacy.calibrate import NoiseKind
from hdmm.proposal.attribute import Attribute, LeftOut, Proposal

_MANY_TABLES = 12
"""With more tables than this, Gaussian noise is smaller."""
_PAIR_CELLS = 2000
"""Most cells of the tables of two attributes that are asked for."""
_MANY_ATTRIBUTES = 60
"""With more attributes than this, not all pairs are asked for."""
_LEAST_INTEGERS, _LEAST_RANGES, _MOST_RANGES = 24, 8, 400
"""Cells of attributes whose ranges are asked for; a few integers may be codes."""
_MOST_CUMULATIVE = 6
"""Attributes whose ranges are asked for: each takes a share of the budget."""

Tables = Literal["total", "one-way", "pairs"]


@final
@dataclass(frozen=True)
class Question:
    """An entry of the workload, with the comment above it, if any."""

    comment: str
    entry: dict[str, Any]


@final
@dataclass(frozen=True)
class PrivacyUnit:
    """What is protected: a row, or a person with up to ``rows`` rows."""

    rows: int = 1
    id: str | None = None
    candidates: tuple[str, ...] = ()
    """Columns that may identify people, if none is named."""


@final
@dataclass(frozen=True)
class Draft:
    """Everything that the spec will state."""

    proposals: Sequence[Proposal]
    questions: Sequence[Question]
    noise: NoiseKind
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    origin: Sequence[str] = ()
    """Sentences at the top of the spec: where the domains came from."""

    @property
    def attributes(self) -> list[Attribute]:
        """The columns that are used."""
        return [proposal for proposal in self.proposals if isinstance(proposal, Attribute)]

    @property
    def left_out(self) -> list[LeftOut]:
        """The columns that are not used."""
        return [proposal for proposal in self.proposals if isinstance(proposal, LeftOut)]


def propose_questions(
    attributes: Sequence[Attribute], tables: Tables = "pairs", *, ranges: bool = True
) -> list[Question]:
    """Tables of one and two attributes, ranges of ordered ones, and groups of levels."""
    questions: list[Question] = []
    if tables == "total":
        questions.append(Question("How many records there are.", {"name": "records"}))
    else:
        questions.append(_marginals(attributes, tables))
    for attribute in attributes:
        for level in attribute.domain.get("levels", {}):
            name = level if level.startswith(attribute.name) else f"{attribute.name} by {level}"
            entry = {"name": name, "product": {attribute.name: {"level": level}}}
            questions.append(Question(f"The groups of the level {level}.", entry))
    cumulative = [attribute for attribute in attributes if ranges and _has_ranges(attribute)]
    comment = "The records up to each value, from which ranges and medians follow."
    for attribute in cumulative[:_MOST_CUMULATIVE]:
        entry = {"name": f"{attribute.name} up to", "product": {attribute.name: "prefix"}}
        questions.append(Question(comment, entry))
        comment = ""
    return questions


def _has_ranges(attribute: Attribute) -> bool:
    least = _LEAST_INTEGERS if "min" in attribute.domain else _LEAST_RANGES
    return attribute.ordered and least <= attribute.cells <= _MOST_RANGES


def _marginals(attributes: Sequence[Attribute], tables: Tables) -> Question:
    largest = max((attribute.cells for attribute in attributes), default=1)
    if tables == "one-way" or len(attributes) < 2 or len(attributes) > _MANY_ATTRIBUTES:
        comment = "The number of records, and a table of every attribute."
        if len(attributes) > _MANY_ATTRIBUTES:
            comment += " There are too many pairs of attributes; name those that you need, each as a product."
        return Question(comment, {"name": "tables", "marginals": {"up_to": 1}})
    cells = max(_PAIR_CELLS, largest)
    if all(a.cells * b.cells <= cells for a in attributes for b in attributes if a is not b):
        return Question(
            "The number of records, a table of every attribute, and one of every two.",
            {"name": "tables", "marginals": {"up_to": 2}},
        )
    return Question(
        "The number of records, a table of every attribute, and one of every two with at most this many cells.",
        {"name": "tables", "marginals": {"up_to": 2, "max_cells": cells}},
    )


def table_count(attributes: Sequence[Attribute], questions: Sequence[Question]) -> int:
    """How many tables the questions ask for."""
    count = 0
    for question in questions:
        options = question.entry.get("marginals")
        count += 1
        if options is not None:
            count += len(attributes)
        if options is not None and options["up_to"] > 1:
            most = options.get("max_cells", float("inf"))
            count += sum(a.cells * b.cells <= most for at, a in enumerate(attributes) for b in attributes[at + 1 :])
    return count


def propose_noise(attributes: Sequence[Attribute], questions: Sequence[Question]) -> NoiseKind:
    """Laplace noise for a few tables, Gaussian noise for many."""
    return "gaussian" if table_count(attributes, questions) > _MANY_TABLES else "laplace"
