"""The least largest error of all prefixes of one attribute, under Gaussian noise.

It is the square of the factorisation norm γ₂ of the lower-triangular matrix W of ones: among all ways to write W = BA
the least product of the longest row of B and the longest column of A. Weights λ on prefixes and v on cells give the
dual, (Σ singular values of diag(λ)^½ W diag(v)^½)² / (Σλ·Σv). W is its own mirror image along the other diagonal, so λ
is v reversed; and (Wᵀdiag(λ)W)⁻¹ is tridiagonal, so a step takes only quadratic time. See docs/math.md, section 9.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array
from hdmm.operators.opt0.relaxation import Relaxation
from hdmm.optimise.descent import Effort

MAX_PREFIX_CELLS = 1 << 12
"""The most cells for which the queries are written out."""
_MAX_STEPS = 60
_EPS = float(np.finfo(float).eps)


def least_largest_prefix(n: int, tolerance: float, effort: Effort) -> tuple[Array, float, float]:
    """Queries with columns of length 1, the largest variance of a prefix, and a lower bound on it for any strategy.

    The search starts from the square root of W, and ends when both are within ``tolerance``.
    """
    best = square_root(n)
    value, bound = float(_prefix_variances(_inverse_of_square_root(n)).max()), 0.0
    weights, relaxation = np.ones(n), Relaxation()
    for _ in range(_MAX_STEPS):
        queries, inverse, diagonal, dual = _factorised(weights)
        largest = float(_prefix_variances(inverse).max())
        bound = max(bound, dual)
        if largest < value:
            best, value = queries, largest
        if value <= bound * (1 + tolerance) or effort.over:
            break
        weights = relaxation.move(weights, diagonal)
    return best, value, bound


def square_root(n: int) -> Array:
    """The lower-triangular Toeplitz matrix T with T² = W, its columns divided by their lengths.

    A closed form close to the least largest error (Henzinger, Kalinin and Upadhyay 2025).
    """
    root = _toeplitz(_coefficients(n))
    return root / np.sqrt((root**2).sum(axis=0))


def _inverse_of_square_root(n: int) -> Array:
    """As T⁻¹ = W⁻¹T: differences of T's rows, multiplied by the lengths of its columns."""
    root = _toeplitz(_coefficients(n))
    lengths = np.sqrt((root**2).sum(axis=0))
    return lengths[:, None] * np.diff(root, axis=0, prepend=0.0)


def _coefficients(n: int) -> Array:
    """Those of (1 − x)^-½."""
    k = np.arange(1, n)
    return np.cumprod(np.concatenate([[1.0], (2 * k - 1) / (2 * k)]))


def _toeplitz(coefficients: Array) -> Array:
    from scipy.linalg import toeplitz

    entries: Array = toeplitz(coefficients, np.zeros(len(coefficients)))
    return entries


def _factorised(weights: Array) -> tuple[Array, Array, Array, float]:
    """Queries of unit columns for these weights, their inverse, the columns' squared lengths before, and the bound.

    The singular values are those of diag(λ)^½ W diag(v)^½ = PΣQᵀ; the queries are Σ^½Qᵀdiag(v)^-½.
    """
    from scipy.linalg import eigh_tridiagonal

    inverse_weights = 1 / weights[::-1]
    diagonal = inverse_weights + np.concatenate([[0.0], inverse_weights[:-1]])
    root = np.sqrt(weights)
    values, vectors = eigh_tridiagonal(diagonal / weights, -inverse_weights[:-1] / (root[1:] * root[:-1]))
    rounding = len(values) * _EPS * values[-1]
    values = np.maximum(values, rounding)
    lengths = (vectors**2 @ values**-0.5) / weights
    scales = root * np.sqrt(lengths)
    queries = (values**-0.25)[:, None] * vectors.T / scales
    bound = float(((values + rounding) ** -0.5).sum() / weights.sum()) ** 2
    return queries, scales[:, None] * vectors * values**0.25, lengths, bound


def _prefix_variances(inverse: Array) -> Array:
    """The variance of every prefix, from the inverse of queries whose columns have length 1."""
    variances: Array = (np.cumsum(inverse, axis=0) ** 2).sum(axis=1)
    return variances
