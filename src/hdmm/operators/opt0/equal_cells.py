"""Cells that a workload does not tell apart: one column of a strategy serves them all."""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.matrix.axis_gram import DenseGram, RowsGram
from hdmm.memory.workspace import check_written

_ROUNDING = 1e-13
"""Differences that are smaller than this, relative to the columns themselves, are rounding.

Searches see no product with a smaller share in the workload (`Encoded.sought`, `Problem.surrogate`).
"""


def alike(gram: AxisGram) -> tuple[Array, Array]:
    """The first of each kind of equal cells, and each cell's kind: −1 for those that no query sees.

    Two cells are equal where the squared difference of their columns in W, V_ii + V_jj − 2V_ij, is nothing but
    rounding. A Gram kept as few rows is not written out.
    """
    diagonal = gram.diagonal()
    which = np.full(gram.size, -1)
    first: list[int] = []
    left = np.flatnonzero(diagonal > _ROUNDING * diagonal.max(initial=0.0))
    while len(left):
        one = int(left[0])
        products = _column(gram, one, left)
        scale = diagonal[one] + diagonal[left]
        equal = scale - 2 * products <= _ROUNDING * scale
        equal[0] = True
        which[left[equal]] = len(first)
        first.append(one)
        left = left[~equal]
    return np.array(first, np.int64), which


def _column(gram: AxisGram, cell: int, cells: Array) -> Array:
    """The entries of a Gram between one cell and some."""
    match gram:
        case RowsGram():
            column: Array = gram.rows[:, cells].T @ gram.rows[:, cell]
        case DenseGram():
            column = gram.array[cells, cell]
        case _:
            unit = np.zeros(gram.size)
            unit[cell] = 1.0
            column = gram.apply(unit)[cells]
    return column


def among(gram: AxisGram, cells: Array) -> Array:
    """The entries of a Gram between some cells, written out; refused where they would not fit."""
    check_written(len(cells), len(cells))
    if isinstance(gram, RowsGram):
        rows = gram.rows[:, cells]
        return rows.T @ rows
    return gram.dense()[np.ix_(cells, cells)]


def spread(queries: Array, which: Array) -> Array:
    """Queries over kinds of cells as queries over cells."""
    return np.append(queries, np.zeros((len(queries), 1), queries.dtype), axis=1)[:, which]
