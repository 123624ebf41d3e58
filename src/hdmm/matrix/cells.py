"""Matrices made from one matrix by looking at its cells differently: some of them, in another order, or the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hdmm.matrix.base import Array, Matrix, Norm, Number, exact
from hdmm.matrix.factors import ComplementGram, RestrictedGram, SelectedGram
from hdmm.matrix.gram import Gram


@final
@dataclass(frozen=True, eq=False)
class Select(Matrix):
    """A matrix over chosen cells of a larger domain, in any order: padding with zeros, or a permutation."""

    inner: Matrix
    columns: Array
    n: int

    def __post_init__(self) -> None:
        columns = np.array(self.columns, np.int64)
        if columns.shape != (self.inner.shape[1],) or len(np.unique(columns)) != len(columns):
            raise ValueError("columns must name as many different cells as the inner matrix has columns")
        if columns.min() < 0 or columns.max() >= self.n:
            raise ValueError(f"columns must lie in 0..{self.n - 1}")
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
        return Gram.of(SelectedGram(self.inner.gram().factor(), self.columns, self.n))

    def power(self, p: Norm) -> Select:
        return Select(self.inner.power(p), self.columns, self.n)

    def norm_power(self, p: Norm) -> Number:
        return self.inner.norm_power(p)

    def rows(self, index: Array) -> Array:
        rows = np.zeros((len(index), self.n), self.dtype)
        rows[:, self.columns] = self.inner.rows(index)
        return rows


@final
@dataclass(frozen=True, eq=False)
class Restricted(Matrix):
    """A matrix that sees only some of its cells: the other columns are zero."""

    inner: Matrix
    mask: Array

    def __post_init__(self) -> None:
        mask = np.array(self.mask, bool)
        if mask.shape != (self.inner.shape[1],):
            raise ValueError("a mask says for every cell whether it is seen")
        mask.flags.writeable = False
        object.__setattr__(self, "mask", mask)

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype

    def apply(self, x: Array) -> Array:
        return self.inner.apply(self._along(x) * x)

    def apply_t(self, y: Array) -> Array:
        product: Array = self.inner.apply_t(y)
        product = self._along(product) * product
        return product

    def gram(self) -> Gram:
        return Gram.of(RestrictedGram(self.inner.gram().factor(), self.mask, self.mask))

    def power(self, p: Norm) -> Restricted:
        return Restricted(self.inner.power(p), self.mask)

    def norm_power(self, p: Norm) -> Number:
        return exact(self.column_norms(p).max())

    def rows(self, index: Array) -> Array:
        rows: Array = self.inner.rows(index) * self.mask
        return rows

    def _along(self, x: Array) -> Array:
        return self.mask.reshape(-1, *[1] * (x.ndim - 1))


@final
@dataclass(frozen=True)
class Complement(Matrix):
    """One minus a matrix of zeros and ones: the negation of each of its predicates."""

    inner: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype

    def apply(self, x: Array) -> Array:
        product: Array = x.sum(axis=0, keepdims=True) - self.inner.apply(x)
        return product

    def apply_t(self, y: Array) -> Array:
        product: Array = y.sum(axis=0, keepdims=True) - self.inner.apply_t(y)
        return product

    def gram(self) -> Gram:
        sums = self.inner.column_norms(1).astype(float)
        return Gram.of(ComplementGram(self.inner.gram().factor(), self.shape[0], sums))

    def power(self, p: Norm) -> Complement:
        return self

    def norm_power(self, p: Norm) -> Number:
        return self.shape[0] - exact(self.inner.column_norms(1).min())

    def rows(self, index: Array) -> Array:
        rows: Array = 1 - self.inner.rows(index)
        return rows
