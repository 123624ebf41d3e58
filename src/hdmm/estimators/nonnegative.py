"""Non-negative least squares: the counts ≥ 0 that fit all measurements best, each weighted by its noise.

min over x ≥ 0 of Σ_b ‖B_b·x − y_b‖²/σ_b². If the cells of all measured attributes together fit a vector, x is that
vector, whatever the strategy. If not, each table is made non-negative by itself, and the tables are made to agree
(:mod:`hdmm.estimators.consistent_tables`). Both are biased: small counts come out too large on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np

from hdmm.errors import NotSupportedError, TooLargeError
from hdmm.estimators.biased import LEAST_VARIANCE, MAX_CELLS, BiasedEstimator
from hdmm.estimators.consistent_tables import NonnegativeTables, nonnegative_tables
from hdmm.estimators.estimator import LinearEstimator, Noise, weighing_variances
from hdmm.matrix import Array
from hdmm.matrix.axes import Axes
from hdmm.optimise.descent import least_nonnegative_squares
from hdmm.optimise.mprgp import least_nonnegative
from hdmm.strategy import Block, Strategy
from hdmm.text import count_text
from hdmm.workload import Encoded, EncodedProduct

_MAX_WRITTEN = 1 << 17
"""The most entries of all queries that are written out."""


@final
@dataclass(frozen=True, eq=False)
class NonnegativeCounts:
    """One vector of counts over all measured attributes, none of them negative. Biased; no interval is claimed."""

    axes: Axes
    sizes: tuple[int, ...]
    counts: Array
    """A count for every cell of these attributes together."""
    label: str = "non-negative least squares"

    @property
    def total(self) -> float:
        """How many records the vector holds."""
        return float(self.counts.sum())

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to a product, from the one vector."""
        if not set(product.axes) <= set(self.axes):
            raise NotSupportedError(f"product {product.name!r}: asks about attributes that were not measured")
        return product.answers(self.counts, dict(zip(self.axes, self.sizes, strict=True)))


@final
class NonnegativeLeastSquares(BiasedEstimator[NonnegativeCounts | NonnegativeTables]):
    """One vector of counts if it has at most ``MAX_CELLS`` cells, else tables that agree with each other."""

    def __init__(self, unbiased: LinearEstimator[Any], workload: Encoded) -> None:
        self.strategy = unbiased.strategy
        self._unbiased = unbiased
        self._workload = workload

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> NonnegativeCounts | NonnegativeTables:
        if vector_cells(self.strategy) <= MAX_CELLS:
            return nonnegative_counts(self.strategy, answers, noise)
        return nonnegative_tables(self._unbiased, self._workload, answers, noise)


def vector_cells(strategy: Strategy) -> int:
    """How many cells the measured attributes have together."""
    return prod(strategy.sizes_of(strategy.axes).values())


def nonnegative_counts(strategy: Strategy, answers: Sequence[Array], noise: Noise) -> NonnegativeCounts:
    """The vector of counts ≥ 0 that fits all measurements best; of several such, one."""
    cells = vector_cells(strategy)
    if cells > MAX_CELLS:
        raise TooLargeError(
            f"{count_text(cells)} cells are too many to be fitted; the limit is {count_text(MAX_CELLS)}"
        )
    axes = strategy.axes
    sizes = tuple(strategy.sizes_of(axes).values())
    parts = [_Part(block, axes, sizes) for block in strategy.blocks]
    variances = weighing_variances(strategy.blocks, noise, LEAST_VARIANCE)
    if cells * strategy.queries <= _MAX_WRITTEN:
        counts = _written_out(parts, sizes, variances, answers)
        if counts is not None:
            return NonnegativeCounts(axes, sizes, counts)

    def hessian(x: Array) -> Array:
        table = x.reshape(sizes)
        product = np.zeros(sizes)
        for part, variance in zip(parts, variances, strict=True):
            part.add(product, part.queries.apply(part.seen(table)) / variance)
        return product.reshape(-1)

    linear = np.zeros(sizes)
    for part, variance, measured in zip(parts, variances, answers, strict=True):
        part.add(linear, measured.astype(float) / variance)
    return NonnegativeCounts(axes, sizes, least_nonnegative(hessian, linear.reshape(-1)))


def _written_out(
    parts: Sequence[_Part], sizes: Sequence[int], variances: Sequence[float], answers: Sequence[Array]
) -> Array | None:
    """The same by active sets, which cope with variances that are far apart; None if that takes too long."""
    cells = np.eye(prod(sizes)).reshape(-1, *sizes)
    deviations = np.sqrt(variances)
    queries = [
        np.stack([part.queries.apply(part.seen(cell)) for cell in cells], axis=1) / deviation
        for part, deviation in zip(parts, deviations, strict=True)
    ]
    scaled = [answer.astype(float) / deviation for answer, deviation in zip(answers, deviations, strict=True)]
    return least_nonnegative_squares(np.vstack(queries), np.concatenate(scaled))


@final
class _Part:
    """A block's queries on the counts over all measured attributes: those that it lacks are added up first."""

    def __init__(self, block: Block, axes: Sequence[int], sizes: Sequence[int]) -> None:
        self.queries = block.matrix
        self._lacking = tuple(place for place, axis in enumerate(axes) if axis not in block.axes)
        self._shape = [1 if place in self._lacking else size for place, size in enumerate(sizes)]

    def seen(self, table: Array) -> Array:
        """The counts that the block is about."""
        return np.asarray(table.sum(axis=self._lacking)).reshape(-1)

    def add(self, table: Array, y: Array) -> None:
        """Add what the transposed queries make of some answers."""
        table += self.queries.apply_t(y).reshape(self._shape)
