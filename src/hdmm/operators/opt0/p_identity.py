"""The search for the extra queries of a p-Identity strategy (paper, section 4.3; docs/math.md, section 5).

Starts decide the result: extra queries that are bumps at several scales, and random ones. All run for a few iterations
on blocks of cells where that makes sense, a few of them for longer, and the best to the end on every cell.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.operators.opt0.coarse import Level, levels
from hdmm.optimise.descent import Effort, Endpoint
from hdmm.optimise.projected import descend_projected

_BRANCHES = (2, 4, 8, 16)
"""Ratios between the scales of bumps to start from."""
_KEPT = 3
"""How many of the starts go on after the first iterations."""
_SMALL, _OFTENER = 1 << 13, 8
"""Points of fewer entries are searched from more random starts, in proportion, up to so many times the restarts."""
_HEAVIEST = 1e4
"""The largest weight of a cell in an extra query: at the tenfold the loss would drown in rounding."""
_ENTRIES = 1 << 19
"""Points of more entries get fewer iterations, in proportion."""


def search(gram: AxisGram, p: int, effort: Effort, iterations: int) -> Array:
    """The best extra queries found: many starts on the coarsest level, a few of them for longer, one to the end."""
    first, *finer = levels(gram, p)
    turns = _turns(first, p, iterations)
    entries = p * len(first.counts)
    often = 1 if effort.quick else effort.restarts * max(1, min(_OFTENER, _SMALL // entries))
    randoms = (effort.random(place).random((p, len(first.counts))) for place in range(often))
    starts = [*_bumps(first, p, effort), *randoms]
    found = []
    for point in starts:
        found.append(_descend(first, point, turns // 8, effort))
        if effort.over:
            break
    found.sort(key=lambda one: one.value)
    kept = found[: 1 if effort.over or effort.quick else _KEPT]
    longer = [_descend(first, one.point, turns // 2, effort) for one in kept]
    theta = first.theta(min(longer, key=lambda one: one.value).point)
    for level in finer or [first]:
        theta = level.theta(_descend(level, level.point(theta), _turns(level, p, iterations), effort, 1e-10).point)
    return theta


def improved(gram: AxisGram, theta: Array, effort: Effort, iterations: int) -> Array:
    """Better extra queries near some."""
    level = Level.of(gram)
    return _descend(level, theta, _turns(level, len(theta), iterations), effort).point


def _turns(level: Level, p: int, iterations: int) -> int:
    return max(1, round(iterations * min(1.0, _ENTRIES / (p * len(level.counts)))))


def _descend(level: Level, point: Array, turns: int, effort: Effort, tolerance: float = 1e-9) -> Endpoint:
    return descend_projected(
        level.loss, point, upper=_HEAVIEST, iterations=max(1, turns), effort=effort, tolerance=tolerance
    )


def _bumps(level: Level, p: int, effort: Effort) -> list[Array]:
    """Starts of overlapping bumps at one or several scales, each scale so many times wider than the one before."""
    scales: dict[tuple[int, ...], None] = {(p,): None, (max(1, round(0.8 * p)),): None}
    for branch in _BRANCHES:
        counts = [max(1, round(p * (1 - 1 / branch)))]
        while counts[-1] > 1 and sum(counts) < p:
            counts.append(min(max(1, round(counts[-1] / branch)), p - sum(counts)))
        scales[tuple(counts)] = None
    places = level.places()
    starts = []
    for number, scale in enumerate(scales):
        theta = 0.02 * effort.random(number).random((p, len(places)))
        row = 0
        for count in scale:
            middles = (np.arange(count) + 0.5) / count
            theta[row : row + count] += 0.5 * np.maximum(0, 1 - count * abs(places - middles[:, None]))
            row += count
        starts.append(theta * level.roots)
    return starts
