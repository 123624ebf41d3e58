"""The privacy unit: what one person can change in the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from hdmm.errors import BudgetError, NotSupportedError


@final
@dataclass(frozen=True)
class Unit:
    """How many rows a person has, and whether neighbouring data add or remove them, or replace them."""

    rows: int = 1
    neighbours: Literal["add-remove", "replace-one"] = "add-remove"

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise BudgetError(f"rows={self.rows!r}: expected a positive integer, for example Unit(rows=1)")
        if self.neighbours not in ("add-remove", "replace-one"):
            raise BudgetError(f"neighbours={self.neighbours!r}: expected 'add-remove' or 'replace-one'")
        if self.rows != 1 or self.neighbours != "add-remove":
            raise NotSupportedError(
                f"unit: this version protects one row, added or removed; rows={self.rows}, "
                f"neighbours={self.neighbours!r} is not available; use Unit(), or leave unit out of the spec"
            )

    def __str__(self) -> str:
        return f"{self.rows} row{'s' if self.rows > 1 else ''} per person, {self.neighbours}"
