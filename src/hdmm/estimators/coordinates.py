"""Tables on several sets of attributes that belong to one population, as one vector of free numbers.

On every attribute a reflection turns the cells into their total, over √n, and n − 1 contrasts. In these coordinates
the table on fewer attributes is the part of the table on more that has totals on the attributes that are gone. So
tables share coordinates, one for each set of attributes and choice of contrasts, and all tables together are still a
vector if the cells of all attributes together do not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Array
from hdmm.matrix.arrays import along
from hdmm.matrix.axes import Axes, subsets

MAX_WAYS = 16
"""The most attributes of a table: it has a part for every subset of them."""


@final
class Coordinates:
    """The free numbers of all tables on some sets of attributes and on their subsets."""

    def __init__(self, sizes: Sequence[int], sets: Iterable[Axes]) -> None:
        self._sizes = tuple(sizes)
        self._starts: dict[Axes, int] = {}
        self.count = 0
        for axes in sorted(set(sets)):
            for part in subsets(axes):
                if part not in self._starts:
                    self._starts[part] = self.count
                    self.count += prod(self._sizes[axis] - 1 for axis in part)
        self._places: dict[Axes, NDArray[np.int64]] = {}

    def holds(self, axes: Axes) -> bool:
        """Whether the table on these attributes can be read from the coordinates."""
        return axes in self._starts

    def table(self, numbers: Array, axes: Axes) -> Array:
        """The table on some attributes; further axes of the numbers stay as they are."""
        coordinates = numbers[self._place(axes)] * along(self._total_scales(axes), numbers)
        return self._reflected(coordinates, axes)

    def add(self, numbers: Array, axes: Axes, table: Array) -> None:
        """Add to the numbers what the transpose of :meth:`table` makes of a table."""
        coordinates = self._reflected(table, axes)
        coordinates *= along(self._total_scales(axes), numbers)
        numbers[self._place(axes)] += coordinates  # no place occurs twice

    def add_lengths(self, numbers: Array, axes: Axes, per_axis: Sequence[tuple[float, float]], weight: float) -> None:
        """Add to the numbers the squared lengths of their columns, given those on every attribute, times a weight."""
        lengths = np.full(1, weight)
        for axis, (total, contrast) in zip(axes, per_axis, strict=True):
            n = self._sizes[axis]
            lengths = np.multiply.outer(lengths, np.array([total / n, *[contrast] * (n - 1)])).reshape(-1)
        numbers[self._place(axes)] += lengths

    def _place(self, axes: Axes) -> NDArray[np.int64]:
        """Where each coordinate of a table is among the numbers."""
        if axes not in self._places:
            places = np.empty([self._sizes[axis] for axis in axes], np.int64)
            for part in subsets(axes):
                shape = [self._sizes[axis] - 1 for axis in part]
                here = tuple(slice(1, None) if axis in part else 0 for axis in axes)
                places[here] = self._starts[part] + np.arange(prod(shape)).reshape(shape)
            self._places[axes] = places.reshape(-1)
        return self._places[axes]

    def _total_scales(self, axes: Axes) -> Array:
        """A total taken on an attribute is 1/√n of what it is without the attribute."""
        scales = np.ones(1)
        for axis in axes:
            n = self._sizes[axis]
            scales = np.multiply.outer(scales, np.array([1 / sqrt(n), *[1.0] * (n - 1)])).reshape(-1)
        return scales

    def _reflected(self, table: Array, axes: Axes) -> Array:
        """The reflection of (1, 0, …, 0) and (1, …, 1)/√n on every attribute: its own inverse and transpose."""
        before = 1
        reflected = np.array(table, float)
        for axis in axes:
            n = self._sizes[axis]
            cells = reflected.reshape(before, n, -1)
            if n > 1:
                first = cells[:, 0].copy()
                total = cells.sum(axis=1) / sqrt(n)
                cells[:, 1:] -= ((total - first) / (sqrt(n) - 1))[:, None]
                cells[:, 0] = total
                # with v = 1/√n − e₀: x − 2v(v·x)/(v·v) moves every other cell by −(total − first)/(√n − 1)
            before *= n
        return reflected
