"""Neighbouring cells that no question tells apart, merged before a search: a few ranges see few groups of cells.

Cells between two neighbouring ends of the asked intervals have equal columns in the workload. A strategy for one cell
of each group serves them all: its columns are repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Array, AxisGram, Dense, Identity, Tree, many_cells
from hdmm.matrix.axis_gram import DenseGram, IdentityGram, RowsGram, SumGram
from hdmm.matrix.intervals import Squares, interval_rows
from hdmm.operators.base import Solution

_MAX_GROUPS = 1 << 12
"""The most groups of cells that are searched as cells of their own."""
_MAX_ENTRIES = 1 << 25
"""The most entries of a strategy that is written out over all cells; beyond, each group is counted by itself."""

_MAX_WORK = 1 << 33
"""The most multiplications of a row with another one: some seconds for the pseudo-inverse of such a strategy."""


@final
@dataclass(frozen=True, eq=False)
class MergedCells:
    """A Gram over groups of neighbouring cells, and how many cells each group has."""

    gram: AxisGram
    widths: NDArray[np.int64]

    @property
    def searched(self) -> bool:
        """Whether a strategy for the groups can be written out over all cells."""
        return not isinstance(self.gram, SumGram) and self._fits(len(self.widths))

    @property
    def counts(self) -> Solution:
        """Each group counted by itself."""
        groups = len(self.widths)
        counts = Tree([self.widths.sum(keepdims=True), self.widths], [np.zeros(1, int), np.ones(groups, int)])
        return Solution(counts, self.gram.trace())

    def expanded(self, solution: Solution) -> Solution:
        """The solution for all cells from that for the groups."""
        if isinstance(solution.matrix, Identity) or not self._fits(solution.matrix.shape[0]):
            return replace(self.counts, bound=solution.bound)
        return replace(solution, matrix=Dense(np.repeat(solution.matrix.dense(), self.widths, axis=1)))

    def _fits(self, rows: int) -> bool:
        cells = int(self.widths.sum())
        return rows * cells <= _MAX_ENTRIES and rows**2 * cells <= _MAX_WORK


def merged_cells(gram: AxisGram) -> MergedCells | None:
    """A Gram over many cells as one over few groups of neighbours; None if it tells too many cells apart."""
    squares = gram.as_squares() if many_cells(gram.size) else None
    if squares is None:
        return None
    steps = np.flatnonzero((squares.vectors[1:] != squares.vectors[:-1]).any(axis=1)) + 1
    ends = np.unique(np.concatenate([[0, gram.size], squares.intervals.lows, squares.intervals.highs + 1, steps]))
    if len(ends) - 1 > _MAX_GROUPS:
        return None
    return MergedCells(_among_groups(squares, ends), np.diff(ends))


def _among_groups(squares: Squares, ends: Array) -> AxisGram:
    """The Gram over one cell of each group."""
    groups = len(ends) - 1
    vectors = squares.vectors[ends[:-1]].T
    weights = np.concatenate([squares.interval_weights, squares.vector_weights])
    lows = np.searchsorted(ends, squares.intervals.lows)
    highs = np.searchsorted(ends, squares.intervals.highs, side="right") - 1
    alone = not len(vectors) and len(lows) == groups == len(np.unique(lows)) and (lows == highs).all()
    if alone and (weights == weights[0]).all():
        return SumGram(((float(weights[0]), IdentityGram(groups)),))
    rows = np.concatenate([interval_rows(lows, highs, groups).astype(float), vectors])
    if len(rows) < groups and (weights >= 0).all():
        return RowsGram(np.sqrt(weights)[:, None] * rows)
    return DenseGram(rows.T @ (weights[:, None] * rows))
