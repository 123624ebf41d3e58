"""Cells that a workload does not distinguish: one column of a strategy serves them all."""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.matrix.axis_gram import DenseGram, RowsGram
from hdmm.memory.workspace import check_written

_ROUNDING = 1e-13
"""Differences smaller than this, relative to the columns themselves, are rounding errors.

Searches leave out products with a smaller share in the workload (`Encoded.sought`, `Problem.surrogate`).
"""


def kinds_of_cells(gram: AxisGram) -> tuple[Array, Array]:
    """The first cell of each kind of equal cells, and the kind of every cell: −1 for those that no query counts.

    Two cells are equal if the squared difference of their columns in W, V_ii + V_jj − 2V_ij, is within rounding error.
    A Gram kept as few rows is not written out.
    """
    diagonal = gram.diagonal()
    kinds = np.full(gram.size, -1)
    first: list[int] = []
    remaining = np.flatnonzero(diagonal > _ROUNDING * diagonal.max(initial=0.0))
    while len(remaining):
        cell = int(remaining[0])
        products = _column(gram, cell, remaining)
        scale = diagonal[cell] + diagonal[remaining]
        equal = scale - 2 * products <= _ROUNDING * scale
        equal[0] = True
        kinds[remaining[equal]] = len(first)
        first.append(cell)
        remaining = remaining[~equal]
    return np.array(first, np.int64), kinds


def _column(gram: AxisGram, cell: int, cells: Array) -> Array:
    """The entries of a Gram between one cell and several."""
    match gram:
        case RowsGram():
            return gram.rows[:, cells].T @ gram.rows[:, cell]
        case DenseGram():
            return gram.array[cells, cell]
    unit = np.zeros(gram.size)
    unit[cell] = 1.0
    return gram.apply(unit)[cells]


def entries_among(gram: AxisGram, cells: Array) -> Array:
    """The entries of a Gram between some cells, written out; refused if they would not fit."""
    check_written(len(cells), len(cells))
    if isinstance(gram, RowsGram):
        rows = gram.rows[:, cells]
        return rows.T @ rows
    return gram.dense()[np.ix_(cells, cells)]


def expand(queries: Array, kinds: Array) -> Array:
    """Queries over kinds of cells as queries over cells."""
    return np.append(queries, np.zeros((len(queries), 1), queries.dtype), axis=1)[:, kinds]
