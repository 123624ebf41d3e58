"""The privacy unit: what one person can change in the data, and by how much that changes the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

from hdmm.errors import BudgetError, InputError, is_integer
from hdmm.matrix import Norm
from hdmm.numbers import shown
from hdmm.schema import Schema
from hdmm.strategy.block import Block
from hdmm.strategy.replacement import change_by_replacing
from hdmm.strategy.sensitivity import Change, change_by_adding
from hdmm.syntax import example, given

Neighbours = Literal["add-remove", "replace-one"]

_MAX_ROWS = 10**6
"""The most rows of a unit."""
_MAX_NAME = 200
"""The most characters of the name of a column."""


@final
@dataclass(frozen=True)
class Unit:
    """Up to ``rows`` rows that are added or removed, or replaced by as many others.

    With ``id``, the column that tells people apart, they are a person's: of anyone who has more rows, this many are
    counted, chosen by looking at that person's rows alone.

    Arguments:
        rows: How many rows are protected together.
        neighbours: "add-remove" if they are added or removed, "replace-one" if they are replaced by others.
        id: The column that identifies people. Without it, any ``rows`` rows are protected.
    """

    rows: int = 1
    neighbours: Neighbours = "add-remove"
    id: str | None = None

    def __post_init__(self) -> None:
        if not is_integer(self.rows) or not 1 <= self.rows <= _MAX_ROWS:
            raise BudgetError(
                f"{given('rows', shown(self.rows))}: expected an integer from 1 to {_MAX_ROWS:,}, such as "
                f"{example('rows', 1)}"
            )
        if self.neighbours not in get_args(Neighbours):
            raise BudgetError(f"{given('neighbours', shown(self.neighbours))}: expected 'add-remove' or 'replace-one'")
        if self.id is not None and not (
            isinstance(self.id, str) and 1 <= len(self.id) <= _MAX_NAME and self.id.isprintable()
        ):
            column = given("id", shown(self.id), option="id-column")
            raise BudgetError(f"{column}: expected the name of the column that tells people apart, or none")

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        return f"{rows} per {'person' if self.id is None else repr(self.id)}, {self.neighbours}"

    def data(self) -> dict[str, Any]:
        """The unit as plain data, as files hold it."""
        return {"rows": self.rows, "neighbours": self.neighbours, **({} if self.id is None else {"id": self.id})}

    def change(self, blocks: Sequence[Block], p: Norm) -> Change:
        """By how much a unit can change the answers of all blocks together.

        All rows of a unit may be in the same cell, so that the change is ``rows`` times that of one row.
        """
        change = (change_by_adding if self.neighbours == "add-remove" else change_by_replacing)(blocks, p)
        return Change(self.rows**p * change.power, change.exact)

    def excess(self, blocks: Sequence[Block], p: Norm) -> float:
        """Ratio of the unit's squared sensitivity to that of adding or removing as many rows."""
        if self.neighbours == "add-remove":
            return 1.0
        ratio = self.change(blocks, p).power / (self.rows**p * change_by_adding(blocks, p).power)
        return float(ratio) ** (2 // p)


def check_unit(unit: Unit, schema: Schema) -> None:
    """Refuse a unit whose column is also one of the schema's."""
    if unit.id in schema.columns:
        raise InputError(
            f"{given('id', repr(unit.id), option='id-column')}: is a column of the schema, whose counts are published; "
            "name the column that tells people apart, or leave it out of the schema"
        )
