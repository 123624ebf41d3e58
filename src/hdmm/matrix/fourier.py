"""Weighted sines and cosines: the eigenvectors of the Grams of AllRange and Prefix, applied by fast transforms.

The bases are symmetric orthonormal matrices F, their own inverses: sin(πij/(n + 1)) over i, j = 1…n, and
cos(π(2i + 1)(2j + 1)/(4n + 2)) over i, j = 0…n−1. A matrix F·diag(w)·F has entries g(i − j) ∓ g(i + j), with one even
function g that a single transform gives.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from hdmm.matrix.arrays import Array, along
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix, Norm
from hdmm.matrix.gram import Gram
from hdmm.matrix.leaf import FLOAT, Dense

Basis = Literal["sine", "cosine"]


def transform(basis: Basis, x: Array) -> Array:
    """The product of F with a vector, or with each column of a matrix."""
    from scipy import fft

    if basis == "sine":
        return fft.dst(x, 1, norm="ortho", axis=0)
    n = len(x)
    padded = np.concatenate([x, np.zeros((n + 1, *x.shape[1:]))])
    return fft.dct(padded, 2, axis=0)[1 : 2 * n : 2] / np.sqrt(2 * n + 1)


def kernel(basis: Basis, weights: Array) -> Array:
    """g at 0, 1, … over a whole period, for the matrix F·diag(weights)·F; for each column of weights."""
    from scipy import fft

    n, rest = len(weights), weights.shape[1:]
    if basis == "sine":
        spectrum = np.zeros((n + 2, *rest))
        spectrum[1:-1] = weights / 2
    else:
        spectrum = np.zeros((2 * n + 2, *rest))
        spectrum[1:-2:2] = weights
    half = fft.dct(spectrum, 1, axis=0) / (len(spectrum) - 1)
    return np.concatenate([half, half[-2:0:-1]])


def _squares(basis: Basis, x: Array) -> Array:
    """The product of F∘F, whose entries are the squares of F's, with x: the diagonal of F·diag(x)·F."""
    g = kernel(basis, x)
    return g[:1] - g[2 : 2 * len(x) + 1 : 2] if basis == "sine" else g[:1] + g[1 : 2 * len(x) : 2]


@dataclass(frozen=True, eq=False)
class _Scaled(Matrix):
    """diag(left)·M·diag(right) for a symmetric matrix M of the basis."""

    basis: Basis
    left: Array
    right: Array

    def __post_init__(self) -> None:
        if np.ndim(self.left) != 1 or np.shape(self.left) != np.shape(self.right):
            raise ValueError("left and right hold a number for each frequency and for each cell, equally many")
        for name in ("left", "right"):
            vector = np.array(getattr(self, name), FLOAT)
            vector.flags.writeable = False
            object.__setattr__(self, name, vector)

    @abstractmethod
    def _product(self, x: Array) -> Array:
        """M·x."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT

    def apply(self, x: Array) -> Array:
        return along(self.left, x) * self._product(along(self.right, x) * x)

    def apply_t(self, y: Array) -> Array:
        return along(self.right, y) * self._product(along(self.left, y) * y)


@final
@dataclass(frozen=True, eq=False)
class Waves(_Scaled):
    """diag(left)·F·diag(right): a query for every frequency, its cells rescaled."""

    def _product(self, x: Array) -> Array:
        return transform(self.basis, x)

    def inverse(self) -> Waves:
        """The inverse, as F is its own."""
        return Waves(self.basis, 1 / self.right, 1 / self.left)

    def gram(self) -> Gram:
        return Gram.of(WavesGram(self.basis, self.left**2, self.right))

    def power(self, p: Norm) -> Matrix:
        return Dense(abs(self.dense())) if p == 1 else SquaredWaves(self.basis, self.left**2, self.right**2)

    def rows(self, index: Array) -> Array:
        n = len(self.right)
        # Whole periods are subtracted while the phases are integers, so that large ones lose no digits.
        if self.basis == "sine":
            phases = np.outer(index + 1, np.arange(1, n + 1)) % (2 * n + 2)
            waves = np.sqrt(2 / (n + 1)) * np.sin(np.pi / (n + 1) * phases)
        else:
            phases = np.outer(2 * index + 1, np.arange(1, 2 * n, 2)) % (8 * n + 4)
            waves = 2 / np.sqrt(2 * n + 1) * np.cos(np.pi / (4 * n + 2) * phases)
        return self.left[index, None] * waves * self.right


@final
@dataclass(frozen=True, eq=False)
class SquaredWaves(_Scaled):
    """The squares of the entries of Waves: diag(left)·(F∘F)·diag(right)."""

    def _product(self, x: Array) -> Array:
        return _squares(self.basis, x)

    def gram(self) -> Gram:
        return Dense(self.dense()).gram()

    def power(self, p: Norm) -> Matrix:
        return self if p == 1 else Dense(self.dense() ** 2)

    def rows(self, index: Array) -> Array:
        return Waves(self.basis, np.sqrt(self.left), np.sqrt(self.right)).rows(index) ** 2


@final
@dataclass(frozen=True, eq=False)
class WavesGram(AxisGram):
    """diag(right)·F·diag(weights)·F·diag(right): the Gram of Waves."""

    basis: Basis
    weights: Array
    right: Array

    @property
    def size(self) -> int:
        return len(self.right)

    def apply(self, x: Array) -> Array:
        waves = transform(self.basis, along(self.right, x) * x)
        return along(self.right, x) * transform(self.basis, along(self.weights, x) * waves)

    def diagonal(self) -> Array:
        return self.right**2 * _squares(self.basis, self.weights)

    def total(self) -> float:
        return float(self.weights @ transform(self.basis, self.right) ** 2)
