"""p-Identity strategies and their pseudo-inverses, known by their p extra queries.

A(Θ) = [I; Θ]·D with D = diag(s)⁻¹ and s = 1 + 1ᵀΘ: every column sums to 1. With I + ΘΘᵀ = LLᵀ of size p and Z = L⁻¹Θ,
(I + ΘᵀΘ)⁻¹ = I − ZᵀZ, so that products with inverses cost pn, and nothing of size n × n is written out. See paper,
section 4.3; docs/math.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array, along
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix, Norm, Number
from hdmm.matrix.by_products import Powers, ProductGram
from hdmm.matrix.gram import Gram
from hdmm.matrix.leaf import FLOAT


@final
@dataclass(frozen=True, eq=False)
class Bordered(Matrix):
    """A diagonal matrix on top of a few rows."""

    weights: Array
    queries: Array

    @property
    def shape(self) -> tuple[int, int]:
        p, n = self.queries.shape
        return n + p, n

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT

    def apply(self, x: Array) -> Array:
        return np.concatenate([along(self.weights, x) * x, self.queries @ x])

    def apply_t(self, y: Array) -> Array:
        n = len(self.weights)
        return along(self.weights, y) * y[:n] + self.queries.T @ y[n:]

    def gram(self) -> Gram:
        return Gram.of(PIdentityGram(self.weights, self.queries))

    def power(self, p: Norm) -> Bordered:
        return Bordered(abs(self.weights) ** p, abs(self.queries) ** p)

    def rows(self, index: Array) -> Array:
        n = len(self.weights)
        rows = np.zeros((len(index), n))
        cells = np.flatnonzero(index < n)
        rows[cells, index[cells]] = self.weights[index[cells]]
        extra = index >= n
        rows[extra] = self.queries[index[extra] - n]
        return rows


@final
@dataclass(frozen=True, eq=False)
class PIdentityGram(AxisGram):
    """The Gram of a diagonal matrix on top of a few rows."""

    weights: Array
    queries: Array

    @property
    def size(self) -> int:
        return len(self.weights)

    def apply(self, x: Array) -> Array:
        return along(self.weights**2, x) * x + self.queries.T @ (self.queries @ x)

    def diagonal(self) -> Array:
        return self.weights**2 + np.einsum("ki,ki->i", self.queries, self.queries)

    def total(self) -> float:
        return float((self.weights**2).sum() + (self.queries.sum(axis=1) ** 2).sum())


@final
@dataclass(frozen=True, eq=False)
class PIdentity(Matrix):
    """The identity and p more queries of non-negative weights ``theta``, each column scaled to sum to 1."""

    theta: Array

    def __post_init__(self) -> None:
        theta = np.array(self.theta, np.float64)
        if theta.ndim != 2 or not theta.size or not np.isfinite(theta).all() or theta.min() < 0:
            raise ValueError("theta has two dimensions, at least one entry, and only finite ones of at least zero")
        theta.flags.writeable = False
        object.__setattr__(self, "theta", theta)

    @property
    def shape(self) -> tuple[int, int]:
        return self._entries.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT

    @cached_property
    def sums(self) -> Array:
        """s = 1 + 1ᵀΘ, rounded up so that no column of the entries as stored sums to more than 1."""
        rounding = (len(self.theta) + 4) * np.finfo(float).eps
        return (1 + self.theta.sum(axis=0)) * (1 + rounding)

    @cached_property
    def root(self) -> Array:
        """L⁻¹, of I + ΘΘᵀ = LLᵀ."""
        return np.linalg.inv(np.linalg.cholesky(np.eye(len(self.theta)) + self.theta @ self.theta.T))

    @cached_property
    def shared(self) -> Array:
        """Z = L⁻¹Θ: the directions that the extra queries measure beside the cells."""
        return self.root @ self.theta

    @cached_property
    def _entries(self) -> Bordered:
        return Bordered(1 / self.sums, self.theta / self.sums)

    def apply(self, x: Array) -> Array:
        return self._entries.apply(x)

    def apply_t(self, y: Array) -> Array:
        return self._entries.apply_t(y)

    def gram(self) -> Gram:
        return self._entries.gram()

    def power(self, p: Norm) -> Matrix:
        return self if p == 1 else self._entries.power(p)

    def norm_power(self, p: Norm) -> Number:
        return 1.0 if p == 1 else self._entries.norm_power(p)

    def rows(self, index: Array) -> Array:
        return self._entries.rows(index)

    def solve(self, x: Array) -> Array:
        """(AᵀA)⁻¹x = diag(s)(I − ZᵀZ)diag(s)x, for a vector or each column of a matrix."""
        s = along(self.sums, x)
        scaled = s * x
        return s * (scaled - self.shared.T @ (self.shared @ scaled))

    def inverse(self) -> PIdentityInverse:
        """The pseudo-inverse A⁺ = (AᵀA)⁻¹Aᵀ."""
        return PIdentityInverse(self)

    def error(self, gram: AxisGram) -> float:
        """tr((AᵀA)⁻¹V) = Σ s_i²V_ii − tr(ZCZᵀ), C = diag(s)·V·diag(s), from products of V with p vectors only."""
        rows = self.shared * self.sums
        return float(self.sums**2 @ gram.diagonal() - np.sum(rows * gram.apply(rows.T).T))


@final
@dataclass(frozen=True, eq=False)
class PIdentityInverse(Matrix):
    """The pseudo-inverse of a p-Identity strategy: A⁺ = diag(s)·[I − ZᵀZ, ZᵀL⁻¹]."""

    strategy: PIdentity

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.strategy.shape
        return columns, rows

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT

    def apply(self, x: Array) -> Array:
        Z, root, s = self.strategy.shared, self.strategy.root, self.strategy.sums
        cells, extra = x[: len(s)], x[len(s) :]
        return along(s, x) * (cells + Z.T @ (root @ extra - Z @ cells))

    def apply_t(self, y: Array) -> Array:
        Z, root, s = self.strategy.shared, self.strategy.root, self.strategy.sums
        scaled = along(s, y) * y
        extra = Z @ scaled
        return np.concatenate([scaled - Z.T @ extra, root.T @ extra])

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self._squares))

    def power(self, p: Norm) -> Matrix:
        return Powers(self, p)

    def norm_power(self, p: Norm) -> Number:
        return float((self._squares if p == 2 else self.column_norms(p)).max())

    def rows(self, index: Array) -> Array:
        units = np.zeros((self.shape[0], len(index)))
        units[index, np.arange(len(index))] = 1
        return self.apply_t(units).T

    @cached_property
    def _squares(self) -> Array:
        """The columns' squared norms."""
        Z, root, s = self.strategy.shared, self.strategy.root, self.strategy.sums
        scaled = (Z * s**2) @ Z.T
        cells = s**2 * (1 - 2 * np.einsum("ki,ki->i", Z, Z)) + np.einsum("ki,ki->i", Z, scaled @ Z)
        return np.concatenate([cells, np.einsum("lk,lk->k", root, scaled @ root)])
