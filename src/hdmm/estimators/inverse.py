"""Pseudo-inverses of the factors of strategies."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np

from hdmm.matrix import Array, AxisGram, Dense, Identity, Matrix
from hdmm.matrix.fourier import Waves
from hdmm.matrix.pidentity import PIdentity
from hdmm.matrix.rank import exact_rank, pseudo_inverse

_WELL = 1e-5
"""The least ratio of pivots at which a Gram matrix is inverted by its Cholesky factor."""

_LEFT = 1e-6
"""The least share of the closed form's first term that its difference may leave."""
_WHOLE = 1e-8
"""The largest entry of I − A⁺A for which A is of full rank: of any other rank it has an entry of at least 1/n."""
_NOTHING, _OUTSIDE, _SOMETHING = 1e-18, 1e-9, 1e-4
"""Shares of V outside the row space of A: certainly rounding, the cut-off without exact arithmetic, certainly more."""
_EXACT = 1 << 10
"""The most cells for which exact arithmetic decides."""
_INTEGER = 2.0**53
"""The largest integer that a float holds exactly."""
_WRITTEN = 1 << 11
"""The most cells of an attribute whose strategy is written out to compute an error."""


@singledispatch
def inverse(factor: Matrix) -> Matrix:
    """A⁺: by the Gram matrix where its Cholesky factor is well-conditioned, else by singular values."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    written = factor.dense()
    entries = written.astype(float)
    if entries.shape[0] >= entries.shape[1]:
        try:
            triangle = cho_factor(entries.T @ entries)
        except LinAlgError:
            return Dense(pseudo_inverse(written))
        pivots = np.diagonal(triangle[0])
        if pivots.min() >= _WELL * pivots.max():
            found = cho_solve(triangle, entries.T)
            return Dense(found + cho_solve(triangle, entries.T - entries.T @ (entries @ found)))
    return Dense(pseudo_inverse(written))


@inverse.register
def _(factor: Identity) -> Matrix:
    return factor


@inverse.register(PIdentity)
@inverse.register(Waves)
def _(factor: PIdentity | Waves) -> Matrix:
    return factor.inverse()


def inverse_error(inverse: Matrix, gram: AxisGram) -> float:
    """tr(A⁺A⁺ᵀV): the error of a workload with Gram V at unit noise, from the pseudo-inverse of its strategy."""
    if isinstance(inverse, Identity):
        return gram.trace()
    entries = inverse.dense()
    return float(np.sum(entries * gram.apply(entries)))


@singledispatch
def error(factor: Matrix, gram: AxisGram) -> float:
    """tr((AᵀA)⁺V): the error of a workload with Gram V under the strategy A, at unit noise."""
    return inverse_error(inverse(factor), gram)


@error.register
def _(factor: PIdentity, gram: AxisGram) -> float:
    # The closed form is a difference: where little is left of it, the error is summed up from squares instead.
    found = factor.error(gram)
    if found > _LEFT * float((factor.sums**2) @ gram.diagonal()) or factor.shape[1] > _WRITTEN:
        return found
    return inverse_error(Dense(pseudo_inverse(factor.dense())), gram)


def covers(queries: Matrix, projection: Array, asked: Callable[[], AxisGram]) -> bool:
    """Whether the row space of some queries, given with the projection on it, holds that of a workload with Gram V.

    What is left of V outside is nothing, or a share that cannot be rounding; between them integers are decided exactly.
    """
    outside = np.eye(len(projection)) - projection
    if abs(outside).max() <= _WHOLE:  # of full rank, it holds everything
        return True
    gram = asked()
    left = float(np.sum(outside * gram.apply(outside)))
    share = left / (gram.trace() or 1.0)
    if not _NOTHING < share < _SOMETHING or len(projection) > _EXACT:
        return share <= _OUTSIDE
    own, wanted = queries.dense(), gram.dense()
    if any((entries != np.rint(entries)).any() or abs(entries).max() > _INTEGER for entries in (own, wanted)):
        return share <= _OUTSIDE
    return exact_rank(np.concatenate([own, wanted])) == exact_rank(own)
