"""The dual of OPT_0 under Gaussian noise: a weight v on every cell, moved until all columns have the same norm.

For every v > 0, (tr M^½)² / Σv with M = diag(v)^½ V diag(v)^½ bounds the error of all strategies from below. The best
weights are those for which X = diag(v)^-½ M^½ diag(v)^-½ has a constant diagonal: then X is the best strategy's AᵀA.
"""

from __future__ import annotations

from typing import final

import numpy as np

from hdmm.matrix import Array

_POWER = 1.9
"""v ← v·diag(X)^p: p = 2 is Newton's step if V is diagonal, and a little less is safe otherwise.

See docs/math.md, section 4.
"""
_MEMORY = 3
"""How many former steps are combined with the next one."""
_MAX_GROWTH = 1.5
"""If the squared step grows by more than this ratio, former steps are forgotten: they no longer help."""
_LEAST_DIAGONAL = 1e-6
"""The least entry of X's diagonal that is used, relative to the mean: some are zero up to rounding."""
_LEAST_LOG_WEIGHT = -20.0
"""The logarithm of the smallest weight, relative to the largest: the best weight of some cells is zero."""


@final
class Relaxation:
    """The over-relaxed fixed point with Anderson acceleration, which combines the last few steps into a better one.

    It moves log v. ``count`` is the number of cells that each weight stands for.
    """

    def __init__(self, count: Array | float = 1.0) -> None:
        self._count = count
        self._past: list[tuple[Array, Array]] = []
        self._length = np.inf

    def move(self, weights: Array, diagonal: Array) -> Array:
        """The next weights, from the diagonal of X at these."""
        share = self._count * weights
        point = np.log(weights)
        step = _POWER * np.log(np.maximum(diagonal * (share.sum() / (share @ diagonal)), _LEAST_DIAGONAL))
        length = float(share @ step**2 / share.sum())
        if length > _MAX_GROWTH * self._length:
            self._past.clear()
        self._length = length
        self._past = [*self._past[-_MEMORY:], (point, step)]
        target = point + step
        if len(self._past) > 1:
            points, steps = (np.diff(np.stack(past, axis=1)) for past in zip(*self._past, strict=True))
            root = np.sqrt(share)
            shares = np.linalg.lstsq(root[:, None] * steps, root * step, rcond=1e-8)[0]
            target = target - (points + steps) @ shares
        return np.exp(np.maximum(target - target.max(), _LEAST_LOG_WEIGHT))


def unevenness(weights: Array, diagonal: Array) -> float:
    """The variance of the diagonal of X over its squared mean; the gap of the bound is about as large."""
    mean = np.average(diagonal, weights=weights)
    return float(np.average((diagonal / mean - 1) ** 2, weights=weights))
