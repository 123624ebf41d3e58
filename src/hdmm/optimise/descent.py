"""The one optimiser: descent on smooth functions of non-negative numbers, and the effort that a search may take."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from time import time
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.parallel import one_blas_thread

Random = np.random.Generator
Objective = Callable[[Array], tuple[float, Array]]
"""From a point to the value there and the gradient."""


@final
@dataclass(frozen=True)
class Effort:
    """How hard to search: how many starts, where random ones come from, and when to stop with the best so far."""

    restarts: int = 5
    seed: int = 0
    deadline: float | None = None
    """In seconds of the clock on the wall, which other machines have too; None for as long as it takes."""
    beat: float = inf
    """The loss of the best strategy so far: a search that is far above it after its first rounds goes no further."""
    quick: bool = False
    """Whether a rough answer will do, as for comparing groupings of a workload."""

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time() >= self.deadline

    def random(self, start: int = 0) -> np.random.Generator:
        """Random numbers for one start: the same ones for the same seed and start."""
        return np.random.default_rng([self.seed, start])


DEFAULT = Effort()
"""What is used where nothing is said."""


@final
@dataclass(frozen=True, eq=False)
class Found:
    """Where a descent ended, the value there, and after how many evaluations."""

    point: Array
    value: float
    evaluations: int = field(default=0)


def descend(
    objective: Objective,
    start: Array,
    *,
    lower: float | None = 0.0,
    iterations: int = 500,
    effort: Effort | None = None,
    tolerance: float = 1e-9,
) -> Found:
    """Descend from a start by L-BFGS, keeping every entry at or above ``lower``; where time is up, stop where it is."""
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
        return Found(start, float("inf"), evaluations)
    return Found(best[1].reshape(start.shape), best[0], evaluations)


class _TimeIsUp(Exception):
    """The deadline passed during an evaluation."""


def least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function of one number is least, between two ends that may be it."""
    from scipy.optimize import minimize_scalar

    inside = float(minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x)
    return min((low, inside), key=function)


def least_nonnegative_squares(matrix: Array, given: Array) -> Array | None:
    """The x ≥ 0 for which ‖matrix·x − given‖ is least, by active sets; None where it takes too long."""
    from scipy.optimize import nnls

    try:
        found: Array = nnls(matrix, given, maxiter=30 * matrix.shape[1])[0]
    except RuntimeError:
        return None
    return found
