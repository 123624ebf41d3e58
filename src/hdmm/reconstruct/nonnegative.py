"""Non-negative least squares: the counts ≥ 0 that fit all measurements best, each weighted by its noise.

min over x ≥ 0 of Σ_b ‖B_b·x − y_b‖²/σ_b². Where the cells of all measured attributes together fit a vector, x is that
vector, whatever the strategy. Where they do not, each table is made non-negative by itself, and the tables are made to
agree (:mod:`hdmm.reconstruct.local`). Both are biased: small counts come out too large on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from hdmm.errors import NotSupportedError, TooLargeError
from hdmm.matrix import Array
from hdmm.operators.descent import least_nonnegative_squares
from hdmm.reconstruct.estimate import CELLS, LEAST, Estimate
from hdmm.reconstruct.local import nonnegative_tables
from hdmm.reconstruct.quadratic import least_nonnegative
from hdmm.reconstruct.vector import Vector
from hdmm.strategy import Block, Noise, Strategy, weighing
from hdmm.texttable import count_text
from hdmm.workload import Encoded, EncodedProduct

_WRITTEN = 1 << 17
"""The most entries of all queries that are written out."""


@final
@dataclass(frozen=True, eq=False)
class NonnegativeCounts:
    """One vector of counts over all measured attributes, none of them negative. Biased; no interval is claimed."""

    vector: Vector
    estimator: str = "non-negative least squares"

    @property
    def total(self) -> float:
        """How many records the vector holds."""
        return float(self.vector.counts.sum())

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to a product, from the one vector."""
        if not set(product.axes) <= set(self.vector.axes):
            raise NotSupportedError(f"product {product.name!r}: asks about attributes that were not measured")
        return self.vector.answer(product)


def nonnegative(strategy: Strategy, workload: Encoded, answers: Sequence[Array], noise: Noise) -> Estimate:
    """The non-negative estimate for a workload: of one vector where it has at most ``CELLS`` cells, else of tables."""
    if vector_cells(strategy) <= CELLS:
        return nonnegative_counts(strategy, answers, noise)
    return nonnegative_tables(strategy, workload, answers, noise)


def vector_cells(strategy: Strategy) -> int:
    """How many cells the measured attributes have together."""
    return prod(strategy.sizes[axis] for axis in _axes(strategy))


def nonnegative_counts(strategy: Strategy, answers: Sequence[Array], noise: Noise) -> NonnegativeCounts:
    """The vector of counts ≥ 0 that fits all measurements best; of several such, one."""
    if vector_cells(strategy) > CELLS:
        raise TooLargeError(
            f"a vector of counts has {count_text(vector_cells(strategy))} cells; at most {count_text(CELLS)} are fitted"
        )
    axes = _axes(strategy)
    sizes = tuple(strategy.sizes[axis] for axis in axes)
    parts = [_Part(block, axes, sizes) for block in strategy.blocks]
    weighed = weighing(strategy.blocks, noise, LEAST)
    if prod(sizes) * sum(block.queries for block in strategy.blocks) <= _WRITTEN:
        counts = _written_out(parts, sizes, weighed, answers)
        if counts is not None:
            return NonnegativeCounts(Vector(axes, sizes, counts))

    def hessian(x: Array) -> Array:
        table = x.reshape(sizes)
        found = np.zeros(sizes)
        for part, variance in zip(parts, weighed, strict=True):
            part.add(found, part.queries.apply(part.seen(table)) / variance)
        return found.reshape(-1)

    linear = np.zeros(sizes)
    for part, variance, given in zip(parts, weighed, answers, strict=True):
        part.add(linear, given.astype(float) / variance)
    return NonnegativeCounts(Vector(axes, sizes, least_nonnegative(hessian, linear.reshape(-1))))


def _written_out(
    parts: Sequence[_Part], sizes: Sequence[int], variances: Sequence[float], answers: Sequence[Array]
) -> Array | None:
    """The same by active sets, which bear variances that are far apart, where the queries can be written out."""
    cells = np.eye(prod(sizes)).reshape(-1, *sizes)
    deviations = np.sqrt(variances)
    queries = [
        np.stack([part.queries.apply(part.seen(cell)) for cell in cells], axis=1) / deviation
        for part, deviation in zip(parts, deviations, strict=True)
    ]
    given = [answer.astype(float) / deviation for answer, deviation in zip(answers, deviations, strict=True)]
    return least_nonnegative_squares(np.vstack(queries), np.concatenate(given))


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


def _axes(strategy: Strategy) -> tuple[int, ...]:
    return tuple(sorted({axis for block in strategy.blocks for axis in block.axes}))
