"""Queries written out over the cells of all attributes together: any strategy at all, for domains of few cells.

Answers are least squares on all queries at once, and every row of a product is a type of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.coefficients import Coefficients, Written, written_rows, written_size, written_types
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.inverse import covers, inverse
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array, Gram
from hdmm.matrix.axis_gram import DenseGram
from hdmm.strategy import Block, Strategy
from hdmm.workload import EncodedProduct

_MAX_CELLS = 1 << 12
"""The most cells: the inverse is written out."""


@final
class ExplicitLeastSquares(LinearEstimator[Array]):
    """A single block with one factor over all its attributes; attributes outside it are summed over.

    The state is the estimate of the counts over the block's attributes.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        if len(strategy.blocks) != 1 or len(self.block.factors) != 1:
            raise ValueError("an explicit strategy has one block with one factor")
        if self.block.factors[0].shape[1] > _MAX_CELLS:
            raise ValueError(f"an explicit strategy has at most {_MAX_CELLS} cells")
        if self.block.factors[0].shape[1] != prod(self._table):
            raise ValueError("the factor of an explicit strategy has a column for every cell of its attributes")

    @property
    def block(self) -> Block:
        """The one block."""
        return self.blocks[0]

    @property
    def _table(self) -> tuple[int, ...]:
        """The sizes of the block's attributes."""
        return tuple(self.strategy.sizes_of(self.block.axes).values())

    @cached_property
    def _inverse(self) -> Array:
        return inverse(self.block.factors[0]).dense()

    @cached_property
    def _projection(self) -> Array:
        """The projection on what the queries see."""
        return self._inverse @ self.block.factors[0].dense()

    def _summed(self, product: EncodedProduct, array: Array) -> Array:
        """An array over the block's cells, added up over the attributes that the product does not touch."""
        table = array.reshape(*self._table, *array.shape[1:])
        untouched = tuple(place for place, axis in enumerate(self.block.axes) if axis not in product.axes)
        return table.sum(axis=untouched).reshape(-1, *array.shape[1:])

    def supports(self, product: EncodedProduct) -> bool:
        if not set(product.axes) <= set(self.block.axes):
            return False
        gram = Gram(self.strategy.sizes, product.terms).on(self.block.axes)
        return covers(self.block.factors[0], self._projection, lambda: DenseGram(gram.dense()))

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        sizes = self.strategy.sizes
        return noise[0] * np.array([p.square_sum(self._summed(p, self._inverse), sizes) for p in products])

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return written_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return written_size(product, types, self.block.queries)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        values = written_rows(product, types) @ self._summed(product, self._inverse)
        yield Written.rows(0, values, types)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        return self._inverse @ answers[0].astype(float)

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        return product.matrix(self.strategy.sizes_of(product.axes)).apply(self._summed(product, state))
