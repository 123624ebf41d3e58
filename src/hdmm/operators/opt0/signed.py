"""Strategies of arbitrary signed queries for small workloads, for which p-Identity strategies are not good enough.

A = (P − N)·D with P, N ≥ 0 and D scaling the columns of P + N to sum to 1 (docs/math.md, section 5). If V has a low
rank, its few directions would pull A towards a singular matrix, which neither descent nor rounding survives: the
descent then uses V + ηI, η falling in steps.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array, Dense
from hdmm.matrix.rank import rank
from hdmm.operators.base import Solution
from hdmm.optimise.descent import Effort, Objective, descend

_RIDGES = (1e-3, 1e-4, 1e-5)
"""η as a share of the mean of V's diagonal."""
_LOW_RANK = 0.8
"""Up to this share of the cells, a rank is low."""
_KEPT = 2
"""How many of the starts go on after the first steps."""
_MAX_EXCESS = 1.1
"""The search goes on after the first steps only if its loss is at most this many times the loss to beat."""
_LEAST_SINGULAR_RATIO = 1e-4
"""The least ratio of the singular values of a strategy."""
_MAX_CELLS_ALL_ITERATIONS = 64
"""With more cells there are fewer iterations, in proportion."""
_MAX_CELLS_RANDOM = 12
"""The most cells for which random queries are starts too: each takes little time."""
_RANDOM_PER_RESTART = 2
"""Random starts for each restart."""


def polish(V: Array, start: Array, effort: Effort, iterations: int) -> list[Solution]:
    """``start`` and signed strategies found from it, from rows of V beside the identity and from random queries.

    Without restarts, only near the start. Only strategies that support every workload are returned.
    """
    n = len(V)
    steps = max(20, round(iterations * min(1.0, _MAX_CELLS_ALL_ITERATIONS / n)))
    ridges = _RIDGES if low_rank(V) else (0.0,)
    losses = [_loss(V + ridge * np.trace(V) / n * np.eye(n)) for ridge in ridges]
    solutions = _supporting(V, start)
    if not effort.restarts:
        near = descend(losses[-1], _point(start), iterations=steps, effort=effort)
        return solutions + _solution(V, near.point)
    starts = [_shaken(start, effort, 0)]
    starts += [_shaken(_rows(V, 2 << i % 3), effort, i + 1) for i in range(effort.restarts)]
    if n <= _MAX_CELLS_RANDOM:
        starts += [_random(n, effort, effort.restarts + i + 1) for i in range(_RANDOM_PER_RESTART * effort.restarts)]
    candidates = [descend(losses[0], point, iterations=steps // 4, effort=effort) for point in starts]
    candidates.sort(key=lambda candidate: candidate.value)
    if candidates[0].value > _MAX_EXCESS * effort.beat:
        return solutions
    for candidate in candidates[:_KEPT]:
        for loss in losses:
            candidate = descend(loss, candidate.point, iterations=steps, effort=effort)
        solutions += _solution(V, candidate.point)
    return solutions


def _rows(V: Array, step: int) -> Array:
    """Rows of V at a regular step, beside a light identity."""
    rows = V[min(step // 2, len(V) - 1) :: step]
    rows = rows / abs(rows).sum(axis=0).max()
    return np.concatenate([rows, 0.1 * np.eye(len(V))])


def _random(n: int, effort: Effort, number: int) -> Array:
    """P and N of random queries, about half of their entries near zero; there are n, 1.5n or 2n queries, in turn."""
    random = effort.random(number)
    shape = (2, n + number % 3 * n // 2, n)
    return abs(random.normal(size=shape)) * (random.random(shape) < 0.5) + 0.01 * random.random(shape)


def low_rank(V: Array) -> bool:
    """Whether V leaves many directions out."""
    return rank(V) <= _LOW_RANK * len(V)


def _point(queries: Array) -> Array:
    """P and N."""
    return np.stack([np.maximum(queries, 0), np.maximum(-queries, 0)])


def _shaken(queries: Array, effort: Effort, number: int) -> Array:
    """P and N, moved off zero so that descent may still choose any sign."""
    point = _point(queries)
    return point + 0.01 * effort.random(number).random(point.shape)


def _loss(V: Array) -> Objective:
    """tr((AᵀA)⁻¹V) and its gradient by P and N."""

    def value(point: Array) -> tuple[float, Array]:
        queries = point[0] - point[1]
        s = point.sum(axis=(0, 1)) + np.finfo(float).tiny
        A = queries / s
        try:
            inverse = np.linalg.inv(A.T @ A)
        except np.linalg.LinAlgError:
            return float("inf"), np.zeros_like(point)
        product = inverse @ V
        by_queries = -2 * (A @ (product @ inverse)) / s
        by_sums = -np.einsum("ki,ki->i", by_queries, A)
        return float(np.trace(product)), np.stack([by_queries + by_sums, by_sums - by_queries])

    return value


def _solution(V: Array, point: Array) -> list[Solution]:
    rounding = (2 * point.shape[1] + 4) * np.finfo(float).eps
    sums = point.sum(axis=(0, 1))
    if not sums.all():  # a cell that no query counts any more
        return []
    return _supporting(V, (point[0] - point[1]) / (sums * (1 + rounding)))


def _supporting(V: Array, A: Array) -> list[Solution]:
    """The strategy with its exact error, unless its weakest direction is too weak to rely on."""
    A = A[abs(A).max(axis=1) > 0]
    A = A / max(1.0, abs(A).sum(axis=0).max())
    _, values, right = np.linalg.svd(A, full_matrices=False)
    if len(A) < len(V) or values[-1] < _LEAST_SINGULAR_RATIO * values[0]:
        return []
    scaled = right / values[:, None]
    return [Solution(Dense(A), float(np.sum((scaled @ V) * scaled)))]
