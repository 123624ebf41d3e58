"""Matrices made from one matrix: over some of its cells, in another order, negated, or with its rows repeated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array, along
from hdmm.matrix.axis_gram import ComplementGram, RestrictedGram, SelectedGram
from hdmm.matrix.base import Matrix, Norm, Number, column_sums, exact, largest_row_sum
from hdmm.matrix.gram import Gram
from hdmm.matrix.intervals import Intervals, span
from hdmm.matrix.spans import Spans

_MAX_CELLS = 1 << 24
"""Longer rows are not searched for constants: nobody writes a total over that many cells as anything but Total."""
_ENTRIES = 1 << 20
"""Entries that are searched at a time."""


@final
@dataclass(frozen=True, eq=False)
class Select(Matrix):
    """A matrix over chosen cells of a larger domain, in any order: padding with zeros, or a permutation."""

    inner: Matrix
    columns: Array
    n: int

    def __post_init__(self) -> None:
        columns = np.array(self.columns, np.int64)
        if columns.min(initial=0) < 0 or columns.max(initial=0) >= self.n:
            raise ValueError(f"columns must lie in 0..{self.n - 1}")
        named = np.zeros(self.n, bool)
        named[columns] = True
        if columns.shape != (self.inner.shape[1],) or named.sum() != len(columns):
            raise ValueError("columns must name as many different cells as the inner matrix has columns")
        columns.flags.writeable = False
        object.__setattr__(self, "columns", columns)

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape[0], self.n

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype

    def apply(self, x: Array) -> Array:
        return self.inner.apply(x[self.columns])

    def apply_t(self, y: Array) -> Array:
        inner = self.inner.apply_t(y)
        product = np.zeros((self.n, *y.shape[1:]), inner.dtype)
        product[self.columns] = inner
        return product

    def gram(self) -> Gram:
        return Gram.of(SelectedGram(self.inner.axis_gram(), self.columns, self.n))

    def power(self, p: Norm) -> Select:
        return Select(self.inner.power(p), self.columns, self.n)

    def norm_power(self, p: Norm) -> Number:
        return self.inner.norm_power(p)

    @property
    def binary(self) -> bool:
        return self.inner.binary

    def rows(self, index: Array) -> Array:
        rows = np.zeros((len(index), self.n), self.dtype)
        rows[:, self.columns] = self.inner.rows(index)
        return rows

    def intervals(self) -> Intervals | None:
        inner, neighbours = self.inner.intervals(), span(self.columns)
        if inner is None or neighbours is None:
            return None
        return Intervals(*(ends + neighbours[0] for ends in inner))


@dataclass(frozen=True, eq=False)
class Wrapped(Matrix):
    """A matrix with the shape and the type of another one."""

    inner: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype


@final
@dataclass(frozen=True, eq=False)
class Restricted(Wrapped):
    """A matrix that sees only some of its cells: the other columns are zero."""

    mask: Array

    def __post_init__(self) -> None:
        mask = np.array(self.mask, bool)
        if mask.shape != (self.inner.shape[1],):
            raise ValueError("a mask says for every cell whether it is seen")
        mask.flags.writeable = False
        object.__setattr__(self, "mask", mask)

    def apply(self, x: Array) -> Array:
        product = self.inner.apply(along(self.mask, x) * x)
        product[self._empty] = 0  # without rounding errors of differences
        return product

    @cached_property
    def _empty(self) -> Array:
        """The rows that count none of the cells that are seen."""
        return self.inner.power(1).apply(self.mask.astype(self.dtype)) == 0

    def apply_t(self, y: Array) -> Array:
        product = self.inner.apply_t(y)
        return along(self.mask, product) * product

    def gram(self) -> Gram:
        return Gram.of(RestrictedGram(self.inner.axis_gram(), self.mask, self.mask))

    def power(self, p: Norm) -> Restricted:
        return Restricted(self.inner.power(p), self.mask)

    @property
    def binary(self) -> bool:
        return self.inner.binary

    def rows(self, index: Array) -> Array:
        return self.inner.rows(index) * self.mask

    def intervals(self) -> Intervals | None:
        inner, neighbours = self.inner.intervals(), span(np.flatnonzero(self.mask))
        return None if inner is None or neighbours is None else inner.clipped(*neighbours)


@final
@dataclass(frozen=True)
class Complement(Wrapped):
    """One minus a matrix of zeros and ones: the negation of each of its predicates."""

    def apply(self, x: Array) -> Array:
        product = x.sum(axis=0, keepdims=True) - self.inner.apply(x)
        product[self._empty] = 0  # without rounding errors of differences
        return product

    @cached_property
    def _empty(self) -> Array:
        """The rows that count nothing: those whose inner predicate holds for every cell."""
        return self.inner.apply(np.ones(self.shape[1], np.int64)) == self.shape[1]

    def apply_t(self, y: Array) -> Array:
        return y.sum(axis=0, keepdims=True) - self.inner.apply_t(y)

    def gram(self) -> Gram:
        sums = self.inner.column_norms(1).astype(float)
        return Gram.of(ComplementGram(self.inner.axis_gram(), self.shape[0], sums))

    def power(self, p: Norm) -> Complement:
        return self

    def norm_power(self, p: Norm) -> Number:
        return self.shape[0] - exact(self.inner.column_norms(1).min())

    @property
    def binary(self) -> bool:
        return True

    def rows(self, index: Array) -> Array:
        return 1 - self.inner.rows(index)


@final
@dataclass(frozen=True, eq=False)
class Repeated(Matrix):
    """before ⊗ A ⊗ after for two columns of numbers: every row of A several times, each a multiple of it."""

    inner: Matrix
    before: Array
    after: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.before) * self.inner.shape[0] * len(self.after), self.inner.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(self.inner.dtype, self.before.dtype, self.after.dtype)

    def apply(self, x: Array) -> Array:
        rows = np.multiply.outer(self.before, self.inner.apply(x))
        product = rows[:, :, None] * along(self.after, x)
        return product.reshape(self.shape[0], *x.shape[1:])

    def apply_t(self, y: Array) -> Array:
        table = y.reshape(len(self.before), -1, len(self.after), *y.shape[1:])
        return self.inner.apply_t(np.einsum("b,bra...,a->r...", self.before, table, self.after))

    def gram(self) -> Gram:
        return self.inner.gram().scaled(self.squares)

    @property
    def squares(self) -> float:
        """The sum of the squares of all multiples: the factor between this Gram and the inner one."""
        return float(self._power_sum(2))

    def power(self, p: Norm) -> Repeated:
        return Repeated(self.inner.power(p), abs(self.before) ** p, abs(self.after) ** p)

    def norm_power(self, p: Norm) -> Number:
        return self._power_sum(p) * self.inner.norm_power(p)

    def rows(self, index: Array) -> Array:
        before, row, after = np.unravel_index(index, (len(self.before), self.inner.shape[0], len(self.after)))
        return (self.before[before] * self.after[after])[:, None] * self.inner.rows(row)

    def _power_sum(self, p: Norm) -> Number:
        return prod(exact((abs(column) ** p).sum()) for column in (self.before, self.after))


def constant_rows(matrix: Matrix) -> Array | None:
    """For a matrix whose rows are all multiples of the total: the entry of each row. None for any other matrix."""
    rows, columns = matrix.shape
    if isinstance(matrix, Spans):  # its rows need not be written out
        widths = matrix.highs - matrix.lows + 1
        return np.ones(rows, np.int64) if (widths == columns).all() else None
    if columns > _MAX_CELLS:
        return None
    constants: list[Array] = []
    start, step = 0, 1  # most matrices show in their first row that they are not constant
    while start < rows:
        part = matrix.rows(np.arange(start, min(start + step, rows)))
        if (part != part[:, :1]).any():
            return None
        constants.append(part[:, 0])
        start, step = start + step, max(1, _ENTRIES // columns)
    return np.concatenate(constants)


@column_sums.register
def _(matrix: Select) -> Array:
    inner = column_sums(matrix.inner)
    sums = np.zeros(matrix.n, inner.dtype)
    sums[matrix.columns] = inner
    return sums


@column_sums.register
def _(matrix: Restricted) -> Array:
    return column_sums(matrix.inner) * matrix.mask


@column_sums.register
def _(matrix: Complement) -> Array:
    return matrix.shape[0] - column_sums(matrix.inner)


@largest_row_sum.register
def _(matrix: Select) -> Number:
    return largest_row_sum(matrix.inner)
