"""Rows of a matrix that are the same up to the order of their entries: their answers err in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Matrix
from hdmm.workload.predicates import is_binary


@final
@dataclass(frozen=True)
class RowTypes:
    """For each row its type, and for each type one row that has it."""

    labels: NDArray[np.int64]
    examples: NDArray[np.int64]

    @staticmethod
    def single(rows: int) -> RowTypes:
        """All rows of one type."""
        return RowTypes(np.zeros(rows, np.int64), np.zeros(1, np.int64))


def row_types(matrix: Matrix) -> RowTypes:
    """Types by the multiset of a row's entries: for zeros and ones, by its sum, and nothing is written out."""
    if is_binary(matrix):
        keys = matrix.apply(np.ones(matrix.shape[1], np.int64))
        _, examples, labels = np.unique(keys, return_index=True, return_inverse=True)
    else:
        keys = np.sort(matrix.dense(), axis=1)
        _, examples, labels = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return RowTypes(labels.reshape(-1).astype(np.int64), examples.astype(np.int64))
