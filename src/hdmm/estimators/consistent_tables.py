"""Tables that are non-negative one by one, for domains of far too many cells for a vector of counts.

The tables are those on the largest sets of attributes that a workload asks about. Of all families of tables that are
non-negative, have one total and agree on every attribute that they share, the one nearest to the unbiased estimates is
sought, each table weighted by its mean variance, by Dykstra's alternating projections: onto the tables of that total
that are not negative, and onto the families that agree, which is exact least squares on marginals.

What is guaranteed: no answer is negative that counts records, all tables have the same total, and two tables agree on
what they share up to ``disagreement``, which tables state. Tables that agree in this way need not be the
tables of any one population. Biased: small counts come out too large on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.errors import NotSupportedError, TooLargeError
from hdmm.estimators.biased import counts_on, estimated_total
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.marginal import MarginalLeastSquares
from hdmm.matrix import Array
from hdmm.matrix.axes import Axes
from hdmm.memory.limit import memory_limit, more_memory
from hdmm.strategy import Block, Strategy
from hdmm.text import bytes_text
from hdmm.workload import Encoded, EncodedProduct

_MAX_DISAGREEMENT = 0.01
"""Tables agree well enough if no cell needs to move by more than this many records."""
_MAX_ROUNDS = 200
"""The most rounds of projections."""
_CELL_BYTES = 8 * 8
"""Bytes for each cell of all tables: the tables, what was cut off, and the work of a projection."""


@final
@dataclass(frozen=True, eq=False)
class NonnegativeTables:
    """Tables of counts on some sets of attributes, none of them negative. Biased; no interval is claimed."""

    sizes: tuple[int, ...]
    tables: dict[Axes, Array]
    total: float
    disagreement: float
    """By how many records a cell would have to move, at most, for all tables to agree exactly."""

    @property
    def label(self) -> str:
        """How the estimate was made, and how well its tables agree."""
        return f"non-negative marginals, which agree to {self.disagreement:.2g} records in a cell"

    @cached_property
    def _sets(self) -> _Sets:
        return _Sets(self.tables)

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to a product, from the smallest table that holds its attributes."""
        holding = self._sets.holding(product.axes)
        if not holding:
            raise NotSupportedError(
                f"product {product.name!r}: no table of the plan holds all its attributes; plan for it, or use an "
                "estimator that answers across tables (Private-PGM)"
            )
        chosen = min(holding, key=lambda axes: (self.tables[axes].size, axes))
        return product.answers(self.tables[chosen], {axis: self.sizes[axis] for axis in chosen})


def nonnegative_tables(
    estimator: LinearEstimator[Any], workload: Encoded, answers: Sequence[Array], noise: Noise
) -> NonnegativeTables:
    """Non-negative tables on the largest sets of attributes that the workload asks about."""
    products = {
        axes: counts_on({axis: workload.sizes[axis] for axis in axes})
        for axes in largest_sets(product.axes for product in workload.products)
    }
    cells = sum(product.queries for product in products.values())
    if cells * _CELL_BYTES > memory_limit():
        raise TooLargeError(
            f"non-negative tables need {bytes_text(cells * _CELL_BYTES)}; the limit is {bytes_text(memory_limit())}: "
            f"use the unbiased tables{more_memory()}"
        )
    for axes, product in products.items():
        if not estimator.supports(product):
            name = next(asked.name for asked in workload.products if asked.axes == axes)
            raise NotSupportedError(
                "non-negative tables need counts of every cell, and the plan's measurements do not separate the "
                f"cells of the attributes of {name!r}; ask for their Identity, or take the unbiased tables"
            )
    state = estimator.reconstruct(answers, noise)
    unbiased = [estimator.answer(product, state).astype(float) for product in products.values()]
    variances = [estimator.squared_error(product, noise) / product.queries for product in products.values()]
    total = estimated_total(estimator, answers, noise)
    count = max(0.0, float(unbiased[0].sum()) if total is None else total)
    blocks = tuple(Block(axes, tuple(product.factors.values())) for axes, product in products.items())
    family = MarginalLeastSquares(Strategy(workload.sizes, blocks, "marginal"))
    tables, disagreement = _project(family, list(products.values()), unbiased, variances, count)
    return NonnegativeTables(workload.sizes, dict(zip(products, tables, strict=True)), count, disagreement)


def _project(
    family: MarginalLeastSquares,
    products: Sequence[EncodedProduct],
    tables: list[Array],
    variances: Sequence[float],
    total: float,
) -> tuple[list[Array], float]:
    """Dykstra: what a cut removed is added back before the next one; agreeing is linear and needs no correction."""
    removed = [np.zeros(len(table)) for table in tables]
    for _ in range(_MAX_ROUNDS):
        before = [table + cut for table, cut in zip(tables, removed, strict=True)]
        kept = [on_simplex(table, total) for table in before]
        removed = [table - cut for table, cut in zip(before, kept, strict=True)]
        state = family.reconstruct(kept, variances)
        tables = [family.answer(product, state) for product in products]
        disagreement = max(float(abs(table - cut).max()) for table, cut in zip(tables, kept, strict=True))
        if disagreement <= _MAX_DISAGREEMENT:
            break
    return kept, disagreement


def on_simplex(table: Array, total: float) -> Array:
    """The nearest non-negative table with this total: a constant is subtracted, and what falls below 0 becomes 0."""
    if total <= 0:
        return np.zeros(len(table))
    sorted_ = np.sort(table)[::-1]
    excess = (np.cumsum(sorted_) - total) / np.arange(1, len(table) + 1)
    shift = excess[np.flatnonzero(sorted_ > excess)[-1]]
    return np.maximum(table - shift, 0)


def largest_sets(sets: Iterable[Axes]) -> tuple[Axes, ...]:
    """The sets of attributes that are not part of another one."""
    largest = _Sets()
    for axes in sorted(set(sets), key=lambda axes: (-len(axes), axes)):
        if not largest.holding(axes):
            largest.add(axes)
    return tuple(sorted(largest.all))


@final
class _Sets:
    """Sets of attributes, looked up by attributes that they hold."""

    def __init__(self, sets: Iterable[Axes] = ()) -> None:
        self.all: set[Axes] = set()
        self._by_axis: dict[int, set[Axes]] = {}
        for axes in sets:
            self.add(axes)

    def add(self, axes: Axes) -> None:
        """Add one more set."""
        self.all.add(axes)
        for axis in axes:
            self._by_axis.setdefault(axis, set()).add(axes)

    def holding(self, axes: Axes) -> set[Axes]:
        """The sets that hold all of these attributes."""
        if not axes:
            return self.all
        return set.intersection(*(self._by_axis.get(axis, set()) for axis in axes))
