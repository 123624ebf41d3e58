"""Queries on one attribute scaled so that all columns have the same absolute sum, and no sensitivity is wasted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Array

FLOOR = 1e-12
"""The least entry of a query: of rows that a descent may still raise."""
_SHARPNESS = 50.0
"""How close the smooth maximum of column sums is to their maximum."""


@final
@dataclass(frozen=True, eq=False)
class Filling:
    """How the finest blocks of an attribute use what the others leave of the sensitivity.

    The sums of the other blocks' columns are u. Those of the finest, g, are scaled by (T + c − u)/g with a smooth
    maximum T of u, so that every column sums to T + c.
    """

    group: Sequence[int]
    fine: Sequence[int]
    classes: Sequence[NDArray[np.int64]]
    """For every block of the group its class of each cell."""
    cells: NDArray[np.int64]
    """For every class of the finest blocks, its cell with the largest u."""
    shares: Array
    """How the smooth maximum moves with u at these cells."""
    sums: Array
    """g."""
    factors: Array
    """(T + c − u)/g."""
    sum: float
    """T + c."""

    @staticmethod
    def of(group: Sequence[int], classes: Sequence[NDArray[np.int64]], pieces: Sequence[Array], rest: float) -> Filling:
        """The scales for queries of the group, with c = ``rest``."""
        finest = max(classes, key=lambda labels: int(labels.max()))
        fine = [number for number, labels in zip(group, classes, strict=True) if np.array_equal(labels, finest)]
        used, sums = np.zeros(len(finest)), np.zeros(int(finest.max()) + 1)
        for number, labels in zip(group, classes, strict=True):
            if number in fine:
                sums += pieces[number].sum(axis=0)
            else:
                used += pieces[number].sum(axis=0)[labels]
        order = np.lexsort((-used, finest))
        cells = order[np.searchsorted(finest[order], np.arange(len(sums)))]
        most = used[cells]
        shares = np.exp(_SHARPNESS * (most - most.max()))
        total = float(most.max() + np.log(shares.sum()) / _SHARPNESS) + rest
        return Filling(group, fine, classes, cells, shares / shares.sum(), sums, (total - most) / sums, total)

    @staticmethod
    def needed(group: Sequence[int], classes: Sequence[NDArray[np.int64]], pieces: Sequence[Array]) -> float:
        """The c at which no column of the finest queries is scaled down, if that is possible."""
        empty = Filling.of(group, classes, pieces, 0.0)
        return max(float((empty.sums * (1 - empty.factors)).max()), FLOOR)

    def pull_back(self, pieces: Sequence[Array], gradients: list[Array], slope: float) -> Array:
        """Turn gradients by the scaled queries into gradients by the queries, and return that by c.

        ``slope`` is that of the sum itself.
        """
        by_factor = np.zeros(len(self.sums))
        for number in self.fine:
            by_factor += (gradients[number] * pieces[number]).sum(axis=0)
            gradients[number] = gradients[number] * self.factors
        by_sum = slope + float((by_factor / self.sums).sum())
        by_used = by_sum * self.shares - by_factor / self.sums
        by_sums = -by_factor * self.factors / self.sums
        by_cell = np.zeros(len(self.classes[0]))
        by_cell[self.cells] = by_used
        for number, labels in zip(self.group, self.classes, strict=True):
            if number in self.fine:
                gradients[number] = gradients[number] + by_sums
            else:
                gradients[number] = gradients[number] + np.bincount(
                    labels, weights=by_cell, minlength=gradients[number].shape[1]
                )
        return np.array([[by_sum]])
