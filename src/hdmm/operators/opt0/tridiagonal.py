"""The Gaussian dual of AllRange and Prefix in linear time: the inverses of their Grams are tridiagonal.

With V = c·T⁻¹, X = diag(v)^-½ M^½ diag(v)^-½ is √c·(2/π)∫(T + t²·diag(v))⁻¹dt over t > 0. The diagonal of the inverse
of a tridiagonal matrix takes two eliminations, one from either end, and t = τ·sinh(u) makes the midpoint rule converge
exponentially: some sixty nodes give eight digits for a million cells.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array
from hdmm.matrix.axis_gram import ChainGram
from hdmm.operators.opt0.relaxation import Relaxation, unevenness

_DIGITS = 1e-8
"""The accuracy of the integral: the relative error of the midpoint rule is at most four times this."""
_ROUNDING = 4 * np.finfo(float).eps
"""The most that rounding takes off the diagonal during an elimination, relative to it."""
_MAX_DIRECT_CELLS = 1 << 12
"""With more cells, weights start from those of a smaller domain."""


def chain_dual(gram: ChainGram, accuracy: float, iterations: int) -> tuple[Array, float]:
    """Weights at which the diagonal of X is constant to this accuracy, and the bound that they prove."""
    relaxation = Relaxation()
    weights = _initial_weights(gram, accuracy, iterations)
    best = (weights, 0.0)
    for _ in range(iterations):
        bound, diagonal = chain_bound(gram, weights)
        if bound > best[1]:
            best = (weights, bound)
        if unevenness(weights, diagonal) <= accuracy:
            break
        weights = relaxation.move(weights, diagonal)
    return best


def chain_bound(gram: ChainGram, weights: Array) -> tuple[float, Array]:
    """The bound that positive weights prove, and the diagonal of X there."""
    diagonal = _root_diagonal(gram, weights)
    return float((weights @ diagonal) ** 2 / weights.sum() * (1 - 8 * _DIGITS)), diagonal


def _root_diagonal(gram: ChainGram, weights: Array) -> Array:
    """The diagonal of X, from below: T is raised by the most that rounding takes off."""
    from scipy.linalg.lapack import dpttrf

    least_eigenvalue = 4 * np.sin(gram.angles()[0]) ** 2
    low, high = np.sqrt(least_eigenvalue / weights.max()), np.sqrt(4 / weights.min())
    spacing = np.pi**2 / -np.log(_DIGITS)
    nodes = np.arange(0.5, np.arcsinh(high / low / _DIGITS) / spacing) * spacing
    diagonal, off_diagonal = gram.inverse_diagonal(), np.full(gram.n - 1, -1.0)
    total: Array = np.zeros(gram.n)
    for t, slope in zip(low * np.sinh(nodes), low * np.cosh(nodes), strict=True):
        entries = (diagonal + t**2 * weights) * (1 + _ROUNDING)
        down, up = dpttrf(entries, off_diagonal)[0], dpttrf(entries[::-1], off_diagonal)[0][::-1]
        total += slope / (down + up - entries)
    total *= np.sqrt(gram.scale) * 2 / np.pi * spacing
    return total


def _initial_weights(gram: ChainGram, accuracy: float, iterations: int) -> Array:
    """The roots of the Gram's diagonal; on large domains the weights of a smaller one, which they resemble."""
    n = gram.n
    if n <= _MAX_DIRECT_CELLS:
        return np.sqrt(gram.diagonal())
    coarse, _ = chain_dual(type(gram)(n // 8), accuracy, iterations)
    return np.interp(np.arange(0.5, n) / n, np.arange(0.5, n // 8) / (n // 8), coarse)
