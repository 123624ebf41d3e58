"""OPT_0 for Laplace noise: the best strategy found for one attribute (paper, section 4.3; MATH §4).

p-Identity strategies, by descent from several starts, which decide the result: extra queries that are bumps at several
scales, and random ones. All run for a few iterations, and the best go on. V enters only through its products with the p
extra queries, so that structured Grams stay implicit and an evaluation costs p²n.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import final

import numpy as np

from hdmm.matrix import Array, Dense, Factor, Identity, Matrix, PIdentity, Select, Total
from hdmm.matrix.factors import DenseGram, SelectedGram
from hdmm.operators.base import Solution
from hdmm.operators.descent import DEFAULT, Effort
from hdmm.operators.levels import Level, levels
from hdmm.operators.projected import descend_projected as descend
from hdmm.operators.signed import polish
from hdmm.strategy.inverse import error

_RATIO = 16
"""Cells for each extra query."""
_LARGE, _COST = 1 << 14, 1 << 28
"""From how many cells on p is such that an evaluation costs so much, p²n."""
_BRANCHES = (2, 4, 8, 16)
"""Ratios between the scales of bumps to start from."""
_KEPT = 3
"""How many of the starts go on after the first iterations."""
_ENTRIES = 1 << 19
"""Points of more entries get fewer iterations, in proportion."""
_POLISHED, _LOW_RANK, _WORTH = 256, 0.8, 0.999
"""Signed queries are tried up to so many cells and so low a rank, and kept where the error falls below this ratio."""


def opt0_laplace(
    gram: Factor,
    p: int | None = None,
    *,
    effort: Effort = DEFAULT,
    start: Array | Matrix | None = None,
    iterations: int = 500,
) -> Solution:
    """The best strategy found for a Gram matrix over one attribute, of L1 sensitivity at most 1.

    ``p`` is the number of extra queries. ``start`` continues from a strategy found before, or from its extra queries:
    the result is never worse, and without restarts there is no other start. Large domains get fewer iterations.
    """
    n = gram.size
    counted = gram.diagonal() > 0
    if not counted.any():
        return Solution(Identity(n), 0.0)
    if isinstance(gram, SelectedGram) or not counted.all():
        inner, cells = _counted(gram, np.flatnonzero(counted))
        found = opt0_laplace(inner, p, effort=effort, start=_seen(start, cells), iterations=iterations)
        return Solution(_placed(found.matrix, cells, n), found.error)

    solutions = [Solution(Identity(n), gram.trace())]
    pair = _two_values(gram)
    if pair is not None:
        solutions.append(_even(n, *pair))
        if p is None or p == 1:
            return min(solutions, key=lambda one: one.error)
    theta = start.theta if isinstance(start, PIdentity) else None if isinstance(start, Matrix) else start
    if theta is not None:
        level = Level.of(gram)
        begun = descend(level.loss, theta, iterations=_turns(level, len(theta), iterations), effort=effort)
        solutions.append(_solution(gram, begun.point))
    if start is None or effort.restarts:
        solutions.append(_solution(gram, _search(gram, p or _extra(n), effort, iterations)))
    best = min(solutions, key=lambda one: one.error)

    if isinstance(start, Dense):
        same = Solution(start, error(start, gram))
        polished = polish(gram.dense(), start.array, effort, iterations) if n <= _POLISHED else None
        return min((one for one in (best, same, polished) if one is not None), key=lambda one: one.error)
    if p is None and start is None and effort.restarts and n <= _POLISHED and not effort.over:
        V = gram.dense()
        if np.linalg.matrix_rank(V, hermitian=True) <= _LOW_RANK * n:
            polished = polish(V, best.matrix.dense(), effort, iterations)
            if polished is not None and polished.error < _WORTH * best.error:
                return polished
    return best


def _extra(n: int) -> int:
    return max(1, n // _RATIO if n < _LARGE else isqrt(_COST // n))


def _turns(level: Level, p: int, iterations: int) -> int:
    return max(1, round(iterations * min(1.0, _ENTRIES / (p * len(level.counts)))))


def _search(gram: Factor, p: int, effort: Effort, iterations: int) -> Array:
    """The best extra queries found: many starts on the coarsest level, a few of them for longer, one to the end."""
    first, *finer = levels(gram, p)
    turns = _turns(first, p, iterations)
    randoms = (effort.random(place).random((p, len(first.counts))) for place in range(effort.restarts))
    starts = [*_bumps(first, p, effort), *randoms]
    found = []
    for point in starts:
        found.append(descend(first.loss, point, iterations=max(1, turns // 8), effort=effort))
        if effort.over:
            break
    found.sort(key=lambda one: one.value)
    longer = [descend(first.loss, one.point, iterations=turns // 2, effort=effort) for one in found[:_KEPT]]
    best = min(longer, key=lambda one: one.value)
    theta = first.theta(best.point)
    for level in finer or [first]:
        best = descend(
            level.loss, level.point(theta), iterations=_turns(level, p, iterations), effort=effort, tolerance=1e-10
        )
        theta = level.theta(best.point)
    return theta


def _bumps(level: Level, p: int, effort: Effort) -> list[Array]:
    """Starts of overlapping bumps at one or several scales, each scale so many times wider than the one before."""
    scales: dict[tuple[int, ...], None] = {(p,): None, (max(1, round(0.8 * p)),): None}
    for branch in _BRANCHES:
        counts = [max(1, round(p * (1 - 1 / branch)))]
        while counts[-1] > 1 and sum(counts) < p:
            counts.append(min(max(1, round(counts[-1] / branch)), p - sum(counts)))
        scales[tuple(counts)] = None
    places = level.places()
    starts = []
    for number, scale in enumerate(scales):
        theta = 0.02 * effort.random(number).random((p, len(places)))
        row = 0
        for count in scale:
            middles = (np.arange(count) + 0.5) / count
            theta[row : row + count] += 0.5 * np.maximum(0, 1 - count * abs(places - middles[:, None]))
            row += count
        starts.append(theta * level.roots)
    return starts


def _solution(gram: Factor, theta: Array) -> Solution:
    used = theta[theta.max(axis=1) > 0]
    if not len(used):
        return Solution(Identity(gram.size), gram.trace())
    matrix = PIdentity(used)
    return Solution(matrix, matrix.error(gram))


def _two_values(gram: Factor) -> tuple[float, float] | None:
    """α and β where V = αI + β11ᵀ: they follow from the diagonal and the sum, and a product shows that they fit."""
    n = gram.size
    trace, total = gram.trace(), gram.total()
    beta = (total - trace) / (n * (n - 1)) if n > 1 else 0.0
    alpha = trace / n - beta
    probe = np.cos(np.arange(n) ** 2.0)
    rest = gram.apply(probe) - alpha * probe - beta * probe.sum()
    return (alpha, beta) if abs(rest).max() <= 1e-12 * (abs(alpha) + n * abs(beta)) else None


def _even(n: int, alpha: float, beta: float) -> Solution:
    """The best total beside the identity for αI + β11ᵀ.

    With Θ = t1ᵀ the error is (1 + t)²·(a + b/(1 + nt²)), a = (n − 1)α, b = α + nβ, and least where
    a(1 + nt²)² = b(nt − 1).
    """
    a, b = (n - 1) * max(alpha, 0.0), max(alpha + n * beta, 0.0)
    if a <= 1e-12 * b and n > 1:
        return Solution(Total(n), b / n)
    roots = np.roots([a * n**2, 0, 2 * a * n, -b * n, a + b])
    weights = [float(t.real) for t in roots if t.real > 0 and abs(t.imag) <= 1e-9 * abs(t)]
    t = min(weights, key=lambda t: (1 + t) ** 2 * (a + b / (1 + n * t**2)), default=0.0)
    return Solution(PIdentity(np.full((1, n), t)), (1 + t) ** 2 * (a + b / (1 + n * t**2)))


def _counted(gram: Factor, cells: Array) -> tuple[Factor, Array]:
    """The Gram over the cells that it counts, and these cells."""
    match gram:
        case SelectedGram():
            return gram.inner, gram.columns
        case DenseGram():
            return DenseGram(gram.array[np.ix_(cells, cells)]), cells
    return _Part(gram, cells), cells


def _seen(start: Array | Matrix | None, cells: Array) -> Array | Matrix | None:
    """What a start says about some cells."""
    match start:
        case PIdentity():
            return start.theta[:, cells]
        case Matrix():
            return Dense(start.dense()[:, cells]) if isinstance(start, (Dense, Select)) else None
    return None if start is None else start[:, cells]


def _placed(matrix: Matrix, cells: Array, n: int) -> Matrix:
    """A strategy over some cells, put into place; the others are counted by themselves or not at all."""
    match matrix:
        case Identity():
            return Identity(n)
        case PIdentity():
            theta = np.zeros((len(matrix.theta), n))
            theta[:, cells] = matrix.theta
            return PIdentity(theta)
    return Select(matrix, cells, n)


@final
@dataclass(frozen=True, eq=False)
class _Part(Factor):
    """A Gram over some of its cells."""

    whole: Factor
    cells: Array

    @property
    def size(self) -> int:
        return len(self.cells)

    def apply(self, x: Array) -> Array:
        spread = np.zeros((self.whole.size, *x.shape[1:]))
        spread[self.cells] = x
        return self.whole.apply(spread)[self.cells]

    def diagonal(self) -> Array:
        return self.whole.diagonal()[self.cells]

    def total(self) -> float:
        return float(self.apply(np.ones(self.size)).sum())
