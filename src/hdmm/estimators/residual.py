"""Residual strategies: a block for each set of attributes, blind to what the smaller sets measure.

A block measures ⊗_{i∈a} B_i for a set a of attributes, with the same B_i in every block. Some f_i with 1ᵀf_i = 1 is not
seen by B_i, so with [B_i; 1ᵀ]⁺ = [G_i f_i] a marginal on S is the sum over a ⊆ S of what block a says of it: G_i on the
attributes in a, f_i on the others. No two blocks speak of the same thing, so this is least squares, variances add up,
and only the sets within some product's attributes are ever stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.assemble import assemble
from hdmm.estimators.coefficients import Coefficients, Factored, Written
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.inverse import covers, inverse
from hdmm.estimators.latest import Latest
from hdmm.estimators.row_types import RowTypes, entry_types, row_types
from hdmm.matrix import Array, AxisGram, Dense, Matrix, Spiked
from hdmm.matrix.axes import Axes, subsets
from hdmm.matrix.compose import restricted
from hdmm.matrix.rank import rank
from hdmm.strategy import Strategy
from hdmm.workload import EncodedProduct

_NEGLIGIBLE = 1e-13
"""A share below this is rounding: then the totals of an attribute answer all that is asked about it."""


@final
class ResidualLeastSquares(LinearEstimator[list[Array]]):
    """Least squares over residuals: each set of attributes at most once, and one factor for each attribute.

    The state is the answers of every block, shaped by its factors.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._tables = Latest(self._read_tables)
        self._splits: dict[tuple[int, int], tuple[AxisGram, tuple[float, float]]] = {}
        self._types: dict[tuple[int, int], tuple[Matrix, RowTypes]] = {}
        # Both go by identity, which is faster; the object beside the value keeps its address from being used again.
        factors: dict[int, Matrix] = {}
        for block in strategy.blocks:
            for axis, factor in zip(block.axes, block.factors, strict=True):
                if factors.setdefault(axis, factor) is not factor and factors[axis] != factor:
                    raise ValueError("the blocks of a residual strategy share one factor for each attribute")
        if len(self._places) != len(strategy.blocks):
            raise ValueError("the blocks of a residual strategy have different attributes")
        for axis, part in self._parts.items():
            if not part.blind:
                raise ValueError(f"the factor of axis {axis} sees totals, or no cells at all")

    @cached_property
    def _places(self) -> dict[Axes, int]:
        """The number of the block of each set of attributes."""
        return {block.axes: index for index, block in enumerate(self.blocks)}

    @cached_property
    def _parts(self) -> dict[int, AxisResidual]:
        factors: dict[int, Matrix] = {}
        for block in self.blocks:
            factors.update(zip(block.axes, block.factors, strict=True))
        return {
            axis: AxisResidual.of(factors[axis]) if axis in factors else AxisResidual.none(size)
            for axis, size in enumerate(self.strategy.sizes)
        }

    def supports(self, product: EncodedProduct) -> bool:
        if product.condition is None:
            return product.empty or self._determines(product.grams)
        parts = (
            {axis: restricted(factor, box.masks.get(axis)) for axis, factor in product.factors.items()}
            for box in product.condition.boxes
        )
        return all(self._determines({axis: factor.axis_gram() for axis, factor in part.items()}) for part in parts)

    def _determines(self, grams: Mapping[int, AxisGram]) -> bool:
        """Whether queries without a condition can be answered: each attribute that matters is measured with others."""
        seen = tuple(axis for axis, gram in grams.items() if self._split(axis, gram)[1] > 0)
        return all(subset in self._places for subset in subsets(seen)) and all(
            self._parts[axis].covers(gram) for axis, gram in grams.items()
        )

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        """Products without conditions are worked out together, those on equally many attributes at once."""
        errors = np.zeros(len(products))
        variances = np.array([*noise, 0.0])  # the last one for sets of which nothing is asked
        for numbers, pairs, places in self._tables(tuple(products)):
            ways = pairs.shape[1]
            for column, subset in enumerate(subsets(tuple(range(ways)))):
                part = variances[places[:, column]]
                for way in range(ways):
                    part = part * pairs[:, way, int(way in subset)]
                errors[numbers] += part
        for number, product in enumerate(products):
            if product.condition is not None:
                errors[number] = self._conditional_error(product, noise)
            elif not product.axes:
                errors[number] *= product.squares
        return errors

    def _conditional_error(self, product: EncodedProduct, noise: Noise) -> float:
        total = 0.0
        for term in product.terms:
            pairs = {axis: self._split(axis, term.factors[axis]) for axis in product.axes}
            total += term.coefficient * sum(
                noise[self._places[subset]] * prod(pair[axis in subset] for axis, pair in pairs.items())
                for subset in subsets(product.axes)
                if subset in self._places
            )
        return max(total, 0.0)

    def _read_tables(self, products: tuple[EncodedProduct, ...]) -> list[tuple[list[int], Array, Array]]:
        """Products on equally many attributes: fᵀVf and tr(GᵀVG) on each attribute, and the block of each subset."""
        by_ways: dict[int, list[int]] = {}
        for number, product in enumerate(products):
            if product.condition is None:
                by_ways.setdefault(len(product.axes), []).append(number)
        tables = []
        for ways, numbers in by_ways.items():
            split = (self._split(axis, gram) for n in numbers for axis, gram in products[n].grams.items())
            pairs = np.fromiter(chain.from_iterable(split), float)
            places = np.fromiter((self._places.get(a, -1) for n in numbers for a in subsets(products[n].axes)), int)
            tables.append((numbers, pairs.reshape(len(numbers), ways, 2), places.reshape(len(numbers), -1)))
        return tables

    def _split(self, axis: int, gram: AxisGram) -> tuple[float, float]:
        entry = self._splits.get((axis, id(gram)))
        if entry is None:
            entry = self._splits[axis, id(gram)] = (gram, self._parts[axis].split(gram))
        return entry[1]

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Types of the entries of W G, one for each term, and beside them those of W f, the same all along a row."""
        factor = product.factors[axis]
        if product.condition is not None:
            return self._parts[axis].row_types(factor, product.masks(axis))
        entry = self._types.get((axis, id(factor)))
        if entry is None:
            types = self._parts[axis].row_types(factor, product.masks(axis))
            entry = self._types[axis, id(factor)] = (factor, types)
        return entry[1]

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        combinations = prod(len(row_types) for row_types in types[1:])
        if product.condition is None:
            return combinations
        return combinations * prod(row_types.width for row_types in types) * len(product.coefficients)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        terms = len(product.coefficients)
        split = {axis: self._parts[axis].split_types(row, terms) for axis, row in zip(product.axes, types, strict=True)}
        for subset in subsets(product.axes):
            if subset in self._places:
                chosen = tuple(split[axis][axis in subset] for axis in product.axes)
                if product.condition is None:
                    yield Factored(self._places[subset], chosen, ())
                else:
                    yield Written.products(self._places[subset], chosen, product.coefficients)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        return [
            measured.reshape([factor.shape[0] for factor in block.factors])
            for measured, block in zip(answers, self.blocks, strict=True)
        ]

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        sizes = self.strategy.sizes_of(product.axes)
        marginal = assemble(
            sizes,
            lambda subset: state[self._places[subset]] if subset in self._places else None,
            lambda axis, part, place: np.moveaxis(self._parts[axis].deviations(np.moveaxis(part, place, 0)), 0, place),
            lambda axis: self._parts[axis].even_share,
        )
        return product.matrix(sizes).apply(marginal.reshape(-1))


@final
@dataclass(frozen=True, eq=False)
class AxisResidual:
    """The factor B of one attribute, with [B; 1ᵀ]⁺ = [G f]."""

    factor: Matrix
    G: Array | None
    """None for deviations from the mean, which have G = (I − 11ᵀ/n)/n."""
    even_share: Array
    """f: the share of a total that each cell gets."""
    blind: bool
    """Whether B does not see f, and f adds up to 1."""
    complete: bool
    """Whether totals and B together determine every cell."""

    @staticmethod
    def none(n: int) -> AxisResidual:
        """For an attribute of which only totals are measured."""
        return AxisResidual(Dense(np.zeros((1, n))), np.zeros((n, 1)), np.full(n, 1 / n), True, n == 1)

    @staticmethod
    def of(factor: Matrix) -> AxisResidual:
        """What the estimator needs of a factor."""
        n = factor.shape[1]
        if factor == Spiked.centred(n) and n > 1:
            return AxisResidual(factor, None, np.full(n, 1 / n), True, True)
        entries, stacked = factor.dense(), _with_total(factor)
        both = inverse(stacked).dense()
        # Some f that adds up to 1 is not seen by B if and only if the total is no combination of B's queries.
        together = rank(stacked.dense())
        return AxisResidual(factor, both[:, :-1], both[:, -1], together == rank(entries) + 1, together == n)

    def split(self, gram: AxisGram) -> tuple[float, float]:
        """fᵀVf and tr(GᵀVG)."""
        n = gram.size
        if self.G is None:
            on_totals, trace = gram.total() / n, gram.trace()  # both may be negative for a pair of different conditions
            rest = trace - on_totals
            scale = abs(trace) + abs(on_totals)
            return on_totals / n, rest / n**2 if abs(rest) > _NEGLIGIBLE * scale else 0.0
        product = gram.apply(self.G)
        rest = float(np.sum(self.G * product))
        scale = float(np.linalg.norm(self.G) * np.linalg.norm(product))
        return float(self.even_share @ gram.apply(self.even_share)), rest if abs(rest) > _NEGLIGIBLE * scale else 0.0

    def covers(self, gram: AxisGram) -> bool:
        """Whether totals and B together determine everything that V asks."""
        if self.G is None or self.complete:
            return True
        projection = self.G @ self.factor.dense() + self.even_share[:, None]
        return covers(_with_total(self.factor), projection, lambda: gram)

    def deviations(self, y: Array) -> Array:
        """G·y."""
        if self.G is not None:
            return np.tensordot(self.G, y, 1)
        n = self.factor.shape[1]
        return (y - y.mean(axis=0)) / n

    def split_types(self, types: RowTypes, terms: int = 1) -> tuple[RowTypes, RowTypes]:
        """The types of W f and those of W G, from both together."""
        totals = RowTypes.of(types.labels, types.values[:, :1, terms:], np.ones((len(types), 1)))
        return totals, RowTypes.of(types.labels, types.values[:, :, :terms], types.counts)

    def row_types(self, matrix: Matrix, masks: Array) -> RowTypes:
        """Types of the rows of W G for each mask, and W f beside them."""
        if self.G is None:
            n, types = matrix.shape[1], row_types(matrix, masks)
            mean = (types.values * types.counts[:, :, None]).sum(axis=1, keepdims=True) / n
            values = np.concatenate([(types.values - mean) / n, np.broadcast_to(mean, types.values.shape)], axis=2)
            return RowTypes.of(types.labels, values, types.counts)
        G = self.G
        rows = [matrix.apply(mask[:, None] * G) for mask in masks]
        means = [matrix.apply(mask * self.even_share)[:, None] for mask in masks]
        return entry_types(np.stack([*rows, *(np.broadcast_to(mean, rows[0].shape) for mean in means)], axis=2))


def _with_total(factor: Matrix) -> Dense:
    """A factor and the total below it."""
    entries = factor.dense()
    return Dense(np.concatenate([entries, np.ones((1, entries.shape[1]), entries.dtype)]))
