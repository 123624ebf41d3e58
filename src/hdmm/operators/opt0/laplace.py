"""OPT_0 for Laplace noise: the best strategy found for one attribute (paper, section 4.3; docs/math.md, section 5).

A p-Identity strategy by descent, or one number where V is built of Identity and Total only. V enters only through its
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
from hdmm.operators.opt0.equal_cells import alike, among, spread
from hdmm.operators.opt0.p_identity import improved, search
from hdmm.operators.opt0.signed import low_rank, polish
from hdmm.optimise.descent import DEFAULT, Effort

_CELLS_PER_QUERY = 16
"""Cells for each extra query, as in the paper's experiments."""
_LARGE, _COST = 1 << 14, 1 << 28
"""From how many cells on p is such that an evaluation costs so much, p²n."""
_LESS = 1 - 1e-7
"""Extra queries must reduce the error of Identity to this ratio at least."""
_WRITTEN = 1 << 10
"""The most cells of a Gram that is searched for cells that are alike."""
_POLISHED = 256
"""The most cells for which signed queries are tried if the rank is low, which is where they gain most."""
_POLISHED_FULL = 32
"""The same where the rank is full: beyond, they take longer than all the rest and gain little."""


def opt0_laplace(
    gram: AxisGram,
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
    begin = _begin(start)
    if not counted.any():
        return Solution(Identity(n), 0.0)
    if isinstance(gram, SelectedGram) or not counted.all():
        inner, cells = _counted(gram, np.flatnonzero(counted))
        seen = Dense(begin.array[:, cells]) if isinstance(begin, Dense) else None if begin is None else begin[:, cells]
        solution = opt0_laplace(inner, p, effort=effort, start=seen, iterations=iterations)
        return Solution(_placed(solution.matrix, cells, n), solution.error)

    if isinstance(gram, RowsGram) or (n <= _WRITTEN and isinstance(gram, (DenseGram, SumGram))):
        first, which = alike(gram)
        if len(first) < n:
            inner = DenseGram(among(gram, first))
            solution = opt0_laplace(inner, p, effort=effort, start=_over_kinds(begin, first), iterations=iterations)
            matrix = Total(n) if len(first) == 1 else Dense(spread(solution.matrix.dense(), which))
            return Solution(matrix, solution.error)

    solutions = [Solution(Identity(n), gram.trace())]
    pair = _two_values(gram)
    if pair is not None:
        solutions += _even(n, *pair)
        if begin is None and (p is None or p == 1):
            return _best(solutions)
    if isinstance(begin, Dense) and n > _POLISHED:
        begin = None
    if begin is None or effort.restarts:
        solutions += _solution(gram, search(gram, p or _extra(n), effort, iterations))
    match begin:
        case Dense():
            solutions += polish(gram.dense(), begin.array, effort, iterations)
        case None:
            if p is None and effort.restarts and _signed(gram) and not effort.over:
                plain = _best(solutions)
                signed = polish(gram.dense(), plain.matrix.dense(), effort, iterations)
                solutions += [one for one in signed if one.error < _LESS * plain.error]
        case theta:
            solutions += _solution(gram, theta) + _solution(gram, improved(gram, theta, effort, iterations))
    return _best(solutions)


def _begin(start: Array | Matrix | None) -> Array | Dense | None:
    """The extra queries to start from, or all queries of a strategy of another kind; Identity is no start."""
    match start:
        case PIdentity():
            return start.theta
        case Identity():
            return None
        case Matrix():
            return Dense(start.dense().astype(float))
    return start


def _over_kinds(begin: Array | Dense | None, first: Array) -> Array | Dense | None:
    """A start over the kinds of cells: of a strategy over all cells, its extra queries if it is p-Identity on them."""
    if not isinstance(begin, Dense):
        return None if begin is None else begin[:, first]
    queries, count = begin.array[:, first], len(first)
    weights = np.diagonal(queries[:count])
    if len(queries) < count or np.count_nonzero(queries[:count]) != count or weights.min() <= 0 or queries.min() < 0:
        return Dense(queries)
    return queries[count:] / weights if len(queries) > count else None


def _signed(gram: AxisGram) -> bool:
    """Whether signed queries are tried."""
    n = gram.size
    return n <= _POLISHED_FULL or (n <= _POLISHED and low_rank(gram.dense()))


def _best(solutions: list[Solution]) -> Solution:
    """The best of several, or the first where the others are hardly better."""
    best = min(solutions, key=lambda one: one.error)
    return best if best.error < _LESS * solutions[0].error else solutions[0]


def usual_queries(n: int) -> int:
    """How many extra queries an attribute of n cells gets beside others."""
    return max(1, n // _CELLS_PER_QUERY)


def _extra(n: int) -> int:
    return usual_queries(n) if n < _LARGE else max(1, isqrt(_COST // n))


def _solution(gram: AxisGram, theta: Array) -> list[Solution]:
    """The strategy with these extra queries; none if they have vanished."""
    used = theta[theta.max(axis=1) > 0]
    if not len(used):
        return []
    matrix = PIdentity(used)
    return [Solution(matrix, error(matrix, gram))]


def _two_values(gram: AxisGram) -> tuple[float, float] | None:
    """α and β where V = αI + β11ᵀ: they follow from the diagonal and the sum, and a product shows that they fit."""
    n = gram.size
    trace, total = gram.trace(), gram.total()
    beta = (total - trace) / (n * (n - 1)) if n > 1 else 0.0
    alpha = trace / n - beta
    probe = np.cos(np.arange(n) ** 2.0)
    rest = gram.apply(probe) - alpha * probe - beta * probe.sum()
    return (alpha, beta) if abs(rest).max() <= _rounding(n) * (abs(alpha) + n * abs(beta)) else None


def _rounding(n: int) -> float:
    """What rounding may do to a sum of n numbers, relatively; products of a millionth of the weight are still seen."""
    return max(1e-14, n * float(np.finfo(float).eps))


def _even(n: int, alpha: float, beta: float) -> list[Solution]:
    """Totals beside the identity for αI + β11ᵀ, the best one among them.

    With Θ = t1ᵀ the error is (1 + t)²·(a + b/(1 + nt²)), a = (n − 1)α, b = α + nβ, and least where
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
    return _Part(gram, cells), cells


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
class _Part(AxisGram):
    """A Gram over some of its cells."""

    whole: AxisGram
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
