"""Matrices over ordered cells whose least squares nobody has to write out.

Least squares with such a matrix A needs products with A⁺ and its transpose, and the errors of sums over intervals of
cells: how A⁺ weighs the measurements in each, by power sums. Everything else follows from these.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix, Norm
from hdmm.matrix.by_products import Powers, ProductGram
from hdmm.matrix.gram import Gram
from hdmm.matrix.leaf import FLOAT

Integers = NDArray[np.int64]


class Solvable(Matrix):
    """A matrix over the ordered cells of one attribute with an implicit pseudo-inverse A⁺."""

    @abstractmethod
    def solve(self, y: Array) -> Array:
        """A⁺y: the least-squares estimate of the cells, for a vector or each column of a matrix."""

    @abstractmethod
    def solve_t(self, x: Array) -> Array:
        """The transpose of A⁺, times a vector or each column of a matrix."""

    @abstractmethod
    def interval_moments(self, lows: Integers, highs: Integers) -> Array:
        """For the sum of the cells from each low to each high end, the weights that A⁺ gives the measurements.

        One row per interval, of four numbers: the sums of the second, fourth and sixth powers of the weights, and the
        largest absolute weight. The sum of squares is the variance at unit noise; the others may be upper bounds.
        """

    def interval_variances(self, lows: Integers, highs: Integers) -> Array:
        """The first number of each row of `interval_moments`. Default: from these moments."""
        return self.interval_moments(lows, highs)[:, 0]

    @abstractmethod
    def determines(self, gram: AxisGram) -> bool:
        """Whether a workload with this Gram asks only what the measurements determine."""

    @property
    @abstractmethod
    def solution_size(self) -> int:
        """How many numbers each array has with which least squares and its errors are computed."""

    @property
    @abstractmethod
    def solution_arrays(self) -> int:
        """How many such arrays there are at any time, at most."""

    @abstractmethod
    def difference_norm(self, p: Norm) -> int | None:
        """The largest norm to the power p of the difference of two columns of integers; None if it is not known."""

    @abstractmethod
    def rounded(self, k: int, norm: Norm) -> Solvable:
        """2^(k + extra_bits) times the matrix in integers, its columns no longer than so.

        A ValueError if k is too coarse or too fine.
        """

    @property
    def extra_bits(self) -> int:
        """How many bits the integers are longer than the precision that was asked for. Default: none."""
        return 0

    def least_overlap(self, p: Norm) -> int:
        """A lower bound on the overlap of two columns of integers (:mod:`hdmm.strategy.replacement`).

        Default: for the L2 norm that of opposite columns.
        """
        return 0 if p == 1 else -int(self.norm_power(p))

    def inverse(self) -> Inverse:
        """A⁺."""
        return Inverse(self)


@final
@dataclass(frozen=True, eq=False)
class Inverse(Matrix):
    """The pseudo-inverse of a matrix that is solved without writing it out."""

    solved: Solvable

    @property
    def shape(self) -> tuple[int, int]:
        return self.solved.shape[1], self.solved.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT

    def apply(self, x: Array) -> Array:
        return self.solved.solve(x)

    def apply_t(self, y: Array) -> Array:
        return self.solved.solve_t(y)

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self.column_norms(2)))

    def power(self, p: Norm) -> Matrix:
        return Powers(self, p)

    def rows(self, index: Array) -> Array:
        units = np.zeros((self.shape[0], len(index)))
        units[index, np.arange(len(index))] = 1
        return np.ascontiguousarray(self.solved.solve_t(units).T)
