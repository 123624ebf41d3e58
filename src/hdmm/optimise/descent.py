"""Calls of scipy's optimisers: descent on smooth functions of non-negative numbers; and the effort of a search."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from time import time
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.parallel import one_blas_thread

Objective = Callable[[Array], tuple[float, Array]]
"""From a point to the value there and the gradient."""


@final
@dataclass(frozen=True)
class Effort:
    """How hard to search: the number of starts, the seed of random ones, and when to stop with the best so far."""

    restarts: int = 5
    seed: int = 0
    deadline: float | None = None
    """Wall-clock deadline (`time.time()`), valid across machines; None for no limit."""
    beat: float = inf
    """The loss of the best strategy so far: a search that is far above it after its first rounds stops."""
    quick: bool = False
    """Whether a rough result is enough, for example to compare groupings of a workload."""

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time() >= self.deadline

    def random(self, start: int = 0) -> np.random.Generator:
        """Random numbers for one start: the same ones for the same seed and start."""
        return np.random.default_rng([self.seed, start])


DEFAULT = Effort()
"""The effort of a search that is given none."""


@final
@dataclass(frozen=True, eq=False)
class Endpoint:
    """Where a descent ended, the value there, and the number of evaluations."""

    point: Array
    value: float
    evaluations: int


def descend(
    objective: Objective,
    start: Array,
    *,
    lower: float | None = 0.0,
    iterations: int = 500,
    effort: Effort | None = None,
    tolerance: float = 1e-9,
) -> Endpoint:
    """Descend from a start by L-BFGS, keeping every entry at or above ``lower``; when time is up, it keeps the best."""
    from scipy.optimize import Bounds, minimize

    evaluations = 0
    best: tuple[float, Array] | None = None

    def watched(flat: Array) -> tuple[float, Array]:
        nonlocal evaluations, best
        evaluations += 1
        value, gradient = objective(flat.reshape(start.shape))
        if np.isfinite(value) and (best is None or value < best[0]):
            best = (value, flat.copy())
        if effort is not None and effort.over:
            raise _TimeIsUp
        return value, gradient.reshape(-1)

    with suppress(_TimeIsUp), one_blas_thread():
        minimize(
            watched,
            start.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            bounds=None if lower is None else Bounds(np.full(start.size, lower), np.full(start.size, np.inf)),
            options={"maxiter": iterations, "maxfun": 4 * iterations, "ftol": tolerance, "gtol": 0.0},
        )
    if best is None:
        return Endpoint(start, inf, evaluations)
    return Endpoint(best[1].reshape(start.shape), best[0], evaluations)


class _TimeIsUp(Exception):
    """The deadline passed during an evaluation."""


def least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function of one number is least: inside an interval or at its low end."""
    from scipy.optimize import minimize_scalar

    inside = float(minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x)
    return min((low, inside), key=function)


def least_nonnegative_squares(matrix: Array, target: Array) -> Array | None:
    """The x ≥ 0 for which ‖matrix·x − target‖ is least, by active sets; None if it takes too long."""
    from scipy.optimize import nnls

    try:
        return nnls(matrix, target, maxiter=30 * matrix.shape[1])[0]
    except RuntimeError:
        return None
