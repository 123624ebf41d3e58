"""OPT_0 for Laplace noise: the best strategy found for one attribute (paper, section 4.3; docs/math.md, section 5).

A p-Identity strategy by descent, or one number if V is built of Identity and Total only. V enters only through its
products with the p extra queries, so that structured Grams stay implicit. Small workloads may get signed queries
instead. Cells that no query counts are left out, and cells in another order are put back into their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import final

import numpy as np

from hdmm.estimators.inverse import error
from hdmm.matrix import Array, AxisGram, Dense, Identity, Matrix, PIdentity, Select, Total
from hdmm.matrix.axis_gram import DenseGram, RowsGram, SelectedGram, SumGram
from hdmm.operators.base import Solution
from hdmm.operators.opt0.equal_cells import entries_among, expand, kinds_of_cells
from hdmm.operators.opt0.p_identity import improved_queries, search_queries
from hdmm.operators.opt0.signed import low_rank, polish
from hdmm.optimise.descent import DEFAULT, Effort

_CELLS_PER_QUERY = 16
"""Cells for each extra query, as in the paper's experiments."""
_LARGE = 1 << 14
"""From this many cells on, the number of extra queries is limited by the cost of an evaluation."""
_MAX_COST = 1 << 28
"""The largest p²n of large domains: the cost of an evaluation."""
_LEAST_GAIN = 1 - 1e-7
"""Extra queries must reduce the error of Identity at least to this ratio."""
_MAX_COMPARED_CELLS = 1 << 10
"""The most cells of a Gram that is searched for equal cells."""
_MAX_SIGNED_CELLS = 256
"""The most cells for which signed queries are tried if the rank is low: there they gain most."""
_MAX_SIGNED_CELLS_FULL_RANK = 32
"""The same if the rank is full: with more cells they take longer than all the rest and gain little."""


def opt0_laplace(
    gram: AxisGram,
    p: int | None = None,
    *,
    effort: Effort = DEFAULT,
    start: Matrix | None = None,
    iterations: int = 500,
) -> Solution:
    """The best strategy found for a Gram matrix over one attribute, of L1 sensitivity at most 1.

    ``p`` is the number of extra queries. ``start`` is a strategy found before: the result is never worse, and without
    restarts there is no other start. Large domains get fewer iterations.
    """
    n = gram.size
    counted = gram.diagonal() > 0
    if not counted.any():
        return Solution(Identity(n), 0.0)
    if isinstance(gram, SelectedGram) or not counted.all():
        inner, cells = _counted(gram, np.flatnonzero(counted))
        solution = opt0_laplace(inner, p, effort=effort, start=_start(start, cells), iterations=iterations)
        return Solution(_placed(solution.matrix, cells, n), solution.error)
    if isinstance(gram, RowsGram) or (n <= _MAX_COMPARED_CELLS and isinstance(gram, (DenseGram, SumGram))):
        first, kinds = kinds_of_cells(gram)
        if len(first) < n:
            inner = DenseGram(entries_among(gram, first))
            merged = _p_identity(_start(start, first))
            solution = opt0_laplace(inner, p, effort=effort, start=merged, iterations=iterations)
            matrix = Total(n) if len(first) == 1 else Dense(expand(solution.matrix.dense(), kinds))
            return Solution(matrix, solution.error)
    return _distinct_cells(gram, p, effort, _start(start, np.arange(n)), iterations)


def _distinct_cells(
    gram: AxisGram, p: int | None, effort: Effort, start: PIdentity | Dense | None, iterations: int
) -> Solution:
    """The best strategy found for cells that are all counted, each of its own kind."""
    n = gram.size
    candidates = [Solution(Identity(n), gram.trace())]
    pair = _two_values(gram)
    if pair is not None:
        candidates += _totals(n, *pair)
        if start is None and p in (None, 1):
            return _best(candidates)
    if isinstance(start, Dense) and n > _MAX_SIGNED_CELLS:
        start = None
    if start is None or effort.restarts:
        candidates += _candidate(gram, search_queries(gram, p or _extra_queries(n), effort, iterations))
    match start:
        case PIdentity(theta):
            candidates += _candidate(gram, theta)
            candidates += _candidate(gram, improved_queries(gram, theta, effort, iterations))
        case Dense():
            candidates += polish(gram.dense(), start.array, effort, iterations)
        case None if p is None and effort.restarts and _try_signed(gram) and not effort.over:
            unsigned = _best(candidates)
            signed = polish(gram.dense(), unsigned.matrix.dense(), effort, iterations)
            candidates += [solution for solution in signed if solution.error < _LEAST_GAIN * unsigned.error]
    return _best(candidates)


def _start(matrix: Matrix | None, cells: Array) -> PIdentity | Dense | None:
    """A strategy over some of its cells, to start from; Identity is no start."""
    match matrix:
        case None | Identity():
            return None
        case PIdentity(theta):
            return PIdentity(theta[:, cells])
    return Dense(matrix.dense().astype(float)[:, cells])


def _p_identity(start: PIdentity | Dense | None) -> PIdentity | Dense | None:
    """A start as a p-Identity strategy if it is one, None if it has no extra queries; otherwise as it is."""
    if not isinstance(start, Dense):
        return start
    queries, n = start.array, start.shape[1]
    weights = np.diagonal(queries[:n])
    if len(queries) < n or np.count_nonzero(queries[:n]) != n or weights.min() <= 0 or queries.min() < 0:
        return start
    return PIdentity(queries[n:] / weights) if len(queries) > n else None


def _try_signed(gram: AxisGram) -> bool:
    """Whether signed queries are worth a try."""
    n = gram.size
    return n <= _MAX_SIGNED_CELLS_FULL_RANK or (n <= _MAX_SIGNED_CELLS and low_rank(gram.dense()))


def _best(candidates: list[Solution]) -> Solution:
    """The best of several, or the first if the others are hardly better."""
    best = min(candidates, key=lambda candidate: candidate.error)
    return best if best.error < _LEAST_GAIN * candidates[0].error else candidates[0]


def usual_queries(n: int) -> int:
    """How many extra queries an attribute of n cells gets if the workload has others."""
    return max(1, n // _CELLS_PER_QUERY)


def _extra_queries(n: int) -> int:
    return usual_queries(n) if n < _LARGE else max(1, isqrt(_MAX_COST // n))


def _candidate(gram: AxisGram, theta: Array) -> list[Solution]:
    """The strategy with these extra queries; none if they have vanished."""
    used = theta[theta.max(axis=1) > 0]
    if not len(used):
        return []
    matrix = PIdentity(used)
    return [Solution(matrix, error(matrix, gram))]


def _two_values(gram: AxisGram) -> tuple[float, float] | None:
    """α and β if V = αI + β11ᵀ: they follow from the diagonal and the sum, and a product shows that they fit."""
    n = gram.size
    trace, total = gram.trace(), gram.total()
    beta = (total - trace) / (n * (n - 1)) if n > 1 else 0.0
    alpha = trace / n - beta
    probe = np.cos(np.arange(n) ** 2.0)
    rest = gram.apply(probe) - alpha * probe - beta * probe.sum()
    return (alpha, beta) if abs(rest).max() <= _rounding(n) * (abs(alpha) + n * abs(beta)) else None


def _rounding(n: int) -> float:
    """The relative rounding error of a sum of n numbers; products with a millionth of the weight are still noticed."""
    return max(1e-14, n * float(np.finfo(float).eps))


def _totals(n: int, alpha: float, beta: float) -> list[Solution]:
    """Strategies of the identity and a total for αI + β11ᵀ, the best one among them.

    With Θ = t1ᵀ the error is (1 + t)²·(a + b/(1 + nt²)), a = (n − 1)α, b = α + nβ, and least if
    a(1 + nt²)² = b(nt − 1).
    """
    a, b = (n - 1) * max(alpha, 0.0), max(alpha + n * beta, 0.0)
    if a <= _rounding(n) * b:
        return [Solution(Total(n), b / n)]
    roots = np.roots([a * n**2, 0, 2 * a * n, -b * n, a + b])
    weights = [float(t.real) for t in roots if t.real > 0 and abs(t.imag) <= 1e-9 * abs(t)]
    return [Solution(PIdentity(np.full((1, n), t)), (1 + t) ** 2 * (a + b / (1 + n * t**2))) for t in weights]


def _counted(gram: AxisGram, cells: Array) -> tuple[AxisGram, Array]:
    """The Gram over the cells that it counts, and these cells."""
    match gram:
        case SelectedGram():
            return gram.inner, gram.columns
        case DenseGram():
            return DenseGram(gram.array[np.ix_(cells, cells)]), cells
        case RowsGram():
            return RowsGram(gram.rows[:, cells]), cells
    return _PartGram(gram, cells), cells


def _placed(matrix: Matrix, cells: Array, n: int) -> Matrix:
    """A strategy over some cells, put into place; the other cells are counted by themselves or not at all."""
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
class _PartGram(AxisGram):
    """A Gram over some of its cells."""

    whole: AxisGram
    cells: Array

    @property
    def size(self) -> int:
        return len(self.cells)

    def apply(self, x: Array) -> Array:
        padded = np.zeros((self.whole.size, *x.shape[1:]))
        padded[self.cells] = x
        return self.whole.apply(padded)[self.cells]

    def diagonal(self) -> Array:
        return self.whole.diagonal()[self.cells]

    def total(self) -> float:
        return float(self.apply(np.ones(self.size)).sum())
