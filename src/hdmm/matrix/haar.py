"""Haar wavelets over ordered cells: the total, and for each part the difference of its two halves."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix, Norm
from hdmm.matrix.by_products import ProductGram
from hdmm.matrix.gram import Gram
from hdmm.matrix.hierarchy import balanced_sizes, parents_of, starts_of
from hdmm.matrix.intervals import interval_rows, running_sums
from hdmm.matrix.leaf import INTEGER
from hdmm.matrix.solvable import Integers, Solvable

_INTERVALS = 1 << 14
"""Intervals at a time: few enough that what belongs to them stays in the cache."""
_ARRAYS = 16
"""Numbers for each cell: the parts of all levels, and what is computed from them."""
_LEFT, _RIGHT, _SINGLE = 0, 1, 2
"""The left half of a part, its right half, or a single cell."""


class _Level(NamedTuple):
    """The parts of one level, and those among them that are halved."""

    parents: Array
    """For each half, and each single cell that is handed on, the part of the level before."""
    halved: Array
    """The parts of the level before that have two halves."""
    left: Array
    """Their left halves; the right ones are the next."""
    sides: Array
    """For each half which one it is."""
    middles: Array
    """Where the right halves begin."""
    lows: Array
    ends: Array


@dataclass(frozen=True)
class _Halves(Matrix):
    """The total of n cells and, for each part of two cells or more, a sum of its left half and ± its right half."""

    n: int

    @property
    @abstractmethod
    def sign(self) -> int:
        """What a right half is multiplied by."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    @property
    def dtype(self) -> np.dtype[Any]:
        return INTEGER

    def apply(self, x: Array) -> Array:
        running = np.concatenate([np.zeros_like(x[:1]), running_sums(x)])
        answers = [running[-1:]]
        for level in self.levels:
            middle = running[level.middles]
            answers.append(middle - running[level.lows] + self.sign * (running[level.ends] - middle))
        return np.concatenate(answers)

    def apply_t(self, y: Array) -> Array:
        product, start = y[:1].astype(np.result_type(y.dtype, INTEGER)), 1
        for level in self.levels:
            part = y[start : start + len(level.halved)]
            start += len(level.halved)
            product = product[level.parents]
            product[level.left] += part
            product[level.left + 1] += self.sign * part
        return product

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self.column_norms(2)))

    def power(self, p: Norm) -> HaarSums:
        return HaarSums(self.n)

    def rows(self, index: Array) -> Array:
        spans = [np.concatenate(column) for column in zip(*(level[-3:] for level in self.levels), strict=True)]
        middles, lows, ends = spans or [np.empty(0, np.int64)] * 3
        rows = np.ones((len(index), self.n), np.int64)
        halves = index > 0
        which = index[halves] - 1
        left = interval_rows(lows[which], middles[which] - 1, self.n)
        rows[halves] = left + self.sign * interval_rows(middles[which], ends[which] - 1, self.n)
        return rows

    @cached_property
    def levels(self) -> tuple[_Level, ...]:
        """The parts that are halved, level by level."""
        sizes = balanced_sizes(self.n, 2)
        levels = []
        for above, below, parents in zip(sizes, sizes[1:], parents_of(sizes)[1:], strict=False):
            halved = np.flatnonzero(above > 1)
            ends = np.cumsum(above)[halved]
            left = starts_of(parents)[halved]
            sides = np.full(len(below), _SINGLE, np.int8)
            sides[left], sides[left + 1] = _LEFT, _RIGHT
            middles = ends - below[left + 1]
            levels.append(_Level(parents, halved, left, sides, middles, ends - above[halved], ends))
        return tuple(levels)


@final
@dataclass(frozen=True)
class HaarSums(_Halves):
    """The absolute values of Haar's entries: the total, and the sum of each part of two cells or more."""

    @property
    def sign(self) -> int:
        return 1


@final
@dataclass(frozen=True)
class Haar(_Halves, Solvable):
    """The total of n cells, and the left half less the right half of each part of two cells or more.

    The parts are those of the balanced binary tree, also if n is no power of 2. It is square and invertible: the halves
    of a part with the sum s and the difference d are (s + d)/2 and (s − d)/2.
    """

    @property
    def sign(self) -> int:
        return -1

    def solve(self, y: Array) -> Array:
        sums, start = y[:1].astype(float), 1
        for level in self.levels:
            part = y[start : start + len(level.halved)]
            start += len(level.halved)
            sums = sums[level.parents]
            sums[level.left] = (sums[level.left] + part) / 2
            sums[level.left + 1] -= sums[level.left]
        return sums

    def solve_t(self, x: Array) -> Array:
        shares = x.astype(float)
        answers = []
        for level in reversed(self.levels):
            left, right = shares[level.left], shares[level.left + 1]
            answers.append((left - right) / 2)
            shares = shares[starts_of(level.parents)]
            shares[level.halved] = (left + right) / 2
        return np.concatenate([shares, *answers[::-1]])

    def interval_moments(self, lows: Integers, highs: Integers) -> Array:
        moments = np.zeros((4, len(lows)))
        for start in range(0, len(lows), _INTERVALS):
            low, high = lows[start : start + _INTERVALS], highs[start : start + _INTERVALS]
            filled = np.flatnonzero(high >= low)
            moments[:, start + filled] = self._moments(low[filled], high[filled])
        return np.ascontiguousarray(moments.T)

    def _moments(self, low: Array, high: Array) -> Array:
        """The moments of intervals from the parts that hold their ends: only these weigh their halves differently."""
        collected = np.zeros((4, len(low)))
        low_share, high_share = np.ones(len(low)), np.ones(len(low))
        for level in reversed(self.levels):
            up, down = level.parents[low], level.parents[high]
            apart, side = low != high, level.sides[low]
            # The half beside the one with the low end is covered if it is in between, and a part of its own otherwise.
            beside = np.where(apart & (side == _LEFT), np.where(up == down, high_share, 1.0), 0.0)
            _collect(collected, np.where(side == _SINGLE, 0, (low_share - beside) / 2))
            low_share = np.where(side == _SINGLE, low_share, (low_share + beside) / 2)
            side = level.sides[high]
            beside = np.where(side == _RIGHT, 1.0, 0.0)
            _collect(collected, np.where((side == _SINGLE) | (up == down), 0, (high_share - beside) / 2))
            high_share = np.where(side == _SINGLE, high_share, (high_share + beside) / 2)
            low, high = up, down
        _collect(collected, low_share)
        return collected

    def difference_norm(self, p: Norm) -> int:
        """Two cells have opposite signs where they part, first of all in the halves of all cells, and then nothing."""
        if self.n == 1:
            return 0
        heights = ((half - 1).bit_length() for half in (self.n // 2, self.n - self.n // 2))
        return int(2**p + sum(heights))

    def rounded(self, k: int, norm: Norm) -> Haar:
        raise ValueError("its entries are integers")

    def determines(self, gram: AxisGram) -> bool:
        return True

    @property
    def solution_size(self) -> int:
        return self.n

    @property
    def solution_arrays(self) -> int:
        return _ARRAYS


def _collect(collected: Array, factors: Array) -> None:
    """Add one factor to the moments."""
    sizes = abs(factors)
    squares = sizes * sizes
    collected[0] += squares
    collected[1] += squares * squares
    collected[2] += squares * squares * squares
    np.maximum(collected[3], sizes, out=collected[3])
