"""Gram matrices over one attribute: the factors of Grams. Those of structured matrices stay implicit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from hdmm.matrix.arrays import Array, along
from hdmm.matrix.intervals import Intervals, Squares, interval_sums, interval_sums_t, running_sums, span
from hdmm.memory.workspace import check_written


class AxisGram(ABC):
    """A square matrix AᵀB over one attribute; Prefix, Width and AllRange stay implicit."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Rows and columns."""

    @abstractmethod
    def apply(self, x: Array) -> Array:
        """The product with a vector, or with each column of a matrix."""

    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal."""

    @abstractmethod
    def total(self) -> float:
        """The sum of all entries."""

    def trace(self) -> float:
        """The sum of the diagonal. Default: of the diagonal written out."""
        return float(self.diagonal().sum())

    def two_eigenvalues(self) -> tuple[float, float] | None:
        """For αI + β11ᵀ the eigenvalues on vectors that sum to zero and on the constant vector. By default, None."""
        return None

    def as_squares(self) -> Squares | None:
        """The Gram as a sum of squares of intervals and a few other vectors. By default, None."""
        return None

    def dense(self) -> Array:
        """All entries; refused if they would not fit."""
        check_written(self.size, self.size)
        return np.ascontiguousarray(self.apply(np.eye(self.size)))


@final
@dataclass(frozen=True, eq=False)
class DenseGram(AxisGram):
    """Entries written out; also cross-Grams, which are not symmetric."""

    array: Array

    @property
    def size(self) -> int:
        return len(self.array)

    def apply(self, x: Array) -> Array:
        return self.array @ x

    def diagonal(self) -> Array:
        return np.diagonal(self.array)

    def total(self) -> float:
        return float(self.array.sum())


@final
@dataclass(frozen=True, eq=False)
class RowsGram(AxisGram):
    """The Gram of a few rows written out, kept as these rows."""

    rows: Array

    @property
    def size(self) -> int:
        return int(self.rows.shape[1])

    def apply(self, x: Array) -> Array:
        return self.rows.T @ (self.rows @ x)

    def diagonal(self) -> Array:
        return (self.rows**2).sum(axis=0)

    def total(self) -> float:
        return float((self.rows.sum(axis=1) ** 2).sum())

    def as_squares(self) -> Squares:
        used = self.rows != 0
        lows, highs = used.argmax(axis=1), self.size - 1 - used[:, ::-1].argmax(axis=1)
        ones = ((self.rows == 1) | ~used).all(axis=1) & (used.sum(axis=1) == highs + 1 - lows)
        others = self.rows[~ones].T.astype(float)
        return Squares(Intervals(lows[ones], highs[ones]), np.ones(ones.sum()), others, np.ones(others.shape[1]))


@dataclass(frozen=True)
class _StructuredGram(AxisGram):
    """The Gram of a structured matrix over ``n`` cells."""

    n: int

    @property
    def size(self) -> int:
        return self.n


@final
@dataclass(frozen=True)
class IdentityGram(_StructuredGram):
    """The Gram of Identity: Identity."""

    def apply(self, x: Array) -> Array:
        return x.copy()

    def trace(self) -> float:
        return float(self.n)

    def two_eigenvalues(self) -> tuple[float, float]:
        return 1.0, 1.0

    def diagonal(self) -> Array:
        return np.ones(self.n)

    def total(self) -> float:
        return float(self.n)

    def as_squares(self) -> Squares:
        return Squares.of_intervals(self.n, np.arange(self.n), np.arange(self.n))


@final
@dataclass(frozen=True)
class OnesGram(_StructuredGram):
    """The Gram of Total: all ones."""

    def apply(self, x: Array) -> Array:
        return np.broadcast_to(x.sum(axis=0, keepdims=True), x.shape).copy()

    def trace(self) -> float:
        return float(self.n)

    def two_eigenvalues(self) -> tuple[float, float]:
        return 0.0, float(self.n)

    def diagonal(self) -> Array:
        return np.ones(self.n)

    def total(self) -> float:
        return float(self.n) ** 2

    def as_squares(self) -> Squares:
        return Squares.of_intervals(self.n, np.array([0]), np.array([self.n - 1]))


@dataclass(frozen=True)
class ChainGram(_StructuredGram):
    """A Gram c·T⁻¹, where T has ``corner``, 2, 2, … on its diagonal and −1 beside it."""

    corner: ClassVar[float]

    @property
    @abstractmethod
    def scale(self) -> float:
        """c."""

    @abstractmethod
    def angles(self) -> Array:
        """Ascending; the eigenvalues of T are 4·sin² of them."""

    def inverse_diagonal(self) -> Array:
        """The diagonal of T."""
        return np.concatenate([[self.corner], np.full(self.n - 1, 2.0)])


@final
@dataclass(frozen=True)
class PrefixGram(ChainGram):
    """The Gram of Prefix: n − max(i, j)."""

    corner = 1.0

    @property
    def scale(self) -> float:
        return 1.0

    def angles(self) -> Array:
        return np.pi * np.arange(1, 2 * self.n, 2) / (4 * self.n + 2)

    def apply(self, x: Array) -> Array:
        running = running_sums(x)
        return running_sums(running[::-1])[::-1]

    def diagonal(self) -> Array:
        return np.arange(self.n, 0, -1.0)

    def total(self) -> float:
        return self.n * (self.n + 1) * (2 * self.n + 1) / 6

    def as_squares(self) -> Squares:
        return Squares.of_intervals(self.n, np.zeros(self.n, np.int64), np.arange(self.n))


@final
@dataclass(frozen=True)
class AllRangeGram(ChainGram):
    """The Gram of AllRange: (min(i, j) + 1)(n − max(i, j))."""

    corner = 2.0

    @property
    def scale(self) -> float:
        return self.n + 1.0

    def angles(self) -> Array:
        return np.pi * np.arange(1, self.n + 1) / (2 * self.n + 2)

    def apply(self, x: Array) -> Array:
        up = along(np.arange(1.0, self.n + 1), x)
        down = up[::-1]
        below = running_sums(up * x)
        above = running_sums((down * x)[::-1])[::-1]
        return down * below + up * (above - down * x)

    def diagonal(self) -> Array:
        return np.arange(1.0, self.n + 1) * np.arange(self.n, 0, -1.0)

    def total(self) -> float:
        # Ranges of length l occur n − l + 1 times and contribute l² each.
        return self.n * (self.n + 1) ** 2 * (self.n + 2) / 12

    def as_squares(self) -> Squares:
        """Ranges are differences of the prefixes P_j: the Gram is (n + 1)·Σ P_jᵀP_j − sᵀs with s = Σ P_j."""
        prefixes = np.zeros(self.n, np.int64), np.arange(self.n)
        weights = np.full(self.n, self.n + 1.0)
        return Squares(Intervals(*prefixes), weights, np.arange(self.n, 0, -1.0)[:, None], np.array([-1.0]))


@final
@dataclass(frozen=True)
class WidthGram(_StructuredGram):
    """The Gram of all ranges of one width."""

    width: int

    def apply(self, x: Array) -> Array:
        lows = np.arange(self.n - self.width + 1)
        highs = lows + self.width - 1
        return interval_sums_t(interval_sums(x, lows, highs), lows, highs, self.n)

    def diagonal(self) -> Array:
        lows = np.arange(self.n - self.width + 1)
        return interval_sums_t(np.ones(len(lows)), lows, lows + self.width - 1, self.n)

    def total(self) -> float:
        return (self.n - self.width + 1) * float(self.width) ** 2

    def as_squares(self) -> Squares:
        lows = np.arange(self.n - self.width + 1)
        return Squares.of_intervals(self.n, lows, lows + self.width - 1)


@final
@dataclass(frozen=True, eq=False)
class SelectedGram(AxisGram):
    """A Gram over some cells of a larger domain; the other cells are zero."""

    inner: AxisGram
    columns: Array
    n: int

    @property
    def size(self) -> int:
        return self.n

    def apply(self, x: Array) -> Array:
        product = np.zeros((self.n, *x.shape[1:]))
        product[self.columns] = self.inner.apply(x[self.columns])
        return product

    def diagonal(self) -> Array:
        diagonal = np.zeros(self.n)
        diagonal[self.columns] = self.inner.diagonal()
        return diagonal

    def total(self) -> float:
        return self.inner.total()

    def as_squares(self) -> Squares | None:
        inner, neighbours = self.inner.as_squares(), span(self.columns)
        if inner is None or neighbours is None:
            return None
        vectors = np.zeros((self.n, inner.vectors.shape[1]))
        vectors[self.columns] = inner.vectors
        shifted = Intervals(*(ends + neighbours[0] for ends in inner.intervals))
        return Squares(shifted, inner.interval_weights, vectors, inner.vector_weights)


@final
@dataclass(frozen=True, eq=False)
class RestrictedGram(AxisGram):
    """diag(a)·G·diag(b): the cross-Gram of a matrix restricted to two sets of cells, symmetric only if they agree."""

    inner: AxisGram
    left: Array
    right: Array

    @property
    def symmetric(self) -> bool:
        """Whether both sets of cells are the same."""
        return np.array_equal(self.left, self.right)

    @property
    def size(self) -> int:
        return self.inner.size

    def apply(self, x: Array) -> Array:
        return along(self.left, x) * self.inner.apply(along(self.right, x) * x)

    def diagonal(self) -> Array:
        return self.left * self.right * self.inner.diagonal()

    def total(self) -> float:
        return float(self.left @ self.inner.apply(self.right.astype(float)))

    def as_squares(self) -> Squares | None:
        inner, neighbours = self.inner.as_squares(), span(np.flatnonzero(self.left))
        if inner is None or neighbours is None or not self.symmetric:
            return None
        clipped = inner.intervals.clipped(*neighbours)
        return Squares(clipped, inner.interval_weights, self.left[:, None] * inner.vectors, inner.vector_weights)


@final
@dataclass(frozen=True, eq=False)
class ComplementGram(AxisGram):
    """The Gram of one minus a matrix of zeros and ones, from its Gram, its rows and its column sums."""

    inner: AxisGram
    rows: int
    sums: Array

    @property
    def size(self) -> int:
        return self.inner.size

    def apply(self, x: Array) -> Array:
        sums = along(self.sums, x)
        return (self.rows - sums) * x.sum(axis=0) - (sums * x).sum(axis=0) + self.inner.apply(x)

    def diagonal(self) -> Array:
        return self.rows - 2 * self.sums + self.inner.diagonal()

    def total(self) -> float:
        return self.rows * float(self.size) ** 2 - 2 * self.size * float(self.sums.sum()) + self.inner.total()


@final
@dataclass(frozen=True, eq=False)
class SumGram(AxisGram):
    """A weighted sum of Grams over one attribute."""

    terms: tuple[tuple[float, AxisGram], ...]

    @property
    def size(self) -> int:
        return self.terms[0][1].size

    def apply(self, x: Array) -> Array:
        return np.sum([c * factor.apply(x) for c, factor in self.terms], axis=0)

    def diagonal(self) -> Array:
        return np.sum([c * factor.diagonal() for c, factor in self.terms], axis=0)

    def total(self) -> float:
        return sum(c * factor.total() for c, factor in self.terms)

    def as_squares(self) -> Squares | None:
        parts = [(c, factor.as_squares()) for c, factor in self.terms]
        summed = [(c, squares) for c, squares in parts if squares is not None]
        return Squares.sum(summed) if len(summed) == len(parts) else None

    def two_eigenvalues(self) -> tuple[float, float] | None:
        pairs = [(c, factor.two_eigenvalues()) for c, factor in self.terms]
        scaled = [(c * pair[0], c * pair[1]) for c, pair in pairs if pair is not None]
        return (sum(a for a, _ in scaled), sum(b for _, b in scaled)) if len(scaled) == len(pairs) else None
