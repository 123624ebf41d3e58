"""OPT_0 for many ordered cells under Laplace noise: the best pyramid of hats found.

Likely spacings are compared with the usual heights. The best of them is improved by descent: first over the few numbers
that its heights are made of, then over all heights. Every candidate's error is exact, but for intervals other than
prefixes and single cells: of those a sample is taken while candidates are compared.
"""

from __future__ import annotations

from math import inf

import numpy as np

from hdmm.estimators.inverse import error
from hdmm.matrix import Array, AxisGram, Hats
from hdmm.operators.base import Solution
from hdmm.operators.opt0.hat_demand import HatDemand
from hdmm.operators.opt0.hat_gradient import error_and_gradient
from hdmm.operators.opt0.hat_shapes import PREFIXES, RANGES, Normalised, Profile, exponents, likely_spacings, shape_kind
from hdmm.optimise.descent import Effort, descend

_WORK = 1 << 21
"""Cells times spacings that are compared: the larger the domain, the fewer."""
_FEW, _MANY = 4, 24
"""The least and the most spacings that are compared with each profile."""
_KEPT_WORK = 1 << 19
"""Cells times shapes, of different levels and pieces, whose numbers are improved."""
_MOST_KEPT = 16
"""The most such shapes."""
_KEPT_ESTIMATED = 2
"""The same if slopes are estimated, which takes longer."""
_STEPS_WORK = 1 << 23
"""Cells times steps of a descent."""
_LEAST_STEPS, _MOST_STEPS = 6, 150
_FREE_STEPS = 20
"""With fewer steps, a descent over all heights gains less than one over a few numbers."""
_STEP = 1e-4
"""The difference by which slopes are estimated."""
_LIGHTEST = 1e-6
"""The least raw height from which a descent begins."""
_INFEASIBLE = 1e3
"""The logarithm of an error that is worse than any."""


def opt0_hats(gram: AxisGram, *, effort: Effort, start: Hats | None = None) -> Solution | None:
    """The best pyramid of hats found for a Gram, of L1 sensitivity 1; None for Grams that are no sums of intervals.

    With a start, and without restarts, only its heights are improved; the result is never worse.
    """
    if gram.as_squares() is None:
        return None
    demand = HatDemand(gram)
    sampled = demand.sampled
    n = gram.size
    best = start
    if start is None or effort.restarts:
        improved = [_improved_numbers(sampled, *shape, effort) for shape in _best_shapes(sampled, effort)]
        best = min([*improved, *([] if start is None else [start])], key=sampled.error)
    assert best is not None
    steps = _steps(n, effort)
    if demand.simple and not effort.quick and steps >= _FREE_STEPS:
        best = _improved_heights(demand, best, steps, effort)
    return min((Solution(matrix, error(matrix, gram)) for matrix in {start or best, best}), key=lambda each: each.error)


def _best_shapes(demand: HatDemand, effort: Effort) -> list[tuple[tuple[int, ...], Array]]:
    """The best spacings with the numbers of the usual heights; several of them if there are few cells."""
    n = demand.n
    count = min(max(_WORK // n, _FEW), _FEW if effort.quick else _MANY)
    tried: list[tuple[float, Profile, tuple[int, ...]]] = []
    for start, stop in ((0, 1), (1, count)):  # the better profile is searched on
        for profile in (PREFIXES, RANGES) if not start else (min(tried, key=lambda shape: shape[0])[1],):
            for spacings in likely_spacings(n, profile, stop)[start:]:
                if effort.over and tried:
                    break
                raw = np.exp(exponents(n, spacings) @ profile.numbers(n, spacings))
                tried.append((_error(demand, Normalised(n, spacings).matrix(raw)), profile, spacings))
    best: dict[tuple[int, int], tuple[tuple[int, ...], Array]] = {}
    for _, profile, spacings in sorted(tried, key=lambda shape: shape[0]):
        best.setdefault(shape_kind(n, spacings), (spacings, profile.numbers(n, spacings)))
    kept = min(max(_KEPT_WORK // n, 1), _MOST_KEPT if demand.simple else _KEPT_ESTIMATED)
    return list(best.values())[: 1 if effort.quick or effort.over else kept]


def _improved_numbers(demand: HatDemand, spacings: tuple[int, ...], numbers: Array, effort: Effort) -> Hats:
    """Hats of better numbers than the given ones."""
    powers, normalised = exponents(demand.n, spacings), Normalised(demand.n, spacings)

    def objective(point: Array) -> tuple[float, Array]:
        raw = np.exp(powers @ point)
        if demand.simple:
            value, slopes = _descended(demand, normalised, raw)
            return value, powers.T @ slopes
        value = np.log(_error(demand, normalised.matrix(raw)))
        if not np.isfinite(value):
            return _INFEASIBLE, np.zeros(len(point))
        shifted = [np.exp(powers @ (point + shift)) for shift in np.eye(len(point)) * _STEP]
        values = np.log([_error(demand, normalised.matrix(raw)) for raw in shifted])
        slopes = (values - value) / _STEP
        return (float(value), slopes) if np.isfinite(slopes).all() else (_INFEASIBLE, np.zeros(len(point)))

    iterations = max(_LEAST_STEPS, _steps(demand.n, effort) // 4) if demand.simple else _LEAST_STEPS
    end = descend(objective, numbers, lower=None, iterations=iterations, effort=effort, tolerance=1e-6)
    improved = normalised.matrix(np.exp(powers @ end.point)) or normalised.matrix(np.exp(powers @ numbers))
    assert improved is not None
    return improved


def _improved_heights(demand: HatDemand, hats: Hats, steps: int, effort: Effort) -> Hats:
    """Better heights near the given ones."""
    normalised = Normalised(hats.n, hats.spacings)

    def objective(point: Array) -> tuple[float, Array]:
        return _descended(demand, normalised, np.exp(point))

    first = np.log(np.maximum(normalised.raw(hats), _LIGHTEST))
    end = descend(objective, first, lower=None, iterations=steps, effort=effort, tolerance=1e-7)
    better = normalised.matrix(np.exp(end.point))
    return hats if better is None or demand.error(better) >= demand.error(hats) else better


def _descended(demand: HatDemand, normalised: Normalised, raw: Array) -> tuple[float, Array]:
    """The logarithm of the error of raw heights, and its slopes in their logarithms."""
    matrix = normalised.matrix(raw)
    if matrix is None:
        return _INFEASIBLE, np.zeros(len(raw))
    value, slopes = error_and_gradient(demand, matrix)
    return float(np.log(value)), raw * normalised.slopes(raw, np.concatenate(slopes)) / value


def _error(demand: HatDemand, matrix: Hats | None) -> float:
    return inf if matrix is None else demand.error(matrix)


def _steps(n: int, effort: Effort) -> int:
    return min(max(_STEPS_WORK // n, _LEAST_STEPS), _LEAST_STEPS if effort.quick else _MOST_STEPS)
