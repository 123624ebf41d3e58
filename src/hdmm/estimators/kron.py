"""One Kronecker product over some attributes, answered by least squares, factor by factor (paper, section 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.coefficients import Coefficients, Factored, Written
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.factor import FactorSolution, solution_of
from hdmm.estimators.footprint import estimate_bytes, held_bytes, solution_bytes
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array, AxisGram, Identity, Kron, Total
from hdmm.matrix.axis_gram import OnesGram
from hdmm.matrix.gram import GramTerm
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
    def _solutions(self) -> dict[int, FactorSolution]:
        """Least squares with each factor."""
        return {axis: solution_of(factor) for axis, factor in zip(self.block.axes, self.block.factors, strict=True)}

    @cached_property
    def _total_types(self) -> dict[int, RowTypes]:
        """How the total over each attribute depends on measurements."""
        return {
            axis: solution.types(Total(self._sizes[axis]), np.ones((1, self._sizes[axis]), bool))
            for axis, solution in self._solutions.items()
        }

    def supports(self, product: EncodedProduct) -> bool:
        return set(product.axes) <= set(self.block.axes) and all(
            solution.determines(partial(self._gram, term, axis))
            for axis, solution in self._solutions.items()
            for term in product.terms
        )

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        return noise[0] * np.array([self._unit_error(product) for product in products])

    def _unit_error(self, product: EncodedProduct) -> float:
        return sum(
            term.coefficient
            * prod(solution.error(self._gram(term, axis)) for axis, solution in self._solutions.items())
            for term in product.terms
        )

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._solutions[axis].types(product.factors[axis], product.masks(axis))

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
        inverses = [solution.inverse for solution in self._solutions.values()]
        if all(isinstance(inverse, Identity) for inverse in inverses):
            return answers[0]
        return Kron(inverses).apply_float(answers[0])

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        return product.answers(state, self._sizes)

    def state_bytes(self) -> Sequence[int]:
        return [estimate_bytes(self.block), *solution_bytes(self.block)]

    def answer_bytes(self, product: EncodedProduct) -> int:
        return held_bytes(self.strategy, product)

    def _summed_types(self, product: EncodedProduct) -> tuple[RowTypes, ...]:
        """The types of the totals over the attributes that the product adds up."""
        return tuple(types for axis, types in self._total_types.items() if axis not in product.axes)

    def _gram(self, term: GramTerm, axis: int) -> AxisGram:
        gram = term.factors.get(axis)
        return OnesGram(self.strategy.sizes[axis]) if gram is None else gram
