"""Lower bounds on the error of every strategy."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from hdmm.demand.subsets import subsets_of
from hdmm.errors import TooLargeError
from hdmm.matrix import Array, Gram
from hdmm.matrix.axis_gram import AxisGram, ChainGram, RowsGram, SelectedGram, WidthGram

_MAX_UNION_CELLS = 1 << 11
"""The most cells for which the singular values of a union are computed from its dense Gram."""
_ROUNDING = 1e-13
"""The relative error that rounding may add to a sum of positive numbers. It is taken off: bounds stay bounds."""
MAX_AXIS_CELLS = 1 << 11
"""The most cells of one attribute for which singular values are computed without a closed form."""
_MAX_BANDED_CELLS = 1 << 14
"""The most cells for which the eigenvalues of a band matrix are computed, in quadratic time."""
_MAX_BAND_WORK = 1 << 33
"""The most work for these: the square of the cells times the width of the band."""


def svd_bound(gram: Gram) -> float | None:
    """The SVD bound (Σ singular values)²/n, a lower bound on ‖A‖²·‖WA⁺‖²; None if it cannot be computed.

    It factorises over a single product (paper, SVD bound decomposition), has a closed form for unions of marginals
    (paper, section 8, with the multiplicities of docs/math.md, section 12), and is explicit on small domains.
    """
    if not gram.terms:  # nobody is counted
        return 0.0
    if len(gram.terms) == 1:
        (term,) = gram.terms
        squares = 1.0
        for axis, size in enumerate(gram.sizes):
            singular_sum = _singular_sum(gram.at(term, axis))
            if singular_sum is None:
                return None
            squares *= singular_sum**2 / size
        return term.coefficient * squares * (1 - _ROUNDING)
    marginal = _marginal_singular_sum(gram)
    if marginal is not None:
        return marginal**2 * (1 - _ROUNDING)
    cells = prod(gram.sizes)
    if cells > _MAX_UNION_CELLS:
        return None
    return _root_sum(np.linalg.eigvalsh(gram.dense())) ** 2 / cells


def _marginal_singular_sum(gram: Gram) -> float | None:
    """The sum of the singular values over √n if every factor is αI + β11ᵀ; None for other Grams.

    All such Grams share eigenspaces, one for each set a of attributes, of dimension ∏_{i∈a}(n_i − 1); on it a factor
    acts as α if i ∈ a and as α + βn_i otherwise.
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


def _singular_sum(gram: AxisGram) -> float | None:
    """The sum of the singular values of the matrix behind a Gram; None if there are too many cells."""
    n = gram.size
    pair = gram.two_eigenvalues()
    if pair is not None:
        return (n - 1) * sqrt(pair[0]) + sqrt(pair[1])
    match gram:
        case ChainGram():
            return float(np.sum(np.sqrt(gram.scale) / (2 * np.sin(gram.angles()))))
        case SelectedGram():  # the cells that are not selected add zeros
            return _singular_sum(gram.inner)
        case WidthGram() if n <= _MAX_BANDED_CELLS and gram.width * n**2 <= _MAX_BAND_WORK:
            from scipy.linalg import eigvals_banded

            # An entry of WWᵀ is the number of cells that two ranges share: a band as wide as the ranges.
            shifts = np.arange(min(gram.width, n - gram.width + 1))
            band = np.repeat((gram.width - shifts)[:, None].astype(float), n - gram.width + 1, axis=1)
            return _root_sum(eigvals_banded(band, lower=True))
        case RowsGram() if len(gram.rows) <= MAX_AXIS_CELLS:
            return _root_sum(np.linalg.eigvalsh(gram.rows @ gram.rows.T))
    return _root_sum(np.linalg.eigvalsh(gram.dense())) if n <= MAX_AXIS_CELLS else None


def _root_sum(eigenvalues: Array) -> float:
    """The sum of the roots, from below: the error that rounding may have added to an eigenvalue is taken off first."""
    error = len(eigenvalues) * np.finfo(float).eps * eigenvalues.max(initial=0.0)
    return float(np.sqrt(np.clip(eigenvalues - error, 0, None)).sum())
