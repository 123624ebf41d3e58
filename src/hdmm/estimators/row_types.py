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

_DIGITS = 12
_ENTRIES = 1 << 24
"""Entries that are computed at a time."""

Power = Literal[2, 4, 6]
_MOMENTS: tuple[Power | Literal["largest"], ...] = (2, 4, 6, "largest")

Entries: TypeAlias = tuple[Array, Array]
"""Distinct entries with the axes type, entry and term, and how often each occurs, with the axes type and entry."""


@final
@dataclass(frozen=True, eq=False)
class RowTypes:
    """For each row its type; for each type the distinct entries of such a row and how often each occurs.

    ``moments`` holds for every type the sums of the second, fourth and sixth powers of its entries, and the largest
    size of one; it is given where there is one term, and the entries themselves are then computed only if asked for.
    """

    labels: NDArray[np.int64]
    read: Callable[[slice], Entries]
    chosen: slice
    count: int
    width: int
    """How many distinct entries a type has at most."""
    moments: NDArray[np.float64] | None

    def __len__(self) -> int:
        return self.count

    def some(self, start: int, stop: int) -> RowTypes:
        """Only some of the types; no row is labelled any more."""
        first = self.chosen.start
        stop = min(stop, self.count)
        moments = None if self.moments is None else self.moments[start:stop]
        chosen = slice(first + start, first + stop)
        return RowTypes(np.empty(0, np.int64), self.read, chosen, stop - start, self.width, moments)

    def moment(self, power: Power | Literal["largest"]) -> Array:
        """The sum of the entries' sizes to a power, or the largest size, for every type; there is one term."""
        assert self.moments is not None
        return self.moments[:, _MOMENTS.index(power)]

    @cached_property
    def _entries(self) -> Entries:
        return self.read(self.chosen)

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
        return RowTypes(
            labels.reshape(-1),
            lambda chosen: (values[chosen], counts[chosen]),
            slice(0, len(values)),
            len(values),
            values.shape[1],
            moments,
        )

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
    kinds, which = _distinct(masks.T)
    members = which.reshape(-1)[:, None] == np.arange(len(kinds))
    held, labels = _distinct(matrix.apply(members.astype(np.int64)))
    values = np.concatenate([np.zeros((1, len(masks))), kinds])
    counts = np.concatenate([matrix.shape[1] - held.sum(axis=1, keepdims=True), held], axis=1)
    return RowTypes.of(labels, np.tile(values, (len(held), 1, 1)), counts.astype(float))


def product_types(matrix: Matrix, inverse: Array) -> RowTypes:
    """Types of the rows of a product W·A⁺: by their moments, computed without ever holding the whole product."""
    rows = matrix.shape[0]
    moments = np.zeros((rows, 4))
    step = max(1, _ENTRIES // rows)
    for start in range(0, inverse.shape[1], step):
        sizes = abs(matrix.apply(inverse[:, start : start + step]))
        moments[:, :3] += np.stack([(sizes**p).sum(axis=1) for p in (2, 4, 6)], axis=1)
        moments[:, 3] = np.maximum(moments[:, 3], sizes.max(axis=1))
    _, first, labels = np.unique(_significant(moments), axis=0, return_index=True, return_inverse=True)

    def read(chosen: slice) -> Entries:
        entries = matrix.rows(first[chosen]).astype(float) @ inverse
        return entries[:, :, None], np.ones(entries.shape)

    whole = slice(0, len(first))
    return RowTypes(labels.reshape(-1), read, whole, len(first), inverse.shape[1], moments[first])


def entry_types(entries: Array) -> RowTypes:
    """Types of rows whose entries are written out, with the axes row, entry and term."""
    cut = np.stack([merge_close(entries[:, :, term]) for term in range(entries.shape[2])], axis=2)
    known, which = _distinct(cut.reshape(-1, cut.shape[2]))
    rows, labels = np.unique(np.sort(which.reshape(cut.shape[:2]), axis=1), axis=0, return_inverse=True)
    pairs = [np.unique(row, return_counts=True) for row in rows]
    width = max(len(found) for found, _ in pairs)
    values, counts = np.zeros((len(pairs), width, cut.shape[2])), np.zeros((len(pairs), width))
    for place, (found, often) in enumerate(pairs):
        values[place, : len(found)], counts[place, : len(found)] = known[found], often
    return RowTypes.of(labels, values, counts)


def _distinct(tuples: Array) -> tuple[Array, Array]:
    """The distinct rows, and for each row which one it is."""
    if tuples.shape[1] > 1:
        return np.unique(tuples, axis=0, return_inverse=True)
    values, which = np.unique(tuples, return_inverse=True)
    return values[:, None], which


def _significant(values: Array) -> Array:
    """Non-negative numbers cut to eleven significant digits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa, _DIGITS - 1), exponent)
