"""OPT_0 for Gaussian noise: the best strategy for one attribute, with a proof of how good it is (paper, section 4.2).

Minimise tr(X⁻¹V) over X = AᵀA with no entry of its diagonal above 1. The problem is convex, and its dual bounds the
error of every strategy. The structure of V is used: two scalars for Identity and Total, linear-time weights for ranges
and prefixes, selected cells by themselves, and equal cells as one.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.matrix import DENSE_LIMIT, Array, AxisGram, Dense, Identity, Matrix, Select, Stack, Total
from hdmm.matrix.axis_gram import ChainGram, DenseGram, RowsGram, SelectedGram, SumGram
from hdmm.operators.base import Solution
from hdmm.operators.opt0.equal_cells import entries_among, expand, kinds_of_cells
from hdmm.operators.opt0.fixed_point import solve_dense
from hdmm.operators.opt0.fourier_root import normalised_root
from hdmm.operators.opt0.tridiagonal import chain_dual
from hdmm.optimise.descent import Effort

_MAX_CHAIN_CELLS = 1 << 12
"""The most cells for which strategies for ranges and prefixes are written out."""
_MAX_UNION_CELLS = 1 << 11
"""The same for other sets of intervals, which take longer."""
_MAX_DENSE_CELLS = 1 << 13
"""The most cells of a Gram that is written out."""


def opt0_gaussian(
    gram: AxisGram, *, tolerance: float = 5e-4, iterations: int = 200, effort: Effort | None = None
) -> Solution:
    """A strategy of L2 sensitivity 1 whose error is within ``tolerance`` of the least, and the bound that proves it.

    The search ends early if it no longer improves or time is up; the bound then shows what was reached.
    """
    pair = gram.two_eigenvalues()
    if pair is not None:
        return _symmetric(gram.size, *pair)
    match gram:
        case SumGram(terms=((coefficient, term),)):
            solution = opt0_gaussian(term, tolerance=tolerance, iterations=iterations, effort=effort)
            bound = None if solution.bound is None else coefficient * solution.bound
            return Solution(solution.matrix, coefficient * solution.error, bound)
        case SelectedGram():
            solution = opt0_gaussian(gram.inner, tolerance=tolerance, iterations=iterations, effort=effort)
            return replace(solution, matrix=Select(solution.matrix, gram.columns, gram.n))
        case ChainGram() if 1 < gram.n <= _MAX_CHAIN_CELLS:
            return _chain_strategy(gram, *chain_dual(gram, tolerance / 100, iterations))
    squares = gram.as_squares() if gram.size > _MAX_UNION_CELLS and not isinstance(gram, RowsGram) else None
    if squares is not None:
        return normalised_root(gram, squares)
    if gram.size > _MAX_DENSE_CELLS and not isinstance(gram, RowsGram):
        raise TooLargeError(f"a Gram of {gram.size} cells without structure exceeds the limit of {_MAX_DENSE_CELLS}")
    if not isinstance(gram, (DenseGram, RowsGram)):
        gram = DenseGram(gram.dense())
    first, kinds = kinds_of_cells(gram)
    if not len(first):
        return Solution(Identity(gram.size), 0.0, 0.0)
    solution = solve_dense(entries_among(gram, first), tolerance, iterations, effort)
    if len(first) == gram.size:
        return solution
    return replace(solution, matrix=Dense(expand(solution.matrix.dense(), kinds)))


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
    elif n * n > DENSE_LIMIT:  # too many cells to write out a strategy: count each of them
        matrix, error = Identity(n), (n - 1) * rest + constant
    else:
        matrix = Dense(sqrt(x) * np.eye(n) + (sqrt(y) - sqrt(x)) / n)
    return Solution(matrix, error, bound)


def _chain_strategy(gram: ChainGram, weights: Array, bound: float) -> Solution:
    """The strategy at the best weights; the eigenvectors of a tridiagonal matrix take only quadratic time."""
    from scipy.linalg import eigh_tridiagonal

    root = np.sqrt(weights)
    values, vectors = eigh_tridiagonal(gram.inverse_diagonal() / weights, -1 / (root[1:] * root[:-1]))
    queries = (gram.scale / values[:, None]) ** 0.25 * vectors.T / root
    norms = np.sqrt((queries**2).sum(axis=0))
    queries /= norms
    vectors *= (values / gram.scale) ** 0.25
    vectors *= (root * norms)[:, None]
    parts = np.array_split(vectors, max(len(vectors) // 512, 1), axis=1)
    return Solution(Dense(queries), sum(float(np.sum(part * gram.apply(part))) for part in parts), bound)
