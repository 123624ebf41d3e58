"""Pseudo-inverses of the factors of strategies."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np

from hdmm.matrix import Array, AxisGram, Dense, Identity, Matrix
from hdmm.matrix.intervals import interval_rows
from hdmm.matrix.pidentity import PIdentity
from hdmm.matrix.rank import exact_rank, pseudo_inverse
from hdmm.matrix.solvable import Solvable
from hdmm.memory.workspace import check_written

_LEAST_PIVOT = 1e-5
"""The least ratio of pivots at which a Gram matrix is inverted by its Cholesky factor."""
_LEAST_DIFFERENCE = 1e-6
"""The least share of the closed form's first term that its difference may leave."""
_FULL_RANK = 1e-8
"""The largest entry of I − A⁺A for which A is of full rank: of any other rank it has an entry of at least 1/n."""
_ROUNDING_SHARE = 1e-18
"""A share of V outside the row space of A that is certainly rounding."""
_UNSEEN_SHARE = 1e-4
"""A share of V outside the row space of A that is certainly more than rounding."""
_CUT_OFF_SHARE = 1e-9
"""The share between them at which V counts as unseen if exact arithmetic cannot decide."""
_MAX_EXACT_CELLS = 1 << 10
"""The most cells for which exact arithmetic decides."""
_MAX_EXACT_INTEGER = 2.0**53
"""The largest integer that a float holds exactly."""
_MAX_VECTORS = 1 << 25
"""The most entries of vectors that are compared with their projections."""
_MAX_WRITTEN_CELLS = 1 << 11
"""The most cells of an attribute whose strategy is written out to compute an error."""
_MAX_ENTRIES = 1 << 22
"""The most entries of a product that are computed at a time."""


@singledispatch
def inverse(factor: Matrix) -> Matrix:
    """A⁺: by the Gram matrix if its Cholesky factor is well-conditioned, else by singular values."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    written = factor.dense()
    entries = written.astype(float)
    if entries.shape[0] >= entries.shape[1]:
        try:
            triangle = cho_factor(entries.T @ entries)
        except LinAlgError:
            return Dense(pseudo_inverse(written))
        pivots = np.diagonal(triangle[0])
        if pivots.min() >= _LEAST_PIVOT * pivots.max():
            solution = cho_solve(triangle, entries.T)
            return Dense(solution + cho_solve(triangle, entries.T - entries.T @ (entries @ solution)))
    return Dense(pseudo_inverse(written))


@inverse.register
def _(factor: Identity) -> Matrix:
    return factor


@inverse.register(PIdentity)
@inverse.register(Solvable)
def _(factor: PIdentity | Solvable) -> Matrix:
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
    # The closed form is a difference: if little is left of it, the error is summed up from squares instead.
    difference = factor.error(gram)
    least = _LEAST_DIFFERENCE * float((factor.sums**2) @ gram.diagonal())
    if difference > least or factor.shape[1] > _MAX_WRITTEN_CELLS:
        return difference
    return inverse_error(Dense(pseudo_inverse(factor.dense())), gram)


@error.register
def _(factor: Solvable, gram: AxisGram) -> float:
    # Sums of squares of intervals and a few vectors need no products with unit vectors.
    inverse, squares = factor.inverse(), gram.as_squares()
    if squares is not None:
        variances = factor.interval_variances(*squares.intervals)
        lengths = (inverse.apply_t(squares.vectors) ** 2).sum(axis=0)
        return float(squares.interval_weights @ variances + squares.vector_weights @ lengths)
    n = gram.size
    check_written(n, n)
    total, step = 0.0, max(1, _MAX_ENTRIES // factor.shape[0])
    for start in range(0, n, step):
        units = np.eye(n, min(step, n - start), -start)
        total += float(np.sum(gram.apply(units) * inverse.apply(inverse.apply_t(units))))
    return total


def is_full_rank(projection: Array) -> bool:
    """Whether A is of full rank, from the projection A⁺A."""
    return bool(abs(np.eye(len(projection)) - projection).max() <= _FULL_RANK)


def covers_vectors(queries: Matrix, inverse: Matrix, gram: AxisGram) -> bool | None:
    """Whether the row space of queries over many cells holds the vectors of a Gram; None if there are too many."""
    squares = gram.as_squares()
    if squares is None or (len(squares.interval_weights) + len(squares.vector_weights)) * gram.size > _MAX_VECTORS:
        return None
    asked = np.concatenate([interval_rows(*squares.intervals, gram.size).astype(float), squares.vectors.T])
    outside = asked - queries.apply_t(inverse.apply_t(asked.T)).T
    return bool(((outside**2).sum(axis=1) <= _CUT_OFF_SHARE * (asked**2).sum(axis=1)).all())


def covers(queries: Matrix, projection: Array, asked: Callable[[], AxisGram]) -> bool:
    """Whether the row space of some queries, given with the projection on it, holds that of a workload with Gram V.

    The share of V outside it is rounding, or too large to be rounding; between the two, integers are decided exactly.
    """
    if is_full_rank(projection):  # then it holds everything
        return True
    gram = asked()
    outside = np.eye(len(projection)) - projection
    share = float(np.sum(outside * gram.apply(outside))) / (gram.trace() or 1.0)
    if not _ROUNDING_SHARE < share < _UNSEEN_SHARE or len(projection) > _MAX_EXACT_CELLS:
        return share <= _CUT_OFF_SHARE
    measured, wanted = queries.dense(), gram.dense()
    for entries in (measured, wanted):
        if (entries != np.rint(entries)).any() or abs(entries).max() > _MAX_EXACT_INTEGER:
            return share <= _CUT_OFF_SHARE
    return exact_rank(np.concatenate([measured, wanted])) == exact_rank(measured)
