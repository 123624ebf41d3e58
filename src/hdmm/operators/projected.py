"""Descent on non-negative numbers by the hundred thousand: L-BFGS, projected.

Entries that are zero and want to fall stay out of an iteration; the others follow L-BFGS's direction, cut off at zero
(Bertsekas's two-metric projection), with backtracking. An iteration costs a few passes over the entries, where the
general L-BFGS-B of `descend` sorts them.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from hdmm.matrix import Array
from hdmm.operators.descent import Effort, Found, Objective

_MEMORY = 10
_DECREASE = 1e-4
_BACKTRACKS = 20
_WINDOW = 10

Pair = tuple[Array, Array, float]
"""A step, the change of the gradient along it, and one over their product."""


def descend_projected(
    objective: Objective, start: Array, *, iterations: int, effort: Effort | None = None, tolerance: float = 1e-9
) -> Found:
    """Descend from a non-negative start, until the mean decrease of ten iterations is below ``tolerance``."""
    from scipy.linalg.blas import daxpy

    x = np.array(start, float)
    value, gradient = objective(x)
    evaluations = 1
    pairs: deque[Pair] = deque(maxlen=_MEMORY)
    recent = deque([value], maxlen=_WINDOW + 1)
    for _ in range(iterations):
        free = (x > 0) | (gradient < 0)
        direction = np.where(free, -gradient, 0.0).reshape(-1)
        shares = []
        for step, change, scale in reversed(pairs):
            shares.append(scale * float(step @ direction))
            daxpy(change, direction, a=-shares[-1])
        if pairs:
            step, change, scale = pairs[-1]
            direction *= 1 / (scale * float(change @ change))
        else:
            direction *= 0.1 * np.sqrt(x.size) / (np.linalg.norm(direction) + np.finfo(float).tiny)
        for (step, change, scale), share in zip(pairs, reversed(shares), strict=True):
            daxpy(step, direction, a=share - scale * float(change @ direction))
        direction = np.where(free, direction.reshape(x.shape), 0.0)

        slope = float(np.vdot(gradient, direction))
        length = 1.0
        for _ in range(_BACKTRACKS):
            trial = np.maximum(x + length * direction, 0)
            trial_value, trial_gradient = objective(trial)
            evaluations += 1
            step = trial - x
            if trial_value <= value + _DECREASE * float(np.vdot(gradient, step)):
                break
            if effort is not None and effort.over:
                break
            excess = trial_value - value - length * slope
            length *= min(0.5, max(0.1, -length * slope / (2 * excess))) if np.isfinite(trial_value) else 0.1
        if not trial_value < value:
            if not pairs:
                break
            pairs.clear()
            continue
        change = trial_gradient - gradient
        product = float(np.vdot(step, change))
        if product > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            pairs.append((step.reshape(-1), change.reshape(-1), 1 / product))
        x, value, gradient = trial, trial_value, trial_gradient
        recent.append(value)
        if len(recent) > _WINDOW and recent[0] - value <= _WINDOW * tolerance * abs(value):
            break
        if effort is not None and effort.over:
            break
    return Found(x, value, evaluations)
