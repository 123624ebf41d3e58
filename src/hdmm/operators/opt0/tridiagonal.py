"""The Gaussian dual of AllRange and Prefix in linear time: the inverses of their Grams are tridiagonal.

With V = c·T⁻¹, X = diag(v)^-½ M^½ diag(v)^-½ is √c·(2/π)∫(T + t²·diag(v))⁻¹dt over t > 0. The diagonal of the inverse
of a tridiagonal matrix takes two eliminations, one from either end, and t = τ·sinh(u) makes the midpoint rule converge
exponentially: some sixty nodes give eight digits for a million cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.matrix.axis_gram import AllRangeGram, PrefixGram
from hdmm.operators.opt0.relaxation import Relaxation, spread

_DIGITS = 1e-8
"""The accuracy of the integral: the midpoint rule is off by at most four times as much, relative to it."""
_ROUNDING = 4 * np.finfo(float).eps
"""What rounding may take off the diagonal during an elimination, relative to it."""
_LARGE = 1 << 12
"""Above as many cells, weights start from those of a smaller domain."""


@final
@dataclass(frozen=True)
class Chain:
    """V = c·T⁻¹, where T has ``first``, 2, 2, … on its diagonal and −1 beside it."""

    n: int
    scale: float
    first: float
    least: float
    """The smallest eigenvalue of T."""

    @staticmethod
    def of(gram: AllRangeGram | PrefixGram) -> Chain:
        """The chain behind the Gram of at least two cells."""
        n = gram.n
        if isinstance(gram, AllRangeGram):
            return Chain(n, n + 1.0, 2.0, float(4 * np.sin(np.pi / (2 * n + 2)) ** 2))
        return Chain(n, 1.0, 1.0, float(4 * np.sin(np.pi / (4 * n + 2)) ** 2))

    @property
    def diagonal(self) -> Array:
        """The diagonal of T."""
        return np.concatenate([[self.first], np.full(self.n - 1, 2.0)])

    def root_diagonal(self, weights: Array) -> Array:
        """The diagonal of X; from below, as T is raised by what rounding may have taken off."""
        from scipy.linalg.lapack import dpttrf

        low, high = np.sqrt(self.least / weights.max()), np.sqrt(4 / weights.min())
        spacing = np.pi**2 / -np.log(_DIGITS)
        nodes = np.arange(0.5, np.arcsinh(high / low / _DIGITS) / spacing) * spacing
        diagonal, beside = self.diagonal, np.full(self.n - 1, -1.0)
        total: Array = np.zeros(self.n)
        for t, slope in zip(low * np.sinh(nodes), low * np.cosh(nodes), strict=True):
            entries = (diagonal + t**2 * weights) * (1 + _ROUNDING)
            down, up = dpttrf(entries, beside)[0], dpttrf(entries[::-1], beside)[0][::-1]
            total += slope / (down + up - entries)
        total *= np.sqrt(self.scale) * 2 / np.pi * spacing
        return total


def chain_dual(
    gram: AllRangeGram | PrefixGram, accuracy: float, iterations: int, start: Array | None = None
) -> tuple[Array, float]:
    """Weights at which the diagonal of X is constant to that accuracy, and the bound that they prove."""
    chain, relaxation = Chain.of(gram), Relaxation()
    weights = _start(gram, accuracy, iterations) if start is None else start
    best = (weights, 0.0)
    for _ in range(iterations):
        diagonal = chain.root_diagonal(weights)
        bound = (weights @ diagonal) ** 2 / weights.sum() * (1 - 8 * _DIGITS)
        if bound > best[1]:
            best = (weights, float(bound))
        if spread(weights, diagonal) <= accuracy:
            break
        weights = relaxation.move(weights, diagonal)
    return best


def _start(gram: AllRangeGram | PrefixGram, accuracy: float, iterations: int) -> Array:
    """The roots of the Gram's diagonal; on large domains the weights of a smaller one, which they resemble."""
    n = gram.n
    if n <= _LARGE:
        return np.sqrt(gram.diagonal())
    coarse, _ = chain_dual(type(gram)(n // 8), accuracy, iterations)
    return np.interp(np.arange(0.5, n) / n, np.arange(0.5, n // 8) / (n // 8), coarse)
