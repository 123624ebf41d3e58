"""Powers and Grams of matrices that are known by their products alone, such as implicit inverses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix, Norm
from hdmm.matrix.gram import Gram
from hdmm.matrix.leaf import FLOAT

_ENTRIES = 1 << 22
"""Entries that are written out at a time."""


@final
@dataclass(frozen=True, eq=False)
class Powers(Matrix):
    """The absolute values of a matrix's entries to some power, written out a few rows at a time."""

    matrix: Matrix
    exponent: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT

    def apply(self, x: Array) -> Array:
        return np.concatenate([self.rows(index) @ x for index in self._pieces()])

    def apply_t(self, y: Array) -> Array:
        product = np.zeros((self.shape[1], *y.shape[1:]))
        for index in self._pieces():
            product += self.rows(index).T @ y[index]
        return product

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self.column_norms(2)))

    def power(self, p: Norm) -> Powers:
        return Powers(self.matrix, self.exponent * p)

    def rows(self, index: Array) -> Array:
        return abs(self.matrix.rows(index)) ** self.exponent

    def _pieces(self) -> Iterator[Array]:
        rows, columns = self.shape
        step = max(1, _ENTRIES // columns)
        return (np.arange(low, min(low + step, rows)) for low in range(0, rows, step))


@final
@dataclass(frozen=True, eq=False)
class ProductGram(AxisGram):
    """The Gram of a matrix by its products, with its diagonal given."""

    matrix: Matrix
    squares: Array

    @property
    def size(self) -> int:
        return self.matrix.shape[1]

    def apply(self, x: Array) -> Array:
        return self.matrix.apply_t(self.matrix.apply(x))

    def diagonal(self) -> Array:
        return self.squares

    def total(self) -> float:
        sums = self.matrix.apply(np.ones(self.size))
        return float(sums @ sums)
