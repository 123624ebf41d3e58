"""The variances of sums over intervals of cells if a folded convolution was measured, each cell rescaled.

Cell i of the estimate is u_i times a variable of covariance Z_ij = b(i − j) + h(i + j), with the two parts of one
kernel. The variance of an interval is Σ u_i Z_ij u_j over its cells. There are three ways to many of them:

- prefixes: from one to the next it grows by 2u_j·Σ_{i<j} Z_ij u_i + Z_jj u_j². The part in b of these sums is one
  convolution; that in h is one on every pair of neighbouring halves of blocks of 2, 4, 8, … cells.
- intervals of one length: the next one loses its first cell and gains a last one, whose sums are differences of such
  sums; or, if it is short, pair by pair of its cells.
- few others: two fast transforms for each.
"""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.fourier import Basis, at_sums, transform, weights_of

_TRANSFORM = 30.0
"""What a cell costs in a fast transform, in pairs of cells."""
_SLIDING = 40 * _TRANSFORM
"""What a cell costs where intervals of one length slide over all cells, or prefixes grow."""
_AT_A_TIME = 1 << 22
"""Entries of work arrays."""


@final
class FoldedVariances:
    """Variances with the covariance diag(u)·Z·diag(u)."""

    def __init__(self, basis: Basis, values: Array, u: Array) -> None:
        self._basis: Basis = basis
        self._u = u
        self._b = values[: len(u)]
        self._h = at_sums(basis, values)
        self._weights = weights_of(basis, values)
        self._own = u**2 * (values[0] + self._h[::2])
        """Z_jj u_j²."""

    def of(self, lows: Array, highs: Array) -> Array:
        """The variance of every interval; 0 for an empty one."""
        n = len(self._u)
        variances = np.zeros(len(lows))
        single, prefix = lows == highs, (lows == 0) & (highs > 0)
        variances[single] = self._own[lows[single]]
        places = np.flatnonzero(prefix)
        if len(places) * _TRANSFORM > _SLIDING:
            variances[places] = self._prefixes[highs[places]]
        elif places.size:
            variances[places] = self._by_transforms(lows[places], highs[places])
        places = np.flatnonzero((highs > lows) & ~prefix)
        lengths = highs[places] - lows[places] + 1
        order = np.argsort(lengths, kind="stable")
        cuts = np.flatnonzero(np.diff(lengths[order])) + 1
        for group in np.split(places[order], cuts) if places.size else ():
            low, length = lows[group], int(highs[group[0]] - lows[group[0]] + 1)
            costs = len(group) * float(length) ** 2 / 2, len(group) * n * _TRANSFORM, n * _SLIDING
            if min(costs) == costs[0]:
                variances[group] = self._by_pairs(low, length)
            elif min(costs) == costs[1]:
                variances[group] = self._by_transforms(low, low + length - 1)
            else:
                variances[group] = self._sliding(length)[low]
        return np.maximum(variances, 0.0)

    @cached_property
    def _before(self) -> Array:
        """For every cell u_j·Σ_{i<j} Z_ij u_i."""
        return self._u * (_causal(self._u, self._b) + _triangle(self._u, self._h))

    @cached_property
    def _prefixes(self) -> Array:
        """The variances of all prefixes."""
        return np.cumsum(2 * self._before + self._own)

    def _by_transforms(self, lows: Array, highs: Array) -> Array:
        """Each interval by itself: the squares of its waves, weighted."""
        n, cells = len(self._u), np.arange(len(self._u))[:, None]
        variances = np.empty(len(lows))
        step = max(1, _AT_A_TIME // n)
        for start in range(0, len(lows), step):
            some = slice(start, start + step)
            inside = (cells >= lows[some]) & (cells <= highs[some])
            variances[some] = self._weights @ transform(self._basis, inside * self._u[:, None]) ** 2
        return variances

    def _by_pairs(self, lows: Array, length: int) -> Array:
        """Intervals of one length, cell by cell and pair by pair."""
        variances = np.empty(len(lows))
        cells = np.arange(length)
        step = max(1, _AT_A_TIME // length)
        for start in range(0, len(lows), step):
            at = lows[start : start + step, None] + cells
            u = self._u[at]
            sums = self._own[at].sum(axis=1)
            for distance in range(1, length):
                pairs = u[:, distance:] * u[:, :-distance]
                sums += 2 * np.sum(pairs * (self._b[distance] + self._h[2 * at[:, :-distance] + distance]), axis=1)
            variances[start : start + step] = sums
        return variances

    def _sliding(self, length: int) -> Array:
        """All intervals of one length, from each cell on."""
        u, b, h = self._u, self._b, self._h
        near = np.where(np.arange(len(b)) < length, b, 0.0)
        gained = _causal(u, near) + _triangle(u, h) - _triangle_before(u, h, length)
        lost = (_causal(u[::-1], near) + _triangle(u[::-1], h[::-1]) - _triangle_before(u[::-1], h[::-1], length))[::-1]
        gained, lost = 2 * u * gained + self._own, 2 * u * lost + self._own
        first = self._by_transforms(np.array([0]), np.array([length - 1]))
        return np.cumsum(np.concatenate([first, gained[length:] - lost[:-length]]))


def _causal(u: Array, b: Array) -> Array:
    """For every j Σ_{i<j} b(j − i)·u_i."""
    from scipy import fft

    n = len(u)
    size = fft.next_fast_len(2 * n, real=True)
    kernel = np.concatenate([[0.0], b[1:]])
    return fft.irfft(fft.rfft(u, size) * fft.rfft(kernel, size), size)[:n]


def _triangle(u: Array, h: Array) -> Array:
    """For every j Σ_{i<j} h(i + j)·u_i: every pair meets in the two halves of one block, where it is a correlation."""
    from scipy import fft

    n = len(u)
    size = 1 << (n - 1).bit_length()
    u = np.concatenate([u, np.zeros(size - n)])
    h = np.concatenate([h, np.zeros(2 * size - len(h))])
    sums = np.zeros(size)
    half = size // 2
    while half:
        blocks, places = u.reshape(-1, 2, half)[:, 0], h.reshape(-1, 4 * half)[:, half : 3 * half]
        products = np.conj(fft.rfft(blocks, 2 * half)) * fft.rfft(places, 2 * half)
        sums.reshape(-1, 2, half)[:, 1] += fft.irfft(products, 2 * half)[:, :half]
        half //= 2
    return sums[:n]


def _triangle_before(u: Array, h: Array, distance: int) -> Array:
    """For every j Σ_{i≤j−distance} h(i + j)·u_i."""
    sums = np.zeros(len(u))
    rest = len(u) - distance + 1
    if rest > 1:
        sums[distance - 1 :] = _triangle(u[:rest], h[distance - 1 : distance + 2 * rest - 2])
    return sums
