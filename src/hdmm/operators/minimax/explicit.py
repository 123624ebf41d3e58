"""OPT_0 for the largest error: the strategy over few cells whose worst answer is as good as any can be.

A single product may have many cells: its attributes are independent of each other, and few cells on each are enough.

Every answer has a weight of its own. For given weights OPT_0 is solved with a certificate, and its lower bound is one
on the worst ratio of a variance to its limit. The weights grow where the ratio is large, until both agree. See
docs/math.md, section 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.estimators.inverse import inverse
from hdmm.matrix import Array, Matrix
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.base import MAX_CELLS_TOGETHER, Proposal
from hdmm.operators.minimax.weighted import ASIDE
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.optimise.descent import Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded, EncodedProduct

_ENTRIES = 1 << 25
"""The most entries of all answers with a limit, written out."""
_STEPS, _GAP = 60, 1e-3
_POWER, _SLOWER, _SLOWEST, _PATIENCE = 1.5, 0.7, 0.2, 4
"""Weights ← weights·ratio^power, and slower where nothing improves."""
_FLOOR = 1e-9
"""The least share of an answer's weight, relative to an even one: every answer stays supported."""


def worst_explicit(workload: Encoded, limits: Sequence[float | None], effort: Effort) -> Proposal | None:
    """Queries over all cells with the least worst ratio, and a bound on it; None where there are too many cells."""
    axes = workload.axes
    cells = prod(workload.sizes[axis] for axis in axes)
    if not axes or cells > MAX_CELLS_TOGETHER:
        return None
    pairs = list(zip(workload.products, limits, strict=True))
    if sum(product.queries for product, limit in pairs if limit is not None) * cells > _ENTRIES:
        raise TooLargeError('the answers are too many to be written out; plan with objective="total"')
    sizes = {axis: workload.sizes[axis] for axis in axes}
    rows = np.vstack([_rows(product, sizes) / limit**0.5 for product, limit in pairs if limit is not None])
    others = [_rows(product, sizes) / product.queries**0.5 for product, limit in pairs if limit is None]
    matrix, bound = _solve(rows, np.vstack(others) if others else None, effort)
    block = Block(axes, (matrix,))
    return Proposal(Strategy(workload.sizes, (block,), "kron" if len(axes) == 1 else "explicit"), bound)


def worst_product(workload: Encoded, limits: Sequence[float | None], effort: Effort) -> Proposal | None:
    """For a single product each attribute by itself: its worst answer is that of the worst row on every attribute."""
    (product,), (limit,) = workload.products, limits
    if limit is None or not product.axes or max(workload.sizes[axis] for axis in product.axes) > MAX_CELLS_TOGETHER:
        return None
    if product.condition is not None or any(
        factor.shape[0] * MAX_CELLS_TOGETHER > _ENTRIES for factor in product.factors.values()
    ):
        return None
    solved = [_solve(factor.dense().astype(float), None, effort) for factor in product.factors.values()]
    block = Block(product.axes, tuple(matrix for matrix, _ in solved))
    return Proposal(Strategy(workload.sizes, (block,), "kron"), prod(bound for _, bound in solved) / limit)


def _rows(product: EncodedProduct, sizes: dict[int, int]) -> Array:
    return product.matrix(sizes).dense().astype(float)


def _solve(rows: Array, others: Array | None, effort: Effort) -> tuple[Matrix, float]:
    """The strategy with the least largest variance of some answers, and the bound; others are only to be answered."""
    aside = np.zeros((rows.shape[1],) * 2)
    if others is not None:
        aside = others.T @ others
        aside *= ASIDE * float((rows**2).sum()) / len(rows) / np.trace(aside)
    weights = np.full(len(rows), 1 / len(rows))
    best: tuple[float, Matrix] | None = None
    bound, power, idle = 0.0, _POWER, 0
    for _ in range(_STEPS):
        gram = rows.T @ (weights[:, None] * rows)
        solution = opt0_gaussian(DenseGram((gram + gram.T) / 2 + aside), tolerance=_GAP / 4)
        ratios = ((rows @ inverse(solution.matrix).dense()) ** 2).sum(axis=1)
        value = float(ratios.max())
        if others is None:
            bound = max(bound, solution.bound or 0.0)
        idle = 0 if best is None or value < best[0] * (1 - _GAP / 10) else idle + 1
        if best is None or value < best[0]:
            best = (value, solution.matrix)
        if best[0] <= bound * (1 + _GAP) or power < _SLOWEST or effort.over:
            break
        if idle == _PATIENCE:
            power, idle = _SLOWER * power, 0
        weights = np.maximum(weights * (ratios / value) ** power, _FLOOR / len(rows))
        weights /= weights.sum()
    if others is not None:  # what the others ask is no part of the bound
        gram = rows.T @ (weights[:, None] * rows)
        bound = opt0_gaussian(DenseGram((gram + gram.T) / 2), tolerance=_GAP / 4).bound or 0.0
    assert best is not None
    return best[1], bound
