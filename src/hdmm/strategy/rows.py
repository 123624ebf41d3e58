"""Rows of a matrix that are the same up to the order of their entries: their answers err in the same way.

Under a condition across attributes a row has one entry for each of the condition's terms at every place, and rows are
the same if these tuples are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Array, Matrix
from hdmm.workload.predicates import is_binary

_DIGITS = 12


@final
@dataclass(frozen=True)
class RowTypes:
    """For each row its type; for each type the distinct entries of such a row and how often each occurs.

    The values have the axes type, entry and term of the condition; the counts have type and entry.
    """

    labels: NDArray[np.int64]
    values: NDArray[np.float64]
    counts: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def some(self, chosen: slice) -> RowTypes:
        """Only some of the types; no row is labelled any more."""
        return RowTypes(np.empty(0, np.int64), self.values[chosen], self.counts[chosen])

    @staticmethod
    def single(rows: int) -> RowTypes:
        """All rows of one type, with the one entry 1."""
        return RowTypes(np.zeros(rows, np.int64), np.ones((1, 1, 1)), np.ones((1, 1)))


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values along the last axis, cut to twelve digits of the largest: those that differ only by rounding agree."""
    largest = abs(values).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.round(values / scale, _DIGITS) * scale


def row_types(matrix: Matrix, masks: Array) -> RowTypes:
    """Types of a matrix restricted to each of some sets of cells, one row of ``masks`` for each.

    For zeros and ones it is enough how many cells of each kind a row holds, and nothing is written out.
    """
    if not is_binary(matrix):
        return entry_types(matrix.dense().astype(float)[:, :, None] * masks.T)
    kinds, which = np.unique(masks.T, axis=0, return_inverse=True)
    members = which.reshape(-1)[:, None] == np.arange(len(kinds))
    held, labels = np.unique(matrix.apply(members.astype(np.int64)), axis=0, return_inverse=True)
    values = np.concatenate([np.zeros((1, len(masks))), kinds])
    counts = np.concatenate([matrix.shape[1] - held.sum(axis=1, keepdims=True), held], axis=1)
    return RowTypes(labels.reshape(-1), np.tile(values, (len(held), 1, 1)), counts.astype(float))


def entry_types(entries: Array) -> RowTypes:
    """Types of rows whose entries are written out, with the axes row, entry and term."""
    cut = np.stack([rounded(entries[:, :, term]) for term in range(entries.shape[2])], axis=2)
    known, which = _distinct(cut.reshape(-1, cut.shape[2]))
    rows, labels = np.unique(np.sort(which.reshape(cut.shape[:2]), axis=1), axis=0, return_inverse=True)
    pairs = [np.unique(row, return_counts=True) for row in rows]
    width = max(len(found) for found, _ in pairs)
    values, counts = np.zeros((len(pairs), width, cut.shape[2])), np.zeros((len(pairs), width))
    for place, (found, often) in enumerate(pairs):
        values[place, : len(found)], counts[place, : len(found)] = known[found], often
    return RowTypes(labels.reshape(-1), values, counts)


def _distinct(tuples: Array) -> tuple[Array, Array]:
    """The distinct rows, and for each row which one it is."""
    if tuples.shape[1] > 1:
        return np.unique(tuples, axis=0, return_inverse=True)
    values, which = np.unique(tuples, return_inverse=True)
    return values[:, None], which
