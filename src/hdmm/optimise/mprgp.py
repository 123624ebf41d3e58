"""Least squares over numbers that are not negative: conjugate gradients on faces, with a proved rate.

MPRGP (Dostál and Schöberl 2005): conjugate gradients on the numbers that are not zero. If a step would make one
negative, go as far as it is zero and take a projected gradient step. If the gradient at the zeros outweighs the rest,
release some of them. Only products with the matrix are needed. It ends when the optimality conditions hold: a gradient
of zero at positive numbers, and none below zero at zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hdmm.errors import FaultError
from hdmm.matrix import Array

_TOLERANCE = 1e-10
"""How far the optimality conditions may be off, relative to the gradient at zero."""
_MAX_ROUNDS = 50_000
"""Rounds after which it gives up."""
_REFRESH = 50
"""The gradient is computed afresh after this many rounds, so that rounding does not add up."""
_POWERS = 30
"""Rounds of power iteration for the norm of the matrix."""


def least_nonnegative(hessian: Callable[[Array], Array], linear: Array) -> Array:
    """The x ≥ 0 with the least ½·xᵀHx − bᵀx, for b in the range of the positive semidefinite H."""
    scale = float(np.linalg.norm(linear))
    if scale == 0:
        return np.zeros(len(linear))
    step = 1.7 / _norm(hessian, len(linear))  # any step below 2/‖H‖ descends; the norm is accurate to 10%
    x = np.maximum(step * linear, 0)
    gradient = hessian(x) - linear
    direction = np.where(x > 0, gradient, 0)
    for count in range(1, _MAX_ROUNDS + 1):
        free = np.where(x > 0, gradient, 0)
        held = np.where(x > 0, 0, np.minimum(gradient, 0))
        if float(np.linalg.norm(free + held)) <= _TOLERANCE * scale:
            return x
        if float(held @ held) > float(np.minimum(x / step, free) @ free):
            turned = hessian(held)
            length = float(gradient @ held) / float(held @ turned)
            x, gradient = x - length * held, gradient - length * turned
            direction = np.where(x > 0, gradient, 0)
        else:
            turned = hessian(direction)
            curvature = float(direction @ turned)
            length = float(gradient @ direction) / curvature if curvature > 0 else np.inf
            down = direction > 0
            reach = float((x[down] / direction[down]).min(initial=np.inf))
            if length <= reach:
                x, gradient = np.maximum(x - length * direction, 0), gradient - length * turned
                free = np.where(x > 0, gradient, 0)
                direction = free - float(free @ turned) / curvature * direction
            elif np.isfinite(reach):
                x, gradient = np.maximum(x - reach * direction, 0), gradient - reach * turned
                x = np.maximum(x - step * np.where(x > 0, gradient, 0), 0)
                gradient = hessian(x) - linear
                direction = np.where(x > 0, gradient, 0)
            else:  # the rest is rounding
                return x
        if count % _REFRESH == 0:
            gradient = hessian(x) - linear
            direction = np.where(x > 0, gradient, 0)
    raise FaultError("non-negative least squares did not settle; take the unbiased tables, or report the spec")


def _norm(hessian: Callable[[Array], Array], size: int) -> float:
    """The norm of H, nearly, by power iteration from a start that is orthogonal to no structured eigenvector."""
    x = 1 + 0.5 * np.cos(np.arange(size, dtype=float) ** 1.5)
    norm = 0.0
    for _ in range(_POWERS):
        x = x / float(np.linalg.norm(x))
        x = hessian(x)
        norm = float(np.linalg.norm(x))
        if norm == 0:
            return 1.0
    return norm
