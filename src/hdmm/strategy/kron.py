"""One Kronecker product over some attributes, answered by least squares, factor by factor (paper, section 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array, Factor, Identity, Kron, Matrix, Total
from hdmm.matrix.compose import restricted
from hdmm.matrix.factors import OnesGram
from hdmm.matrix.gram import Term
from hdmm.matrix.workspace import check_written
from hdmm.strategy.base import Coefficients, Factored, Noise, Spread, Strategy, placed
from hdmm.strategy.block import Block
from hdmm.strategy.inverse import covers, inverse
from hdmm.strategy.rows import RowTypes, entry_types, product_types, row_types
from hdmm.workload import EncodedProduct


@final
@dataclass(frozen=True, eq=False)
class KronStrategy(Strategy):
    """A single block; attributes outside it are summed over."""

    def __post_init__(self) -> None:
        if len(self.blocks) != 1:
            raise ValueError("a Kronecker strategy has one block")

    @property
    def block(self) -> Block:
        """The one block."""
        return self.blocks[0]

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
        sizes = {axis: self.sizes[axis] for axis in self.block.axes}
        return {axis: self._types(axis, Total(size), np.ones((1, size), bool)) for axis, size in sizes.items()}

    def supports(self, product: EncodedProduct) -> bool:
        return set(product.axes) <= set(self.block.axes) and all(
            isinstance(factor, Identity) or covers(factor, self._projections[axis], partial(self._gram, term, axis))
            for axis, factor in zip(self.block.axes, self.block.factors, strict=True)
            for term in product.terms
        )

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        total = sum(
            term.coefficient * prod(_error(self._inverses[axis], self._gram(term, axis)) for axis in self.block.axes)
            for term in product.terms
        )
        return noise[0] * total

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._types(axis, product.factors[axis], product.masks(axis))

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        others = prod(len(one) for one in types[1:])
        if product.condition is None:
            return others
        summed = prod(one.width for axis, one in self._total_types.items() if axis not in product.axes)
        return others * summed * prod(one.width for one in types) * len(product.condition.terms)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        others = tuple(one for axis, one in self._total_types.items() if axis not in product.axes)
        if product.condition is None:
            yield Factored(0, tuple(types), others)
            return
        # Axis i runs over the types of the product's i-th attribute, axis d + i over the entries of a type; that of the
        # values ends with the terms of the condition.
        d = len(types)
        values, counts = np.ones([1] * (2 * d + 1)), np.ones([1] * 2 * d)
        for place, one in enumerate(types):
            values = values * placed(one.values, place, d)
            counts = counts * placed(one.counts[:, :, None], place, d)[..., 0]
        yield Spread(0, values @ product.coefficients, counts, d, others)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        """The least-squares estimate of the counts over the block's attributes; the answers where they are counts."""
        if all(isinstance(inverse, Identity) for inverse in self._inverses.values()):
            return answers[0]
        return Kron(self._inverses[axis] for axis in self.block.axes).apply_float(answers[0])

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        return product.answers(state, {axis: self.sizes[axis] for axis in self.block.axes})

    def _gram(self, term: Term, axis: int) -> Factor:
        found = term.factors.get(axis)
        return OnesGram(self.sizes[axis]) if found is None else found

    def _types(self, axis: int, matrix: Matrix, masks: Array) -> RowTypes:
        """The types of the rows of W A⁺ on one attribute: how answers depend on measurements."""
        inverse = self._inverses[axis]
        if isinstance(inverse, Identity):
            return row_types(matrix, masks)
        entries = inverse.dense()
        if len(masks) == 1:
            return product_types(restricted(matrix, None if masks.all() else masks[0]), entries)
        return entry_types(np.stack([matrix.apply(mask[:, None] * entries) for mask in masks], axis=2))


def _error(inverse: Matrix, gram: Factor) -> float:
    """tr(X⁺V) with X⁺ = A⁺A⁺ᵀ."""
    if isinstance(inverse, Identity):
        return gram.trace()
    entries = inverse.dense()
    return float(np.sum(entries * gram.apply(entries)))
