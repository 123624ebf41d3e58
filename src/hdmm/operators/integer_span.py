"""Integer rows that span the same queries as real ones, so that rounding need not change the span."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdmm.matrix import Array

_MAX_DENOMINATOR = 12
"""The largest denominator of a basis of small numbers."""
_WHOLE = 1e-7
"""How far from an integer an entry of the basis may be."""
_INDEPENDENT = 1e-6
"""The least part of a row, relative to its length, that earlier rows do not explain if it is independent of them."""
_BATCH = 256
"""Rows that are compared with earlier ones together."""


def integer_basis(root: Array, shape: Sequence[int]) -> Array | None:
    """Integer rows that span the columns of a root, a multiple of the identity on some of their entries.

    The rows of the root are the cells of a table of this shape. None if there are none of small numbers.
    """
    columns, rank = root.shape
    if rank == columns:
        return np.eye(columns, dtype=np.int64)
    directions = np.linalg.qr(root)[0]
    best: Array | None = None
    for choose in (_far_apart, _near_first):
        pivots = choose(directions, shape)
        basis = None if pivots is None else _whole_numbers(np.linalg.solve(directions[pivots].T, directions.T))
        if basis is not None and (best is None or abs(basis).max() < abs(best).max()):
            best = basis
        if best is not None and abs(best).max() == 1:
            break
    return best


def _whole_numbers(basis: Array) -> Array | None:
    """The least multiple that is whole; None if all are large."""
    for denominator in range(1, _MAX_DENOMINATOR + 1):
        whole = np.rint(denominator * basis)
        if abs(denominator * basis - whole).max() <= _WHOLE:
            return whole.astype(np.int64)
    return None


def _far_apart(directions: Array, _: Sequence[int]) -> Array:
    """Rows that are as independent as possible."""
    from scipy.linalg import qr

    return np.sort(qr(directions.T, mode="r", pivoting=True)[1][: directions.shape[1]])


def _near_first(directions: Array, shape: Sequence[int]) -> Array | None:
    """The first independent rows, starting with cells that differ from the first one on few attributes.

    Sums of small tables are whole combinations of these: f(a) + g(b) + h(c) is f(a, 0, 0) + f(0, b, 0) + f(0, 0, c)
    less twice f(0, 0, 0).
    """
    cells, rank = directions.shape
    distance = np.count_nonzero(np.stack(np.unravel_index(np.arange(cells), shape)), axis=0)
    order = np.argsort(distance, kind="stable")
    span = np.zeros((rank, rank))
    pivots: list[int] = []
    for start in range(0, cells, _BATCH):
        batch = order[start : start + _BATCH]
        rows = directions[batch]
        left = rows - rows @ span.T @ span
        for place in np.flatnonzero((left**2).sum(axis=1) > (_INDEPENDENT**2) * (rows**2).sum(axis=1)):
            vector = left[place] - span.T @ (span @ left[place])
            length = float(np.linalg.norm(vector))
            if length > _INDEPENDENT * float(np.linalg.norm(rows[place])):
                span[len(pivots)] = vector / length
                pivots.append(int(batch[place]))
            if len(pivots) == rank:
                return np.array(pivots)
    return None
