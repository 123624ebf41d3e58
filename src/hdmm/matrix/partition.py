"""Consecutive groups of cells: one level of a hierarchy over an ordered attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Norm, Number
from hdmm.matrix.gram import Gram
from hdmm.matrix.intervals import Squares, interval_rows
from hdmm.matrix.leaf import ZerosAndOnes


@final
@dataclass(frozen=True)
class Partition(ZerosAndOnes):
    """The sum of each group of consecutive cells; every cell is in one group."""

    ends: tuple[int, ...]
    """For each group the cell after its last one."""

    def __post_init__(self) -> None:
        bounds = (0, *self.ends)
        if (
            not self.ends
            or self.ends[-1] != self.n
            or any(low >= high for low, high in zip(bounds, self.ends, strict=False))
        ):
            raise ValueError(f"the ends of groups ascend from above 0 to {self.n}, the number of cells")

    @staticmethod
    def halved(n: int, times: int) -> Partition:
        """The cells split in half this many times; groups differ by at most one cell, and end up as single cells."""
        parts = 1 << times
        return Partition(n, tuple(sorted({n * part // parts for part in range(1, parts + 1)} - {0})))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ends), self.n

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first cell of each group."""
        return np.array([0, *self.ends[:-1]], np.int64)

    @property
    def widths(self) -> NDArray[np.int64]:
        """The cells of each group."""
        return np.diff(self.ends, prepend=0)

    def apply(self, x: Array) -> Array:
        return np.add.reduceat(x, self.starts, axis=0)

    def apply_t(self, y: Array) -> Array:
        return np.repeat(y, self.widths, axis=0)

    def gram(self) -> Gram:
        return Gram.of(PartitionGram(self))

    def norm_power(self, p: Norm) -> Number:
        return 1

    def rows(self, index: Array) -> Array:
        return interval_rows(self.starts[index], np.array(self.ends)[index] - 1, self.n)


@final
@dataclass(frozen=True)
class PartitionGram(AxisGram):
    """The Gram of a partition: ones within each group."""

    partition: Partition

    @property
    def size(self) -> int:
        return self.partition.n

    def apply(self, x: Array) -> Array:
        return self.partition.apply_t(self.partition.apply(x))

    def diagonal(self) -> Array:
        return np.ones(self.size)

    def total(self) -> float:
        return float((self.partition.widths**2).sum())

    def as_squares(self) -> Squares:
        return Squares.of_intervals(self.size, self.partition.starts, np.array(self.partition.ends) - 1)
