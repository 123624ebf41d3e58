"""How least squares in a pyramid of hats weighs its measurements in the sum over an interval of cells.

The sum has u = Σ θᵢ/wᵢ over its cells (:mod:`hdmm.matrix.hat_solution`), and weighs the hats by z = K⁻¹u. Two blocks of
each level hold an end of the interval, and only these cells and hats are looked at one by one: going up, their u and
Σ 1/wᵢ² are handed on to the outer hats; going down, z comes back. Blocks between two ends hand on what is the same for
every interval that covers them. So the variance is exact.

All other weights are small, and the sum of their squares S is what is missing from the variance. Their fourth and sixth
powers sum to at most S² and S³, and none is larger than √S. The moments are upper bounds by these amounts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.hat_solution import HatSolution, Level

_INTERVALS = 1 << 12
"""Intervals at a time."""
_ROUNDING = 1e-11
"""What rounding may hide of the other weights' squares, as a share of the variance."""


def hat_variances(solution: HatSolution, lows: Array, highs: Array) -> Array:
    """The sum of squared weights for the sum from each low to each high end."""
    variances = np.zeros(len(lows))
    first = np.flatnonzero((lows == 0) & (highs >= 0))
    variances[first] = solution.prefixes[highs[first]]
    together = lows // solution.width == highs // solution.width
    within = np.flatnonzero((lows > 0) & (highs >= lows) & together)
    for piece in _pieces(len(within), solution.width):
        chosen = within[piece]
        blocks = lows[chosen] // solution.width
        u, tau = _cell_sums(solution, blocks, lows[chosen], highs[chosen])
        variances[chosen] = tau - np.einsum("bi,bij,bj->b", u, solution.inner[0][blocks], u)
    rest = np.flatnonzero((lows > 0) & (highs >= lows) & ~together)
    for start in range(0, len(rest), _INTERVALS):
        some = rest[start : start + _INTERVALS]
        variances[some] = _Paths(solution, lows[some], highs[some]).variances
    return variances


def hat_moments(solution: HatSolution, lows: Array, highs: Array) -> Array:
    """For the sum from each low to each high end, Σc², and upper bounds of Σc⁴, Σc⁶ and max|c| of the weights c."""
    moments = np.zeros((len(lows), 4))
    filled = np.flatnonzero(highs >= lows)
    for start in range(0, len(filled), _INTERVALS):
        some = filled[start : start + _INTERVALS]
        paths = _Paths(solution, lows[some], highs[some])
        near = paths.moments()
        second = paths.variances
        rest = np.maximum(second - near[:, 0], 0) + _ROUNDING * second
        moments[some, 0] = second
        moments[some, 1] = near[:, 1] + rest**2
        moments[some, 2] = near[:, 2] + rest**3
        moments[some, 3] = np.maximum(near[:, 3], np.sqrt(rest))
    return moments


class _Step(NamedTuple):
    """A block of one level for some intervals, and what it has from their cells."""

    chosen: Array
    """The intervals."""
    blocks: Array
    solved: Array
    """G·u among the hats inside."""


@final
class _Paths:
    """The blocks that hold an end of each interval, level by level: two, or one if it holds both."""

    def __init__(self, solution: HatSolution, lows: Array, highs: Array) -> None:
        self._solution = solution
        width = solution.width
        self._lows, self._highs = lows, highs
        self._low_blocks, self._high_blocks = lows // width, highs // width
        low, high = self._low_blocks, self._high_blocks
        apart = np.flatnonzero(low != high)
        u, tau = _cell_sums(solution, high, np.maximum(lows, high * width), highs)
        low_u, low_tau = _cell_sums(solution, low[apart], lows[apart], low[apart] * width + width - 1)
        self._steps: list[tuple[_Step, _Step]] = []
        self._apart = [apart]
        for stage in solution.stages:
            low_up, low_part = np.divmod(low[apart], stage.parts)
            up, part = np.divmod(high, stage.parts)
            v = _placed(stage, part, u)
            v[apart] += stage.before[up[apart], part[apart]]
            tau[apart] += stage.tau_before[up[apart], part[apart]]
            low_v = _placed(stage, low_part, low_u) - stage.before[low_up, low_part + 1]
            low_tau = low_tau - stage.tau_before[low_up, low_part + 1]
            met = low_up == up[apart]  # what both ends add up to goes on with the high one
            v[apart[met]] += low_v[met]
            tau[apart[met]] += low_tau[met]
            low_up, low_v, low_tau = low_up[~met], low_v[~met] + stage.before[low_up[~met], -1], low_tau[~met]
            low_tau += stage.tau_before[low_up, -1]
            apart = apart[~met]
            self._apart.append(apart)
            solved, u, explained = _eliminated(stage, up, v)
            tau = tau - explained
            low_solved, low_u, explained = _eliminated(stage, low_up, low_v)
            low_tau = low_tau - explained
            everywhere = np.arange(len(lows))
            self._steps.append((_Step(everywhere, up, solved), _Step(apart, low_up, low_solved)))
            high = up
            low = low // stage.parts
        self._outer = u @ solution.outermost
        self.variances = tau - (u * self._outer).sum(axis=1)
        """The exact variances."""

    def moments(self) -> Array:
        """Σc², Σc⁴, Σc⁶ and max|c| of the weights along the paths."""
        solution = self._solution
        moments = np.zeros((len(self._lows), 4))
        z = self._outer
        everywhere = np.arange(len(z))
        _collect(moments, everywhere, z)
        low_z = np.empty((0, z.shape[1]))
        blocks = [self._high_blocks // (solution.spacings[level] // solution.width) for level in range(solution.levels)]
        low_blocks = [self._low_blocks // (spacing // solution.width) for spacing in solution.spacings]
        for number in range(solution.levels - 1, -1, -1):
            stage, (step, low_step) = solution.stages[number], self._steps[number]
            whole = _expanded(stage, step, z)
            low_whole = _expanded(stage, low_step, low_z)
            _collect(moments, step.chosen, whole[:, : stage.inside])
            _collect(moments, low_step.chosen, low_whole[:, : stage.inside])
            apart = self._apart[number]
            below = whole[apart]
            still = np.searchsorted(apart, low_step.chosen)  # those that were apart on the level above already
            below[still] = low_whole
            z = np.take_along_axis(whole, stage.places[blocks[number] % stage.parts], axis=1)
            low_z = np.take_along_axis(below, stage.places[low_blocks[number][apart] % stage.parts], axis=1)
        apart = self._apart[0]
        self._collect_cells(moments, everywhere, self._high_blocks, z)
        self._collect_cells(moments, apart, self._low_blocks[apart], low_z)
        return moments

    def _collect_cells(self, moments: Array, chosen: Array, blocks: Array, z: Array) -> None:
        for some in _pieces(len(chosen), self._solution.width):
            theta, inverse, cells = _gathered(self._solution, blocks[some])
            which = chosen[some]
            inside = (cells >= self._lows[which, None]) & (cells <= self._highs[which, None])
            _collect(moments, which, inside * inverse - (theta @ z[some, :, None])[:, :, 0])


def _cell_sums(solution: HatSolution, blocks: Array, lows: Array, highs: Array) -> tuple[Array, Array]:
    """Σ θᵢ/wᵢ and Σ 1/wᵢ² over some cells of a block of the first level."""
    u, tau = np.empty((len(blocks), 2 * solution.levels)), np.empty(len(blocks))
    for some in _pieces(len(blocks), solution.width):
        theta, inverse, cells = _gathered(solution, blocks[some])
        counted = inverse * ((cells >= lows[some, None]) & (cells <= highs[some, None]))
        u[some] = (counted[:, None, :] @ theta)[:, 0]
        tau[some] = (counted**2).sum(axis=1)
    return u, tau


def _gathered(solution: HatSolution, blocks: Array) -> tuple[Array, Array, Array]:
    """The columns of T and 1/w of all cells of some blocks, and their numbers."""
    pyramid, width = solution.pyramid, solution.width
    cells = blocks[:, None] * width + np.arange(width)
    exist = cells < solution.n
    known = np.where(exist, cells, 0)
    inverse = exist / pyramid.cells[known]
    entries = np.stack([entries[known] for entries in (*pyramid.falling, *pyramid.rising)], axis=2)
    return entries * inverse[:, :, None], inverse, cells


def _pieces(count: int, width: int) -> Iterator[slice]:
    step = max(1, (1 << 18) // width)
    return (slice(start, start + step) for start in range(0, count, step))


def _placed(stage: Level, parts: Array, u: Array) -> Array:
    """What parts of blocks have, among all hats of the blocks."""
    v = np.zeros((len(u), stage.inside + u.shape[1]))
    np.put_along_axis(v, stage.places[parts], u, axis=1)
    return v


def _groups(blocks: Array) -> Iterator[tuple[int, Array]]:
    """The intervals of every block."""
    order = np.argsort(blocks, kind="stable")
    numbers, starts = np.unique(blocks[order], return_index=True)
    return zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)


def _eliminated(stage: Level, blocks: Array, v: Array) -> tuple[Array, Array, Array]:
    """For each interval G·v among the hats inside its block, v among the outer ones without these, and vᵀGv."""
    inside = stage.inside
    solved, u = np.empty((len(v), inside)), v[:, inside:].copy()
    if len(v):
        for block, some in _groups(blocks):
            solved[some] = v[some, :inside] @ stage.G[block]
            u[some] -= v[some, :inside] @ stage.A[block]
    return solved, u, (solved * v[:, :inside]).sum(axis=1)


def _expanded(stage: Level, step: _Step, z: Array) -> Array:
    """z among all hats of the blocks, from that of the outer ones."""
    inner = step.solved.copy()
    if len(z):
        for block, some in _groups(step.blocks):
            inner[some] -= z[some] @ stage.A[block].T
    return np.concatenate([inner, z], axis=1)


def _collect(moments: Array, chosen: Array, weights: Array) -> None:
    """Add some weights of each of the chosen intervals."""
    squares = weights * weights
    if not squares.size:
        return
    moments[chosen, 0] += squares.sum(axis=1)
    moments[chosen, 3] = np.maximum(moments[chosen, 3], np.sqrt(squares.max(axis=1)))
    powers = squares * squares
    moments[chosen, 1] += powers.sum(axis=1)
    powers *= squares
    moments[chosen, 2] += powers.sum(axis=1)
