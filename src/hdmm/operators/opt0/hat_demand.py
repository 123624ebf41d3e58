"""What a Gram asks of a pyramid of hats: prefixes, single cells, other intervals, and a few vectors."""

from __future__ import annotations

from typing import final

import numpy as np

from hdmm.matrix import AxisGram, Hats

_SAMPLED = 1 << 10
"""The most intervals, other than prefixes and those within single blocks, by which candidates are compared."""
_GOLDEN = (5**0.5 - 1) / 2


@final
class HatDemand:
    """A Gram as a sum of squares: of intervals and vectors. Candidates are compared by a sample of the intervals."""

    def __init__(self, gram: AxisGram) -> None:
        squares = gram.as_squares()
        if squares is None:
            raise ValueError("the Gram is no sum of squares of intervals and a few vectors")
        self.n = n = gram.size
        lows, highs = squares.intervals
        weights = squares.interval_weights
        filled = highs >= lows
        first = filled & (lows == 0)
        self.prefixes = np.bincount(highs[first], weights[first], minlength=n)
        """For every prefix its weight."""
        single = filled & (lows > 0) & (lows == highs)
        self.cells = np.bincount(lows[single], weights[single], minlength=n)
        """For every cell by itself its weight."""
        rest = np.flatnonzero(filled & (lows > 0) & ~single & (weights != 0))
        self.lows, self.highs, self.weights = lows[rest], highs[rest], weights[rest]
        self.vectors, self.vector_weights = squares.vectors, squares.vector_weights

    @property
    def simple(self) -> bool:
        """Whether it has no intervals but prefixes and single cells."""
        return not len(self.lows)

    @property
    def sampled(self) -> HatDemand:
        """Fewer intervals, of as much weight together, spread over all of them."""
        count = len(self.lows)
        if count <= _SAMPLED:
            return self
        order = np.lexsort((self.highs, self.lows, self.highs - self.lows))
        places = order[np.unique((np.arange(_SAMPLED) * _GOLDEN % 1 * count).astype(np.int64))]
        fewer: HatDemand = object.__new__(HatDemand)
        fewer.__dict__ |= self.__dict__
        fewer.lows, fewer.highs = self.lows[places], self.highs[places]
        fewer.weights = self.weights[places] * (self.weights.sum() / self.weights[places].sum())
        return fewer

    def error(self, hats: Hats) -> float:
        """tr((AᵀA)⁻¹V)."""
        solution = hats.solution
        total = float(self.prefixes @ solution.prefixes)
        if self.cells.any():
            cells = np.arange(self.n)
            total += float(self.cells @ hats.interval_variances(cells, cells))
        if len(self.lows):
            total += float(self.weights @ hats.interval_variances(self.lows, self.highs))
        if len(self.vector_weights):
            total += float(self.vector_weights @ (hats.solve_t(self.vectors) ** 2).sum(axis=0))
        return total
