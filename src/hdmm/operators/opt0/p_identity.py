"""The search for the extra queries of a p-Identity strategy (paper, section 4.3; docs/math.md, section 5).

Starts decide the result: extra queries that are bumps at several scales, and random ones. All run for a few iterations
(on blocks of cells if neighbours are alike), a few of them for longer, and the best to the end on every cell.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.operators.opt0.coarse import CellBlocks, coarse_to_fine
from hdmm.optimise.descent import Effort, Endpoint
from hdmm.optimise.projected import descend_projected

_BRANCHES = (2, 4, 8, 16)
"""Ratios between the scales of bumps to start from."""
_KEPT = 3
"""How many of the starts go on after the first iterations."""
_SMALL = 1 << 13
"""Points of fewer entries are searched from more random starts, in proportion."""
_MAX_STARTS_PER_RESTART = 8
"""The most random starts for each restart."""
_MAX_WEIGHT = 1e4
"""The largest weight of a cell in an extra query: ten times as much, and the loss would drown in rounding errors."""
_MAX_ENTRIES = 1 << 19
"""Points of more entries get fewer iterations, in proportion."""


def search_queries(gram: AxisGram, p: int, effort: Effort, iterations: int) -> Array:
    """The best extra queries found: many starts on the coarsest blocks, a few of them for longer, one to the end."""
    coarsest, *finer = coarse_to_fine(gram, p)
    steps = _steps(coarsest, p, iterations)
    entries = p * len(coarsest.counts)
    random_starts = 1 if effort.quick else effort.restarts * max(1, min(_MAX_STARTS_PER_RESTART, _SMALL // entries))
    randoms = (effort.random(number).random((p, len(coarsest.counts))) for number in range(random_starts))
    candidates = []
    for point in [*_bumps(coarsest, p, effort), *randoms]:
        candidates.append(_descend(coarsest, point, steps // 8, effort))
        if effort.over:
            break
    candidates.sort(key=lambda candidate: candidate.value)
    kept = candidates[: 1 if effort.over or effort.quick else _KEPT]
    longer = [_descend(coarsest, candidate.point, steps // 2, effort) for candidate in kept]
    theta = coarsest.theta(min(longer, key=lambda candidate: candidate.value).point)
    for blocks in finer or [coarsest]:
        theta = blocks.theta(_descend(blocks, blocks.point(theta), _steps(blocks, p, iterations), effort, 1e-10).point)
    return theta


def improved_queries(gram: AxisGram, theta: Array, effort: Effort, iterations: int) -> Array:
    """Better extra queries near the given ones."""
    cells = CellBlocks.of(gram)
    return _descend(cells, theta, _steps(cells, len(theta), iterations), effort).point


def _steps(blocks: CellBlocks, p: int, iterations: int) -> int:
    return max(1, round(iterations * min(1.0, _MAX_ENTRIES / (p * len(blocks.counts)))))


def _descend(blocks: CellBlocks, point: Array, steps: int, effort: Effort, tolerance: float = 1e-9) -> Endpoint:
    return descend_projected(
        blocks.loss, point, upper=_MAX_WEIGHT, iterations=max(1, steps), effort=effort, tolerance=tolerance
    )


def _bumps(blocks: CellBlocks, p: int, effort: Effort) -> list[Array]:
    """Starts of overlapping bumps at one or several scales, each wider than the one before by the same ratio."""
    scales: dict[tuple[int, ...], None] = {(p,): None, (max(1, round(0.8 * p)),): None}
    for branch in _BRANCHES:
        counts = [max(1, round(p * (1 - 1 / branch)))]
        while counts[-1] > 1 and sum(counts) < p:
            counts.append(min(max(1, round(counts[-1] / branch)), p - sum(counts)))
        scales[tuple(counts)] = None
    positions = blocks.middles()
    starts = []
    for number, scale in enumerate(scales):
        theta = 0.02 * effort.random(number).random((p, len(positions)))
        row = 0
        for count in scale:
            middles = (np.arange(count) + 0.5) / count
            theta[row : row + count] += 0.5 * np.maximum(0, 1 - count * abs(positions - middles[:, None]))
            row += count
        starts.append(theta * blocks.roots)
    return starts
