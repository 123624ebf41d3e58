"""Symmetric strategies: each block measures one kind of vector that the workload's symmetry leaves in its place.

On each attribute a block sees the sums over kinds of cells, or the differences within one kind. Every table is the sum
of such parts, and no two blocks speak of the same part, so least squares is done block by block and variances add up
(docs/math.md, section 13). With S the sums of a block, B its queries over them and s the size of a kind, the part is
estimated by B⁺ on the sums, each spread evenly over its kind, and by (I − 11ᵀ/s)/s on the differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.coefficients import Coefficients, Written
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.footprint import NUMBER, assembled_bytes
from hdmm.estimators.inverse import inverse
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array, AxisGram
from hdmm.matrix.orbits import Kinds, OrbitQueries
from hdmm.strategy import Block, Strategy
from hdmm.workload import EncodedProduct

_OUTSIDE = 1e-9
"""The largest share of a product's squares that may be outside of what is measured: rounding leaves far less, and
integer queries that are not determined far more."""

Choice = tuple[tuple[int, int], ...]
"""The attributes on which differences are seen, each with the kind."""


@final
class SymmetricLeastSquares(LinearEstimator[list[Array]]):
    """Least squares over the blocks of a symmetric strategy.

    The state is, for every block, the estimate of the sums over kinds for each of the differences.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        kinds: dict[int, Kinds] = {}
        self._parts: list[_MeasuredPart] = []
        for block in strategy.blocks:
            part = _MeasuredPart.of(block)
            for axis, cell_kinds in part.kinds.items():
                if not np.array_equal(kinds.setdefault(axis, cell_kinds).labels, cell_kinds.labels):
                    raise ValueError("the blocks of a symmetric strategy share the kinds of each attribute")
            self._parts.append(part)
        self._kinds = {
            axis: kinds.get(axis) or Kinds(np.zeros(size, np.int64)) for axis, size in enumerate(strategy.sizes)
        }
        self._choices = {part.choice: number for number, part in enumerate(self._parts)}
        if len(self._choices) != len(self._parts):
            raise ValueError("the blocks of a symmetric strategy see different differences")
        self._reduced: dict[tuple[int, int], tuple[AxisGram, _ReducedGram]] = {}

    def _reduce(self, axis: int, gram: AxisGram) -> _ReducedGram:
        """A Gram on one attribute over its kinds; looked up by identity, and kept so that its address stays taken."""
        key = (axis, id(gram))
        if key not in self._reduced:
            self._reduced[key] = (gram, _ReducedGram.of(self._kinds[axis], gram))
        return self._reduced[key][1]

    def _terms(self, product: EncodedProduct) -> Iterator[tuple[float, dict[int, _ReducedGram]]]:
        for term in product.terms:
            yield term.coefficient, {axis: self._reduce(axis, gram) for axis, gram in term.factors.items()}

    def supports(self, product: EncodedProduct) -> bool:
        if product.empty:
            return True
        total = sum(
            abs(coefficient) * prod(gram.trace for gram in reduced.values())
            for coefficient, reduced in self._terms(product)
        )
        unseen = (self._unseen(product, choice, asked) for choice, asked in self._asked(product).items())
        return sum(unseen) <= _OUTSIDE * total

    def _asked(self, product: EncodedProduct) -> dict[Choice, float]:
        """How much the product asks of each choice of differences: the squares of its rows there."""
        asked: dict[Choice, float] = {}
        for coefficient, reduced in self._terms(product):
            options = [[None, *np.flatnonzero(gram.rest).tolist()] for gram in reduced.values()]
            for kinds in combinations(*options):
                choice = tuple((axis, kind) for axis, kind in zip(reduced, kinds, strict=True) if kind is not None)
                value = coefficient * self._differences(choice, reduced)
                summed = (gram for gram, kind in zip(reduced.values(), kinds, strict=True) if kind is None)
                asked[choice] = asked.get(choice, 0.0) + value * prod(gram.mean_trace for gram in summed)
        return asked

    def _differences(self, choice: Choice, reduced: Mapping[int, _ReducedGram]) -> float:
        """How much is asked of the differences alone."""
        return prod(
            [reduced[axis].rest[kind] * (int(self._kinds[axis].sizes[kind]) - 1) for axis, kind in choice]
            if all(axis in reduced for axis, _ in choice)
            else [0.0]
        )

    def _unseen(self, product: EncodedProduct, choice: Choice, asked: float) -> float:
        """How much of what is asked is outside the span of what was measured."""
        if choice not in self._choices:
            return asked
        part = self._parts[self._choices[choice]]
        seen = 0.0  # the squares of the rows, projected on what the block measures
        for coefficient, reduced in self._terms(product):
            value = coefficient * self._differences(choice, reduced)
            constant = [
                gram.means.sum() / len(gram.means)
                for axis, gram in reduced.items()
                if axis not in part.compared and axis not in part.summed
            ]
            seen += value * prod(constant) * part.contract(part.queries.T, part.inverse, reduced)
        untouched = prod(len(self._kinds[axis]) for axis in part.summed if axis not in product.axes)
        return asked - seen / untouched

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        return np.array([self._squared_error(product, noise) for product in products])

    def _squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        total = 0.0
        for coefficient, reduced in self._terms(product):
            for part, variance in zip(self._parts, noise, strict=True):
                value = coefficient * variance
                for axis, kind in part.choice:
                    size = int(self._kinds[axis].sizes[kind])
                    value *= reduced[axis].rest[kind] * (size - 1) / size**2 if axis in reduced else 0.0
                if value:
                    value *= part.contract(part.inverse, part.inverse, reduced)
                    unseen = (gram for axis, gram in reduced.items() if axis not in part.axes)
                    total += value * prod(gram.evenly_spread for gram in unseen)
        return max(total, 0.0)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        return [part.estimate(block) for part, block in zip(self._parts, answers, strict=True)]

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        sizes = {axis: self.strategy.sizes[axis] for axis in product.axes}
        table = np.zeros(tuple(sizes.values()))
        for part, sums in zip(self._parts, state, strict=True):
            if all(axis in sizes for axis, _ in part.choice):
                table += part.table_over(sums, sizes)
        return product.matrix(sizes).apply(table.reshape(-1))

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return kind_types(product, axis, self._kinds[axis])

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        widths = {axis: row.width // len(self._kinds[axis]) for axis, row in zip(product.axes, types, strict=True)}
        per_row = max(part.width * prod(widths.get(axis, 1) for axis in part.compared) for part in self._parts)
        return prod(len(row) for row in types[1:]) * per_row * len(product.coefficients)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        for number, part in enumerate(self._parts):
            if all(axis in product.axes for axis, _ in part.choice):
                yield part.coefficients(number, product, types, self._kinds)

    def state_bytes(self) -> Sequence[int]:
        return [NUMBER * part.width * prod(part.compared_sizes) for part in self._parts]

    def answer_bytes(self, product: EncodedProduct) -> int:
        return assembled_bytes(self.strategy, product)


@final
@dataclass(frozen=True, eq=False)
class _ReducedGram:
    """A Gram on one attribute as its kinds see it."""

    means: Array
    """The mean entry for each pair of kinds: what queries over sums of kinds ask."""
    rest: Array
    """For each kind its eigenvalue on differences, on average; 0 for a kind of one cell or less than rounding."""
    evenly_spread: float
    """The squared answers to a total that is spread evenly over all cells."""
    trace: float

    @staticmethod
    def of(kinds: Kinds, gram: AxisGram) -> _ReducedGram:
        sizes = kinds.sizes
        shares = np.zeros((kinds.cells, len(kinds)))
        shares[np.arange(kinds.cells), kinds.labels] = 1 / sizes[kinds.labels]
        means = shares.T @ gram.apply(shares)
        diagonal = np.bincount(kinds.labels, weights=gram.diagonal(), minlength=len(kinds))
        left = diagonal - sizes * np.diagonal(means)
        rest = np.where((sizes > 1) & (abs(left) > _OUTSIDE * abs(diagonal)), left / np.maximum(sizes - 1, 1), 0.0)
        share = sizes / kinds.cells
        return _ReducedGram(means, rest, float(share @ means @ share), float(diagonal.sum()))

    @property
    def mean_trace(self) -> float:
        """The sum of squares of queries over sums of kinds."""
        return float(np.trace(self.means))


@final
@dataclass(frozen=True, eq=False)
class _MeasuredPart:
    """What one block measures: sums over kinds on some attributes, differences within a kind on others."""

    axes: tuple[int, ...]
    kinds: Mapping[int, Kinds]
    choice: Choice
    summed: tuple[int, ...]
    inverse: Array
    """B⁺, for queries B over the sums."""
    queries: Array

    @staticmethod
    def of(block: Block) -> _MeasuredPart:
        if not block.axes and not block.factors:
            return _MeasuredPart((), {}, (), (), np.ones((1, 1)), np.ones((1, 1)))
        if len(block.factors) != 1 or block.condition is not None:
            raise ValueError("a block of a symmetric strategy has one factor")
        (factor,) = block.factors
        if not isinstance(factor, OrbitQueries) or len(factor.kinds) != len(block.axes):
            raise ValueError("a block of a symmetric strategy has queries over kinds of cells")
        pairs = list(zip(block.axes, factor.parts, strict=True))
        return _MeasuredPart(
            block.axes,
            dict(zip(block.axes, factor.kinds, strict=True)),
            tuple((axis, part.kind) for axis, part in pairs if part is not None),
            tuple(axis for axis, part in pairs if part is None),
            inverse(factor.queries).dense(),
            factor.queries.array.astype(float),
        )

    @property
    def compared(self) -> frozenset[int]:
        """The attributes with differences."""
        return frozenset(axis for axis, _ in self.choice)

    @property
    def compared_sizes(self) -> tuple[int, ...]:
        """How many cells are compared on each of them."""
        return tuple(int(self.kinds[axis].sizes[kind]) for axis, kind in self.choice)

    @property
    def table(self) -> tuple[int, ...]:
        """The number of kinds on each attribute with sums."""
        return tuple(len(self.kinds[axis]) for axis in self.summed)

    @property
    def width(self) -> int:
        """The larger number of queries or sums."""
        return max(self.inverse.shape)

    def contract(self, left: Array, right: Array, reduced: Mapping[int, _ReducedGram]) -> float:
        """tr(LᵀGR) with columns over the sums, and G what a product asks of them: all ones where it asks a total."""
        shape = [*self.table, left.shape[1]]
        unasked = tuple(place for place, axis in enumerate(self.summed) if axis not in reduced)
        first, second = (columns.reshape(shape).sum(axis=unasked) for columns in (left, right))
        for place, axis in enumerate(axis for axis in self.summed if axis in reduced):
            second = np.moveaxis(np.tensordot(reduced[axis].means, second, axes=(1, place)), 0, place)
        return float(np.vdot(first, second))

    def estimate(self, answers: Array) -> Array:
        """The sums over kinds for each of the differences."""
        sums = self.inverse @ answers.reshape(self.inverse.shape[1], -1).astype(float)
        return sums.reshape([*self.table, *self.compared_sizes])

    def table_over(self, sums: Array, sizes: Mapping[int, int]) -> Array:
        """The part as a table over some attributes, all with differences among them; it is added up over the others."""
        order = [*self.summed, *(axis for axis, _ in self.choice)]
        table = sums.sum(axis=tuple(place for place, axis in enumerate(order) if axis not in sizes))
        order = [axis for axis in order if axis in sizes]
        compared = dict(self.choice)
        for place, axis in enumerate(order):
            cells = np.moveaxis(table, place, 0)
            kinds = self.kinds[axis]
            if axis in compared:
                differences = (cells - cells.mean(axis=0)) / len(cells)
                cells = np.zeros((kinds.cells, *cells.shape[1:]))
                cells[kinds.members(compared[axis])] = differences
            else:
                cells = (cells / kinds.sizes.reshape(-1, *[1] * (cells.ndim - 1)))[kinds.labels]
            table = np.moveaxis(cells, 0, place)
        rank = {axis: place for place, axis in enumerate(sorted(order))}
        table = np.moveaxis(table, range(len(order)), [rank[axis] for axis in order])
        shape = [sizes[axis] if axis in rank else 1 for axis in sizes]
        return table.reshape(shape) / prod(size for axis, size in sizes.items() if axis not in rank)

    def coefficients(
        self, number: int, product: EncodedProduct, types: Sequence[RowTypes], kinds: Mapping[int, Kinds]
    ) -> Written:
        """How the noise of the block enters answers of these types."""
        rows, counts = kind_rows(self.choice, self.summed, product, types, kinds)
        return Written(number, rows @ self.inverse, counts, len(types))


def kind_rows(
    choice: Choice,
    summed: Sequence[int],
    product: EncodedProduct,
    types: Sequence[RowTypes],
    kinds: Mapping[int, Kinds],
) -> tuple[Array, Array]:
    """The queries of these types as a block sees them, and how often each occurs.

    The axes are the types on each attribute of the product, the deviations on the attributes with differences, and the
    combinations of kinds on the attributes with sums.
    """
    compared = dict(choice)
    ways = len(types)
    places = {axis: ways + place for place, axis in enumerate([*compared, *summed])}
    kept = ways + len(compared)
    values, counts = np.ones([1] * (ways + len(places) + 1)), np.ones([1] * (kept + 1))
    for way, (axis, row_types) in enumerate(zip(product.axes, types, strict=True)):
        if axis in compared:
            entries, often = _deviations(row_types, kinds[axis], compared[axis])
            shape = [1] * (kept + 1)
            shape[way], shape[places[axis]] = often.shape
            counts = counts * often.reshape(shape)
        else:
            entries = _means(row_types, kinds[axis])
        if axis not in places:  # there the block's total is spread evenly
            entries = ((kinds[axis].sizes / kinds[axis].cells) @ entries)[:, None]
        shape = [1] * values.ndim
        shape[way], shape[-1] = len(entries), entries.shape[2]
        if axis in places:
            shape[places[axis]] = entries.shape[1]
        values = values * entries.reshape(shape)
    mixed = values @ product.coefficients
    full = [*mixed.shape[:kept], *(len(kinds[axis]) for axis in summed)]
    return np.broadcast_to(mixed, full).reshape(*full[:kept], -1), counts


def kind_types(product: EncodedProduct, axis: int, kinds: Kinds) -> RowTypes:
    """Types of the rows on an attribute: those that hold the same entries, as often, in every kind of cells.

    The entries of a type are its means over each kind; then for each kind the deviations from its mean, over its size.
    """
    matrix, masks = product.factors[axis], product.masks(axis)
    if matrix.binary:
        patterns, which = np.unique(masks.T, axis=0, return_inverse=True)
        tuples = np.concatenate([np.zeros((1, len(masks))), patterns])
        members = _members(kinds, which.reshape(-1), len(patterns))

        def held(rows: Array) -> Array:
            ones = (matrix.rows(rows) @ members).reshape(len(rows), len(kinds), -1)
            return np.concatenate([kinds.sizes[:, None] - ones.sum(axis=2, keepdims=True), ones], axis=2)

        def signatures() -> Array:
            return matrix.apply(members)
    else:
        entries = matrix.dense().astype(float)[:, :, None] * masks.T
        tuples, which = np.unique(entries.reshape(-1, len(masks)), axis=0, return_inverse=True)
        numbers = which.reshape(entries.shape[:2])

        def held(rows: Array) -> Array:
            chosen = numbers[rows].T
            return np.stack(
                [kinds.sums((chosen == number).astype(np.int64)).T for number in range(len(tuples))], axis=2
            )

        def signatures() -> Array:
            return held(np.arange(len(numbers))).reshape(len(numbers), -1)

    if len(kinds) == kinds.cells:  # no cells are alike
        first = labels = np.arange(matrix.shape[0])
    else:
        _, first, labels = np.unique(signatures(), axis=0, return_index=True, return_inverse=True)

    def read(begin: int, end: int) -> tuple[Array, Array]:
        counts = held(first[begin:end])
        means = (counts @ tuples) / kinds.sizes[:, None]
        deviations = (tuples - means[:, :, None]) / kinds.sizes[:, None, None]
        ones = np.ones(means.shape[:2])
        flat = deviations.reshape(len(counts), -1, deviations.shape[-1])
        return np.concatenate([means, flat], axis=1), np.concatenate([ones, counts.reshape(len(counts), -1)], axis=1)

    width = len(kinds) * (1 + len(tuples))
    return RowTypes(labels.reshape(-1), len(first), width, read, None)


def _members(kinds: Kinds, which: Array, patterns: int) -> Array:
    """Which cells are of each kind and pattern: a column for each pair."""
    members = np.zeros((kinds.cells, len(kinds) * patterns), np.int64)
    members[np.arange(kinds.cells), kinds.labels * patterns + which] = 1
    return members


def _means(row_types: RowTypes, kinds: Kinds) -> Array:
    """The means of every type over each kind, with the axes type, kind and term."""
    return row_types.values[:, : len(kinds)]


def _deviations(row_types: RowTypes, kinds: Kinds, kind: int) -> tuple[Array, Array]:
    """The deviations of every type within a kind, and how often each occurs."""
    width = row_types.width // len(kinds) - 1
    place = slice(len(kinds) + kind * width, len(kinds) + (kind + 1) * width)
    return row_types.values[:, place], row_types.counts[:, place]
