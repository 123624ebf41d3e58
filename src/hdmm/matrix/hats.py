"""Pyramids of hats: overlapping sums of ordered cells with triangular weights, at several scales, beside the cells.

For Laplace noise this is the shape of the best strategies for prefixes and ranges over many ordered cells. All columns
have the same sum, as the cells' own weights take up what the hats leave. See docs/math.md, section 15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix, Norm
from hdmm.matrix.by_products import ProductGram
from hdmm.matrix.gram import Gram
from hdmm.matrix.hat_moments import hat_moments, hat_variances
from hdmm.matrix.hat_solution import ARRAYS, HatSolution
from hdmm.matrix.leaf import FLOAT, INTEGER, MAX_ENTRY
from hdmm.matrix.pyramid import Pyramid, knots
from hdmm.matrix.solvable import Integers, Solvable

MAX_LEVELS = 8
"""The most levels of hats."""
MAX_RATIO = 64
"""The largest ratio between the spacings of neighbouring levels, and the most pieces of the coarsest one."""
_MOST_CELLS = 1 << 40
"""The most cells: a height times twice a spacing then fits 64 bits."""
_CELLS = f"a pyramid of hats has 1 to {_MOST_CELLS} cells, and spacings in this range"


@final
@dataclass(frozen=True, eq=False)
class Hats(Solvable):
    """Each cell by itself, and for each knot of each level a hat: a sum with weights that fall to both sides of it.

    A level has knots at multiples of its spacing s. A cell whose middle is t cells away from one of height h has the
    entry h(1 − t/s) in its hat, an odd multiple of h/2s, if t < s. With integer heights the entries are rounded to
    integers. The cell's own weight is what the hats leave of ``scale``, so that every column has this sum.
    """

    n: int
    spacings: tuple[int, ...]
    """From the finest level to the coarsest; each is a multiple of the one before."""
    heights: tuple[Array, ...]
    """For each level the heights of its hats, from the knot 0 on: integers, or floats before they are rounded."""
    scale: int
    """The sum of every column; 1 for floats."""

    def __init__(self, n: int, spacings: Iterable[int], heights: Iterable[Array], scale: int = 1) -> None:
        levels = tuple(np.array(level) for level in heights)
        whole = all(level.dtype.kind in "bui" for level in levels)
        levels = tuple(level.astype(INTEGER if whole else FLOAT) for level in levels)
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "spacings", tuple(int(spacing) for spacing in spacings))
        object.__setattr__(self, "heights", levels)
        object.__setattr__(self, "scale", scale)
        _check(n, self.spacings, levels, scale, whole=whole)
        for level in levels:
            level.flags.writeable = False
        if self.pyramid.cells.min() < (1 if whole else np.finfo(float).tiny):
            raise ValueError("the hats leave nothing for a cell")

    @staticmethod
    def of_heights(n: int, spacings: Sequence[int], heights: Array, scale: int) -> Hats:
        """The pyramid of the heights of all hats of one level after the other."""
        if not 1 <= n <= _MOST_CELLS or not all(1 <= spacing <= _MOST_CELLS for spacing in spacings):
            raise ValueError(_CELLS)
        ends = np.cumsum([knots(n, spacing) for spacing in spacings], dtype=np.int64)
        if not len(ends) or len(ends) > MAX_LEVELS or ends[-1] != len(heights):
            raise ValueError("a level of hats has a height for every knot")
        return Hats(n, spacings, np.split(heights, ends[:-1]), scale)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pyramid.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.heights[0].dtype

    def apply(self, x: Array) -> Array:
        return self.pyramid.apply(x)

    def apply_t(self, y: Array) -> Array:
        return self.pyramid.apply_t(y)

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self.column_norms(2)))

    def power(self, p: Norm) -> Matrix:
        return self.pyramid.power(p)

    def rows(self, index: Array) -> Array:
        return self.pyramid.rows(index)

    def solve(self, y: Array) -> Array:
        return _by_columns(self.solution.solve, y, self.shape[1])

    def solve_t(self, x: Array) -> Array:
        return _by_columns(self.solution.solve_t, x, self.shape[0])

    def interval_moments(self, lows: Integers, highs: Integers) -> Array:
        return hat_moments(self.solution, lows, highs)

    def interval_variances(self, lows: Integers, highs: Integers) -> Array:
        return hat_variances(self.solution, lows, highs)

    def determines(self, gram: AxisGram) -> bool:
        """Every cell is measured."""
        return True

    def difference_norm(self, p: Norm) -> int | None:
        """Two cells share less of a hat the farther they are apart: the first and the last one share least."""
        if p == 2 or self.dtype.kind != "i":
            return None
        if self.n == 1:
            return 0
        first, last = (self.apply(np.arange(self.n) == cell) for cell in (0, self.n - 1))
        return int(abs(first - last).sum())

    def rounded(self, k: int, norm: Norm) -> Hats:
        """2^k times the hats in integers: the heights are rounded, and every column sums to 2^k exactly."""
        if norm == 2:
            raise ValueError("the columns of hats have equal sums, not equal lengths")
        return Hats(self.n, self.spacings, [np.rint(2.0**k * level).astype(np.int64) for level in self.heights], 2**k)

    @property
    def solution_size(self) -> int:
        return (knots(self.n, self.spacings[-1]) - 1) * self.spacings[-1]

    @property
    def solution_arrays(self) -> int:
        return ARRAYS

    @cached_property
    def pyramid(self) -> Pyramid:
        """All entries."""
        place = np.arange(self.n)
        left = np.full(self.n, self.scale, self.heights[0].dtype)
        falling: list[Array] = []
        rising: list[Array] = []
        for spacing, level in zip(self.spacings, self.heights, strict=True):
            knot = place // spacing
            odd = 2 * (place - spacing * knot) + 1
            for side, heights, share in ((falling, level[knot], 2 * spacing - odd), (rising, level[knot + 1], odd)):
                if left.dtype.kind == "i":
                    entries = (heights * share + spacing) // (2 * spacing)
                else:
                    entries = heights * (share / (2 * spacing))
                side.append(entries)
                left -= entries
        return Pyramid(self.spacings, left, tuple(falling), tuple(rising))

    @cached_property
    def solution(self) -> HatSolution:
        """What least squares is computed with."""
        return HatSolution(self.pyramid)


def _by_columns(function: Callable[[Array], Array], x: Array, rows: int) -> Array:
    """What a function does to each column, for a vector or a matrix of columns."""
    return function(x.reshape(len(x), prod(x.shape[1:]))).reshape(rows, *x.shape[1:])


def _check(n: int, spacings: Sequence[int], heights: Sequence[Array], scale: int, *, whole: bool) -> None:
    """Refuse what is no pyramid of hats."""
    if not 1 <= n <= _MOST_CELLS:
        raise ValueError(_CELLS)
    if not 1 <= len(spacings) == len(heights) <= MAX_LEVELS:
        raise ValueError(f"hats have 1 to {MAX_LEVELS} levels, each with a spacing and heights")
    if not 1 <= spacings[0] <= n or spacings[-1] > 2 * n or spacings[-1] * MAX_RATIO < n:
        raise ValueError(f"the hats of the coarsest level cover at least 1/{MAX_RATIO} of the cells, and not twice all")
    for finer, coarser in pairwise(spacings):
        if coarser % finer or not 2 <= coarser // finer <= MAX_RATIO:
            raise ValueError(f"each spacing of hats is 2 to {MAX_RATIO} times the one before")
    for spacing, level in zip(spacings, heights, strict=True):
        if level.shape != (knots(n, spacing),):
            raise ValueError("a level of hats has a height for every knot")
        if not np.isfinite(level).all() or level.min() < 0:
            raise ValueError("the heights of hats are finite and not negative")
    if not 1 <= scale <= MAX_ENTRY or (not whole and scale != 1):
        raise ValueError(f"the columns of hats of integers sum to at most {MAX_ENTRY}, those of others to 1")
    if max(level.max() for level in heights) > scale:
        raise ValueError("a hat is higher than a column")
