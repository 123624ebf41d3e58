"""Which columns of public data determine others: every county lies in one state."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.data.look import Piece
from hdmm.proposal.summary import MAX_TEXTS

_MAX_COLUMNS = 200
"""With more columns, nothing is compared: there would be too many pairs."""
_MAX_PAIRS = 2000
"""Pairs of columns that are followed to the end."""
_FIRST_RECORDS = 2000
"""Nearly all pairs are excluded by this many records."""
_UNKNOWN = -1


@final
class Dependences:
    """Follows which texts of a column go with one text of another, a piece of the records at a time."""

    def __init__(self, columns: int) -> None:
        self._codes: list[dict[str, int]] = [{} for _ in range(columns)]
        self._pairs: dict[tuple[int, int], NDArray[np.int32]] = {}
        self._fresh = True
        if columns <= _MAX_COLUMNS:
            self._pairs = {pair: np.empty(0, np.int32) for pair in permutations(range(columns), 2)}

    def add(self, piece: Piece) -> None:
        """Look at some more records."""
        if not self._pairs or not piece.records:
            return
        followed = {column for pair in self._pairs for column in pair}
        codes = {at: self._numbered(at, *piece.columns[at]) for at in followed}
        self._pairs = {pair: table for pair, table in self._pairs.items() if all(self._few(at) for at in pair)}
        if self._fresh:
            self._follow({at: column[:_FIRST_RECORDS] for at, column in codes.items()})
            self._pairs = dict(list(self._pairs.items())[:_MAX_PAIRS])
            self._fresh = False
        self._follow(codes)

    def groups(self, column: int, other: int) -> dict[str, str] | None:
        """For each text of a column the text of the other one, or None if some go with several."""
        table = self._pairs.get((column, other))
        if table is None:
            return None
        others = list(self._codes[other])
        return {text: others[table[code]] for text, code in self._codes[column].items()}

    def _few(self, column: int) -> bool:
        return len(self._codes[column]) <= MAX_TEXTS

    def _numbered(self, column: int, texts: Sequence[str], which: NDArray[np.integer]) -> NDArray[np.int32]:
        """A number for every record's text, the same in every piece."""
        known = self._codes[column]
        if len(known) > MAX_TEXTS:
            return np.zeros(0, np.int32)
        present = np.bincount(which, minlength=len(texts)) > 0
        numbers = np.zeros(len(texts), np.int32)
        for at in np.flatnonzero(present).tolist():
            numbers[at] = known.setdefault(texts[at], len(known))
        return numbers[which]

    def _follow(self, codes: dict[int, NDArray[np.int32]]) -> None:
        kept = {}
        for (column, other), table in self._pairs.items():
            size = len(self._codes[column])
            if len(table) < size:
                table = np.concatenate([table, np.full(size - len(table), _UNKNOWN, np.int32)])
            unknown = table[codes[column]] == _UNKNOWN
            table[codes[column][unknown]] = codes[other][unknown]
            if np.array_equal(table[codes[column]], codes[other]):
                kept[column, other] = table
        self._pairs = kept
