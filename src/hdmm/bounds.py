"""Lower bounds on the error of every strategy."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from hdmm.matrix import Array, Gram
from hdmm.matrix.factors import AllRangeGram, Factor, IdentityGram, OnesGram, PrefixGram, RowsGram

_EXPLICIT = 1 << 11
"""The most cells for which a union's singular values are computed from its dense Gram."""
_FACTOR = 1 << 12
"""The most cells of one attribute for which singular values are computed without a closed form."""


def svd_bound(gram: Gram) -> float | None:
    """The SVD bound (Σ singular values)²/n, a lower bound on ‖A‖²·‖WA⁺‖²; None where it cannot be computed.

    It factorises over a single product (paper, SVD bound decomposition) and is explicit on small domains.
    """
    if len(gram.terms) == 1:
        (term,) = gram.terms
        parts = [_singular_sum(gram.at(term, axis)) for axis in range(len(gram.sizes))]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return term.coefficient * prod(part**2 / size for part, size in zip(known, gram.sizes, strict=True))
    cells = prod(gram.sizes)
    if cells > _EXPLICIT:
        return None
    return _root_sum(np.linalg.eigvalsh(gram.dense())) ** 2 / cells


def _singular_sum(factor: Factor) -> float | None:
    """The sum of the singular values of the matrix behind a Gram."""
    n = factor.size
    k = np.arange(1, n + 1)
    match factor:
        case IdentityGram():
            return float(n)
        case OnesGram():
            return sqrt(n)
        case PrefixGram():
            # The inverse Gram is tridiag(−1, 2, −1) with a 1 in one corner: eigenvalues 4 sin²(π(2k − 1) / 2(2n + 1)).
            return float(np.sum(1 / (2 * np.sin(np.pi * (2 * k - 1) / (4 * n + 2)))))
        case AllRangeGram():
            # (n + 1) times the inverse of tridiag(−1, 2, −1), whose eigenvalues are 4 sin²(πk / 2(n + 1)).
            return float(np.sum(np.sqrt(n + 1) / (2 * np.sin(np.pi * k / (2 * (n + 1))))))
        case RowsGram() if len(factor.rows) <= _FACTOR:
            return _root_sum(np.linalg.eigvalsh(factor.rows @ factor.rows.T))
    return _root_sum(np.linalg.eigvalsh(factor.dense())) if n <= _FACTOR else None


def _root_sum(eigenvalues: Array) -> float:
    """The sum of the roots, from below: what rounding may have added to an eigenvalue is taken off first."""
    error = len(eigenvalues) * np.finfo(float).eps * eigenvalues.max(initial=0.0)
    return float(np.sqrt(np.clip(eigenvalues - error, 0, None)).sum())
