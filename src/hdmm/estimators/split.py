"""Least squares over all blocks, split by the attributes on which every block counts single cells or nothing.

On such an even attribute a table is the sum of its mean, spread over the cells, and of deviations from it. No block
mixes the two, and all deviations are measured alike. So least squares falls apart into one small system for each set b
of even attributes on which deviations are seen: its unknowns are tables over the other attributes, and it has the
blocks that count the cells of b, each with its variance times the cells of its even attributes beyond b, over which its
answers are added up. This is `marginal` with a system of equations in place of each residual's average (docs/math.md,
section 7), and makes errors exact if the tables of all attributes are large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from typing import final

import numpy as np

from hdmm.estimators.assemble import assemble
from hdmm.estimators.coefficients import Coefficients, Grid, Written, written_types
from hdmm.estimators.coordinates import MAX_WAYS, Coordinates
from hdmm.estimators.equations import NEGLIGIBLE, Equations, block_lengths, equation_variances
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.footprint import NUMBER
from hdmm.estimators.latest import Latest
from hdmm.estimators.row_types import RowTypes, row_types
from hdmm.matrix import Array, Gram, Identity
from hdmm.matrix.axes import Axes, subsets
from hdmm.matrix.gram import GramTerm
from hdmm.strategy import Block, Strategy
from hdmm.workload import EncodedProduct

_MAX_COORDINATES = 1 << 10
"""The most unknowns of a system."""
_MAX_INVERSES = 1 << 23
"""The most entries of all inverses together."""
_MAX_SYSTEMS = 1 << 10
_MAX_WORK = 1 << 31
"""The most multiplications to invert all systems: a second or two, for every precision and budget that is tried."""


@final
class SplitLeastSquares(LinearEstimator[dict[Axes, Array]]):
    """Least squares over blocks that share even attributes. The state is the solution of every system.

    A solution has the coordinates of its tables over the other attributes, and then the cells of its even ones.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._even = even_attributes(strategy)
        self._parts = [_Part.of(block, self._even) for block in strategy.blocks]
        self._systems = {
            deviating: _System(strategy.sizes, deviating, self._parts)
            for deviating in sorted({b for part in self._parts for b in subsets(part.even)})
        }
        self._inverses = Latest(self._inverted)

    def supports(self, product: EncodedProduct) -> bool:
        even, others = self._split(product.axes)
        if even not in self._systems or not self._systems[even].coordinates.holds(others):
            return False
        asked = {b: system.unseen for b, system in self._systems.items() if b in set(subsets(even))}
        everything = max(Gram(self.strategy.sizes, product.terms).on(product.axes).trace(), 1.0)
        return self._square_sum(product, asked) <= NEGLIGIBLE * everything

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        inverses = self._inverses(tuple(noise))
        columns = {b: inverses[b] * system.deviations(noise) for b, system in self._systems.items()}
        return np.array([self._square_sum(product, columns) for product in products])

    def _square_sum(self, product: EncodedProduct, columns: Mapping[Axes, Array]) -> float:
        """The squares of a product's answers to columns of coordinates, for all deviations of every system."""
        even, others = self._split(product.axes)
        sizes = self.strategy.sizes
        tables = {b: self._systems[b].coordinates.table(columns[b], others) for b in subsets(even)}
        reduced = None
        if product.condition is None:
            grams = {i: product.grams[i] for i in others}
            reduced = EncodedProduct({i: product.factors[i] for i in others}, grams, Fraction(1))
        total = 0.0
        for term in product.terms:
            on_others = Gram(sizes, (GramTerm(1.0, {i: term.factors[i] for i in others}),)).on(others)
            means = {i: term.factors[i].total() / sizes[i] for i in even}
            deviations = {i: term.factors[i].trace() - means[i] for i in even}
            for b, table in tables.items():
                shares = prod(deviations[i] if i in b else means[i] / sizes[i] for i in even)
                if not (shares and table.size):
                    continue
                if reduced is None:
                    squares = float((table * on_others.apply(table)).sum())
                else:  # blocks of much noise that cancel in an answer would leave rounding errors in its square
                    squares = reduced.square_sum(table, sizes)
                total += term.coefficient * shares * squares
        return max(total, 0.0)

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        if axis in self._even:
            return row_types(product.factors[axis], product.masks(axis))
        return written_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        combinations = prod(len(row_types) for row_types in types[1:])
        even = prod(row_types.width for axis, row_types in zip(product.axes, types, strict=True) if axis in self._even)
        cells = prod(self.strategy.sizes[axis] for axis in product.axes if axis not in self._even)
        queries = max(part.block.queries for part in self._parts)
        return combinations * even * (cells + queries) * len(product.coefficients)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        grid, inverses = Grid(len(types)), self._inverses(tuple(noise))
        even, others = self._split(product.axes)
        rows = dict(zip(product.axes, types, strict=True))
        ways = {axis: way for way, axis in enumerate(product.axes)}
        means = {i: _means(rows[i]) for i in even}
        counts = {i: rows[i].counts[:, :, None] for i in even}
        queries = _over_cells(grid, ways, {i: rows[i].values for i in others})
        for index, part in enumerate(self._parts):
            shared = tuple(i for i in even if i in part.even)
            values = np.zeros(())
            for b in subsets(shared):
                system = self._systems[b]
                answers = system.coordinates.table(inverses[b][:, system.columns[index]], others)
                factors = [grid.place(rows[i].values - means[i] if i in b else means[i], ways[i]) for i in even]
                scales = prod(factors, start=grid.ones) * product.coefficients
                values = values + np.einsum("...t,...tc,cq->...q", scales, queries, answers)
            times = prod((grid.place(counts[i], ways[i]) for i in shared), start=grid.ones)
            added = tuple(_ones(self.strategy.sizes[i]) for i in part.even if i not in shared)
            yield Written(index, values, times, grid.ways, added)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> dict[Axes, Array]:
        inverses = self._inverses(tuple(noise))
        state: dict[Axes, Array] = {}
        for b, system in self._systems.items():
            shape = [self.strategy.sizes[i] for i in b]
            solution = np.zeros((system.coordinates.count, prod(shape)))
            for index, columns in system.columns.items():
                added = self._parts[index].added_up(answers[index], b, self.strategy.sizes)
                solution += inverses[b][:, columns] @ added.reshape(added.shape[0], -1)
            deviations = solution.reshape(-1, *shape)
            for place in range(1, deviations.ndim):
                deviations = deviations - deviations.mean(axis=place, keepdims=True)
            state[b] = deviations
        return state

    def answer(self, product: EncodedProduct, state: dict[Axes, Array]) -> Array:
        even, others = self._split(product.axes)
        sizes = self.strategy.sizes_of(product.axes)

        def part(b: Axes) -> Array:
            table = self._systems[b].coordinates.table(state[b], others)
            return np.moveaxis(table, 0, -1)

        table = assemble(
            self.strategy.sizes_of(even), part, lambda _axis, inside, _place: inside, lambda axis: _share(sizes[axis])
        )
        table = table.reshape([sizes[axis] for axis in (*even, *others)])
        order = [(*even, *others).index(axis) for axis in product.axes]
        return product.matrix(sizes).apply(table.transpose(order).reshape(-1))

    def state_bytes(self) -> Sequence[int]:
        states = [
            NUMBER * system.coordinates.count * prod(self.strategy.sizes[i] for i in b)
            for b, system in self._systems.items()
        ]
        inverses = sum(system.coordinates.count * system.queries for system in self._systems.values())
        return [*states, max(states), NUMBER * inverses, NUMBER * max(part.block.queries for part in self._parts)]

    def _split(self, axes: Axes) -> tuple[Axes, Axes]:
        """The even attributes among some, and the others."""
        return tuple(i for i in axes if i in self._even), tuple(i for i in axes if i not in self._even)

    def _inverted(self, noise: tuple[float, ...]) -> dict[Axes, Array]:
        """For every system how its coordinates follow from the answers, with blocks weighed by their noise."""
        weighed = equation_variances(self.blocks, noise)
        return {b: system.equations(weighed).inverse for b, system in self._systems.items()}


@final
class _System:
    """The blocks that see deviations on all of some even attributes, as equations over the other attributes."""

    def __init__(self, sizes: Sequence[int], deviating: Axes, parts: Sequence[_Part]) -> None:
        chosen = {number: part for number, part in enumerate(parts) if set(deviating) <= set(part.even)}
        self._reduced = [part.reduced for part in chosen.values()]
        self.coordinates = Coordinates(sizes, (block.axes for block in self._reduced))
        self._added = {
            number: float(prod(sizes[i] for i in part.even if i not in deviating)) for number, part in chosen.items()
        }
        self.columns: dict[int, slice] = {}
        """Where the answers of each block are among those of the system."""
        self.queries = 0
        for number, block in zip(chosen, self._reduced, strict=True):
            self.columns[number] = slice(self.queries, self.queries + block.queries)
            self.queries += block.queries

    def equations(self, variances: Noise) -> Equations:
        """The equations, given the variance of every block of the strategy."""
        return Equations(self.coordinates, self._reduced, [variances[n] * added for n, added in self._added.items()])

    def deviations(self, noise: Noise) -> Array:
        """The standard deviation of every answer of the system."""
        each = [sqrt(noise[number] * added) for number, added in self._added.items()]
        return np.repeat(each, [block.queries for block in self._reduced])

    @cached_property
    def unseen(self) -> Array:
        """Directions that no block sees, whatever the noise and the weights."""
        return Equations(self.coordinates, self._reduced, block_lengths(self._reduced)).unseen()


@final
class _Part:
    """A block as its even attributes, on which it counts cells, and its queries on the others."""

    def __init__(self, block: Block, even: Axes, reduced: Block) -> None:
        self.block = block
        self.even = even
        self.reduced = reduced

    @staticmethod
    def of(block: Block, even: frozenset[int]) -> _Part:
        others = [(axis, f) for axis, f in zip(block.axes, block.factors, strict=True) if axis not in even]
        reduced = Block(tuple(axis for axis, _ in others), tuple(factor for _, factor in others), block.weight)
        return _Part(block, tuple(axis for axis in block.axes if axis in even), reduced)

    def added_up(self, answers: Array, deviating: Axes, sizes: Sequence[int]) -> Array:
        """The answers with the queries first and then these even attributes; the other even ones are added up."""
        block = self.block
        table = answers.astype(float).reshape([factor.shape[0] for factor in block.factors])
        table = table.sum(
            axis=tuple(place for place, i in enumerate(block.axes) if i in self.even and i not in deviating)
        )
        left = [axis for axis in block.axes if axis not in self.even or axis in deviating]
        places = [left.index(axis) for axis in (*self.reduced.axes, *deviating)]
        return table.transpose(places).reshape(self.reduced.queries, *(sizes[i] for i in deviating))


def even_attributes(strategy: Strategy) -> frozenset[int]:
    """The attributes on which every block counts single cells or nothing."""
    counted = {axis for block in strategy.blocks for axis in block.axes}
    uneven = {
        axis
        for block in strategy.blocks
        for axis, factor in zip(block.axes, block.factors, strict=True)
        if not isinstance(factor, Identity)
    }
    return frozenset(counted - uneven)


def splits(strategy: Strategy) -> bool:
    """Whether least squares falls apart into systems that are small enough to be inverted."""
    blocks = strategy.blocks
    if any(block.condition is not None or block.joint or len(block.axes) > MAX_WAYS for block in blocks):
        return False
    even = even_attributes(strategy)
    parts = [_Part.of(block, even) for block in blocks]
    if not even or sum(2 ** len(part.even) for part in parts) > _MAX_SYSTEMS:
        return False
    others = [part.reduced.axes for part in parts]
    if sum(prod(strategy.sizes[axis] for axis in axes) for axes in set(others)) > 2 * _MAX_COORDINATES:
        return False
    count = Coordinates(strategy.sizes, others).count
    queries = sum(2 ** len(part.even) * part.reduced.queries for part in parts)
    systems = len({b for part in parts for b in subsets(part.even)})
    return count <= _MAX_COORDINATES and count * queries <= _MAX_INVERSES and systems * count**3 <= _MAX_WORK


def _means(types: RowTypes) -> Array:
    """The mean entry of every type, with the axes type, entry (of which there is one) and term."""
    counts = types.counts[:, :, None]
    return (types.values * counts).sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)


def _over_cells(grid: Grid, ways: Mapping[int, int], values: Mapping[int, Array]) -> Array:
    """Products of one entry of every other attribute: on the grid's axes of types and entries, then term and cell."""
    products = np.ones([1] * (2 * grid.ways + 2))
    for axis, entries in values.items():
        types, cells, terms = entries.shape
        shape = [1] * (2 * grid.ways) + [terms, 1, cells]
        shape[ways[axis]] = types
        products = products[..., None] * entries.transpose(0, 2, 1).reshape(shape)
        products = products.reshape(*products.shape[:-2], -1)
    return products


def _ones(cells: int) -> RowTypes:
    """The one row of ones, over this many cells."""
    return RowTypes.of(np.zeros(1, np.int64), np.ones((1, 1, 1)), np.full((1, 1), float(cells)))


def _share(cells: int) -> Array:
    return np.full(cells, 1 / cells)
