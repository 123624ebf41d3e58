"""Lower bounds on the error of every strategy."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from hdmm.demand.subsets import subsets_of
from hdmm.errors import TooLargeError
from hdmm.matrix import Array, Gram
from hdmm.matrix.axis_gram import AllRangeGram, AxisGram, PrefixGram, RowsGram, SelectedGram, WidthGram, two_eigenvalues

_EXPLICIT = 1 << 11
"""The most cells for which a union's singular values are computed from its dense Gram."""
_ROUNDING = 1e-13
"""What rounding may add to a sum of positive numbers, relatively: it is taken off, so that bounds are bounds."""
_FACTOR = 1 << 12
"""The most cells of one attribute for which singular values are computed without a closed form."""
_BANDED = 1 << 14
"""The most cells for which the eigenvalues of a band matrix are computed: their time is quadratic."""


def svd_bound(gram: Gram) -> float | None:
    """The SVD bound (Σ singular values)²/n, a lower bound on ‖A‖²·‖WA⁺‖²; None where it cannot be computed.

    It factorises over a single product (paper, SVD bound decomposition), has a closed form for unions of marginals
    (paper, section 8, with the multiplicities of docs/math.md, section 12), and is explicit on small domains.
    """
    if not gram.terms:  # nobody is counted
        return 0.0
    if len(gram.terms) == 1:
        (term,) = gram.terms
        parts = [_singular_sum(gram.at(term, axis)) for axis in range(len(gram.sizes))]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        squares = prod(part**2 / size for part, size in zip(known, gram.sizes, strict=True))
        return term.coefficient * squares * (1 - _ROUNDING)
    marginal = _marginal_singular_sum(gram)
    if marginal is not None:
        return marginal**2 * (1 - _ROUNDING)
    cells = prod(gram.sizes)
    if cells > _EXPLICIT:
        return None
    return _root_sum(np.linalg.eigvalsh(gram.dense())) ** 2 / cells


def _marginal_singular_sum(gram: Gram) -> float | None:
    """The sum of the singular values over √n where every factor is αI + β11ᵀ; None for other Grams.

    All such Grams share eigenspaces, one for each set a of attributes, of dimension ∏_{i∈a}(n_i − 1); on it a factor
    acts as α where i ∈ a and as α + βn_i elsewhere.
    """
    try:
        subsets = subsets_of(gram)
    except TooLargeError:
        return None
    errors = []
    for size, pairs in zip(subsets.problem.sizes, subsets.problem.even, strict=True):
        if pairs is None:
            return None
        errors.append(pairs[:, ::-1].T / size)
    multiplicities = [prod([subsets.problem.sizes[i] - 1.0 for i in chosen]) for chosen in subsets.sets]
    return float(np.sqrt(subsets.asked(errors)) @ np.array(multiplicities))


def _singular_sum(factor: AxisGram) -> float | None:
    """The sum of the singular values of the matrix behind a Gram."""
    n = factor.size
    even = two_eigenvalues(factor)
    if even is not None:
        return (n - 1) * sqrt(even[0]) + sqrt(even[1])
    match factor:
        case PrefixGram():
            k = np.arange(1, n + 1)
            # The inverse Gram is tridiag(−1, 2, −1) with a 1 in one corner: eigenvalues 4 sin²(π(2k − 1) / 2(2n + 1)).
            return float(np.sum(1 / (2 * np.sin(np.pi * (2 * k - 1) / (4 * n + 2)))))
        case AllRangeGram():
            k = np.arange(1, n + 1)
            # (n + 1) times the inverse of tridiag(−1, 2, −1), whose eigenvalues are 4 sin²(πk / 2(n + 1)).
            return float(np.sum(np.sqrt(n + 1) / (2 * np.sin(np.pi * k / (2 * (n + 1))))))
        case SelectedGram():  # a choice and an order of cells adds nothing but zeros
            return _singular_sum(factor.inner)
        case WidthGram() if n <= _BANDED:
            from scipy.linalg import eigvals_banded

            # WWᵀ has as many windows' cells in common as two windows overlap: a band of the width's size.
            overlaps = np.arange(min(factor.width, n - factor.width + 1))
            band = np.repeat((factor.width - overlaps)[:, None].astype(float), n - factor.width + 1, axis=1)
            return _root_sum(eigvals_banded(band, lower=True))
        case RowsGram() if len(factor.rows) <= _FACTOR:
            return _root_sum(np.linalg.eigvalsh(factor.rows @ factor.rows.T))
    return _root_sum(np.linalg.eigvalsh(factor.dense())) if n <= _FACTOR else None


def _root_sum(eigenvalues: Array) -> float:
    """The sum of the roots, from below: what rounding may have added to an eigenvalue is taken off first."""
    error = len(eigenvalues) * np.finfo(float).eps * eigenvalues.max(initial=0.0)
    return float(np.sqrt(np.clip(eigenvalues - error, 0, None)).sum())
