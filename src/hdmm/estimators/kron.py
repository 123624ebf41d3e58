"""One Kronecker product over some attributes, answered by least squares, factor by factor (paper, section 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.coefficients import Coefficients, Factored, Written
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.footprint import estimate_bytes, held_bytes
from hdmm.estimators.inverse import covers, inverse, inverse_error
from hdmm.estimators.row_types import RowTypes, entry_types, product_types, row_types
from hdmm.matrix import Array, AxisGram, Identity, Kron, Matrix, Total
from hdmm.matrix.axis_gram import OnesGram
from hdmm.matrix.compose import restricted
from hdmm.matrix.gram import GramTerm
from hdmm.memory.workspace import check_written
from hdmm.strategy import Block, Strategy
from hdmm.workload import EncodedProduct


@final
class KronLeastSquares(LinearEstimator[Array]):
    """Least squares on a single block; attributes outside it are summed over.

    The state is the estimate of the counts over the block's attributes; the answers themselves if they are counts.
    """

    def __init__(self, strategy: Strategy) -> None:
        if len(strategy.blocks) != 1:
            raise ValueError("a Kronecker strategy has one block")
        self.strategy = strategy

    @property
    def block(self) -> Block:
        """The one block."""
        return self.blocks[0]

    @property
    def _sizes(self) -> dict[int, int]:
        """The sizes of the block's attributes."""
        return self.strategy.sizes_of(self.block.axes)

    @cached_property
    def _inverses(self) -> dict[int, Matrix]:
        """The pseudo-inverse of each factor."""
        return {axis: inverse(factor) for axis, factor in zip(self.block.axes, self.block.factors, strict=True)}

    @cached_property
    def _projections(self) -> dict[int, Array]:
        """A⁺A for each factor but the identity, written out."""
        factors = zip(self.block.axes, self.block.factors, strict=True)
        others = [(axis, factor) for axis, factor in factors if not isinstance(factor, Identity)]
        for _, factor in others:
            check_written(factor.shape[1], factor.shape[1])
        return {axis: self._inverses[axis].apply(factor.dense().astype(float)) for axis, factor in others}

    @cached_property
    def _total_types(self) -> dict[int, RowTypes]:
        """How the total over each attribute depends on measurements."""
        return {axis: self._types(axis, Total(size), np.ones((1, size), bool)) for axis, size in self._sizes.items()}

    def supports(self, product: EncodedProduct) -> bool:
        return set(product.axes) <= set(self.block.axes) and all(
            isinstance(factor, Identity) or covers(factor, self._projections[axis], partial(self._gram, term, axis))
            for axis, factor in zip(self.block.axes, self.block.factors, strict=True)
            for term in product.terms
        )

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        return noise[0] * np.array([self._unit_error(product) for product in products])

    def _unit_error(self, product: EncodedProduct) -> float:
        return sum(
            term.coefficient
            * prod(inverse_error(self._inverses[axis], self._gram(term, axis)) for axis in self.block.axes)
            for term in product.terms
        )

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._types(axis, product.factors[axis], product.masks(axis))

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        combinations = prod(len(row_types) for row_types in types[1:])
        if product.condition is None:
            return combinations
        widths = [row_types.width for row_types in (*types, *self._summed_types(product))]
        return combinations * prod(widths) * len(product.condition.boxes)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        summed = self._summed_types(product)
        if product.condition is None:
            yield Factored(0, tuple(types), summed)
        else:
            yield Written.products(0, types, product.coefficients, summed)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        if all(isinstance(inverse, Identity) for inverse in self._inverses.values()):
            return answers[0]
        return Kron(self._inverses[axis] for axis in self.block.axes).apply_float(answers[0])

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        return product.answers(state, self._sizes)

    def state_bytes(self) -> Sequence[int]:
        return [estimate_bytes(self.block)]

    def answer_bytes(self, product: EncodedProduct) -> int:
        return held_bytes(self.strategy, product)

    def _summed_types(self, product: EncodedProduct) -> tuple[RowTypes, ...]:
        """The types of the totals over the attributes that the product adds up."""
        return tuple(types for axis, types in self._total_types.items() if axis not in product.axes)

    def _gram(self, term: GramTerm, axis: int) -> AxisGram:
        gram = term.factors.get(axis)
        return OnesGram(self.strategy.sizes[axis]) if gram is None else gram

    def _types(self, axis: int, matrix: Matrix, masks: Array) -> RowTypes:
        """The types of the rows of W A⁺ on one attribute: how answers depend on measurements."""
        inverse = self._inverses[axis]
        if isinstance(inverse, Identity):
            return row_types(matrix, masks)
        entries = inverse.dense()
        if len(masks) == 1:
            return product_types(restricted(matrix, None if masks.all() else masks[0]), entries)
        return entry_types(np.stack([matrix.apply(mask[:, None] * entries) for mask in masks], axis=2))
