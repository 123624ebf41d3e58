"""Residual strategies: a block for each set of attributes, blind to what the smaller sets tell (MATH §7).

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

from hdmm.matrix import Array, Dense, Factor, Matrix, Spiked
from hdmm.matrix.compose import restricted
from hdmm.matrix.rank import rank
from hdmm.matrix.subsets import Axes, subsets
from hdmm.strategy.assemble import assemble
from hdmm.strategy.base import Coefficients, Factored, Noise, Spread, Strategy, placed
from hdmm.strategy.inverse import covers, inverse
from hdmm.strategy.rows import RowTypes, entry_types, row_types
from hdmm.workload import EncodedProduct

_NOTHING = 1e-13
"""What is smaller than this, relatively, is rounding: the attribute's totals tell all that is asked."""


@final
@dataclass(frozen=True, eq=False)
class ResidualStrategy(Strategy):
    """Residuals as blocks, each set of attributes at most once, and one factor for each attribute."""

    def __post_init__(self) -> None:
        factors: dict[int, Matrix] = {}
        for block in self.blocks:
            for axis, factor in zip(block.axes, block.factors, strict=True):
                if factors.setdefault(axis, factor) is not factor and factors[axis] != factor:
                    raise ValueError("the blocks of a residual strategy share one factor for each attribute")
        if len(self._places) != len(self.blocks):
            raise ValueError("the blocks of a residual strategy have different attributes")
        for axis, part in self._parts.items():
            if not part.blind:
                raise ValueError(f"the factor of axis {axis} sees totals, or no cells at all")

    @cached_property
    def _places(self) -> dict[Axes, int]:
        """The number of the block of each set of attributes."""
        return {block.axes: index for index, block in enumerate(self.blocks)}

    @cached_property
    def _parts(self) -> dict[int, Residual]:
        known: dict[int, Matrix] = {}
        for block in self.blocks:
            known.update(zip(block.axes, block.factors, strict=True))
        return {
            axis: Residual.of(known[axis]) if axis in known else Residual.none(size)
            for axis, size in enumerate(self.sizes)
        }

    def supports(self, product: EncodedProduct) -> bool:
        if product.condition is None:
            return product.empty or self._tells(product.grams)
        parts = (
            {axis: restricted(factor, term.masks.get(axis)) for axis, factor in product.factors.items()}
            for term in product.condition.terms
        )
        return all(self._tells({axis: factor.gram().factor() for axis, factor in part.items()}) for part in parts)

    def _tells(self, grams: Mapping[int, Factor]) -> bool:
        """Whether queries without a condition can be answered: each attribute that matters is measured with others."""
        seen = tuple(axis for axis, gram in grams.items() if self._split(axis, gram)[1] > 0)
        return all(subset in self._places for subset in subsets(seen)) and all(
            self._parts[axis].covers(gram) for axis, gram in grams.items()
        )

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        total = 0.0
        for term in product.terms:
            pairs = {axis: self._split(axis, term.factors[axis]) for axis in product.axes}
            total += term.coefficient * sum(
                noise[self._places[subset]] * prod(pair[axis in subset] for axis, pair in pairs.items())
                for subset in subsets(product.axes)
                if subset in self._places
            )
        return max(total, 0.0)

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        """The same for each of several products; products without conditions on equally many attributes at once."""
        errors = np.zeros(len(products))
        variances = np.array([*noise, 0.0])  # the last one for sets of which nothing is asked
        for numbers, pairs, places in self._tables(products):
            width = pairs.shape[1]
            for column, subset in enumerate(subsets(tuple(range(width)))):
                part = variances[places[:, column]]
                for j in range(width):
                    part = part * pairs[:, j, int(j in subset)]
                errors[numbers] += part
        for number, product in enumerate(products):
            if product.condition is not None:
                errors[number] = self.squared_error(product, noise)
            elif not product.axes:
                errors[number] *= product.squares
        return errors

    def _tables(self, products: Sequence[EncodedProduct]) -> list[tuple[list[int], Array, Array]]:
        """Products on equally many attributes: fᵀVf and tr(GᵀVG) on each attribute, and the block of each subset."""
        if self._known and self._known[0][0] is products:
            return self._known[0][1]
        tables = list(self._read_tables(products))
        if isinstance(products, tuple):  # which cannot change: kept, as the same products are asked for again
            self._known[:] = [(products, tables)]
        return tables

    @cached_property
    def _known(self) -> list[tuple[Sequence[EncodedProduct], list[tuple[list[int], Array, Array]]]]:
        return []

    def _read_tables(self, products: Sequence[EncodedProduct]) -> Iterator[tuple[list[int], Array, Array]]:
        alike: dict[int, list[int]] = {}
        for number, product in enumerate(products):
            if product.condition is None:
                alike.setdefault(len(product.axes), []).append(number)
        for width, numbers in alike.items():
            split = (self._split(axis, gram) for n in numbers for axis, gram in products[n].grams.items())
            pairs = np.fromiter(chain.from_iterable(split), float)
            places = np.fromiter((self._places.get(a, -1) for n in numbers for a in subsets(products[n].axes)), int)
            yield numbers, pairs.reshape(len(numbers), width, 2), places.reshape(len(numbers), -1)

    def _split(self, axis: int, gram: Factor) -> tuple[float, float]:
        known = self._splits.get((axis, id(gram)))
        if known is None:
            known = self._splits[axis, id(gram)] = (gram, self._parts[axis].split(gram))
        return known[1]

    @cached_property
    def _splits(self) -> dict[tuple[int, int], tuple[Factor, tuple[float, float]]]:
        return {}  # by identity, which is faster; the Gram is kept so that no other one takes its place

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Types of the entries of W G, one for each term, and beside them those of W f, the same all along a row."""
        if product.condition is not None:
            return self._parts[axis].row_types(product.factors[axis], product.masks(axis))
        factor = product.factors[axis]
        if (axis, id(factor)) not in self._types:
            self._types[axis, id(factor)] = (factor, self._parts[axis].row_types(factor, product.masks(axis)))
        return self._types[axis, id(factor)][1]

    @cached_property
    def _types(self) -> dict[tuple[int, int], tuple[Matrix, RowTypes]]:
        return {}  # by identity, as above

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        others = prod(len(one) for one in types[1:])
        if product.condition is None:
            return others
        return others * prod(one.width for one in types) * len(product.coefficients)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        if product.condition is None:
            rest = [RowTypes.of(one.labels, one.values[:, :, :1], one.counts) for one in types]
            even = [RowTypes.of(one.labels, one.values[:, :1, 1:], np.ones((len(one), 1))) for one in types]
            for subset in subsets(product.axes):
                if subset in self._places:
                    pairs = zip(product.axes, even, rest, strict=True)
                    own = tuple(pair[axis in subset] for axis, *pair in pairs)
                    yield Factored(self._places[subset], own, ())
            return
        # Axis i runs over the types of the product's i-th attribute, axis d + i over the entries of a type; that of the
        # values ends with the terms of the condition.
        d, terms = len(types), len(product.coefficients)
        for subset in subsets(product.axes):
            if subset not in self._places:
                continue
            values, counts = np.ones([1] * (2 * d + 1)), np.ones([1] * 2 * d)
            for place, (axis, one) in enumerate(zip(product.axes, types, strict=True)):
                if axis in subset:
                    values = values * placed(one.values[:, :, :terms], place, d)
                    counts = counts * placed(one.counts[:, :, None], place, d)[..., 0]
                else:
                    values = values * placed(one.values[:, :1, terms:], place, d)
            yield Spread(self._places[subset], values @ product.coefficients, counts, d)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        """The answers of every block, shaped by its factors."""
        return [
            given.reshape([factor.shape[0] for factor in block.factors])
            for given, block in zip(answers, self.blocks, strict=True)
        ]

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        sizes = {axis: self.sizes[axis] for axis in product.axes}
        marginal = assemble(
            sizes,
            lambda subset: state[self._places[subset]] if subset in self._places else None,
            lambda axis, part, place: np.moveaxis(self._parts[axis].spread(np.moveaxis(part, place, 0)), 0, place),
            lambda axis: self._parts[axis].even,
        )
        return product.matrix(sizes).apply(marginal.reshape(-1))


@final
@dataclass(frozen=True, eq=False)
class Residual:
    """The factor B of one attribute, with [B; 1ᵀ]⁺ = [G f]."""

    factor: Matrix
    G: Array | None
    """None for deviations from the mean, where G = (I − 11ᵀ/n)/n is known."""
    even: Array
    """f: how a total is spread over the cells."""
    blind: bool
    """Whether B does not see f, and f adds up to 1."""

    @staticmethod
    def none(n: int) -> Residual:
        """For an attribute of which only totals are known: there is nothing to see."""
        return Residual(Dense(np.zeros((1, n))), np.zeros((n, 1)), np.full(n, 1 / n), True)

    @staticmethod
    def of(factor: Matrix) -> Residual:
        """What the estimator needs of a factor."""
        n = factor.shape[1]
        if factor == Spiked.centred(n) and n > 1:
            return Residual(factor, None, np.full(n, 1 / n), True)
        entries, stacked = factor.dense(), _with_total(factor)
        both = inverse(stacked).dense()
        # Some f is not seen by B, and adds up to 1, just where the total is no combination of B's queries.
        blind = rank(stacked.dense()) == rank(entries) + 1
        return Residual(factor, both[:, :-1], both[:, -1], blind)

    def split(self, gram: Factor) -> tuple[float, float]:
        """fᵀVf and tr(GᵀVG)."""
        n = gram.size
        if self.G is None:
            even, all_ = gram.total() / n, gram.trace()  # of a pair of different conditions either may be negative
            left = all_ - even
            return even / n, left / n**2 if abs(left) > _NOTHING * (abs(all_) + abs(even)) else 0.0
        product = gram.apply(self.G)
        left = float(np.sum(self.G * product))
        scale = float(np.linalg.norm(self.G) * np.linalg.norm(product))
        return float(self.even @ gram.apply(self.even)), left if abs(left) > _NOTHING * scale else 0.0

    def covers(self, gram: Factor) -> bool:
        """Whether totals and B together tell everything that V asks."""
        if self.G is None:
            return True
        projection = self.G @ self.factor.dense() + self.even[:, None]
        return covers(_with_total(self.factor), projection, lambda: gram)

    def spread(self, y: Array) -> Array:
        """G·y."""
        if self.G is not None:
            return np.tensordot(self.G, y, 1)
        n = self.factor.shape[1]
        deviations: Array = (y - y.mean(axis=0)) / n
        return deviations

    def row_types(self, matrix: Matrix, masks: Array) -> RowTypes:
        """Types of the rows of W G for each mask, and W f beside them."""
        n, terms = matrix.shape[1], len(masks)
        if self.G is None:
            one = row_types(matrix, masks)
            mean = (one.values * one.counts[:, :, None]).sum(axis=1, keepdims=True) / n
            values = np.concatenate([(one.values - mean) / n, np.broadcast_to(mean, one.values.shape)], axis=2)
            return RowTypes.of(one.labels, values, one.counts)
        G = self.G
        rows = [matrix.apply(mask[:, None] * G) for mask in masks]
        means = [matrix.apply(mask * self.even)[:, None] for mask in masks]
        entries = np.stack([*rows, *(np.broadcast_to(mean, rows[0].shape) for mean in means)], axis=2)
        assert entries.shape[2] == 2 * terms
        return entry_types(entries)


def _with_total(factor: Matrix) -> Dense:
    """A factor and the total below it."""
    entries = factor.dense()
    return Dense(np.concatenate([entries, np.ones((1, entries.shape[1]), entries.dtype)]))
