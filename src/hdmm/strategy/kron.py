"""One Kronecker product over some attributes, answered by least squares, factor by factor (paper, section 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array, Dense, Factor, Identity, Kron, Matrix, Total
from hdmm.matrix.factors import OnesGram
from hdmm.strategy.base import Coefficients, Noise, Strategy
from hdmm.strategy.block import Block
from hdmm.strategy.rows import RowTypes, row_types
from hdmm.workload import EncodedProduct

_ROUNDING = 1e-9


@final
@dataclass(frozen=True, eq=False)
class KronStrategy(Strategy):
    """A single block; attributes outside it are summed over."""

    _rows: dict[tuple[int, int], tuple[Matrix, Matrix]] = field(default_factory=dict, init=False, repr=False)

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
        return {axis: _inverse(factor) for axis, factor in zip(self.block.axes, self.block.factors, strict=True)}

    def supports(self, product: EncodedProduct) -> bool:
        return set(product.axes) <= set(self.block.axes) and all(
            _covers(factor, self._gram(product, axis))
            for axis, factor in zip(self.block.axes, self.block.factors, strict=True)
        )

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        return noise[0] * prod(_error(self._inverses[axis], self._gram(product, axis)) for axis in self.block.axes)

    def row_types(self, product: EncodedProduct, axis: int, matrix: Matrix) -> RowTypes:
        return row_types(self._coefficients(axis, matrix))

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        given = dict(zip(product.axes, types, strict=True))
        every = [
            given.get(axis) or row_types(self._coefficients(axis, Total(self.sizes[axis]))) for axis in self.block.axes
        ]
        values, counts = np.ones([1] * len(types)), np.ones([1] * len(types))
        for axis, one in zip(self.block.axes, every, strict=True):
            place = product.axes.index(axis) if axis in product.axes else None
            shape = [len(one) if here == place else 1 for here in range(len(types))]
            shape += [1] * (values.ndim - len(types)) + [one.values.shape[1]]
            values = values[..., None] * one.values.reshape(shape)
            counts = counts[..., None] * one.counts.reshape(shape)
        yield Coefficients(0, values, counts)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        """The least-squares estimate of the counts over the block's attributes."""
        if not self.block.axes:
            return answers[0].astype(float)
        return Kron(self._inverses[axis] for axis in self.block.axes).apply(answers[0].astype(float))

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        if not self.block.axes:
            return state
        return Kron(self._factor(product, axis) for axis in self.block.axes).apply(state)

    def _factor(self, product: EncodedProduct, axis: int) -> Matrix:
        found = product.factors.get(axis)
        return Total(self.sizes[axis]) if found is None else found

    def _gram(self, product: EncodedProduct, axis: int) -> Factor:
        found = product.grams.get(axis)
        return OnesGram(self.sizes[axis]) if found is None else found

    def _coefficients(self, axis: int, matrix: Matrix) -> Matrix:
        """W A⁺ on one attribute: how answers depend on measurements."""
        inverse = self._inverses[axis]
        if isinstance(inverse, Identity):
            return matrix
        key = (axis, id(matrix))
        if key not in self._rows:
            self._rows[key] = (Dense(matrix.apply(inverse.dense())), matrix)  # keeps the matrix alive, and so its id
        return self._rows[key][0]


def _inverse(factor: Matrix) -> Matrix:
    if isinstance(factor, Identity):
        return factor
    return Dense(np.linalg.pinv(factor.dense().astype(float)))


def _error(inverse: Matrix, gram: Factor) -> float:
    """tr(X⁺V) with X⁺ = A⁺A⁺ᵀ."""
    if isinstance(inverse, Identity):
        return gram.trace()
    entries = inverse.dense()
    return float(np.sum(entries * gram.apply(entries)))


def _covers(factor: Matrix, gram: Factor) -> bool:
    """Whether the factor's row space holds the workload's: nothing of V is left outside it."""
    if isinstance(factor, Identity):
        return True
    entries = factor.dense().astype(float)
    outside = np.eye(factor.shape[1]) - np.linalg.pinv(entries) @ entries
    left = float(np.sum(outside * gram.apply(outside)))
    return left <= _ROUNDING * max(gram.trace(), 1.0)
