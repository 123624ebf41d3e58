"""Intervals of cells: sums over them in linear time, and matrices and Grams that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

_MIN_WIDE = 256
"""Columns from which adding whole rows is several times as fast as numpy's sums along columns."""


class Intervals(NamedTuple):
    """The first and the last cell of each row of a matrix of zeros and ones; an empty row ends before it begins."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]

    def clipped(self, first: int, last: int) -> Intervals:
        """The parts of the rows from one cell to another."""
        return Intervals(np.maximum(self.lows, first), np.minimum(self.highs, last))


@final
@dataclass(frozen=True, eq=False)
class Squares:
    """A Gram as a sum Σ w·vvᵀ: over the indicators v of some intervals, and over a few vectors written out."""

    intervals: Intervals
    interval_weights: NDArray[np.float64]
    vectors: NDArray[np.float64]
    """One column for each vector."""
    vector_weights: NDArray[np.float64]

    @staticmethod
    def of_intervals(n: int, lows: NDArray[np.int64], highs: NDArray[np.int64], weight: float = 1.0) -> Squares:
        """The Gram of intervals of n cells, all of one weight."""
        return Squares(Intervals(lows, highs), np.full(len(lows), weight), np.empty((n, 0)), np.empty(0))

    def splits(self, inside: NDArray[np.bool_]) -> bool:
        """Whether some vector tells a cell from the next one, where these are marked as inside one group."""
        lows, highs = self.intervals
        asked = self.interval_weights != 0
        lows, highs = lows[asked & (highs >= lows)], highs[asked & (highs >= lows)]
        if inside[lows[lows > 0] - 1].any() or inside[highs].any():
            return True
        vectors = self.vectors[:, self.vector_weights != 0]
        return bool(((vectors[1:] != vectors[:-1]).any(axis=1) & inside[:-1]).any())

    @staticmethod
    def sum(parts: Sequence[tuple[float, Squares]]) -> Squares:
        """A weighted sum."""
        return Squares(
            Intervals(*(np.concatenate([part.intervals[end] for _, part in parts]) for end in (0, 1))),
            np.concatenate([c * part.interval_weights for c, part in parts]),
            np.concatenate([part.vectors for _, part in parts], axis=1),
            np.concatenate([c * part.vector_weights for c, part in parts]),
        )


def span(cells: NDArray[np.int64]) -> tuple[int, int] | None:
    """The first and the last of some cells if they are neighbours in ascending order; else None."""
    if not len(cells) or (np.diff(cells) != 1).any():
        return None
    return int(cells[0]), int(cells[-1])


def running_sums(x: NDArray[Any]) -> NDArray[Any]:
    """The sums of x from the first row up to each row."""
    if x.ndim == 2 and abs(x.strides[0]) < abs(x.strides[1]):  # columns are contiguous, and stay so
        return np.cumsum(x.T, axis=1).T
    if x.ndim == 1 or x.shape[1] < _MIN_WIDE:
        return np.cumsum(x, axis=0)
    sums = np.empty(x.shape, np.result_type(x.dtype, np.int64))
    sums[0] = x[0]
    for row in range(1, len(x)):
        np.add(sums[row - 1], x[row], out=sums[row])
    return sums


def interval_sums(x: NDArray[Any], lows: NDArray[np.int64], highs: NDArray[np.int64]) -> NDArray[Any]:
    """For each interval, the sum of x from its low to its high end, both included."""
    running = np.concatenate([np.zeros_like(x[:1]), running_sums(x)])
    return running[highs + 1] - running[lows]


def interval_sums_t(y: NDArray[Any], lows: NDArray[np.int64], highs: NDArray[np.int64], size: int) -> NDArray[Any]:
    """The transpose of `interval_sums`: each interval's y is added to every cell between its ends."""
    steps = np.zeros((size + 1, *y.shape[1:]), y.dtype)
    np.add.at(steps, lows, y)
    np.subtract.at(steps, highs + 1, y)
    return running_sums(steps[:-1])


def interval_rows(lows: NDArray[np.int64], highs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The intervals as rows of zeros and ones."""
    cells = np.arange(size)
    return ((cells >= lows[:, None]) & (cells <= highs[:, None])).astype(np.int64)
