"""Proposals for columns: an attribute with its domain, or the reason for which a column is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final


@final
@dataclass(frozen=True)
class Attribute:
    """A column that the spec uses."""

    name: str
    domain: Mapping[str, Any]
    """Its domain as the spec states it: ``{"min": 0, "max": 114}``."""
    cells: int
    """How many cells it has, with those for other and missing values."""
    ordered: bool = False
    """Whether ranges of its values mean something."""
    notes: tuple[str, ...] = field(default=())
    """Comments, a sentence each."""

    def noted(self, *notes: str) -> Attribute:
        """The same with more comments."""
        return replace(self, notes=(*self.notes, *notes))


@final
@dataclass(frozen=True)
class LeftOut:
    """A column that the spec does not use."""

    name: str
    reason: str
    example: str = "{values: [a, b], other: true}"
    """A domain that it could have, as YAML."""


Proposal = Attribute | LeftOut


def extra_cells(domain: Mapping[str, Any]) -> int:
    """How many cells a domain has beside its declared values."""
    return bool(domain.get("other")) + bool(domain.get("missing"))
