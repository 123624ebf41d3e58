"""Rows of a matrix whose answers err in the same way, because their entries are the same up to order.

Under a condition across attributes a row has one entry for each of the condition's terms at every place, and rows are
of one type if these tuples agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Array, Matrix
from hdmm.matrix.intervals import Intervals, interval_rows
from hdmm.matrix.solvable import Solvable

_DIGITS = 12
"""Digits to which entries must agree to count as equal."""
_MAX_ENTRIES = 1 << 24
"""The most entries that are computed at a time."""

Power = Literal[2, 4, 6]
_MOMENTS: tuple[Power | Literal["largest"], ...] = (2, 4, 6, "largest")

Entries: TypeAlias = tuple[Array, Array]
"""Distinct entries with the axes type, entry and term, and how often each occurs, with the axes type and entry."""


@final
@dataclass(frozen=True, eq=False)
class RowTypes:
    """For each row its type; for each type the distinct entries of such a row and how often each occurs.

    Entries are read only when they are asked for: with one term the moments often suffice.
    """

    labels: NDArray[np.int64]
    """The type of every row."""
    count: int
    """How many types there are."""
    width: int
    """The most distinct entries that a type has."""
    read: Callable[[int, int], Entries]
    """The entries of the types from the first number to before the second."""
    moments: NDArray[np.float64] | None
    """With one term, for every type the sums of the second, fourth and sixth powers of its entries, and the largest
    size of one."""
    means: NDArray[np.float64] | None = None
    """For every type what its rows make of a vector that goes with the strategy, if an estimator needs that."""

    def __len__(self) -> int:
        return self.count

    def some(self, start: int, stop: int) -> RowTypes:
        """Only some of the types; no row is labelled any more."""
        count = min(stop, self.count) - start
        moments = None if self.moments is None else self.moments[start : start + count]
        means = None if self.means is None else self.means[start : start + count]

        def read(first: int, last: int) -> Entries:
            return self.read(start + first, start + last)

        return RowTypes(np.empty(0, np.int64), count, self.width, read, moments, means)

    def moment(self, power: Power | Literal["largest"]) -> Array:
        """The sum of the entries' sizes to a power, or the largest size, for every type; there is one term."""
        assert self.moments is not None
        return self.moments[:, _MOMENTS.index(power)]

    @cached_property
    def _entries(self) -> Entries:
        return self.read(0, self.count)

    @property
    def values(self) -> Array:
        """The distinct entries of every type, with the axes type, entry and term."""
        return self._entries[0]

    @property
    def counts(self) -> Array:
        """How often each entry occurs, with the axes type and entry."""
        return self._entries[1]

    @staticmethod
    def of(labels: Array, values: Array, counts: Array) -> RowTypes:
        """Types whose entries are at hand."""
        moments = None
        if values.shape[2] == 1:
            sizes = np.where(counts > 0, abs(values[:, :, 0]), 0)
            moments = np.stack([*((counts * sizes**p).sum(axis=1) for p in (2, 4, 6)), sizes.max(axis=1)], axis=1)

        def read(first: int, last: int) -> Entries:
            return values[first:last], counts[first:last]

        return RowTypes(labels.reshape(-1), len(values), values.shape[1], read, moments)

    @staticmethod
    def single(rows: int) -> RowTypes:
        """All rows of one type, with the one entry 1."""
        return RowTypes.of(np.zeros(rows, np.int64), np.ones((1, 1, 1)), np.ones((1, 1)))


def merge_close(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values along the last axis, cut to twelve digits of the largest: those that differ only by rounding agree."""
    largest = abs(values).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.round(values / scale, _DIGITS) * scale


def row_types(matrix: Matrix, masks: Array) -> RowTypes:
    """Types of a matrix restricted to each of some sets of cells, one row of ``masks`` for each.

    For zeros and ones it is enough how many cells of each kind a row holds, and nothing is written out.
    """
    if not matrix.binary:
        return entry_types(matrix.dense().astype(float)[:, :, None] * masks.T)
    kinds, numbers = _distinct(masks.T)
    members = numbers.reshape(-1)[:, None] == np.arange(len(kinds))
    held, labels = _distinct(matrix.apply(members.astype(np.int64)))
    values = np.concatenate([np.zeros((1, len(masks))), kinds])
    counts = np.concatenate([matrix.shape[1] - held.sum(axis=1, keepdims=True), held], axis=1)
    return RowTypes.of(labels, np.tile(values, (len(held), 1, 1)), counts.astype(float))


def product_types(matrix: Matrix, inverse: Array) -> RowTypes:
    """Types of the rows of a product W·A⁺: by their moments, computed without ever holding the whole product."""
    rows = matrix.shape[0]
    moments = np.zeros((rows, 4))
    step = max(1, _MAX_ENTRIES // rows)
    for start in range(0, inverse.shape[1], step):
        sizes = abs(matrix.apply(inverse[:, start : start + step]))
        moments[:, :3] += np.stack([(sizes**p).sum(axis=1) for p in (2, 4, 6)], axis=1)
        moments[:, 3] = np.maximum(moments[:, 3], sizes.max(axis=1))
    _, first_rows, labels = np.unique(_significant(moments), axis=0, return_index=True, return_inverse=True)

    def read(start: int, stop: int) -> Entries:
        entries = matrix.rows(first_rows[start:stop]).astype(float) @ inverse
        return entries[:, :, None], np.ones(entries.shape)

    return RowTypes(labels.reshape(-1), len(first_rows), inverse.shape[1], read, moments[first_rows])


def interval_types(intervals: Intervals, factor: Solvable, means: Array | None = None) -> RowTypes:
    """Types of the rows of W·A⁺ for a matrix W of intervals, by their moments; and by their means, if there are any."""
    moments = factor.interval_moments(*intervals)

    def rows(index: Array) -> Array:
        return interval_rows(intervals.lows[index], intervals.highs[index], factor.shape[1]).astype(float)

    return _solved_types(moments, rows, factor.inverse(), means)


def query_types(matrix: Matrix, inverse: Matrix, means: Array | None = None) -> RowTypes:
    """Types of the rows of W·A⁺ for any matrix W and an implicit A⁺, by their moments, some rows at a time."""
    count, measurements = matrix.shape[0], inverse.shape[1]
    moments = np.zeros((count, 4))
    step = max(1, _MAX_ENTRIES // measurements)
    for start in range(0, count, step):
        index = np.arange(start, min(start + step, count))
        sizes = abs(inverse.apply_t(matrix.rows(index).T.astype(float)))
        moments[index, :3] = np.stack([(sizes**p).sum(axis=0) for p in (2, 4, 6)], axis=1)
        moments[index, 3] = sizes.max(axis=0)
    return _solved_types(moments, matrix.rows, inverse, means)


def some_rows(marks: Array) -> RowTypes:
    """Types of rows by any marks: in ``means`` the marks of a row of each type, and last the number of that row.

    Their entries are not known here: the estimator that has made the marks reads them.
    """
    first_rows, labels = _equal_rows(_significant(marks))

    def read(start: int, stop: int) -> Entries:
        raise TypeError("these types have marks and no entries; the estimator that made the marks reads them")

    return RowTypes(labels, len(first_rows), 1, read, None, np.column_stack([marks[first_rows], first_rows]))


def _solved_types(moments: Array, rows: Callable[[Array], Array], inverse: Matrix, means: Array | None) -> RowTypes:
    """Types of rows by their moments; the entries of a few are computed when they are read."""
    marks = moments if means is None else np.column_stack([moments, means])
    first_rows, labels = _equal_rows(_significant(marks))
    first_means = None if means is None else means[first_rows]

    def read(start: int, stop: int) -> Entries:
        entries = inverse.apply_t(rows(first_rows[start:stop]).T.astype(float)).T
        return entries[:, :, None], np.ones(entries.shape)

    return RowTypes(labels, len(first_rows), inverse.shape[1], read, moments[first_rows], first_means)


def _equal_rows(values: Array) -> tuple[Array, Array]:
    """A row of each kind, and for each row of which kind it is."""
    order = np.lexsort(values.T[::-1])
    ordered = values[order]
    new = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    labels = np.empty(len(values), np.int64)
    labels[order] = np.cumsum(new) - 1
    return order[new], labels


def entry_types(entries: Array) -> RowTypes:
    """Types of rows whose entries are written out, with the axes row, entry and term."""
    cut = np.stack([merge_close(entries[:, :, term]) for term in range(entries.shape[2])], axis=2)
    distinct, numbers = _distinct(cut.reshape(-1, cut.shape[2]))
    rows, labels = np.unique(np.sort(numbers.reshape(cut.shape[:2]), axis=1), axis=0, return_inverse=True)
    types = [np.unique(row, return_counts=True) for row in rows]
    width = max(len(members) for members, _ in types)
    values, counts = np.zeros((len(types), width, cut.shape[2])), np.zeros((len(types), width))
    for number, (members, multiplicities) in enumerate(types):
        values[number, : len(members)], counts[number, : len(members)] = distinct[members], multiplicities
    return RowTypes.of(labels, values, counts)


def _distinct(tuples: Array) -> tuple[Array, Array]:
    """The distinct rows, and for each row which one it is."""
    if tuples.shape[1] > 1:
        return np.unique(tuples, axis=0, return_inverse=True)
    values, numbers = np.unique(tuples, return_inverse=True)
    return values[:, None], numbers


def _significant(values: Array) -> Array:
    """Numbers cut to eleven significant digits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa, _DIGITS - 1), exponent)
