"""The loss of p-Identity strategies, over all cells or with extra queries constant on blocks of cells.

Restricted to blocks, the loss of the whole domain is a problem of the same form over the blocks, not an approximation
of it. Where neighbouring cells are alike a search starts on blocks, at a fraction of the cost, and goes on with cells.
See docs/math.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.matrix.axis_gram import DenseGram

_FEWEST, _MOST = 128, 1 << 11
"""The numbers of blocks whose Gram is written out."""
_ALIKE = 0.9
"""The share of the workload that blocks must see for a search on them to be of use."""
_ENTRIES = 1 << 22


@final
@dataclass(frozen=True, eq=False)
class Level:
    """Extra queries that are constant on blocks of ``counts`` cells each.

    A point is their p × blocks array times the roots of the counts, so that a point times its own transpose is ΘΘᵀ.
    """

    gram: AxisGram
    """EᵀVE over the blocks, divided by the roots of both counts."""
    diagonal: Array
    """V_ii, summed over each block."""
    counts: Array

    @staticmethod
    def of(gram: AxisGram) -> Level:
        """Every cell by itself."""
        return Level(gram, gram.diagonal(), np.ones(gram.size, np.int64))

    @cached_property
    def roots(self) -> Array:
        """The roots of the counts."""
        return np.sqrt(self.counts)

    def loss(self, point: Array) -> tuple[float, Array]:
        """tr((AᵀA)⁻¹V) of A(Θ) and its gradient, from one product of V with p vectors.

        With ΘΘᵀ + I = LLᵀ and Z = L⁻¹Θ, (I + ΘᵀΘ)⁻¹ = I − ZᵀZ. Extra queries may be heavy and almost alike: L⁻¹ stands
        that, where the inverse of ΘΘᵀ + I would make losses up from rounding, and descents would find them.
        """
        s = 1 + point.sum(axis=0) / self.roots
        inner = point @ point.T
        np.einsum("kk->k", inner)[:] += 1
        L = np.linalg.inv(np.linalg.cholesky(inner))
        Z = L @ point
        product = self.gram.apply((Z * s).T).T * s
        each = s**2 * self.diagonal - np.einsum("ki,ki->i", Z, product)
        product -= (product @ Z.T) @ Z
        gradient: Array = L.T @ product
        np.subtract(each / (s * self.roots), gradient, out=gradient)
        gradient *= 2
        return float(each.sum()), gradient

    def theta(self, point: Array) -> Array:
        """The extra queries over all cells."""
        return np.repeat(point / self.roots, self.counts, axis=1)

    def point(self, theta: Array) -> Array:
        """The point nearest to extra queries over all cells: their means over each block."""
        low = np.cumsum(self.counts) - self.counts
        return np.add.reduceat(theta, low, axis=1) / self.roots

    def places(self) -> Array:
        """Where the middle of each block lies, from 0 to 1."""
        high = np.cumsum(self.counts)
        return (high - self.counts / 2) / high[-1]


def levels(gram: AxisGram, p: int) -> list[Level]:
    """Levels to search one after the other, from a few blocks to all cells."""
    found = [Level.of(gram)]
    blocks = gram.size // 4
    while blocks >= max(_FEWEST, 4 * p):
        if blocks <= _MOST:
            level = _blocks(gram, blocks)
            if level.gram.trace() < _ALIKE * gram.trace():
                break
            found.append(level)
        blocks //= 4
    return found[::-1]


def _blocks(gram: AxisGram, blocks: int) -> Level:
    edges = np.rint(np.linspace(0, gram.size, blocks + 1)).astype(np.int64)
    counts = np.diff(edges)
    owner = np.repeat(np.arange(blocks), counts)
    V = np.empty((blocks, blocks))
    step = max(1, _ENTRIES // gram.size)
    for low in range(0, blocks, step):
        some = np.arange(low, min(low + step, blocks))
        V[:, some] = np.add.reduceat(gram.apply((owner[:, None] == some).astype(float)), edges[:-1], axis=0)
    roots = np.sqrt(counts)
    return Level(DenseGram(V / np.multiply.outer(roots, roots)), np.add.reduceat(gram.diagonal(), edges[:-1]), counts)
