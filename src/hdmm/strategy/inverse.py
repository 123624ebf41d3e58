"""Pseudo-inverses of the factors of strategies."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from hdmm.matrix import Dense, Factor, Identity, Matrix
from hdmm.matrix.fourier import Waves
from hdmm.matrix.pidentity import PIdentity

_WELL = 1e-5
"""The least ratio of pivots at which a Gram matrix is inverted by its Cholesky factor."""

_LEFT = 1e-6
_WRITTEN = 1 << 11
"""The most cells of an attribute whose strategy is written out to compute an error."""


@singledispatch
def inverse(factor: Matrix) -> Matrix:
    """A⁺: by the Gram matrix where its Cholesky factor is well-conditioned, else by singular values."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    entries = factor.dense().astype(float)
    if entries.shape[0] >= entries.shape[1]:
        try:
            triangle = cho_factor(entries.T @ entries)
        except LinAlgError:
            return Dense(np.linalg.pinv(entries))
        pivots = np.diagonal(triangle[0])
        if pivots.min() >= _WELL * pivots.max():
            found = cho_solve(triangle, entries.T)
            return Dense(found + cho_solve(triangle, entries.T - entries.T @ (entries @ found)))
    return Dense(np.linalg.pinv(entries))


@inverse.register
def _(factor: Identity) -> Matrix:
    return factor


@inverse.register(PIdentity)
@inverse.register(Waves)
def _(factor: PIdentity | Waves) -> Matrix:
    return factor.inverse()


@singledispatch
def error(factor: Matrix, gram: Factor) -> float:
    """tr((AᵀA)⁺V): the error of a workload with Gram V under the strategy A, at unit noise."""
    entries = inverse(factor).dense()
    return float(np.sum(entries * gram.apply(entries)))


@error.register
def _(factor: Identity, gram: Factor) -> float:
    return gram.trace()


@error.register
def _(factor: PIdentity, gram: Factor) -> float:
    # The closed form is a difference: where little is left of it, the error is summed up from squares instead.
    found = factor.error(gram)
    if found > _LEFT * float((factor.sums**2) @ gram.diagonal()) or factor.shape[1] > _WRITTEN:
        return found
    entries = np.linalg.pinv(factor.dense())
    return float(np.sum(entries * gram.apply(entries)))
