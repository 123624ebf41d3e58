"""What a column of public data holds, collected in one pass and in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hdmm.data.look import Column
from hdmm.proposal.readings import Amounts, Reading, choose_reading, is_missing

MAX_TEXTS = 20_000
"""Distinct texts of a column that are counted one by one; beyond that, only the most frequent ones are kept."""
_MAX_CHARACTERS = 1 << 23
"""Characters of these texts."""
_MAX_NUMBERS = 1 << 16
"""Distinct numbers of a column; beyond that they are rounded."""
_DIGITS = 7
"""Significant digits to which numbers are rounded first."""
_HASHES = 1 << 32
_SMALLEST_HASHES = 1024
"""The distinct texts of a column are estimated by this many hashes, within a few percent."""


@final
@dataclass(frozen=True)
class ColumnSummary:
    """What a column holds, whatever the source."""

    column: Column
    records: int
    empty: int
    """Records without a text."""
    counts: Mapping[str, int]
    """The most frequent texts first, with the number of their records; all of them if ``complete``."""
    complete: bool
    distinct: int
    """How many different texts there are; about so many if not ``complete``."""
    reading: Reading | None
    """How nearly all of the texts can be read as numbers."""
    values: NDArray[np.float64]
    """The numbers that were read, in order; rounded if there are very many."""
    weights: NDArray[np.int64]
    """The number of records of each."""
    unread: Mapping[str, int]
    """The most frequent texts that are no numbers although others are."""
    pointed: bool
    """Whether some numbers are written with a decimal point."""
    padded: bool
    """Whether some numbers have leading zeros."""
    mean_length: float
    """Characters of a text, on average."""

    @property
    def whole(self) -> bool:
        """Whether all numbers are integers."""
        return bool(np.all(self.values == np.floor(self.values)))

    @property
    def filled(self) -> int:
        """Records with a text that does not stand for a missing value."""
        missing = sum(count for text, count in self.counts.items() if is_missing(text))
        return self.records - self.empty - missing


@final
class Collector:
    """Collects the texts of one column."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._records = self._empty = self._characters = 0
        self._lengths = 0
        self._counts: dict[str, int] = {}
        self._beyond: _Beyond | None = None

    @property
    def complete(self) -> bool:
        """Whether every text is still counted."""
        return self._beyond is None

    def add(self, texts: Sequence[str], counts: Sequence[int]) -> None:
        """Count texts; one that is given twice counts twice."""
        known = self._counts
        for text, count in zip(texts, counts, strict=True):
            if not count:
                continue
            self._records += count
            if not text:
                self._empty += count
                continue
            self._lengths += len(text) * count
            if self._beyond is not None:
                self._beyond.add(text, count)
            elif text in known:
                known[text] += count
            else:
                known[text] = count
                self._characters += len(text)
                if len(known) > MAX_TEXTS or self._characters > _MAX_CHARACTERS:
                    self._beyond = _Beyond(known)
                    known = self._counts = {}

    def summary(self) -> ColumnSummary:
        """What was collected."""
        beyond = self._beyond or _Beyond(self._counts)
        ordered = sorted(beyond.numbers)
        values = np.array(ordered, np.float64)
        if ordered:
            values[0], values[-1] = beyond.least, beyond.most
        filled = self._records - self._empty
        return ColumnSummary(
            self._column,
            self._records,
            self._empty,
            dict(sorted(beyond.texts.items(), key=lambda item: (-item[1], item[0]))),
            self.complete,
            len(self._counts) if self.complete else beyond.distinct,
            beyond.reading,
            values,
            np.array([beyond.numbers[value] for value in ordered], np.int64),
            dict(sorted(beyond.unread.items(), key=lambda item: (-item[1], item[0]))),
            beyond.pointed,
            beyond.padded,
            self._lengths / filled if filled else 0.0,
        )


@final
class _Beyond:
    """Texts that are read as numbers if most of them are; otherwise the most frequent ones are kept."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.reading = choose_reading(dict(sorted(counts.items(), key=lambda item: -item[1])))
        self.texts: dict[str, int] = {}
        self.unread: dict[str, int] = {}
        self.numbers: dict[float, int] = {}
        self.least, self.most = inf, -inf
        self.pointed = self.padded = False
        self._point = self.reading.point if isinstance(self.reading, Amounts) else "."
        self._digits = _DIGITS
        self._hashes: set[int] = set()
        self._largest = _HASHES
        for text, count in counts.items():
            self.add(text, count)

    @property
    def distinct(self) -> int:
        """About how many different texts there are."""
        if self._largest == _HASHES:
            return len(self._hashes)
        smallest = sum(number <= self._largest for number in self._hashes)
        return int(smallest * _HASHES / (self._largest + 1))

    def add(self, text: str, count: int) -> None:
        """Count a text, as a number if it is one."""
        self._hash(text)
        if self.reading is None:
            _count(self.texts, text, count)
            return
        if text in self.texts or len(self.texts) < MAX_TEXTS:
            self.texts[text] = self.texts.get(text, 0) + count
        value = self.reading.value(text)
        if value is None:
            _count(self.unread, text, count)
            return
        self.least, self.most = min(self.least, value), max(self.most, value)
        self.pointed = self.pointed or self._point in text
        self.padded = self.padded or (text[0] == "0" and len(text) > 1 and text[1].isdigit())
        if self._digits < _DIGITS:
            value = float(f"{value:.{self._digits}g}")
        self.numbers[value] = self.numbers.get(value, 0) + count
        if len(self.numbers) > _MAX_NUMBERS:
            self._round()

    def _round(self) -> None:
        """Keep fewer digits of the numbers."""
        self._digits -= 1
        rounded: dict[float, int] = {}
        for value, count in self.numbers.items():
            key = float(f"{value:.{self._digits}g}")
            rounded[key] = rounded.get(key, 0) + count
        self.numbers = rounded

    def _hash(self, text: str) -> None:
        """Keep the smallest hashes: how small they are says how many there are."""
        number = crc32(text.encode(errors="replace"))
        if number >= self._largest or number in self._hashes:
            return
        self._hashes.add(number)
        if len(self._hashes) > 2 * _SMALLEST_HASHES:
            self._hashes = set(sorted(self._hashes)[:_SMALLEST_HASHES])
            self._largest = max(self._hashes)


def _count(counts: dict[str, int], text: str, count: int) -> None:
    """Count a text; if there are too many, forget the half that is least frequent."""
    counts[text] = counts.get(text, 0) + count
    if len(counts) > MAX_TEXTS:
        least = sorted(counts, key=lambda known: counts[known])[: len(counts) // 2]
        for known in least:
            del counts[known]
