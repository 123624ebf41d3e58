"""Ranks and pseudo-inverses that do not depend on the last bit of a float.

Singular values decide if a wide gap lies between those that count and those that are rounding. Otherwise, the rank of a
matrix of integers is computed in exact arithmetic, modulo two large primes.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix.arrays import Array

_SURE = 1e-6
"""Singular values above this, relative to the largest, count."""
_ROUNDING = 1e-12
"""Singular values below this, relative to the largest, are rounding."""
_CUT = 1e-9
"""If others are in doubt and the entries are not integers, those above this count."""
_PRIMES = (2**61 - 1, 2**62 - 57)
"""The rank modulo a prime is too small only if the prime divides every minor of full rank: never seen for both."""


def rank(entries: Array, values: Array | None = None) -> int:
    """The rank of a matrix, exact for integers. Its singular values may be passed if they are known."""
    if values is None:
        values = np.linalg.svd(entries.astype(float), compute_uv=False)
    scale = float(values.max(initial=0.0))
    sure = int(np.count_nonzero(values > _SURE * scale))
    if sure == len(values) or values[sure] <= _ROUNDING * scale:
        return sure
    if entries.dtype.kind in "iu" or (entries == np.rint(entries)).all():
        return exact_rank(entries)
    return int(np.count_nonzero(values > _CUT * scale))


def exact_rank(entries: Array) -> int:
    """The rank of a matrix of integers, in exact arithmetic."""
    from flint import nmod_mat

    rows, columns = entries.shape
    numbers = [int(entry) for entry in entries.reshape(-1)]
    return max(int(nmod_mat(rows, columns, [number % p for number in numbers], p).rank()) for p in _PRIMES)


def pseudo_inverse(entries: Array) -> Array:
    """A⁺ by singular values, as many of them as the rank says."""
    left, values, right = np.linalg.svd(entries.astype(float), full_matrices=False)
    count = rank(entries, values)
    return (right[:count].T / values[:count]) @ left[:, :count].T
