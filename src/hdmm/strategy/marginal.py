"""A set of weighted marginals, answered by exact global least squares (paper, section 8; MATH §6).

All marginals share eigenspaces: a marginal splits into residuals, one for each subset b of its attributes, and each
residual can be read from every measured marginal a ⊇ b. Least squares is the inverse-variance average of these
readings. With noise variance v_a on marginal a of N_a cells, the precision of residual b is g_b·N_b with g_b =
Σ_{a⊇b} 1/(v_a·N_a). No vector over the full domain is ever needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array, Identity
from hdmm.strategy.base import Coefficients, Noise, Strategy
from hdmm.strategy.rows import RowTypes, row_types
from hdmm.workload import EncodedProduct

Axes = tuple[int, ...]


@final
@dataclass(frozen=True, eq=False)
class MarginalStrategy(Strategy):
    """Marginals as blocks; any product whose attributes lie within one of them can be answered."""

    def __post_init__(self) -> None:
        if not all(isinstance(factor, Identity) for block in self.blocks for factor in block.factors):
            raise ValueError("the blocks of a marginal strategy count cells one by one")

    @cached_property
    def _above(self) -> dict[Axes, list[int]]:
        """For each residual the blocks that hold it."""
        above: dict[Axes, list[int]] = {}
        for index, block in enumerate(self.blocks):
            for subset in _subsets(block.axes):
                above.setdefault(subset, []).append(index)
        return above

    def supports(self, product: EncodedProduct) -> bool:
        return product.axes in self._above

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        cells = self._cells(product.axes)
        precisions = {residual: self._precision(residual, noise) * cells for residual in _subsets(product.axes)}
        total = 0.0
        for term in product.terms:
            even = {axis: gram.total() / self.sizes[axis] for axis, gram in term.factors.items()}
            odd = {axis: gram.trace() - even[axis] for axis, gram in term.factors.items()}
            total += term.coefficient * sum(
                prod(odd[axis] if axis in residual else even[axis] for axis in product.axes) / precision
                for residual, precision in precisions.items()
            )
        return max(total, 0.0)

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return row_types(product.factors[axis], product.masks(axis))

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        # On axis i of the product, an array's axis i runs over the types and axis d + i over the entries of a type; the
        # last axis of the values runs over the terms of the condition.
        d = len(types)
        ones = np.ones([1] * (2 * d + 1))
        means, deviations, counts = {}, {}, {}
        for place, (axis, one) in enumerate(zip(product.axes, types, strict=True)):
            mean = (one.values * one.counts[:, :, None]).sum(axis=1, keepdims=True) / self.sizes[axis]
            means[axis] = _placed(mean, place, d)
            deviations[axis] = _placed(one.values - mean, place, d)
            counts[axis] = _placed(one.counts[:, :, None], place, d)[..., 0]
        for index, block in enumerate(self.blocks):
            shared = tuple(axis for axis in product.axes if axis in block.axes)
            values: Array = 0 * ones
            for residual in _subsets(shared):
                factors = [deviations[axis] if axis in residual else means[axis] for axis in product.axes]
                values = values + prod(factors, start=ones) / self._precision(residual, noise)
            summed = self._cells(tuple(axis for axis in block.axes if axis not in shared))
            often: Array = prod((counts[axis] for axis in shared), start=np.full([1] * 2 * d, summed))
            summed_terms = values @ product.coefficients
            yield Coefficients(index, summed_terms / (noise[index] * self._cells(block.axes)), often)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> dict[Axes, Array]:
        """The estimate of every residual, shaped by its attributes."""
        residuals: dict[Axes, Array] = {}
        for residual, holders in self._above.items():
            total = np.zeros([self.sizes[axis] for axis in residual])
            for index in holders:
                block = self.blocks[index]
                table = answers[index].astype(float).reshape([self.sizes[axis] for axis in block.axes])
                summed = table.sum(axis=tuple(place for place, axis in enumerate(block.axes) if axis not in residual))
                total += summed / (noise[index] * self._cells(block.axes))
            for place in range(len(residual)):
                total -= total.mean(axis=place, keepdims=True)
            residuals[residual] = total / self._precision(residual, noise)
        return residuals

    def answer(self, product: EncodedProduct, state: dict[Axes, Array]) -> Array:
        marginal = np.zeros([self.sizes[axis] for axis in product.axes])
        for residual in _subsets(product.axes):
            others = tuple(axis for axis in product.axes if axis not in residual)
            spread = [self.sizes[axis] if axis in residual else 1 for axis in product.axes]
            marginal += state[residual].reshape(spread) / self._cells(others)
        return product.matrix({axis: self.sizes[axis] for axis in product.axes}).apply(marginal.reshape(-1))

    def _cells(self, axes: Axes) -> float:
        return float(prod(self.sizes[axis] for axis in axes))

    def _precision(self, residual: Axes, noise: Noise) -> float:
        """g_b: what all readings of a residual together know, per cell of the full marginal."""
        return sum(1 / (noise[index] * self._cells(self.blocks[index].axes)) for index in self._above[residual])


def _subsets(axes: Axes) -> Iterator[Axes]:
    return chain.from_iterable(combinations(axes, count) for count in range(len(axes) + 1))


def _placed(array: Array, place: int, axes: int) -> Array:
    """Types × entries × terms of one axis, as an array over all axes."""
    shape = [1] * (2 * axes + 1)
    shape[place], shape[axes + place], shape[-1] = array.shape
    return array.reshape(shape)
