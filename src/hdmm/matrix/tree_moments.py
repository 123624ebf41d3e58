"""How least squares in a hierarchy weighs its measurements in the sum over an interval of cells.

The transposed passes of :mod:`hdmm.matrix.tree_solution` act on the indicator of an interval. Going up, a part that is
covered has the share φ = 1, one that is not 0, and only the parts that hold an end of the interval have others. Going
down, z of a part counts T times: φ at the root, and (u/U)·T − φ + φ' for a part of share φ' below one with T and φ. So
below the parts with an end of the interval, two on each level at most, nothing but T differs from one interval to the
next. The moments of z in every part come from a pass up, and those of an interval from its ends in O(levels).
"""

from __future__ import annotations

from typing import final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.tree_solution import TreeSolution

ARRAYS = 32
"""Numbers for each part of a hierarchy: its shares, and the moments of z in it and in the parts beside it."""
_INTERVALS = 1 << 13
"""Intervals at a time: few enough that what belongs to them stays in the cache."""


@final
class TreeMoments:
    """The moments of z in every part, and their sums and maxima over the parts beside it that divide the same part."""

    def __init__(self, solution: TreeSolution) -> None:
        self._solution = solution
        self._sizes = solution.sizes[-1]
        self._starts = np.cumsum(self._sizes) - self._sizes
        own = solution.own[-1]
        moments = np.stack([own**2, own**4, own**6, own])
        self._own: list[Array] = []
        self._left: list[Array] = []
        self._right: list[Array] = []
        self._left_shares: list[Array] = []
        self._largest: list[list[Array]] = []
        for level in range(solution.depth, 0, -1):
            starts = solution.starts[level - 1]
            counts = np.diff(starts, append=moments.shape[1])
            self._own.append(moments)
            self._left.append(_before(moments, starts, counts))
            self._right.append(_before(moments, starts, counts, reverse=True))
            shares = np.stack([solution.shares[level]] * 2)
            self._left_shares.append(_before(shares, starts, counts)[0])
            self._largest.append(_maxima(moments[3], int(counts.max())) if counts.max() > 2 else [])
            own, kept = solution.own[level - 1], solution.kept[level - 1]
            sums = np.add.reduceat(moments[:3], starts, axis=1)
            largest = np.maximum.reduceat(moments[3], starts)
            powers = (own**p + kept**p * part for p, part in zip((2, 4, 6), sums, strict=True))
            moments = np.stack([*powers, np.maximum(own, kept * largest)])
        for levels in (self._own, self._left, self._right, self._left_shares):
            levels.append(np.empty(0))  # the first level has one part, and none beside it
            levels.reverse()
        self._largest.append([])
        self._largest.reverse()

    def of(self, lows: Array, highs: Array) -> Array:
        """For the sum from each low to each high end, Σc², Σc⁴, Σc⁶ and max|c| of the measurements' factors c."""
        moments = np.zeros((4, len(lows)))
        for start in range(0, len(lows), _INTERVALS):
            low, high = lows[start : start + _INTERVALS], highs[start : start + _INTERVALS]
            filled = high >= low
            first, last = self.parts(low), self.parts(high)
            within, prefix = filled & (first == last), filled & (first != last) & (low == 0)
            between = filled & ~within & ~prefix
            for chosen, moments_of in ((within, self.within), (prefix, self.prefixes), (between, self.between)):
                places = np.flatnonzero(chosen)
                if places.size:
                    moments[:, start + places] = moments_of(low[places], high[places], first[places], last[places])
        return np.ascontiguousarray(moments.T)

    def parts(self, cells: Array) -> Array:
        """The parts of the last level that hold some cells."""
        if len(self._sizes) == self._sizes.sum():  # each is one cell
            return cells
        return np.searchsorted(self._starts, cells, side="right") - 1

    def within(self, lows: Array, highs: Array, first: Array, _: Array) -> Array:
        """The moments of intervals within one part of the last level."""
        return self._single(first, (highs + 1 - lows) / self._sizes[first], 0)

    def prefixes(self, _: Array, highs: Array, __: Array, last: Array) -> Array:
        """The moments of intervals from the first cell on."""
        return self._single(last, (highs + 1 - self._starts[last]) / self._sizes[last], 1)

    def _single(self, part: Array, share: Array, before: int) -> Array:
        """The moments if one part only holds an end; ``before`` is 1 if the interval covers all parts before it."""
        solution = self._solution
        path = [(part, share)]
        for level in range(solution.depth, 0, -1):
            share = solution.shares[level][part] * share
            if before:
                share += self._left_shares[level][part]
            part = solution.parents[level][part]
            path.append((part, share))
        part, share = path.pop()
        collected = np.zeros((4, len(part)))
        t = share
        for level in range(solution.depth):
            _collect(collected, t, solution.own[level][part])
            outside = solution.kept[level][part] * t - share
            part, share = path.pop()
            _add(collected, outside + before, self._left[level + 1][:, part])
            _add(collected, outside, self._right[level + 1][:, part])
            t = outside + share
        _collect(collected, t, solution.own[-1][part])
        return collected

    def between(self, lows: Array, highs: Array, first: Array, last: Array) -> Array:
        """The moments of intervals that end in two parts of the last level."""
        solution = self._solution
        low_share = (self._starts[first] + self._sizes[first] - lows) / self._sizes[first]
        high_share = (highs + 1 - self._starts[last]) / self._sizes[last]
        path = [(first, last, low_share, high_share)]
        for level in range(solution.depth, 0, -1):
            a, b, low_share, high_share = path[-1]
            shares, left, parents = solution.shares[level], self._left_shares[level], solution.parents[level]
            up, down = parents[a], parents[b]
            beyond = left[a] + shares[a]  # the share of a and all before it
            low_share = shares[a] * low_share
            high_share = left[b] + shares[b] * high_share
            joined = np.where(a == b, low_share, low_share + high_share - beyond)
            together = up == down
            path.append(
                (up, down, np.where(together, joined, low_share + 1 - beyond), np.where(together, joined, high_share))
            )
        a, b, low_share, high_share = path.pop()
        collected = np.zeros((4, len(first)))
        low_t = high_t = low_share
        for level in range(solution.depth):
            own, kept = solution.own[level], solution.kept[level]
            left, right = self._left[level + 1], self._right[level + 1]
            same = a == b
            _collect(collected, low_t, own[a])
            _collect(collected, np.where(same, 0, high_t), own[b])
            low_out, high_out = kept[a] * low_t - low_share, kept[b] * high_t - high_share
            next_a, next_b, low_share, high_share = path.pop()
            joint = next_a == next_b
            parting = np.flatnonzero(same & ~joint)
            beside = right[:, next_a]
            if parting.size:
                beside[:, parting] = self._between(level + 1, next_a[parting], next_b[parting])
            _add(collected, low_out, left[:, next_a])
            _add(collected, low_out + ~joint, beside)
            _add(collected, np.where(same, 0, high_out + 1), left[:, next_b])
            _add(collected, np.where(joint, 0, high_out), right[:, next_b])
            a, b, low_t, high_t = next_a, next_b, low_out + low_share, high_out + high_share
        _collect(collected, low_t, solution.own[-1][a])
        _collect(collected, high_t, solution.own[-1][b])
        return collected

    def _between(self, level: int, a: Array, b: Array) -> Array:
        """The moments of the parts between a and b, which divide the same part."""
        left = self._left[level]
        moments = np.maximum(left[:, b] - left[:, a] - self._own[level][:, a], 0)
        moments[:3, b == a + 1] = 0
        moments[3] = _range_maxima(self._largest[level], a + 1, b)
        return moments


def _collect(collected: Array, t: Array, own: Array) -> None:
    """Add one factor to the moments."""
    sizes = abs(t * own)
    squares = sizes * sizes
    collected[0] += squares
    fourth = squares * squares
    collected[1] += fourth
    fourth *= squares
    collected[2] += fourth
    np.maximum(collected[3], sizes, out=collected[3])


def _add(collected: Array, t: Array, moments: Array) -> None:
    """Add the moments of parts whose z count t times; the array of moments may be overwritten."""
    squares = t * t
    moments[3] *= abs(t)
    np.maximum(collected[3], moments[3], out=collected[3])
    moments[0] *= squares
    power = squares * squares
    moments[1] *= power
    power *= squares
    moments[2] *= power
    collected[:3] += moments[:3]


def _before(values: Array, starts: Array, counts: Array, *, reverse: bool = False) -> Array:
    """The sums of some rows of values, and the maxima of the last row, over the parts before each.

    Only parts that divide the same part are added up: those from each start on, so many. In reverse, those after each.
    """
    before = np.zeros_like(values)
    for count in np.unique(counts[counts > 1]).tolist():  # a balanced hierarchy has two counts at most
        places = starts[counts == count][:, None] + np.arange(count)
        if reverse:
            places = places[:, ::-1]
        reached = values[:, places[:, :-1]]
        np.cumsum(reached[:-1], axis=2, out=reached[:-1])
        np.maximum.accumulate(reached[-1], axis=1, out=reached[-1])
        before[:, places[:, 1:]] = reached
    return before


def _maxima(values: Array, most: int) -> list[Array]:
    """The largest of 2^k neighbouring values from each on, for all k up to ``most`` values."""
    table = [values]
    while 2 << (len(table) - 1) <= most:
        step, last = 1 << (len(table) - 1), table[-1]
        table.append(np.maximum(last, np.concatenate([last[step:], np.zeros(step)])))
    return table


def _range_maxima(table: list[Array], start: Array, stop: Array) -> Array:
    """The largest value from each start to before each stop; 0 if there is none."""
    largest = np.zeros(len(start))
    powers = np.frexp(np.maximum(stop - start, 0.5))[1] - 1  # -1 if there is none
    for k, maxima in enumerate(table):
        here = np.flatnonzero(powers == k)
        largest[here] = np.maximum(maxima[start[here]], maxima[stop[here] - (1 << k)])
    return largest
