"""The entries of a pyramid of hats: a weight for each cell, and sums over overlapping pieces of ordered cells.

Each level has knots at multiples of its spacing s, from 0 to the first one that is not below the number of cells. A
query belongs to each knot. It counts the cells less than s away, so that each cell is counted by two queries of each
level: that of the knot on its left, by a falling entry, and that of the knot on its right, by a rising one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array, along
from hdmm.matrix.base import Matrix, Norm
from hdmm.matrix.by_products import ProductGram
from hdmm.matrix.gram import Gram


@final
@dataclass(frozen=True, eq=False)
class Pyramid(Matrix):
    """The cells one by one with their weights, and then the sums of each level from its first knot to its last."""

    spacings: tuple[int, ...]
    cells: Array
    falling: tuple[Array, ...]
    """For each level and cell its entry in the sum of the knot on its left."""
    rising: tuple[Array, ...]
    """For each level and cell its entry in the sum of the knot on its right."""

    @property
    def shape(self) -> tuple[int, int]:
        n = len(self.cells)
        return n + sum(knots(n, spacing) for spacing in self.spacings), n

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.cells.dtype

    def apply(self, x: Array) -> Array:
        return np.concatenate([along(self.cells, x) * x, self.hats(x)])

    def hats(self, x: Array) -> Array:
        """The products of the sums alone."""
        n = len(self.cells)
        sums = []
        for spacing, falling, rising in zip(self.spacings, self.falling, self.rising, strict=True):
            starts = np.arange(0, n, spacing)
            level = np.zeros((knots(n, spacing), *x.shape[1:]), np.result_type(self.dtype, x.dtype))
            level[:-1] = np.add.reduceat(along(falling, x) * x, starts, axis=0)
            level[1:] += np.add.reduceat(along(rising, x) * x, starts, axis=0)
            sums.append(level)
        return np.concatenate(sums)

    def apply_t(self, y: Array) -> Array:
        n = len(self.cells)
        return along(self.cells, y) * y[:n] + self.hats_t(y[n:])

    def hats_t(self, y: Array) -> Array:
        """The transpose of the sums alone."""
        n = len(self.cells)
        product = np.zeros((n, *y.shape[1:]), np.result_type(self.dtype, y.dtype))
        start = 0
        for spacing, falling, rising in zip(self.spacings, self.falling, self.rising, strict=True):
            level = y[start : start + knots(n, spacing)]
            start += len(level)
            left = np.arange(n) // spacing
            product += along(falling, y) * level[left]
            product += along(rising, y) * level[left + 1]
        return product

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self.column_norms(2)))

    def power(self, p: Norm) -> Pyramid:
        levels = (tuple(entries**p for entries in side) for side in (self.falling, self.rising))
        return Pyramid(self.spacings, self.cells**p, *levels)

    def rows(self, index: Array) -> Array:
        n = len(self.cells)
        rows = np.zeros((len(index), n), self.dtype)
        single = np.flatnonzero(index < n)
        rows[single, index[single]] = self.cells[index[single]]
        first = n
        for spacing, falling, rising in zip(self.spacings, self.falling, self.rising, strict=True):
            count = knots(n, spacing)
            for row in np.flatnonzero((index >= first) & (index < first + count)).tolist():
                middle = int(index[row] - first) * spacing
                left, right = max(middle - spacing, 0), middle + spacing
                rows[row, left:middle] = rising[left:middle]
                rows[row, middle:right] = falling[middle:right]
            first += count
        return rows


def knots(n: int, spacing: int) -> int:
    """How many knots a level has."""
    return -(-n // spacing) + 1
