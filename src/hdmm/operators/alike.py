"""Cells that a workload does not tell apart: one column of a strategy serves them all."""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array, Factor
from hdmm.matrix.factors import RowsGram


def alike(gram: Factor) -> tuple[Array, Array]:
    """The first of each kind of equal cells, and each cell's kind: −1 for those that no query sees.

    A Gram kept as few rows is not written out. Equal means equal in every bit: a Gram that is a sum must have been
    added up entry by entry.
    """
    cells = gram.rows.T if isinstance(gram, RowsGram) else gram.dense()
    kinds: dict[bytes, int] = {}
    which = np.full(len(cells), -1)
    for place in np.flatnonzero(gram.diagonal() > 0):
        which[place] = kinds.setdefault((cells[place] + 0.0).tobytes(), len(kinds))
    found, first = np.unique(which, return_index=True)
    return first[found >= 0], which


def among(gram: Factor, cells: Array) -> Array:
    """The entries of a Gram between some cells, written out."""
    if isinstance(gram, RowsGram):
        rows = gram.rows[:, cells]
        product: Array = rows.T @ rows
        return product
    entries: Array = gram.dense()[np.ix_(cells, cells)]
    return entries


def spread(queries: Array, which: Array) -> Array:
    """Queries over kinds of cells as queries over cells."""
    spread: Array = np.append(queries, np.zeros((len(queries), 1), queries.dtype), axis=1)[:, which]
    return spread
