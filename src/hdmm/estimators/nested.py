"""Least squares over nested partitions of all cells: the counts of a tree, level by level, with a precision for each.

A level counts the boxes of a partition, a product of consecutive groups on every attribute; the next one splits them,
and the finest counts single cells. Least squares takes two passes over the tree (Hay, Rastogi, Miklau and Suciu 2010;
Cormode et al. 2012). Upwards, a box's own answer, of variance w, is averaged with the sum of its parts, of variance κ:
the average has the variance κw/(κ + w). Downwards, what a box gained is shared among its parts in proportion to their
variances. By the same recursion, with the cells c of variance w_c and one rank-one term for every box v above them

    X⁻¹ = diag(w_c) − Σ_v u_v·u_vᵀ/(κ_v + w_v),    κ_v = the sum of u_v,

where u_v on a part p of v is u_p·w_p/(κ_p + w_p), and w_c on cells. So the squared error of a product follows from its
Gram restricted to the boxes of every level, without a matrix over all cells: exactly, for all answers together.

If all boxes of a level have equally many parts and cells, the averages and the shares are the same for all of them.
Then how an answer depends on level k is a sum of Kronecker products: for each level j up to k, the means of the query's
row on each attribute over the groups of level j. Variances follow from inner products of these on each attribute. If
boxes differ, the same averages and equal shares are those of another unbiased estimate, which by Gauss and Markov has
no smaller variances: they are bounds. (docs/math.md, section 11)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np

from hdmm.estimators.boxes import Boxes
from hdmm.estimators.coefficients import Coefficients, Written, written_rows, written_size, written_types
from hdmm.estimators.estimator import LinearEstimator, Noise, weighing_variances
from hdmm.estimators.footprint import NUMBER
from hdmm.estimators.latest import Latest
from hdmm.estimators.row_types import Power, RowTypes, entry_types
from hdmm.matrix import Array, AxisGram, Partition
from hdmm.matrix.axis_gram import OnesGram
from hdmm.strategy import Strategy
from hdmm.workload import EncodedProduct

MAX_AXIS = 1 << 12
"""The most cells of an attribute: the Grams of products are written out on every attribute."""
MAX_CELLS = 1 << 22
"""The most cells of all attributes together."""
_MAX_WRITTEN = 1 << 10
"""The most cells for which how every answer depends on the noise is written out."""
_LEAST_NOISE = 1e-12
"""The least that a level's noise counts beside the others, at very large budgets."""
_MAX_WEIGHT_RATIO = 1000
"""The largest ratio of two levels' weights: differences then keep about ten digits."""
_MAX_MEANS = 1 << 22
"""The most means over groups that are computed at a time."""
_STATE_TABLES = 5
"""Tables of cells that are held while the tree is gone through."""


@final
class NestedLeastSquares(LinearEstimator[Array]):
    """Least squares over the levels of a tree. The state is the estimated counts of all cells.

    The errors of all answers together are exact. Those of single answers are too, if there are few cells or with
    ``written``. Otherwise they are bounds: margins, and if the boxes of a level differ, standard errors.
    """

    def __init__(self, strategy: Strategy, *, written: bool = False) -> None:
        boxes = Boxes.of(strategy)
        if boxes is None:
            raise ValueError("the blocks of a strategy do not count nested boxes of cells, down to single cells")
        self.strategy = strategy
        self._boxes = boxes
        self._written = written or prod(boxes.sizes) <= _MAX_WRITTEN
        self._tree = Latest(self._weighed)

    @property
    def bounded(self) -> bool:
        return not self._written

    @property
    def totals_bounded(self) -> bool:
        return False

    def exact(self) -> LinearEstimator[Any]:
        return NestedLeastSquares(self.strategy, written=True) if self.bounded else self

    def supports(self, product: EncodedProduct) -> bool:
        return set(product.axes) <= set(self._boxes.axes)

    def covering(self, noise: Noise) -> Noise:
        """For bounds from another estimate: variances with which it does no better than least squares."""
        if self._written or self._boxes.even:
            return noise
        weighing = self._weighing(noise)
        scale = max(variance / weighed for variance, weighed in zip(noise, weighing, strict=True))
        return [max(variance, scale * weighed) for variance, weighed in zip(noise, weighing, strict=True)]

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        tree = self._tree(tuple(noise))
        return np.array([self._squared_error(product, tree, noise) for product in products])

    def _squared_error(self, product: EncodedProduct, tree: _Tree, noise: Noise) -> float:
        total = 0.0
        for term in product.terms:
            pairs = zip(self._boxes.axes, self._boxes.sizes, strict=True)
            grams = [term.factors.get(axis) or OnesGram(size) for axis, size in pairs]
            total += term.coefficient * tree.error(grams, noise)
        return max(total, 0.0)

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._overlap_types(product, axis) if self._by_overlaps(product) else written_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        combinations = prod(len(row_types) for row_types in types[1:])
        if self._by_overlaps(product):
            return combinations * len(self._boxes.levels)
        return written_size(product, types, self.strategy.queries) + _STATE_TABLES * combinations * prod(
            self._boxes.sizes
        )

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        tree, order = self._tree(tuple(noise)), self._boxes.order
        if self._by_overlaps(product):
            yield from self._squares(product, types, tree)
            return
        for level, values in enumerate(tree.coefficients(self._over_boxes(product, written_rows(product, types)))):
            yield Written.rows(order[level], values.reshape(len(values), -1), types)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        boxes = self._boxes
        tables = [answers[index].astype(float).reshape(boxes.shape(level)) for level, index in enumerate(boxes.order)]
        return self._tree(tuple(noise)).estimate(tables)

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        others = tuple(place for place, axis in enumerate(self._boxes.axes) if axis not in product.axes)
        table = state.sum(axis=others)
        return product.matrix(self.strategy.sizes_of(product.axes)).apply(table.reshape(-1))

    def state_bytes(self) -> Sequence[int]:
        return [NUMBER * prod(self._boxes.sizes)] * (_STATE_TABLES + len(self._boxes.levels) // 2)

    def _by_overlaps(self, product: EncodedProduct) -> bool:
        """Whether the variances of a product's answers are worked out without their coefficients."""
        return not self._written and product.condition is None

    def _weighing(self, noise: Noise) -> tuple[float, ...]:
        return weighing_variances(self.blocks, noise, _LEAST_NOISE)

    def _weighed(self, noise: tuple[float, ...]) -> _Tree:
        return _Tree(self._boxes, self._weighing(noise))

    def _over_boxes(self, product: EncodedProduct, rows: Array) -> Array:
        """Queries over the cells of a product as queries over all cells, the same along each attribute it lacks."""
        boxes = self._boxes
        shape = [size if axis in product.axes else 1 for axis, size in zip(boxes.axes, boxes.sizes, strict=True)]
        return np.broadcast_to(rows.reshape(len(rows), *shape), (len(rows), *boxes.sizes))

    def _overlap_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Rows by the inner products of their means over groups (see `Boxes.overlaps`)."""
        factor, place = product.factors[axis], self._boxes.axes.index(axis)
        step = max(1, _MAX_MEANS // (factor.shape[1] * len(self._boxes.levels)))
        starts = range(0, factor.shape[0], step)
        rows = (factor.rows(np.arange(start, min(start + step, factor.shape[0]))).astype(float) for start in starts)
        return entry_types(np.concatenate([self._boxes.overlaps(place, part) for part in rows])[:, None, :])

    def _squares(self, product: EncodedProduct, types: Sequence[RowTypes], tree: _Tree) -> Iterator[Coefficients]:
        boxes = self._boxes
        lacking = [place for place, axis in enumerate(boxes.axes) if axis not in product.axes]
        whole = prod(
            (boxes.overlaps(place, np.ones((1, boxes.sizes[place])))[0] for place in lacking), start=np.ones(1)
        )
        values = [row_types.values[:, 0, :] for row_types in types]
        for index, squares in zip(boxes.order, tree.squares(), strict=True):
            table = whole * squares
            for part in values[:-1]:
                table = table[..., None, :] * part
            total = table @ values[-1].T if values else np.asarray(table.sum())
            yield _Squares(index, np.maximum(total, 0.0))


@final
class _Tree:
    """The levels with the variances by which they are weighed, and what both passes need of them."""

    def __init__(self, boxes: Boxes, variances: Sequence[float]) -> None:
        self._boxes = boxes
        self._weighing = [variances[index] for index in boxes.order]
        *above, self._cell = self._weighing
        self._sums = [np.zeros(0)] * len(above)
        """κ of every level above the cells: the variance of the sum of a box's parts."""
        table = np.full(boxes.sizes, self._cell)
        for level in reversed(range(len(above))):
            sums = boxes.added(level, table)
            self._sums[level] = sums
            table = sums * self._kept(level)

    def _gain(self, level: int) -> Array:
        """1/(κ + w)."""
        return np.asarray(1 / (self._sums[level] + self._weighing[level]))

    def _kept(self, level: int) -> Array:
        """w/(κ + w), the share of its parts' variance that a box keeps."""
        return self._weighing[level] * self._gain(level)

    def estimate(self, tables: Sequence[Array]) -> Array:
        """The counts of cells that fit the answers of all levels best."""
        *above, counts = tables
        gained = []
        for level in reversed(range(len(above))):
            sums = self._boxes.added(level, counts)
            gained.append((above[level] - sums) * self._gain(level))
            counts = sums + self._sums[level] * gained[-1]
        handed: Array | None = None  # what a box gained from those around it, over the variance of its parts
        for level, gain in enumerate(reversed(gained)):
            here = gain if handed is None else gain + self._kept(level) * handed
            handed = self._boxes.spread(level, here)
        cells = np.asarray(tables[-1])
        return cells if handed is None else cells + self._cell * handed

    def coefficients(self, queries: Array) -> Iterator[Array]:
        """For every level how the answers to queries over all cells, one in each row, depend on its answers."""
        levels = range(len(self._sums))
        weighed: list[Array] = []
        table = self._cell * queries
        for level in reversed(levels):
            table = self._boxes.added(level, table)
            weighed.insert(0, table)  # uᵀq of every box
            table = self._kept(level) * table
        handed: Array | None = None
        for level in levels:
            here, kept = weighed[level], self._kept(level)
            around = np.zeros(()) if handed is None else kept * handed
            yield (kept * here - self._sums[level] * around) / self._weighing[level]
            handed = self._boxes.spread(level, around + self._gain(level) * here)
        yield queries if handed is None else queries - handed

    def squares(self) -> Iterator[Array]:
        """For every level how the sum of squared coefficients follows from overlaps, for boxes that are alike.

        Boxes that differ are averaged as their mean would be.
        """
        levels = len(self._weighing)
        linear, kept = np.zeros(levels), 0.0
        for level in range(levels):
            linear = kept * linear
            linear[level] += 1
            linear[level - 1] -= 1 if level else 0
            last = level == levels - 1
            sums, w = (1.0, 0.0) if last else (float(self._sums[level].mean()), self._weighing[level])
            kept = w / (sums + w)
            yield self._boxes.pairs(level, (1 - kept) * linear)

    def error(self, grams: Sequence[AxisGram], noise: Noise) -> float:
        """The expected squared error of the questions with this Gram, one factor for each attribute.

        With A the estimate for weighing variances w, it is the derivative of tr(X⁻¹V) by w in the direction of the
        noise: A is the best for w, so that changing it adds nothing to first order.
        """
        entries = [gram.dense() for gram in grams]
        moves = [noise[index] for index in self._boxes.order]
        total = moves[-1] * prod(float(np.trace(array)) for array in entries)
        if self._boxes.even:
            sums = [self._boxes.within(place, array) for place, array in enumerate(entries)]
            for level, left, right in self._fields(moves, one=True):
                total -= float(left.flat[0] * right.flat[0]) * prod(one[level] for one in sums)
            return total
        for level, left, right in self._fields(moves, one=False):
            for place, (part, array) in enumerate(zip(self._boxes.levels[level], entries, strict=True)):
                right = np.moveaxis(_restricted(part, array, np.moveaxis(right, place, 0)), 0, place)
            total -= float((left * right).sum())
        return total

    def _fields(self, moves: Sequence[float], *, one: bool) -> Iterator[tuple[int, Array, Array]]:
        """For every level above the cells, from the finest: u over all cells, and the derivative of u·uᵀ/(κ + w).

        The derivative is that of the quadratic form, as the other factor of a bilinear one. With ``one``, boxes of a
        level are alike, and one entry stands for all.
        """
        boxes, cell = self._boxes, self._cell
        first = (slice(0, 1),) * len(boxes.axes)
        u, moved_u = np.full(boxes.sizes, cell), np.full(boxes.sizes, moves[-1])
        moved_parts = np.full(boxes.sizes, moves[-1])
        if one:
            u, moved_u = u[first], moved_u[first]
        for level in reversed(range(len(self._sums))):
            gain, kappa, w, move = self._gain(level), self._sums[level], self._weighing[level], moves[level]
            moved_sums = boxes.added(level, moved_parts)
            moved_gain = -(moved_sums + move) * gain**2
            kept, moved_kept = w * gain, (move * kappa - w * moved_sums) * gain**2
            moved_parts = (moved_sums * w**2 + move * kappa**2) * gain**2
            fields = [
                table[first] if one else boxes.over_cells(level, table)
                for table in (gain, moved_gain, kept, moved_kept)
            ]
            yield level, fields[1] * u + 2 * fields[0] * moved_u, u
            u, moved_u = u * fields[2], moved_u * fields[2] + u * fields[3]


@final
@dataclass(frozen=True, eq=False)
class _Squares(Coefficients):
    """Coefficients of which only the sum of their squares is known. The rest are bounds."""

    squares: Array

    def power_sum(self, power: Power) -> Array:
        return np.asarray(self.squares ** (power / 2))

    def largest(self) -> Array:
        return np.sqrt(self.squares)

    @property
    def terms(self) -> int:
        return 1

    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        return np.sqrt(self.squares[place]).reshape(1), np.ones(1)


def nested(strategy: Strategy) -> bool:
    """Whether the blocks count nested boxes of cells, not too many, by weights that are not too far apart.

    Errors are differences, of which levels that weigh next to nothing would leave only rounding.
    """
    axes = strategy.axes
    weights = [block.weight for block in strategy.blocks]
    if max(weights) > _MAX_WEIGHT_RATIO * min(weights):
        return False
    sizes = [strategy.sizes[axis] for axis in axes]
    if len(strategy.blocks) < 2 or max(sizes, default=0) > MAX_AXIS or prod(sizes) > MAX_CELLS:
        return False
    return Boxes.of(strategy) is not None


def _restricted(part: Partition, entries: Array, tables: Array) -> Array:
    """The product of the entries whose row and column are in one group with the first axis of tables."""
    if len(part.ends) == part.n:
        return (np.diagonal(entries) * tables.T).T
    product = np.empty(tables.shape)
    for start, end in zip(part.starts.tolist(), part.ends, strict=True):
        product[start:end] = np.tensordot(entries[start:end, start:end], tables[start:end], 1)
    return product
