"""The loss of p-Identity strategies, over all cells or with extra queries constant on blocks of cells.

Restricted to blocks, the loss of the whole domain is a problem of the same form over the blocks, not an approximation
of it. If neighbouring cells are alike a search starts on blocks, at a fraction of the cost, and goes on with cells.
See docs/math.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.matrix.axis_gram import DenseGram

_MIN_BLOCKS = 128
"""With fewer blocks, a search would save too little."""
_MAX_BLOCKS = 1 << 11
"""The most blocks whose Gram is written out."""
_LEAST_SHARE = 0.9
"""The share of the workload's trace that blocks must keep for a search on them to be useful."""
_MAX_ENTRIES = 1 << 22
"""The most entries that are written out at a time."""


@final
@dataclass(frozen=True, eq=False)
class CellBlocks:
    """Extra queries that are constant on blocks of ``counts`` cells each.

    A point is their p × blocks array times the roots of the counts, so that a point times its own transpose is ΘΘᵀ.
    """

    gram: AxisGram
    """EᵀVE over the blocks, divided by the roots of both counts."""
    diagonal: Array
    """V_ii, summed over each block."""
    counts: Array

    @staticmethod
    def of(gram: AxisGram) -> CellBlocks:
        """Every cell by itself."""
        return CellBlocks(gram, gram.diagonal(), np.ones(gram.size, np.int64))

    @cached_property
    def roots(self) -> Array:
        """The roots of the counts."""
        return np.sqrt(self.counts)

    def loss(self, point: Array) -> tuple[float, Array]:
        """tr((AᵀA)⁻¹V) of A(Θ) and its gradient, from one product of V with p vectors.

        With ΘΘᵀ + I = LLᵀ and Z = L⁻¹Θ, (I + ΘᵀΘ)⁻¹ = I − ZᵀZ. Extra queries may be heavy and almost equal: L⁻¹ stays
        accurate then. The inverse of ΘΘᵀ + I would not, and descents would find losses that are rounding errors.
        """
        s = 1 + point.sum(axis=0) / self.roots
        inner = point @ point.T
        np.einsum("kk->k", inner)[:] += 1
        L = np.linalg.inv(np.linalg.cholesky(inner))
        Z = L @ point
        product = self.gram.apply((Z * s).T).T * s
        losses = s**2 * self.diagonal - np.einsum("ki,ki->i", Z, product)
        product -= (product @ Z.T) @ Z
        gradient = L.T @ product
        np.subtract(losses / (s * self.roots), gradient, out=gradient)
        gradient *= 2
        return float(losses.sum()), gradient

    def theta(self, point: Array) -> Array:
        """The extra queries over all cells."""
        return np.repeat(point / self.roots, self.counts, axis=1)

    def point(self, theta: Array) -> Array:
        """The point nearest to extra queries over all cells: their means over each block."""
        low = np.cumsum(self.counts) - self.counts
        return np.add.reduceat(theta, low, axis=1) / self.roots

    def middles(self) -> Array:
        """The middle of each block, on a scale from 0 to 1."""
        high = np.cumsum(self.counts)
        return (high - self.counts / 2) / high[-1]


def coarse_to_fine(gram: AxisGram, p: int) -> list[CellBlocks]:
    """Blocks to search on one after the other, from a few large ones to single cells."""
    levels = [CellBlocks.of(gram)]
    count = gram.size // 4
    while count >= max(_MIN_BLOCKS, 4 * p):
        if count <= _MAX_BLOCKS:
            blocks = _equal_blocks(gram, count)
            if blocks.gram.trace() < _LEAST_SHARE * gram.trace():
                break
            levels.append(blocks)
        count //= 4
    return levels[::-1]


def _equal_blocks(gram: AxisGram, count: int) -> CellBlocks:
    edges = np.rint(np.linspace(0, gram.size, count + 1)).astype(np.int64)
    counts = np.diff(edges)
    block_of_cell = np.repeat(np.arange(count), counts)
    V = np.empty((count, count))
    step = max(1, _MAX_ENTRIES // gram.size)
    for low in range(0, count, step):
        columns = np.arange(low, min(low + step, count))
        members = (block_of_cell[:, None] == columns).astype(float)
        V[:, columns] = np.add.reduceat(gram.apply(members), edges[:-1], axis=0)
    roots = np.sqrt(counts)
    diagonal = np.add.reduceat(gram.diagonal(), edges[:-1])
    return CellBlocks(DenseGram(V / np.multiply.outer(roots, roots)), diagonal, counts)
