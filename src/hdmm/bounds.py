"""Lower bounds on the error of every strategy."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from hdmm.matrix import Array, Gram
from hdmm.matrix.factors import AllRangeGram, Factor, IdentityGram, OnesGram

_EXPLICIT = 1 << 11
"""The most cells for which a union's singular values are computed from its dense Gram."""


def svd_bound(gram: Gram) -> float | None:
    """The SVD bound (Σ singular values)²/n, a lower bound on ‖A‖²·‖WA⁺‖²; None where it cannot be computed.

    It factorises over a single product (paper, SVD bound decomposition) and is explicit on small domains.
    """
    if len(gram.terms) == 1:
        (term,) = gram.terms
        return term.coefficient * prod(_nuclear(gram.at(term, i)) ** 2 / size for i, size in enumerate(gram.sizes))
    cells = prod(gram.sizes)
    if cells > _EXPLICIT:
        return None
    return _root_sum(np.linalg.eigvalsh(gram.dense())) ** 2 / cells


def _nuclear(factor: Factor) -> float:
    """The sum of the singular values behind a Gram matrix."""
    n = factor.size
    match factor:
        case IdentityGram():
            return float(n)
        case OnesGram():
            return sqrt(n)
        case AllRangeGram():
            # (n + 1) times the inverse of tridiag(−1, 2, −1), whose eigenvalues are 4 sin²(πk / 2(n + 1)).
            k = np.arange(1, n + 1)
            return float(np.sum(np.sqrt(n + 1) / (2 * np.sin(np.pi * k / (2 * (n + 1))))))
    return _root_sum(np.linalg.eigvalsh(factor.dense()))


def _root_sum(eigenvalues: Array) -> float:
    return float(np.sqrt(np.clip(eigenvalues, 0, None)).sum())
