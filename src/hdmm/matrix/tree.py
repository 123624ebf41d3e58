"""Hierarchies of intervals: sums over the parts of ordered cells, each level finer than the one before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array, along
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Norm
from hdmm.matrix.by_products import ProductGram
from hdmm.matrix.gram import Gram
from hdmm.matrix.hierarchy import balanced_sizes, parents_of, starts_of
from hdmm.matrix.intervals import interval_rows, running_sums
from hdmm.matrix.leaf import FLOAT, INTEGER, MAX_ENTRY
from hdmm.matrix.solvable import Integers, Solvable
from hdmm.matrix.tree_moments import ARRAYS, TreeMoments
from hdmm.matrix.tree_solution import TreeSolution
from hdmm.memory import memory_limit
from hdmm.text import count_text

MAX_LEVELS = 64
"""The most levels of a hierarchy."""
_MOST_CELLS = 1 << 62
"""The most that parts and cells may multiply to: sums of sizes then fit 64 bits."""
_NO_PARTS = "the parts of each level of a hierarchy are at least one cell, and all cells together"
_CELL_BYTES = 64
"""Bytes for each cell of a balanced tree of at most twice as many parts."""
_COLUMNS = 1 << 22
"""Entries of the vectors that are compared at a time."""
_EQUAL = 1e-9
"""The largest difference of equal columns of a Gram, relative to its largest entry."""


@final
@dataclass(frozen=True, eq=False)
class Tree(Solvable):
    """Weighted sums over the parts of a hierarchy of ordered cells.

    Each level divides all cells into parts, and the next one divides these parts further. The first level has one part.
    A part of weight 0 is not measured; all those of the last level are.
    """

    sizes: tuple[Array, ...]
    """For each level the number of cells of its parts, in order."""
    weights: tuple[Array, ...]
    """For each level the weights of its parts: integers, or floats before they are rounded."""

    def __init__(self, sizes: Iterable[Array], weights: Iterable[Array]) -> None:
        levels = tuple(np.array(level, np.int64) for level in sizes)
        numbers = tuple(np.array(level) for level in weights)
        whole = all(level.dtype.kind in "bui" for level in numbers)
        numbers = tuple(level.astype(INTEGER if whole else FLOAT) for level in numbers)
        _check(levels, numbers)
        for level in (*levels, *numbers):
            level.flags.writeable = False
        object.__setattr__(self, "sizes", levels)
        object.__setattr__(self, "weights", numbers)

    @staticmethod
    def balanced(n: int, branching: int, *, root: bool = True) -> Tree:
        """The tree that divides n cells into parts, as equal as possible, until each is one cell; all of weight 1.

        Without the root, the total of all cells is not measured.
        """
        if _CELL_BYTES * n > memory_limit():
            raise TooLargeError(f"a hierarchy of {count_text(n)} cells does not fit; declare bins or a coarser domain")
        sizes = balanced_sizes(n, branching)
        weights = [(level > 1).astype(np.int64) for level in sizes[:-1]]  # a single cell is measured on the last level
        if weights and not root:
            weights[0][:] = 0
        return Tree(sizes, [*weights, np.ones(len(sizes[-1]), np.int64)])

    @staticmethod
    def of_parts(sizes: Array, weights: Array) -> Tree:
        """The tree of the sizes and weights of all parts of one level after the other."""
        cells = int(sizes[0]) if len(sizes) else 0
        if not cells or sizes.min() < 1 or sizes.max() > cells or cells * len(sizes) > _MOST_CELLS:
            raise ValueError(_NO_PARTS)
        ends = np.flatnonzero(np.cumsum(sizes) % cells == 0) + 1
        if not len(ends) or ends[-1] != len(sizes):
            raise ValueError(_NO_PARTS)
        return Tree(np.split(sizes, ends[:-1]), np.split(weights, ends[:-1]))

    @property
    def balanced_form(self) -> tuple[int, bool] | None:
        """The branching of a balanced tree, and whether it has a root; None if it is no such tree."""
        branching = len(self.sizes[1]) if len(self.sizes) > 1 else 2
        root = bool(self.weights[0].any())
        same = Tree.balanced(self.shape[1], branching, root=root)
        levels = zip((*self.sizes, *self.weights), (*same.sizes, *same.weights), strict=False)
        equal = len(self.sizes) == len(same.sizes) and all(np.array_equal(a, b) for a, b in levels)
        return (branching, root) if equal else None

    @property
    def shape(self) -> tuple[int, int]:
        return sum(int(np.count_nonzero(weights)) for weights in self.weights), int(self.sizes[0][0])

    @property
    def nodes(self) -> int:
        """How many parts all levels have together."""
        return sum(len(level) for level in self.sizes)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.weights[0].dtype

    def apply(self, x: Array) -> Array:
        running = np.concatenate([np.zeros_like(x[:1]), running_sums(x)])
        parts = []
        for sizes, weights in zip(self.sizes, self.weights, strict=True):
            measured = np.flatnonzero(weights)
            ends = np.cumsum(sizes)[measured]
            parts.append(along(weights[measured], x) * (running[ends] - running[ends - sizes[measured]]))
        return np.concatenate(parts)

    def apply_t(self, y: Array) -> Array:
        product = np.zeros((1, *y.shape[1:]), np.result_type(self.dtype, y.dtype))
        start = 0
        for level, weights in enumerate(self.weights):
            if level:
                product = product[self.parents[level]]
            measured = np.flatnonzero(weights)
            product[measured] += along(weights[measured], y) * y[start : start + len(measured)]
            start += len(measured)
        return np.repeat(product, self.sizes[-1], axis=0)

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self.column_norms(2)))

    def power(self, p: Norm) -> Tree:
        powers: Tree = object.__new__(Tree)  # squares may exceed MAX_ENTRY
        object.__setattr__(powers, "sizes", self.sizes)
        object.__setattr__(powers, "weights", tuple(weights**p for weights in self.weights))
        return powers

    def rows(self, index: Array) -> Array:
        sizes, ends, weights = self._measured
        return weights[index, None] * interval_rows((ends - sizes)[index], ends[index] - 1, self.shape[1])

    def solve(self, y: Array) -> Array:
        return self._solution.solve(y)

    def solve_t(self, x: Array) -> Array:
        return self._solution.solve_t(x)

    def interval_moments(self, lows: Integers, highs: Integers) -> Array:
        return self._moments.of(lows, highs)

    def determines(self, gram: AxisGram) -> bool:
        """Cells of one part of the last level are not told apart, so neighbours in it need equal columns."""
        if len(self.sizes[-1]) == self.shape[1]:  # each is one cell
            return True
        inside = np.ones(self.shape[1], bool)
        inside[np.cumsum(self.sizes[-1]) - 1] = False  # a part's last cell has no neighbour in it
        squares = gram.as_squares()
        if (
            squares is not None
            and min(squares.interval_weights.min(initial=0), squares.vector_weights.min(initial=0)) >= 0
        ):
            return not squares.splits(inside)
        cells = np.flatnonzero(inside)
        step = max(1, _COLUMNS // self.shape[1])
        for start in range(0, len(cells), step):
            some = cells[start : start + step]
            differences = np.zeros((self.shape[1], len(some)))
            differences[some, np.arange(len(some))], differences[some + 1, np.arange(len(some))] = 1, -1
            if (abs(gram.apply(differences)) > _EQUAL * max(1.0, float(abs(gram.diagonal()).max()))).any():
                return False
        return True

    @property
    def solution_size(self) -> int:
        return self.nodes

    @property
    def solution_arrays(self) -> int:
        return ARRAYS

    def rounded(self, k: int, norm: Norm) -> Tree:
        """2^k times the tree in integers, part by part; a ValueError if k is too coarse for a weight.

        For the L1 norm it is the sums of weights from the root down that are rounded, so that columns that sum to 1
        still do.
        """
        if norm == 2:
            weights = [np.rint(2**k * level).astype(np.int64) for level in self.weights]
        else:
            weights, above, exact = [], np.zeros(1, np.int64), np.zeros(1)
            for level, numbers in enumerate(self.weights):
                if level:
                    above, exact = above[self.parents[level]], exact[self.parents[level]]
                exact = exact + 2**k * numbers
                weights.append(np.where(numbers > 0, np.rint(exact).astype(np.int64) - above, 0))
                above = above + weights[-1]
        return Tree(self.sizes, weights)

    def difference_norm(self, p: Norm) -> int:
        """Two cells have the counts of the parts in common that hold both, and no others."""
        below = self.weights[-1] ** p  # the largest sum of a path from a part down
        largest = 0
        for level in range(len(self.sizes) - 2, -1, -1):
            starts = starts_of(self.parents[level + 1])
            order = np.lexsort((below, self.parents[level + 1]))
            ends = np.append(starts[1:], len(below)) - 1
            first, divided = below[order][ends], ends > starts
            second = below[order][np.where(divided, ends - 1, ends)]
            largest = max([largest, *(first + second)[divided].tolist()])
            below = first + self.weights[level] ** p
        return largest

    @cached_property
    def parents(self) -> tuple[Array, ...]:
        """For each level the number of every part's parent on the level before; none for the first."""
        return parents_of(self.sizes)

    @cached_property
    def _solution(self) -> TreeSolution:
        return TreeSolution(self.sizes, self.weights, self.parents)

    @cached_property
    def _moments(self) -> TreeMoments:
        return TreeMoments(self._solution)

    @property
    def _measured(self) -> tuple[Array, Array, Array]:
        """The sizes, ends and weights of all measured parts."""
        sizes = np.concatenate(self.sizes)
        ends = np.concatenate([np.cumsum(level) for level in self.sizes])
        weights = np.concatenate(self.weights)
        measured = weights != 0
        return sizes[measured], ends[measured], weights[measured]


def _check(sizes: Sequence[Array], weights: Sequence[Array]) -> None:
    """Refuse what is no hierarchy."""
    if not 1 <= len(sizes) <= MAX_LEVELS:
        raise ValueError(f"a hierarchy has 1 to {MAX_LEVELS} levels")
    if [level.shape for level in sizes] != [level.shape for level in weights] or sizes[0].shape != (1,):
        raise ValueError("a hierarchy begins with one part, and has a weight for every part")
    cells = int(sizes[0][0])
    bounds = np.zeros(0, np.int64)
    for level, numbers in zip(sizes, weights, strict=True):
        if level.ndim != 1 or level.min(initial=cells) < 1 or level.max(initial=0) > cells:
            raise ValueError(_NO_PARTS)
        if len(level) * cells > _MOST_CELLS or level.sum() != cells:
            raise ValueError(_NO_PARTS)
        ends = np.cumsum(level)
        if not np.isin(bounds, ends).all():
            raise ValueError("each level of a hierarchy divides the parts of the one before")
        bounds = ends
        if not np.isfinite(numbers).all() or numbers.min() < 0:
            raise ValueError("the weights of a hierarchy are finite and not negative")
        if numbers.dtype.kind == "i" and numbers.max() > MAX_ENTRY:
            raise ValueError(f"the weights of a hierarchy of integers are at most {MAX_ENTRY}")
    if weights[-1].min() == 0:
        raise ValueError("every part of the last level of a hierarchy is measured")
