"""OPT_0 for Gaussian noise: the best strategy for one attribute, with a proof of how good it is (paper, section 4.2).

Minimise tr(X⁻¹V) over X = AᵀA with no entry of its diagonal above 1. The problem is convex, and its dual bounds the
error of every strategy. What structure V has is used: two scalars for Identity and Total, linear-time weights for
ranges and prefixes, selected cells by themselves, and equal cells as one.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.matrix import DENSE_LIMIT, Array, AxisGram, Dense, Identity, Matrix, Select, Stack, Total
from hdmm.matrix.axis_gram import AllRangeGram, DenseGram, PrefixGram, RowsGram, SelectedGram, SumGram, two_eigenvalues
from hdmm.operators.base import Solution
from hdmm.operators.opt0.equal_cells import alike, among, spread
from hdmm.operators.opt0.fixed_point import solve
from hdmm.operators.opt0.fourier_root import normalised_root
from hdmm.operators.opt0.tridiagonal import Chain, chain_dual
from hdmm.optimise.descent import Effort

_ORDERED = 1 << 12
"""The most cells for which strategies for ranges and prefixes are written out."""
_WRITTEN = 1 << 13
"""The most cells of a Gram that is written out."""


def opt0_gaussian(
    gram: AxisGram,
    *,
    tolerance: float = 5e-4,
    iterations: int = 200,
    start: Array | None = None,
    effort: Effort | None = None,
) -> Solution:
    """A strategy of L2 sensitivity 1 whose error is within ``tolerance`` of the least, and the bound that proves it.

    ``start`` holds positive weights of the cells to start from: diag(X⁻¹VX⁻¹) of a strategy for a similar Gram of full
    rank. The search ends early where it no longer improves or time is up; the bound then says what was reached.
    """

    def inner(gram: AxisGram, start: Array | None = start) -> Solution:
        return opt0_gaussian(gram, tolerance=tolerance, iterations=iterations, start=start, effort=effort)

    pair = two_eigenvalues(gram)
    if pair is not None:
        return _symmetric(gram.size, *pair)
    match gram:
        case SumGram(terms=((coefficient, only),)):
            solution = inner(only)
            bound = None if solution.bound is None else coefficient * solution.bound
            return Solution(solution.matrix, coefficient * solution.error, bound)
        case SelectedGram():
            solution = inner(gram.inner, None if start is None else start[gram.columns])
            return replace(solution, matrix=Select(solution.matrix, gram.columns, gram.n))
        case AllRangeGram() | PrefixGram() if gram.n > _ORDERED:
            return normalised_root(gram)
        case AllRangeGram() | PrefixGram() if gram.n > 1:
            return _ordered(gram, *chain_dual(gram, tolerance / 100, iterations, start))
    if gram.size > _WRITTEN and not isinstance(gram, RowsGram):
        raise TooLargeError(f"a Gram of {gram.size} cells without structure exceeds the limit of {_WRITTEN}")
    if not isinstance(gram, (DenseGram, RowsGram)):
        gram = DenseGram(gram.dense())
    first, which = alike(gram)
    if not len(first):
        return Solution(Identity(gram.size), 0.0, 0.0)
    solution = solve(among(gram, first), None if start is None else start[first], tolerance, iterations, effort)
    if len(first) == gram.size:
        return solution
    return replace(solution, matrix=Dense(spread(solution.matrix.dense(), which)))


def _symmetric(n: int, rest: float, constant: float) -> Solution:
    """The optimum for αI + β11ᵀ, from its eigenvalues: X has the same form, and meets the SVD bound."""
    total = (n - 1) * sqrt(max(rest, 0.0)) + sqrt(max(constant, 0.0))
    error = total**2 / n
    bound = error * (1 - 8 * float(np.finfo(float).eps))
    if n == 1 or rest == constant or not total:
        return Solution(Identity(n), error, bound)
    x, y = (n * sqrt(max(value, 0.0)) / total for value in (rest, constant))
    matrix: Matrix
    if not x:
        matrix = Total(n)
    elif x <= 1:
        matrix = Stack([Identity(n), Total(n)], [sqrt(x), sqrt(1 - x)])
    elif n * n > DENSE_LIMIT:  # too many to be written out: nothing better is known than to count them
        matrix, error = Identity(n), (n - 1) * rest + constant
    else:
        matrix = Dense(sqrt(x) * np.eye(n) + (sqrt(y) - sqrt(x)) / n)
    return Solution(matrix, error, bound)


def _ordered(gram: AllRangeGram | PrefixGram, weights: Array, bound: float) -> Solution:
    """The strategy at the best weights; the eigenvectors of a tridiagonal matrix take only quadratic time."""
    from scipy.linalg import eigh_tridiagonal

    chain, root = Chain.of(gram), np.sqrt(weights)
    values, vectors = eigh_tridiagonal(chain.diagonal / weights, -1 / (root[1:] * root[:-1]))
    queries = (chain.scale / values[:, None]) ** 0.25 * vectors.T / root
    norms = np.sqrt((queries**2).sum(axis=0))
    queries /= norms
    vectors *= (values / chain.scale) ** 0.25
    vectors *= (root * norms)[:, None]
    parts = np.array_split(vectors, max(len(vectors) // 512, 1), axis=1)
    return Solution(Dense(queries), sum(float(np.sum(part * gram.apply(part))) for part in parts), bound)
