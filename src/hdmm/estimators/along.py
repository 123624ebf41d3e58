"""Residuals along one attribute: every block measures that attribute by a strategy of its own.

A block is A_a ⊗ ⊗_{i∈a} B_i for a set a of the other attributes, with residuals B_i as in
:mod:`hdmm.estimators.residual` and any strategy A_a along the one attribute. Blocks of different sets speak of
different things whatever their A_a are, so that least squares takes one after the other, and variances add up
(docs/math.md, section 16).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.assemble import assemble
from hdmm.estimators.coefficients import Coefficients, Factored
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.factor import FactorSolution, solution_of
from hdmm.estimators.residual import AxisResidual
from hdmm.estimators.row_types import Entries, RowTypes, some_rows
from hdmm.matrix import Array, AxisGram, Matrix, Total
from hdmm.matrix.axes import Axes, subsets
from hdmm.matrix.axis_gram import OnesGram
from hdmm.strategy import Strategy
from hdmm.workload import EncodedProduct


@final
class ResidualsAlong(LinearEstimator[list[Array]]):
    """Least squares over residuals along the attribute that all blocks have, each with its own factor there.

    The state is each block's estimate along that attribute, shaped by its cells and the other factors.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        factors: dict[int, Matrix] = {}
        for block in strategy.blocks:
            for axis, factor in zip(block.axes, block.factors, strict=True):
                if axis != self.along and factors.setdefault(axis, factor) != factor:
                    raise ValueError("the blocks of a residual strategy share one factor for each attribute but one")
        if len(self._places) != len(strategy.blocks):
            raise ValueError("the blocks of a residual strategy have different attributes")
        self._parts = {
            axis: AxisResidual.of(factors[axis]) if axis in factors else AxisResidual.none(size)
            for axis, size in enumerate(strategy.sizes)
            if axis != self.along
        }
        for axis, part in self._parts.items():
            if not part.blind:
                raise ValueError(f"the factor of axis {axis} sees totals, or no cells at all")

    @cached_property
    def along(self) -> int:
        """The attribute that every block measures by a factor of its own."""
        shared = set.intersection(*(set(block.axes) for block in self.blocks))
        counts = {axis: len({id(block.factors[block.axes.index(axis)]) for block in self.blocks}) for axis in shared}
        if not counts:
            raise ValueError("no attribute is in all blocks")
        return max(counts, key=lambda axis: (counts[axis], self.strategy.sizes[axis]))

    @cached_property
    def _places(self) -> dict[Axes, int]:
        """The number of the block of each set of the other attributes."""
        return {
            tuple(axis for axis in block.axes if axis != self.along): index for index, block in enumerate(self.blocks)
        }

    @cached_property
    def _solutions(self) -> list[FactorSolution]:
        """Least squares along the attribute, block by block."""
        return [solution_of(block.factors[block.axes.index(self.along)]) for block in self.blocks]

    @cached_property
    def _totals(self) -> list[RowTypes]:
        """How the total along the attribute depends on the measurements of each block."""
        size = self.strategy.sizes[self.along]
        return [solution.types(Total(size), np.ones((1, size), bool)) for solution in self._solutions]

    def supports(self, product: EncodedProduct) -> bool:
        if product.condition is not None:
            return False
        if product.empty:
            return True
        grams = self._others(product)
        if not all(self._parts[axis].covers(gram) for axis, gram in grams.items()):
            return False
        seen = tuple(axis for axis, gram in grams.items() if self._parts[axis].split(gram)[1] > 0)
        gram = self._gram(product)
        return all(
            subset in self._places and self._solutions[self._places[subset]].determines(lambda: gram)
            for subset in subsets(seen)
        )

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        return np.array([self._squared_error(product, noise) for product in products])

    def _squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        pairs = {axis: self._parts[axis].split(gram) for axis, gram in self._others(product).items()}
        gram = self._gram(product)
        total = sum(
            noise[self._places[subset]]
            * self._solutions[self._places[subset]].error(gram)
            * prod(pair[axis in subset] for axis, pair in pairs.items())
            for subset in subsets(tuple(pairs))
            if subset in self._places
        )
        return total * (1.0 if product.axes else product.squares)

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """On the other attributes those of residuals; along the one, rows that are alike in all blocks."""
        factor, masks = product.factors[axis], product.masks(axis)
        if axis != self.along:
            return self._parts[axis].row_types(factor, masks)
        marks = []
        for solution in self._solutions:
            types = solution.types(factor, masks)
            moments = [types.moment(power) for power in (2, 4, 6, "largest")]
            marks.append(np.stack(moments, axis=1)[types.labels])
        return some_rows(np.concatenate(marks, axis=1))

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return prod(len(row_types) for row_types in types[1:])

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        rows = dict(zip(product.axes, types, strict=True))
        others = tuple(axis for axis in product.axes if axis != self.along)
        split = {axis: self._parts[axis].split_types(rows[axis]) for axis in others}
        for subset in subsets(others):
            if subset not in self._places:
                continue
            index = self._places[subset]
            chosen = tuple(
                self._along_types(index, product, rows[axis]) if axis == self.along else split[axis][axis in subset]
                for axis in product.axes
            )
            yield Factored(index, chosen, () if self.along in rows else (self._totals[index],))

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        state = []
        for measured, block, solution in zip(answers, self.blocks, self._solutions, strict=True):
            place = block.axes.index(self.along)
            table = np.moveaxis(measured.reshape([factor.shape[0] for factor in block.factors]), place, 0)
            estimate = solution.inverse.apply(table.reshape(len(table), -1).astype(float))
            state.append(np.moveaxis(estimate.reshape(-1, *table.shape[1:]), 0, place))
        return state

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        axes = tuple(sorted({*product.axes, self.along}))
        sizes = self.strategy.sizes_of(axes)

        def part(subset: Axes) -> Array | None:
            others = tuple(axis for axis in subset if axis != self.along)
            return state[self._places[others]] if self.along in subset and others in self._places else None

        def act(axis: int, table: Array, place: int) -> Array:
            if axis == self.along:
                return table
            return np.moveaxis(self._parts[axis].deviations(np.moveaxis(table, place, 0)), 0, place)

        def shares(axis: int) -> Array:
            return np.ones(sizes[axis]) if axis == self.along else self._parts[axis].even_share

        table = assemble(sizes, part, act, shares)
        if self.along not in product.axes:
            table = table.sum(axis=axes.index(self.along))
        return product.matrix(self.strategy.sizes_of(product.axes)).apply(table.reshape(-1))

    def _gram(self, product: EncodedProduct) -> AxisGram:
        """What a product asks along the attribute."""
        return product.grams.get(self.along) or OnesGram(self.strategy.sizes[self.along])

    def _others(self, product: EncodedProduct) -> Mapping[int, AxisGram]:
        """What a product asks of the other attributes."""
        return {axis: gram for axis, gram in product.grams.items() if axis != self.along}

    def _along_types(self, index: int, product: EncodedProduct, types: RowTypes) -> RowTypes:
        """The types of rows along the attribute, as one block's measurements have them."""
        assert types.means is not None
        numbers, factor, inverse = (
            types.means[:, -1].astype(np.int64),
            product.factors[self.along],
            self._solutions[index].inverse,
        )

        def read(start: int, stop: int) -> Entries:
            entries = inverse.apply_t(factor.rows(numbers[start:stop]).T.astype(float)).T
            return entries[:, :, None], np.ones(entries.shape)

        moments = types.means[:, 4 * index : 4 * index + 4]
        return replace(types, width=inverse.shape[1], read=read, moments=moments)
