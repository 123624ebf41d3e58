"""The base of all matrices: products, Grams, norms and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import singledispatch
from typing import Any, Literal, TypeAlias

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.gram import Gram
from hdmm.matrix.intervals import Intervals
from hdmm.memory.workspace import check_written

Norm = Literal[1, 2]
Number: TypeAlias = int | Fraction | float


class Matrix(ABC):
    """A matrix known by its products with vectors.

    Integer matrices keep integers: applied to an integer vector they give the exact integer answer. ``apply`` and
    ``apply_t`` take a vector or a matrix of columns.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """int64 if every entry is an integer, else float64."""

    @abstractmethod
    def apply(self, x: Array) -> Array:
        """The product with a vector, or with each column of a matrix."""

    @abstractmethod
    def apply_t(self, y: Array) -> Array:
        """The transpose's product with a vector, or with each column of a matrix."""

    @abstractmethod
    def gram(self) -> Gram:
        """The Gram matrix AᵀA as a sum of Kronecker products."""

    @abstractmethod
    def power(self, p: Norm) -> Matrix:
        """The matrix of the entries' absolute values to the power p."""

    @abstractmethod
    def rows(self, index: Array) -> Array:
        """Some rows, written out."""

    def intervals(self) -> Intervals | None:
        """The first and last cells of its rows if each is the sum of an interval of cells. By default, None."""
        return None

    def norm_power(self, p: Norm) -> Number:
        """The largest column norm to the power p: exact for integer matrices. Default: every column's is computed.

        For a stack or sum whose columns cannot be enumerated it is an upper bound.
        """
        return exact(self.column_norms(p).max())

    @property
    def reach(self) -> int:
        """Upper bound on |entry of the product| / max|entry of the vector| for integers. Default: the largest row."""
        return int(largest_row_sum(self.power(1)))

    @property
    def binary(self) -> bool:
        """Whether every entry is zero or one. Default: sums, absolute sums and squared sums of each row agree."""
        if self.dtype.kind != "i":
            return False
        ones = np.ones(self.shape[1], np.int64)
        sums = self.apply(ones)
        return bool((sums == self.power(1).apply(ones)).all() and (sums == self.power(2).apply(ones)).all())

    def axis_gram(self) -> AxisGram:
        """The Gram matrix of a matrix over one attribute."""
        return self.gram().axis_gram()

    def column_norms(self, p: Norm) -> Array:
        """Every column's norm to the power p."""
        return column_sums(self.power(p))

    def dense(self) -> Array:
        """All entries written out; refused if they would not fit."""
        rows, columns = self.shape
        check_written(rows, columns)
        return self.rows(np.arange(rows))


@singledispatch
def column_sums(matrix: Matrix) -> Array:
    """The sum of every column; a matrix of very many rows registers its own formula."""
    return matrix.apply_t(np.ones(matrix.shape[0], matrix.dtype))


@singledispatch
def largest_row_sum(matrix: Matrix) -> Number:
    """The largest sum of a row; a matrix of very many rows registers its own formula."""
    return exact(matrix.apply(np.ones(matrix.shape[1], matrix.dtype)).max())


def exact(value: Any) -> Number:
    """A numpy scalar as a Python number, integers exactly."""
    return int(value) if isinstance(value, (int, np.integer)) else float(value)
