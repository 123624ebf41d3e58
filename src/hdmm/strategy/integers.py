"""Matrices rounded to integers so that no column's norm grows: its absolute sum, or its squared length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Array, Dense, Matrix, Norm
from hdmm.matrix.orbits import OrbitQueries
from hdmm.matrix.solvable import Solvable

_HALVINGS = 30
"""Steps of the bisection for the factor by which a column is stretched."""
_MAX_ENLARGED = 16
"""The most entries of a column that are enlarged by one at the end."""
_MAX_RATIO_ENLARGED = 32
"""An entry is enlarged only if it is at least the column's largest one over this."""
_NEVER = np.iinfo(np.int64).max
"""The gain of an entry that is not enlarged: more than any column misses."""

Integers = NDArray[np.int64]


def round_factor(factor: Matrix, k: int, norm: Norm) -> tuple[Matrix, int]:
    """A factor in integers, to a precision of k bits, and how many bits these are longer.

    A structured factor knows itself how to keep its structure.

    Queries over kinds keep their span: they are rounded within its integer basis.
    """
    if isinstance(factor, Solvable):
        return factor.rounded(k, norm), k + factor.extra_bits
    return _rounded(factor, k, round_columns if norm == 1 else round_lengths), k


def _rounded(factor: Matrix, k: int, rounding: Callable[[Array, int], Integers]) -> Matrix:
    if not isinstance(factor, OrbitQueries):
        return Dense(rounding(factor.dense(), k))
    queries, basis = factor.queries.array, factor.basis
    if basis is None or len(basis) == basis.shape[1]:
        return factor.with_queries(Dense(rounding(queries, k)))
    single = np.flatnonzero((basis != 0).sum(axis=0) == 1)
    pivots = single[(basis[:, single] != 0).argmax(axis=1)]
    mixed = queries[:, pivots] / basis[np.arange(len(basis)), pivots]
    return factor.with_queries(Dense(rounding(mixed, k) @ basis))


def round_columns(entries: Array, k: int) -> Integers:
    """2^k times a matrix, rounded so that no column's absolute sum exceeds 2^k, by largest remainders."""
    sizes = abs(entries) * 2**k
    down = np.floor(sizes).astype(np.int64)
    missing = np.minimum(2**k - down.sum(axis=0), np.rint(sizes.sum(axis=0)).astype(np.int64) - down.sum(axis=0))
    order = np.argsort(down - sizes, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(order))[:, None], axis=0)
    return np.sign(entries).astype(np.int64) * (down + (ranks < missing))


def round_lengths(entries: Array, k: int) -> Integers:
    """2^k times a matrix, rounded so that no column's squared length exceeds its own, nor 4^k if that is at most 1.

    A column is stretched or shrunk a little before it is rounded, as much as just keeps its length. What is then still
    missing is made up by enlarging a few entries by one, so that all columns are as long as before to a few units.
    """
    scaled = entries * 2.0**k
    most = np.floor((scaled**2).sum(axis=0) * (1 + 1e-12))
    integers = np.rint(scaled * _stretch(scaled, most)).astype(np.int64)
    missing = most.astype(np.int64) - (integers**2).sum(axis=0)
    sizes = abs(integers)
    gains = np.where(sizes * _MAX_RATIO_ENLARGED >= sizes.max(axis=0), 2 * sizes + 1, _NEVER)
    columns = np.arange(integers.shape[1])  # those in which an entry may still be enlarged, as in gains
    for _ in range(min(_MAX_ENLARGED, len(integers))):
        fitting = np.where(gains <= missing[columns], gains, 0)
        rows = fitting.argmax(axis=0)
        gain = fitting[rows, np.arange(len(columns))]
        enlarged = gain > 0
        rows, columns, gains = rows[enlarged], columns[enlarged], gains[:, enlarged]
        integers[rows, columns] += np.where(scaled[rows, columns] < 0, -1, 1)
        missing[columns] -= gain[enlarged]
        gains[rows, np.arange(len(columns))] = _NEVER
    return integers


def _stretch(scaled: Array, most: Array) -> Array:
    """For every column a factor, as large as bisection finds, with which its rounded squared length is at most this."""
    low, high = np.zeros(scaled.shape[1]), np.full(scaled.shape[1], 2.0)
    stretched = np.empty_like(scaled)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        np.rint(np.multiply(scaled, middle, out=stretched), out=stretched)
        fits = np.einsum("ij,ij->j", stretched, stretched) <= most
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low
