"""Rows of a matrix that are the same up to the order of their entries: their answers err in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Matrix
from hdmm.workload.predicates import is_binary

_DIGITS = 12


@final
@dataclass(frozen=True)
class RowTypes:
    """For each row its type; for each type the distinct entries of such a row and how often each occurs."""

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
        return RowTypes(np.zeros(rows, np.int64), np.ones((1, 1)), np.ones((1, 1)))


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values along the last axis, cut to twelve digits of the largest: those that differ only by rounding agree."""
    largest = abs(values).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.round(values / scale, _DIGITS) * scale


def row_types(matrix: Matrix) -> RowTypes:
    """Types by the multiset of a row's entries: for zeros and ones, by its sum, and nothing is written out."""
    size = matrix.shape[1]
    if is_binary(matrix):
        sums, labels = np.unique(matrix.apply(np.ones(size, np.int64)), return_inverse=True)
        values = np.tile([0.0, 1.0], (len(sums), 1))
        return RowTypes(labels.reshape(-1), values, np.stack([size - sums, sums], axis=1).astype(float))
    rows = np.sort(rounded(matrix.dense().astype(float)), axis=1)
    distinct, labels = np.unique(rows, axis=0, return_inverse=True)
    pairs = [np.unique(row, return_counts=True) for row in distinct]
    width = max(len(values) for values, _ in pairs)
    values, counts = np.zeros((len(pairs), width)), np.zeros((len(pairs), width))
    for place, (found, often) in enumerate(pairs):
        values[place, : len(found)], counts[place, : len(found)] = found, often
    return RowTypes(labels.reshape(-1), values, counts)
