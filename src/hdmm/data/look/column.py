"""The columns of a source and the texts in them, whatever the source is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

ColumnType = Literal[
    "text", "integer", "decimal", "float", "boolean", "date", "timestamp", "time", "untyped", "unreadable"
]
"""Declared types as far as reading differs. Text files have texts; the columns of SQLite are untyped."""


@final
@dataclass(frozen=True)
class Column:
    """A column: its name and its declared type."""

    name: str
    type: ColumnType = "text"


@final
@dataclass(frozen=True)
class Piece:
    """Some records: for each column its distinct texts, and for each record the position of its text among them."""

    records: int
    columns: Sequence[tuple[Sequence[str], NDArray[np.integer]]]
    fraction: float
    """The share of the source up to the end of this piece."""
    ragged: int = 0
    """Lines that are no records, because they have another number of fields than the header."""
    longer: int = 0
    """Those of them that have one field more than the header."""
    undecodable: int = 0
    """Records with a text that the encoding does not allow."""
