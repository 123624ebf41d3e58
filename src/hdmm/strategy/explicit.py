"""Queries written out over the cells of all attributes together: any strategy there is, for domains of few cells.

Answers are least squares on all queries at once, and every row of a product is a type of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array, Gram
from hdmm.matrix.factors import DenseGram
from hdmm.strategy.base import Coefficients, Noise, Spread, Strategy, written_rows, written_size, written_types
from hdmm.strategy.block import Block
from hdmm.strategy.inverse import covers, inverse
from hdmm.strategy.rows import RowTypes
from hdmm.workload import EncodedProduct

_MOST = 1 << 12
"""The most cells: the inverse is written out."""


@final
@dataclass(frozen=True, eq=False)
class ExplicitStrategy(Strategy):
    """A single block with one factor over all its attributes; attributes outside it are summed over."""

    def __post_init__(self) -> None:
        if len(self.blocks) != 1 or len(self.block.factors) != 1:
            raise ValueError("an explicit strategy has one block with one factor")
        if self.block.factors[0].shape[1] > _MOST:
            raise ValueError(f"an explicit strategy has at most {_MOST} cells")
        if self.block.factors[0].shape[1] != prod(self._table):
            raise ValueError("the factor of an explicit strategy has a column for every cell of its attributes")

    @property
    def block(self) -> Block:
        """The one block."""
        return self.blocks[0]

    @property
    def _table(self) -> tuple[int, ...]:
        """The sizes of the block's attributes."""
        return tuple(self.sizes[axis] for axis in self.block.axes)

    @cached_property
    def _inverse(self) -> Array:
        return inverse(self.block.factors[0]).dense()

    @cached_property
    def _projection(self) -> Array:
        """The projection on what the queries see."""
        projection: Array = self._inverse @ self.block.factors[0].dense()
        return projection

    def _summed(self, product: EncodedProduct, array: Array) -> Array:
        """An array over the block's cells, added up over the attributes that the product does not touch."""
        table = array.reshape(*self._table, *array.shape[1:])
        summed = tuple(place for place, axis in enumerate(self.block.axes) if axis not in product.axes)
        added: Array = table.sum(axis=summed).reshape(-1, *array.shape[1:])
        return added

    def supports(self, product: EncodedProduct) -> bool:
        if not set(product.axes) <= set(self.block.axes):
            return False
        asked = Gram(self.sizes, product.terms).on(self.block.axes)
        return covers(self.block.factors[0], self._projection, lambda: DenseGram(asked.dense()))

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        return noise[0] * product.square_sum(self._summed(product, self._inverse), self.sizes)

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return written_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return written_size(product, types, self.block.queries)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        values = written_rows(product, types) @ self._summed(product, self._inverse)
        d = len(types)
        yield Spread(0, values.reshape(*(len(one) for one in types), -1), np.ones([1] * (d + 1)), d)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        """The least-squares estimate of the counts over the block's attributes."""
        estimate: Array = self._inverse @ answers[0].astype(float)
        return estimate

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        sizes = {axis: self.sizes[axis] for axis in product.axes}
        return product.matrix(sizes).apply(self._summed(product, state))
