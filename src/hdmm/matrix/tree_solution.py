"""Least squares in a hierarchy by one pass up and one down (Hay et al., 2010, for any weights).

Each part has an estimate z from its own count and those below it, of variance u: from the parts below, Σz of variance
U = Σu; from its own count y of weight w, y/w of variance 1/w². So u = 1/(1/U + w²), and z is (u/U)·Σz + uw·y. From the
top down, the final estimate h of a part is shared among those below it: z + (u/U)·(h − Σz). Cells that the last level
does not tell apart get equal shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from hdmm.matrix.arrays import Array, along
from hdmm.matrix.hierarchy import starts_of


@final
class TreeSolution:
    """The shares with which measurements of a hierarchy are combined, level by level from the root."""

    def __init__(self, sizes: Sequence[Array], weights: Sequence[Array], parents: Sequence[Array]) -> None:
        self.sizes = tuple(sizes)
        self.parents = tuple(parents)
        self.depth = len(sizes) - 1
        self.measured = [np.flatnonzero(level) for level in weights]
        last = weights[-1].astype(float)
        self.starts: list[Array] = [np.empty(0, np.int64)] * len(sizes)
        """For each level where the parts begin, on the next level, that divide each of its parts."""
        self.variances: list[Array] = [np.empty(0)] * self.depth + [last**-2]
        """u."""
        self.own: list[Array] = [np.empty(0)] * self.depth + [1 / last]
        """uw: how much the part's own count counts in z."""
        self.kept: list[Array] = [np.ones(0)] * len(sizes)
        """u/U: how much the parts below it count."""
        self.shares: list[Array] = [np.ones(1)] * len(sizes)
        """A part's u over the sum U of all parts that divide the same part."""
        for level in range(self.depth - 1, -1, -1):
            parents_below, below = parents[level + 1], self.variances[level + 1]
            starts = starts_of(parents_below)
            summed = np.add.reduceat(below, starts)
            w = weights[level].astype(float)
            self.starts[level] = starts
            self.shares[level + 1] = below / summed[parents_below]
            self.variances[level] = 1 / (1 / summed + w**2)
            self.kept[level] = self.variances[level] / summed
            self.own[level] = self.variances[level] * w

    def solve(self, y: Array) -> Array:
        """The estimates of all cells."""
        ends = np.cumsum([len(measured) for measured in self.measured])
        z = along(self.own[-1], y) * y[ends[-1] - len(self.own[-1]) : ends[-1]]
        partial = [z]
        sums = []
        for level in range(self.depth - 1, -1, -1):
            below = np.add.reduceat(z, self.starts[level], axis=0)
            z = along(self.kept[level], y) * below
            measured = self.measured[level]
            z[measured] += along(self.own[level][measured], y) * y[ends[level] - len(measured) : ends[level]]
            partial.append(z)
            sums.append(below)
        h = partial.pop()
        for level in range(1, self.depth + 1):
            h = partial.pop() + along(self.shares[level], y) * (h - sums.pop())[self.parents[level]]
        return self._spread(h)

    def solve_t(self, x: Array) -> Array:
        """What `solve` does, in reverse and transposed."""
        sizes = self.sizes[-1]
        h = np.add.reduceat(x, np.cumsum(sizes) - sizes, axis=0) / along(sizes, x)
        direct = []
        for level in range(self.depth, 0, -1):
            above = np.add.reduceat(along(self.shares[level], x) * h, self.starts[level - 1], axis=0)
            h -= above[self.parents[level]]
            direct.append(h)
            h = above
        z = h
        parts = []
        for level in range(self.depth + 1):
            if level:
                z = (along(self.kept[level - 1], x) * z)[self.parents[level]] + direct.pop()
            measured = self.measured[level]
            parts.append(along(self.own[level][measured], x) * z[measured])
        return np.concatenate(parts)

    def _spread(self, h: Array) -> Array:
        sizes = self.sizes[-1]
        return h if len(sizes) == sizes.sum() else np.repeat(h / along(sizes, h), sizes, axis=0)
