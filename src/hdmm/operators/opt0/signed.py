"""Strategies of any signed queries for small workloads, where extra queries beside Identity do not suffice.

A = (P − N)·D with P, N ≥ 0 and D scaling the columns of P + N to sum to 1 (docs/math.md, section 5). If V has a low
rank, its few directions would pull A towards a singular matrix, which neither descent nor rounding survives: the
descent then sees V + ηI, η falling in steps.
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
_FAR = 1.1
"""How much larger than the loss to beat a loss may be after the first steps for the search to go on."""
_WEAKEST = 1e-4
"""The least ratio of the singular values of a strategy."""
_SIZE = 64
_RANDOM = 12
"""The most cells for which random queries are starts too: each takes little time."""
_OFTEN = 2
"""So many of them for each restart."""


def polish(V: Array, start: Array, effort: Effort, iterations: int) -> list[Solution]:
    """``start`` and signed strategies found from it, from rows of V beside the identity and from random queries.

    Without restarts, only near the start. Only those that support every workload are returned.
    """
    n = len(V)
    few = max(20, round(iterations * min(1.0, _SIZE / n)))
    ridges = _RIDGES if low_rank(V) else (0.0,)
    losses = [_loss(V + ridge * np.trace(V) / n * np.eye(n)) for ridge in ridges]
    if not effort.restarts:
        near = descend(losses[-1], _point(start), iterations=few, effort=effort)
        return _supporting(V, start) + _solution(V, near.point)
    starts = [_shaken(start, effort, 0)]
    starts += [_shaken(_rows(V, 2 << i % 3), effort, i + 1) for i in range(effort.restarts)]
    if n <= _RANDOM:
        starts += [_any(n, effort, effort.restarts + i + 1) for i in range(_OFTEN * effort.restarts)]
    found = [descend(losses[0], point, iterations=few // 4, effort=effort) for point in starts]
    found.sort(key=lambda one: one.value)
    solutions = _supporting(V, start)
    if found[0].value > _FAR * effort.beat:
        return solutions
    for one in found[:_KEPT]:
        for loss in losses:
            one = descend(loss, one.point, iterations=few, effort=effort)
        solutions += _solution(V, one.point)
    return solutions


def _rows(V: Array, step: int) -> Array:
    """Every so many rows of V, beside a light identity."""
    rows = V[min(step // 2, len(V) - 1) :: step]
    rows = rows / abs(rows).sum(axis=0).max()
    return np.concatenate([rows, 0.1 * np.eye(len(V))])


def _any(n: int, effort: Effort, number: int) -> Array:
    """P and N of random queries, about half of whose entries are not zero: n of them, or half or twice as many more."""
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
    """P and N, moved off zero so that no sign is settled."""
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
    if not sums.all():  # a cell that no query sees any more
        return []
    return _supporting(V, (point[0] - point[1]) / (sums * (1 + rounding)))


def _supporting(V: Array, A: Array) -> list[Solution]:
    """The strategy with its exact error, unless its weakest direction is too weak to rely on."""
    A = A[abs(A).max(axis=1) > 0]
    A = A / max(1.0, abs(A).sum(axis=0).max())
    _, values, right = np.linalg.svd(A, full_matrices=False)
    if len(A) < len(V) or values[-1] < _WEAKEST * values[0]:
        return []
    scaled = right / values[:, None]
    return [Solution(Dense(A), float(np.sum((scaled @ V) * scaled)))]
