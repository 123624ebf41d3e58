"""Matrices over one attribute: written out, or known by their structure and never materialised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import (
    AllRangeGram,
    DenseGram,
    IdentityGram,
    OnesGram,
    PrefixGram,
    RowsGram,
    SumGram,
    WidthGram,
)
from hdmm.matrix.base import Matrix, Norm, Number, column_sums, largest_row_sum
from hdmm.matrix.gram import Gram
from hdmm.matrix.intervals import Intervals, interval_rows, interval_sums, interval_sums_t, running_sums
from hdmm.memory.workspace import check_answers

INTEGER: np.dtype[Any] = np.dtype(np.int64)
FLOAT: np.dtype[Any] = np.dtype(np.float64)

MAX_ENTRY = 1 << 16
"""The largest entry of an integer matrix that is written out: its norms then always fit 64 bits."""


@final
@dataclass(frozen=True, eq=False)
class Dense(Matrix):
    """Entries written out."""

    array: Array

    def __post_init__(self) -> None:
        array = np.atleast_2d(np.asarray(self.array))
        whole = array.dtype.kind in "bui"
        if whole and array.size and max(int(array.max()), -int(array.min())) > MAX_ENTRY:
            raise ValueError(f"the entries of an integer matrix lie within ±{MAX_ENTRY}")
        array = array.astype(INTEGER if whole else FLOAT, order="C")  # so that sums do not depend on the layout
        if array.ndim != 2 or not array.size or not np.isfinite(array).all():
            raise ValueError("a dense matrix has two dimensions, at least one entry, and only finite ones")
        array.flags.writeable = False
        object.__setattr__(self, "array", array)

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def apply(self, x: Array) -> Array:
        return self.array @ x

    def apply_t(self, y: Array) -> Array:
        return self.array.T @ y

    def gram(self) -> Gram:
        entries = self.array.astype(float)
        wide = entries.shape[0] < entries.shape[1]
        return Gram.of(RowsGram(entries) if wide else DenseGram(entries.T @ entries))

    def power(self, p: Norm) -> Dense:
        powers = object.__new__(Dense)  # squares may exceed MAX_ENTRY
        object.__setattr__(powers, "array", abs(self.array) ** p)
        return powers

    def rows(self, index: Array) -> Array:
        return self.array[index]

    def intervals(self) -> Intervals | None:
        steps = np.diff(self.array, axis=1, prepend=0, append=0)
        if not self.binary or (abs(steps).sum(axis=1) > 2).any():
            return None
        return Intervals(steps.argmax(axis=1), steps.argmin(axis=1) - 1)


@dataclass(frozen=True)
class ZerosAndOnes(Matrix):
    """A structured matrix of zeros and ones over ``n`` cells."""

    n: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return INTEGER

    @property
    def binary(self) -> bool:
        return True

    def power(self, p: Norm) -> Self:
        return self


@final
@dataclass(frozen=True)
class Identity(ZerosAndOnes):
    """Each cell by itself."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    def apply(self, x: Array) -> Array:
        return x.copy()

    def apply_t(self, y: Array) -> Array:
        return y.copy()

    def gram(self) -> Gram:
        return Gram.of(IdentityGram(self.n))

    def norm_power(self, p: Norm) -> Number:
        return 1

    def rows(self, index: Array) -> Array:
        return np.asarray(index[:, None] == np.arange(self.n), np.int64)

    def intervals(self) -> Intervals:
        return Intervals(np.arange(self.n), np.arange(self.n))


@final
@dataclass(frozen=True)
class Total(ZerosAndOnes):
    """The sum of all cells."""

    @property
    def shape(self) -> tuple[int, int]:
        return 1, self.n

    def apply(self, x: Array) -> Array:
        return np.sum(x, axis=0, keepdims=True)

    def apply_t(self, y: Array) -> Array:
        return np.repeat(y, self.n, axis=0)

    def gram(self) -> Gram:
        return Gram.of(OnesGram(self.n))

    def norm_power(self, p: Norm) -> Number:
        return 1

    def rows(self, index: Array) -> Array:
        return np.ones((len(index), self.n), np.int64)

    def intervals(self) -> Intervals:
        return Intervals(np.zeros(1, np.int64), np.full(1, self.n - 1))


@final
@dataclass(frozen=True)
class Spiked(Matrix):
    """A square matrix with one integer on its diagonal and another everywhere else."""

    n: int
    diagonal: int
    rest: int

    @staticmethod
    def centred(n: int) -> Spiked:
        """The deviation of each cell from the mean, times the number of cells: nI − 11ᵀ."""
        return Spiked(n, n - 1, -1)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    @property
    def dtype(self) -> np.dtype[Any]:
        return INTEGER

    def apply(self, x: Array) -> Array:
        return (self.diagonal - self.rest) * x + self.rest * x.sum(axis=0)

    def apply_t(self, y: Array) -> Array:
        return self.apply(y)

    def gram(self) -> Gram:
        a, b = self.diagonal - self.rest, self.rest  # the matrix is aI + b11ᵀ
        terms = ((float(a**2), IdentityGram(self.n)), (float(2 * a * b + self.n * b**2), OnesGram(self.n)))
        return Gram.of(SumGram(terms))

    def power(self, p: Norm) -> Spiked:
        return Spiked(self.n, abs(self.diagonal) ** p, abs(self.rest) ** p)

    def norm_power(self, p: Norm) -> Number:
        return int(abs(self.diagonal) ** p + (self.n - 1) * abs(self.rest) ** p)

    def rows(self, index: Array) -> Array:
        return np.where(index[:, None] == np.arange(self.n), self.diagonal, self.rest)


@final
@dataclass(frozen=True)
class Prefix(ZerosAndOnes):
    """Every sum from the first cell up to some cell."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    def apply(self, x: Array) -> Array:
        return running_sums(x)

    def apply_t(self, y: Array) -> Array:
        return running_sums(y[::-1])[::-1]

    def gram(self) -> Gram:
        return Gram.of(PrefixGram(self.n))

    def norm_power(self, p: Norm) -> Number:
        return self.n

    def rows(self, index: Array) -> Array:
        return interval_rows(np.zeros_like(index), index, self.n)

    def intervals(self) -> Intervals:
        return Intervals(np.zeros(self.n, np.int64), np.arange(self.n))


@final
@dataclass(frozen=True)
class Width(ZerosAndOnes):
    """Every range of one width."""

    width: int

    def __post_init__(self) -> None:
        if not 1 <= self.width <= self.n:
            raise ValueError(f"width={self.width}: expected 1 to {self.n}")

    @property
    def shape(self) -> tuple[int, int]:
        return self.n - self.width + 1, self.n

    def apply(self, x: Array) -> Array:
        lows = np.arange(self.shape[0])
        return interval_sums(x, lows, lows + self.width - 1)

    def apply_t(self, y: Array) -> Array:
        lows = np.arange(self.shape[0])
        return interval_sums_t(y, lows, lows + self.width - 1, self.n)

    def gram(self) -> Gram:
        return Gram.of(WidthGram(self.n, self.width))

    def norm_power(self, p: Norm) -> Number:
        return min(self.width, self.shape[0])

    def rows(self, index: Array) -> Array:
        return interval_rows(index, index + self.width - 1, self.n)

    def intervals(self) -> Intervals:
        lows = np.arange(self.shape[0])
        return Intervals(lows, lows + self.width - 1)


@final
@dataclass(frozen=True)
class AllRange(ZerosAndOnes):
    """Every range, ordered by its low end, then by its high end."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.n * (self.n + 1) // 2, self.n

    def apply(self, x: Array) -> Array:
        return interval_sums(x, *self.intervals())

    def apply_t(self, y: Array) -> Array:
        return interval_sums_t(y, *self.intervals(), self.n)

    def gram(self) -> Gram:
        return Gram.of(AllRangeGram(self.n))

    def norm_power(self, p: Norm) -> Number:
        middle = self.n // 2
        return (middle + 1) * (self.n - middle)

    def rows(self, index: Array) -> Array:
        lengths = np.arange(self.n, 0, -1)
        starts = np.cumsum(lengths) - lengths  # where the ranges with each low end begin
        lows = np.searchsorted(starts, index, side="right") - 1
        return interval_rows(lows, index - starts[lows] + lows, self.n)

    def intervals(self) -> Intervals:
        check_answers(self.shape[0])
        return Intervals(*np.triu_indices(self.n))


@column_sums.register
def _(matrix: AllRange) -> Array:
    """A range holds a cell if it begins at or before it and ends at or after it."""
    cells = np.arange(matrix.n)
    return (cells + 1) * (matrix.n - cells)


@largest_row_sum.register
def _(matrix: AllRange) -> Number:
    return matrix.n
