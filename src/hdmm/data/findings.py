"""What a look at the records finds: for the custodian alone, and never part of a release.

These are exact counts and values of records. Only `hdmm.check` asks for them, and measuring and publishing cannot
import it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

MOST_TEXTS = 1000
"""Distinct texts of a column that are kept: the most frequent of those outside its domain, or in the cell "other".
Of those that are declared values, the first ones."""


@final
@dataclass(frozen=True)
class ColumnFindings:
    """The values of one column that are outside its domain."""

    outside: int
    """Records whose value is outside."""
    distinct: int
    """Distinct values outside."""
    texts: tuple[tuple[bytes, int], ...]
    """The most frequent of them, trimmed, each with its number of records."""
    missing: int = 0
    """Records in the cell "missing"."""
    other: int = 0
    """Records in the cell "other"."""
    other_texts: tuple[tuple[bytes, int], ...] = ()
    """The most frequent texts in the cell "other", trimmed, each with its number of records."""
    inside_texts: tuple[tuple[bytes, int], ...] = ()
    """Some texts of declared values, trimmed, each with its number of records."""


@final
@dataclass(frozen=True)
class PeopleFindings:
    """The people behind the records."""

    people: int
    exceeding: int
    """People with more records than the privacy unit allows."""
    unidentified: int
    """Records that name nobody."""
    uncounted: int
    """Records inside every domain that are not counted, because they name nobody or somebody with too many."""


@final
@dataclass(frozen=True)
class LineFindings:
    """The lines of a text file after its header."""

    fields: int
    """Fields of the header."""
    widths: Mapping[int, int] = field(default_factory=dict)
    """Lines that are no records, by their number of fields."""
    long: int = 0
    """Lines that are too long to be records."""
    unbalanced: int = 0
    """Lines with an odd number of quotes."""
    undecodable: int = 0
    """Records that are not text in the encoding of the file."""

    @property
    def broken(self) -> int:
        """Lines that are no records."""
        return sum(self.widths.values()) + self.long


@final
@dataclass(frozen=True)
class Findings:
    """What was found in a source, by the columns that are read from it."""

    records: int
    used: int
    """Records inside every domain, whose person is known if people are identified."""
    columns: Mapping[str, ColumnFindings]
    people: PeopleFindings | None = None
    lines: LineFindings | None = None


def most_frequent(texts: Counter[bytes]) -> tuple[tuple[bytes, int], ...]:
    """The most frequent texts with their numbers; equally frequent ones in the order of their bytes."""
    return tuple(sorted(texts.items(), key=lambda item: (-item[1], item[0]))[:MOST_TEXTS])
