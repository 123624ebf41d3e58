"""Sums over intervals of many ordered cells, known by their ends: levels, ranges, values and conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix
from hdmm.matrix.gram import Gram
from hdmm.matrix.intervals import Intervals, Squares, interval_rows, interval_sums, interval_sums_t
from hdmm.matrix.leaf import Dense, ZerosAndOnes
from hdmm.matrix.tree import Tree
from hdmm.memory.workspace import DENSE_LIMIT

_FEW = 16
"""Intervals that are added up one by one: quicker than running sums over all cells."""


@final
@dataclass(frozen=True, eq=False)
class Spans(ZerosAndOnes):
    """The sum over each of some intervals of neighbouring cells; none is empty."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]

    def __post_init__(self) -> None:
        lows, highs = np.array(self.lows, np.int64), np.array(self.highs, np.int64)
        if lows.ndim != 1 or not len(lows) or lows.shape != highs.shape:
            raise ValueError("intervals have as many first cells as last ones, and at least one")
        if lows.min() < 0 or (highs < lows).any() or highs.max() >= self.n:
            raise ValueError(f"intervals end where they begin, or after, within 0..{self.n - 1}")
        for name, ends in (("lows", lows), ("highs", highs)):
            ends.flags.writeable = False
            object.__setattr__(self, name, ends)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.lows), self.n

    def apply(self, x: Array) -> Array:
        if len(self.lows) <= _FEW:
            ends = zip(self.lows.tolist(), self.highs.tolist(), strict=True)
            return np.stack([x[low : high + 1].sum(axis=0) for low, high in ends])
        return interval_sums(x, self.lows, self.highs)

    def apply_t(self, y: Array) -> Array:
        return interval_sums_t(y, self.lows, self.highs, self.n)

    def gram(self) -> Gram:
        return Gram.of(SpansGram(self))

    def rows(self, index: Array) -> Array:
        return interval_rows(self.lows[index], self.highs[index], self.n)

    def intervals(self) -> Intervals:
        return Intervals(self.lows, self.highs)

    def tiles(self) -> Tree | None:
        """The same as a hierarchy, whose least squares is known, if the intervals follow each other over all cells."""
        if self.lows[0] or self.highs[-1] != self.n - 1 or (self.lows[1:] != self.highs[:-1] + 1).any():
            return None
        widths = self.highs - self.lows + 1
        return Tree([np.array([self.n]), widths], [np.zeros(1, int), np.ones(len(widths), int)])


@final
@dataclass(frozen=True, eq=False)
class SpansGram(AxisGram):
    """The Gram of sums over intervals."""

    spans: Spans

    @property
    def size(self) -> int:
        return self.spans.n

    def apply(self, x: Array) -> Array:
        return self.spans.apply_t(self.spans.apply(x))

    def diagonal(self) -> Array:
        return self.spans.apply_t(np.ones(self.spans.shape[0]))

    def trace(self) -> float:
        return float(self._widths.sum())

    def total(self) -> float:
        return float((self._widths.astype(float) ** 2).sum())

    def as_squares(self) -> Squares:
        return Squares.of_intervals(self.size, self.spans.lows, self.spans.highs)

    @property
    def _widths(self) -> NDArray[np.int64]:
        return self.spans.highs - self.spans.lows + 1


def many_cells(n: int) -> bool:
    """Whether an attribute has too many cells to write out a matrix with a row for each."""
    return n * n > DENSE_LIMIT


def sums_over(lows: Array, highs: Array, n: int) -> Matrix:
    """The sums over some intervals of cells: written out over few cells, where searches read the entries."""
    return Spans(n, lows, highs) if many_cells(n) else Dense(interval_rows(np.asarray(lows), np.asarray(highs), n))


def sum_over(mask: NDArray[np.bool_]) -> Matrix:
    """The sum over the cells of a mask: one row, by its ends if they are neighbours among many cells."""
    n = len(mask)
    if many_cells(n) and mask.any():
        first, last = int(mask.argmax()), n - 1 - int(mask[::-1].argmax())
        if mask[first : last + 1].all():
            return Spans(n, np.array([first]), np.array([last]))
    return Dense(mask[None].astype(np.int64))
