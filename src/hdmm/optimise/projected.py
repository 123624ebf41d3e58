"""Descent on hundreds of thousands of bounded numbers: projected L-BFGS.

Entries at a bound that would cross it stay out of an iteration; the others follow L-BFGS's direction, cut off at the
bounds (Bertsekas's two-metric projection), with backtracking. An iteration costs a few passes over the entries; the
general L-BFGS-B of `descend` sorts them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from hdmm.matrix import Array
from hdmm.optimise.descent import Effort, Endpoint, Objective
from hdmm.parallel import one_blas_thread

_MEMORY = 10
"""Steps that the inverse Hessian is estimated from."""
_MIN_GRADIENT = 1e-200
"""A shorter gradient is not a direction."""
_FIRST_STEP = 0.1
"""How far the first step moves an entry, in root mean square."""
_DECREASE = 1e-4
"""The least decrease of a step, relative to what the gradient promises."""
_MAX_BACKTRACKS = 20
"""Times that a step may be shortened."""
_WINDOW = 10
"""Iterations over which the decrease is averaged."""

Pair = tuple[Array, Array, float]
"""A step, the change of the gradient along it, and one over their product."""


def descend_projected(
    objective: Objective,
    start: Array,
    *,
    upper: float = np.inf,
    iterations: int,
    effort: Effort | None = None,
    tolerance: float = 1e-9,
) -> Endpoint:
    """Descend from a start, keeping every entry between zero and ``upper``.

    It ends early if the mean relative decrease of ten iterations is below ``tolerance``, or when time is up.
    """
    with one_blas_thread():
        return _descend(objective, start, upper, iterations, effort, tolerance)


def _descend(
    objective: Objective, start: Array, upper: float, iterations: int, effort: Effort | None, tolerance: float
) -> Endpoint:
    x = np.clip(np.ascontiguousarray(start, float), 0.0, upper)
    value, gradient = objective(x)
    evaluations = 1
    pairs: deque[Pair] = deque(maxlen=_MEMORY)
    recent = deque([value], maxlen=_WINDOW + 1)
    for _ in range(iterations):
        free = np.where(gradient > 0, x > 0, x < upper)
        direction = np.where(free, _downhill(np.where(free, gradient, 0.0), pairs), 0.0)
        slope = float(np.vdot(gradient, direction))
        length = 1.0
        for _ in range(_MAX_BACKTRACKS):
            trial = np.clip(x + length * direction, 0.0, upper)
            reached, trial_gradient = objective(trial)
            evaluations += 1
            step = trial - x
            enough = reached <= value + _DECREASE * float(np.vdot(gradient, step))
            if enough or (effort is not None and effort.over):
                break
            excess = reached - value - length * slope
            length *= min(0.5, max(0.1, -length * slope / (2 * excess))) if excess > 0 else 0.5
        if reached < value:
            change = trial_gradient - gradient
            product = float(np.vdot(step, change))
            if product > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
                pairs.append((step.reshape(-1), change.reshape(-1), 1 / product))
            x, value, gradient = trial, reached, trial_gradient
            recent.append(value)
            if len(recent) > _WINDOW and recent[0] - value <= _WINDOW * tolerance * abs(value):
                break
        elif pairs:
            pairs.clear()
        else:
            break
        if effort is not None and effort.over:
            break
    return Endpoint(x, value, evaluations)


def _downhill(gradient: Array, pairs: Sequence[Pair]) -> Array:
    """Minus the gradient times the inverse Hessian that the pairs imply (the two-loop recursion)."""
    from scipy.linalg.blas import daxpy

    direction = -gradient.reshape(-1)
    if not pairs:
        direction *= _FIRST_STEP * np.sqrt(direction.size) / max(float(np.linalg.norm(direction)), _MIN_GRADIENT)
        return direction.reshape(gradient.shape)
    shares = []
    for step, change, scale in reversed(pairs):
        shares.append(scale * float(step @ direction))
        daxpy(change, direction, a=-shares[-1])
    _, change, scale = pairs[-1]
    direction *= 1 / (scale * float(change @ change))
    for (step, change, scale), share in zip(pairs, reversed(shares), strict=True):
        daxpy(step, direction, a=share - scale * float(change @ direction))
    return direction.reshape(gradient.shape)
