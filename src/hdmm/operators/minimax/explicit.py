"""OPT_0 for the largest error: the strategy over few cells with the best worst answer.

A single product may have many cells: its attributes are independent of each other, and each needs few cells only.

Every answer has its own weight. At any weights OPT_0 is solved with a certificate, whose lower bound is also one on the
worst ratio of a variance to its limit. Weights of answers with a large ratio grow, until both agree. See docs/math.md,
section 9.
"""

from __future__ import annotations

from math import prod

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.estimators.inverse import inverse
from hdmm.matrix import Array, Dense, Matrix, Prefix
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.base import MAX_CELLS_TOGETHER, Limits, Proposal
from hdmm.operators.minimax.prefix import MAX_PREFIX_CELLS, least_largest_prefix
from hdmm.operators.minimax.weighted import UNLIMITED_WEIGHT
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.optimise.descent import Effort
from hdmm.strategy import Block, Strategy
from hdmm.syntax import example
from hdmm.workload import Encoded, EncodedProduct

_MAX_ENTRIES = 1 << 25
"""The most entries of all answers with a limit, written out."""
_MAX_STEPS = 60
_GAP = 1e-3
"""The gap between the worst ratio and its bound at which the search ends."""
_POWER = 1.5
"""Weights ← weights·ratio^power, at first."""
_SLOWDOWN = 0.7
"""What the power is multiplied by if nothing improves."""
_LEAST_POWER = 0.2
_PATIENCE = 4
"""How many steps in a row may fail to improve before the power is reduced."""
_FLOOR = 1e-9
"""The least weight of an answer, relative to the mean: every answer stays supported."""


def worst_explicit(workload: Encoded, limits: Limits, effort: Effort) -> Proposal | None:
    """Queries over all cells with the least worst ratio, and a bound on it; None if there are too many cells."""
    axes = workload.axes
    cells = prod(workload.sizes[axis] for axis in axes)
    if len(axes) == 1 and len(workload.products) == 1:
        proposal = worst_product(workload, limits, effort)
        if proposal is not None:
            return proposal
    if not axes or cells > MAX_CELLS_TOGETHER:
        return None
    pairs = list(zip(workload.products, limits, strict=True))
    if sum(product.queries for product, limit in pairs if limit is not None) * cells > _MAX_ENTRIES:
        raise TooLargeError(f"the answers are too many to be written out; plan with {example('objective', 'total')}")
    sizes = {axis: workload.sizes[axis] for axis in axes}
    rows = np.vstack([_rows(product, sizes) / limit**0.5 for product, limit in pairs if limit is not None])
    others = [_rows(product, sizes) / product.queries**0.5 for product, limit in pairs if limit is None]
    matrix, bound = _least_largest(rows, np.vstack(others) if others else None, effort)
    block = Block(axes, (matrix,))
    return Proposal(Strategy(workload.sizes, (block,), "kron" if len(axes) == 1 else "explicit"), bound)


def worst_product(workload: Encoded, limits: Limits, effort: Effort) -> Proposal | None:
    """For a single product each attribute by itself: its worst answer is that of the worst row on every attribute."""
    (product,), (limit,) = workload.products, limits
    if limit is None or not product.axes or product.condition is not None:
        return None
    if not all(_searched(factor) for factor in product.factors.values()):
        return None
    solutions = [_least_largest_factor(factor, effort) for factor in product.factors.values()]
    block = Block(product.axes, tuple(matrix for matrix, _ in solutions))
    return Proposal(Strategy(workload.sizes, (block,), "kron"), prod(bound for _, bound in solutions) / limit)


def _searched(factor: Matrix) -> bool:
    """Whether the rows of one attribute are few enough."""
    rows, cells = factor.shape
    if isinstance(factor, Prefix):
        return cells <= MAX_PREFIX_CELLS
    return cells <= MAX_CELLS_TOGETHER and rows * MAX_CELLS_TOGETHER <= _MAX_ENTRIES


def _least_largest_factor(factor: Matrix, effort: Effort) -> tuple[Matrix, float]:
    """The strategy with the least largest variance of all rows of one attribute, and the bound."""
    if isinstance(factor, Prefix):
        queries, _, bound = least_largest_prefix(factor.n, _GAP, effort)
        return Dense(queries), bound
    return _least_largest(factor.dense().astype(float), None, effort)


def _rows(product: EncodedProduct, sizes: dict[int, int]) -> Array:
    return product.matrix(sizes).dense().astype(float)


def _least_largest(rows: Array, others: Array | None, effort: Effort) -> tuple[Matrix, float]:
    """The strategy with the least largest variance of some answers, and the bound; others only have to be answered."""
    unlimited = np.zeros((rows.shape[1],) * 2)
    if others is not None:
        unlimited = others.T @ others
        unlimited *= UNLIMITED_WEIGHT * float((rows**2).sum()) / len(rows) / np.trace(unlimited)
    weights = np.full(len(rows), 1 / len(rows))
    best: tuple[float, Matrix] | None = None
    bound, power, idle = 0.0, _POWER, 0
    for _ in range(_MAX_STEPS):
        solution = opt0_gaussian(DenseGram(_weighted_gram(rows, weights) + unlimited), tolerance=_GAP / 4)
        ratios = ((rows @ inverse(solution.matrix).dense()) ** 2).sum(axis=1)
        value = float(ratios.max())
        if others is None:
            bound = max(bound, solution.bound or 0.0)
        idle = 0 if best is None or value < best[0] * (1 - _GAP / 10) else idle + 1
        if best is None or value < best[0]:
            best = (value, solution.matrix)
        if best[0] <= bound * (1 + _GAP) or power < _LEAST_POWER or effort.over:
            break
        if idle == _PATIENCE:
            power, idle = _SLOWDOWN * power, 0
        weights = np.maximum(weights * (ratios / value) ** power, _FLOOR / len(rows))
        weights /= weights.sum()
    if others is not None:  # the bound is on answers with a limit alone
        bound = opt0_gaussian(DenseGram(_weighted_gram(rows, weights)), tolerance=_GAP / 4).bound or 0.0
    assert best is not None
    return best[1], bound


def _weighted_gram(rows: Array, weights: Array) -> Array:
    gram = rows.T @ (weights[:, None] * rows)
    return (gram + gram.T) / 2
