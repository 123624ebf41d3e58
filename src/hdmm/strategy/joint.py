"""Least squares over all blocks at once (paper, section 10): one population for all tables, so that they add up.

A union answers each table from one block. The best linear answer uses all blocks, each weighted by its noise; by Gauss
and Markov no answer has a larger variance than from one block. It is found by iteration in coordinates that all blocks
share (see `equations`); no vector of the full domain is needed.

How the answers depend on the noise is written out where there are few coordinates; else, on request, by one solve for
every answer. Without it the errors that are told are those of answers from one block: upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.matrix import Array, Gram, Identity, Matrix
from hdmm.strategy.base import (
    Coefficients,
    Noise,
    Spread,
    Strategy,
    written_rows,
    written_size,
    written_types,
)
from hdmm.strategy.coordinates import WAYS, Coordinates
from hdmm.strategy.direct import DirectStrategy
from hdmm.strategy.equations import NEGLIGIBLE, Equations, block_lengths, weighed
from hdmm.strategy.kron import KronStrategy
from hdmm.strategy.rows import RowTypes
from hdmm.strategy.union import UnionStrategy
from hdmm.workload import EncodedProduct

_WRITTEN, _ENTRIES = 1 << 10, 1 << 22
"""The most coordinates, and the most entries, of an inverse that is written out."""
_LARGEST = 1 << 25
"""The most cells of all blocks for which answers from all blocks are the default."""
_INVERTED = 1 << 24
"""The most entries of a product's factor that is inverted so that its own answers agree with each other."""


def joined(strategy: Strategy) -> Strategy:
    """Least squares over all blocks, where a strategy does less by itself, and its tables have not too many cells."""
    if not isinstance(strategy, (UnionStrategy, DirectStrategy)):
        return strategy
    if len(strategy.blocks) == 1 and strategy.blocks[0].condition is None:
        if isinstance(strategy, DirectStrategy) and not all(map(_inverted, strategy.blocks[0].factors)):
            return strategy
        return KronStrategy(strategy.sizes, strategy.blocks)
    large = sum(block.cells + block.queries for block in strategy.blocks) > _LARGEST
    if large or any(len(block.axes) > WAYS or block.joint for block in strategy.blocks):
        return strategy
    return JointStrategy(strategy.sizes, strategy.blocks, strategy)


def _inverted(factor: Matrix) -> bool:
    """Whether the pseudo-inverse of a factor is at hand: of larger ones, answers are published as measured."""
    return isinstance(factor, Identity) or factor.shape[0] * factor.shape[1] <= _INVERTED


@final
@dataclass(frozen=True, eq=False)
class JointStrategy(Strategy):
    """The blocks of another strategy, with answers by least squares over all of them."""

    local: Strategy
    """How products are answered from one block alone: it says which are, and bounds their errors."""
    solved: bool = False
    """Whether exact errors are worth one solve for every answer."""

    def __getstate__(self) -> dict[str, Any]:
        return {"sizes": self.sizes, "blocks": self.blocks, "local": self.local, "solved": self.solved}

    @property
    def bounded(self) -> bool:
        """Whether the errors that are told are upper bounds."""
        return not (self.solved or self._written)

    @cached_property
    def _written(self) -> bool:
        return self._coordinates.count <= _WRITTEN and self._coordinates.count * self._queries <= _ENTRIES

    @cached_property
    def _coordinates(self) -> Coordinates:
        return Coordinates(self.sizes, (block.axes for block in self.blocks))

    @cached_property
    def _queries(self) -> int:
        return sum(block.queries for block in self.blocks)

    def supports(self, product: EncodedProduct) -> bool:
        """Whether one block tells the product; or all of them together, where that is written out."""
        if not self._coordinates.holds(product.axes):
            return False
        if self._one(product).supports(product):
            return True
        if not self._written:
            return False
        everything = max(Gram(self.sizes, product.terms).on(product.axes).trace(), 1.0)
        return not self._outside.size or self._squares(product, self._outside) <= NEGLIGIBLE * everything

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        """Exact where the inverse is written out, else that of answers from one block, which is not smaller.

        It is not solved for: a sum over all answers would take as many solves.
        """
        if not self._written:
            return self._one(product).squared_error(product, self._weighed(noise))
        deviations = np.repeat(np.sqrt(noise), [block.queries for block in self.blocks])
        return self._squares(product, self._equations(noise).inverse * deviations)

    def covering(self, noise: Noise) -> Noise:
        """Where errors are bounds, no variance is less than the estimator weighs it: answers err no more than that."""
        return self._weighed(noise) if self.bounded else noise

    def _weighed(self, noise: Noise) -> Noise:
        """The variances that blocks are weighed by: the noise's own, or more. Under them, no block alone does better.

        So answers have no larger variance than from one block under these.
        """
        variances = weighed(self.blocks, noise)
        scale = max(variance / one for variance, one in zip(noise, variances, strict=True))
        return [max(variance, scale * one) for variance, one in zip(noise, variances, strict=True)]

    def _one(self, product: EncodedProduct) -> Strategy:
        """How a product is answered from one block: as the other strategy does it, or by that block's least squares."""
        return self.local if self.local.supports(product) else self._blockwise

    @cached_property
    def _blockwise(self) -> UnionStrategy:
        return UnionStrategy(self.sizes, self.blocks)

    def _squares(self, product: EncodedProduct, columns: Array) -> float:
        """The sum of the squares of a product's answers to columns of coordinates."""
        return product.square_sum(self._coordinates.table(columns, product.axes), self.sizes)

    @cached_property
    def _outside(self) -> Array:
        """Directions that no block tells, whatever the noise and the weights."""
        return Equations(self._coordinates, self.blocks, block_lengths(self.blocks)).outside()

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._one(product).row_types(product, axis) if self.bounded else written_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        if self.bounded:
            return self._one(product).row_size(product, types)
        return written_size(product, types, self._queries)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        if self.bounded:
            yield from self._one(product).coefficients(product, types, noise)
            return
        rows, equations = written_rows(product, types), self._equations(noise)
        if self._written:
            values = rows @ self._coordinates.table(equations.inverse, product.axes)
        else:
            values = np.stack([equations.dual(product.axes, row) for row in rows])
        shape, d = tuple(len(one) for one in types), len(types)
        parts = np.split(values, equations.ends, axis=1)
        for index, part in enumerate(parts):
            yield Spread(index, part.reshape(*shape, -1), np.ones([1] * (d + 1)), d)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        """The coordinates that fit all answers best."""
        return self._equations(noise).solve(answers)

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        sizes = {axis: self.sizes[axis] for axis in product.axes}
        return product.matrix(sizes).apply(self._coordinates.table(state, product.axes))

    def _equations(self, noise: Noise) -> Equations:
        key = tuple(noise)
        if key not in self._solvers:
            self._solvers.clear()
            self._solvers[key] = Equations(self._coordinates, self.blocks, weighed(self.blocks, key))
        return self._solvers[key]

    @cached_property
    def _solvers(self) -> dict[tuple[float, ...], Equations]:
        return {}
