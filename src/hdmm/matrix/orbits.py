"""Queries over several attributes that treat some cells alike: sums over kinds of cells, or differences within a kind.

On an attribute the cells are sorted into kinds. The queries see either the sum over each kind, or the cells of a single
kind, each compared with all of them (s·I − 11ᵀ for a kind of s cells). A table of queries then mixes the sums; the
differences are measured once for each of these queries. (docs/math.md, section 13)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import DenseGram
from hdmm.matrix.base import Matrix, Norm, Number, exact, largest_row_sum
from hdmm.matrix.gram import Gram
from hdmm.matrix.leaf import Dense

_EXACT = 1 << 53
"""Floats hold all integers up to this."""


@final
@dataclass(frozen=True, eq=False)
class Kinds:
    """The cells of an attribute, sorted into kinds: numbers from 0 on, each used by at least one cell."""

    labels: Array
    """The kind of each cell."""

    def __post_init__(self) -> None:
        labels = np.array(self.labels)
        if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iu":
            raise ValueError("each cell is of a kind, which is an integer")
        if labels.min() < 0 or labels.max() >= len(labels) or not np.bincount(labels).all():
            raise ValueError("kinds are numbers from 0 on, and each has at least one cell")
        labels = labels.astype(np.int64)
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def cells(self) -> int:
        """How many cells the attribute has."""
        return len(self.labels)

    @cached_property
    def sizes(self) -> Array:
        """How many cells are of each kind."""
        return np.bincount(self.labels)

    def members(self, kind: int) -> Array:
        """The cells of a kind."""
        return np.flatnonzero(self.labels == kind)

    def only(self, chosen: Array) -> Kinds:
        """The cells of some kinds, which are given in rising order."""
        return Kinds(np.searchsorted(chosen, self.labels[np.isin(self.labels, chosen)]))

    def sums(self, x: Array) -> Array:
        """The sum over each kind, along the first axis."""
        if len(self) == self.cells:  # each cell by itself; kinds may come in any order
            return x[np.argsort(self.labels)]
        return np.add.reduceat(x[self._order], self._starts, axis=0)

    def means(self, x: Array) -> Array:
        """The mean over each kind, along the first axis."""
        return self.sums(x) / self.sizes.reshape(-1, *[1] * (x.ndim - 1))

    @cached_property
    def _order(self) -> Array:
        return np.argsort(self.labels, kind="stable")

    @cached_property
    def _starts(self) -> Array:
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])


@final
@dataclass(frozen=True)
class Within:
    """Differences between the cells of one kind: one number on the diagonal, and another everywhere else."""

    kind: int
    diagonal: int
    rest: int

    @staticmethod
    def of(kinds: Kinds, kind: int) -> Within:
        """The deviation of each cell from the mean of its kind, times their number: s·I − 11ᵀ."""
        if not 0 <= kind < len(kinds):
            raise ValueError("there is no such kind")
        return Within(kind, int(kinds.sizes[kind]) - 1, -1)

    def apply(self, x: Array) -> Array:
        """The product along the first axis."""
        return (self.diagonal - self.rest) * x + self.rest * x.sum(axis=0)

    def norm_power(self, size: int, p: Norm) -> int:
        """The norm of a column, to the power p."""
        return int(abs(self.diagonal) ** p + (size - 1) * abs(self.rest) ** p)

    def power(self, p: Norm) -> Within:
        """The absolute entries to the power p."""
        return Within(self.kind, abs(self.diagonal) ** p, abs(self.rest) ** p)


@final
@dataclass(frozen=True, eq=False)
class OrbitQueries(Matrix):
    """Queries over the sums of kinds on some attributes, for each difference within a kind on the others.

    ``parts`` holds for each attribute the differences that are taken on it, or None for the sums of all its kinds.
    ``queries`` has a column for each combination of kinds on the attributes with sums. Rows are in the order of the
    queries, then of the cells on the other attributes.
    """

    kinds: tuple[Kinds, ...]
    parts: tuple[Within | None, ...]
    queries: Dense
    basis: Array | None = None
    """Integer rows with the same span as the queries, if that is not everything: a multiple of the identity on some
    columns. The queries are rounded on these columns alone, and so keep their span."""

    def __post_init__(self) -> None:
        if len(self.kinds) != len(self.parts) or self.queries.shape[1] != prod(self._table):
            raise ValueError("the queries have a column for every combination of kinds")
        for kinds, part in zip(self.kinds, self.parts, strict=True):
            if part is not None and not (0 <= part.kind < len(kinds) and kinds.sizes[part.kind] > 1):
                raise ValueError("differences are between at least two cells of one kind")

    @property
    def summed(self) -> tuple[int, ...]:
        """The places of the attributes with sums."""
        return tuple(place for place, part in enumerate(self.parts) if part is None)

    @property
    def compared(self) -> tuple[int, ...]:
        """The places of the attributes with differences."""
        return tuple(place for place, part in enumerate(self.parts) if part is not None)

    @property
    def _table(self) -> tuple[int, ...]:
        """The number of kinds on each attribute with sums."""
        return tuple(len(self.kinds[place]) for place in self.summed)

    @property
    def compared_sizes(self) -> tuple[int, ...]:
        """How many cells are compared on each attribute with differences."""
        pairs = zip(self.kinds, self.parts, strict=True)
        return tuple(int(kinds.sizes[part.kind]) for kinds, part in pairs if part is not None)

    @property
    def shape(self) -> tuple[int, int]:
        return self.queries.shape[0] * prod(self.compared_sizes), prod(kinds.cells for kinds in self.kinds)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.queries.dtype

    def apply(self, x: Array) -> Array:
        table = x.reshape(*(kinds.cells for kinds in self.kinds), -1)
        for place, (kinds, part) in enumerate(zip(self.kinds, self.parts, strict=True)):
            cells = np.moveaxis(table, place, 0)
            acted = kinds.sums(cells) if part is None else part.apply(cells[kinds.members(part.kind)])
            table = np.moveaxis(acted, 0, place)
        columns = table.transpose(*self.summed, *self.compared, len(self.kinds)).reshape(self.queries.shape[1], -1)
        return integer_product(self.queries.array, columns).reshape(-1, *x.shape[1:])

    def apply_t(self, y: Array) -> Array:
        mixed = integer_product(self.queries.array.T, y.reshape(self.queries.shape[0], -1))
        table = mixed.reshape(*self._table, *self.compared_sizes, -1)
        table = np.moveaxis(table, range(len(self.kinds)), [*self.summed, *self.compared])
        for place, (kinds, part) in enumerate(zip(self.kinds, self.parts, strict=True)):
            rows = np.moveaxis(table, place, 0)
            if part is None:
                cells = rows[kinds.labels]
            else:
                cells = np.zeros((kinds.cells, *rows.shape[1:]), table.dtype)
                cells[kinds.members(part.kind)] = part.apply(rows)
            table = np.moveaxis(cells, 0, place)
        return table.reshape(-1, *y.shape[1:])

    def gram(self) -> Gram:
        entries = self.dense().astype(float)
        return Gram.of(DenseGram(entries.T @ entries))

    def power(self, p: Norm) -> OrbitQueries:
        parts = tuple(None if part is None else part.power(p) for part in self.parts)
        return OrbitQueries(self.kinds, parts, self.queries.power(p))

    def orbit_norms(self, p: Norm) -> Array:
        """The norm of a column to the power p for every combination of kinds, as Python numbers.

        It has an axis for every attribute, of length 1 for sums of a single kind.
        """
        shape = [len(kinds) if part is None else 1 for kinds, part in zip(self.kinds, self.parts, strict=True)]
        table = self.queries.column_norms(p).astype(object).reshape(shape)
        for place, (kinds, part) in enumerate(zip(self.kinds, self.parts, strict=True)):
            if part is not None:
                norms = np.zeros(len(kinds), object)
                norms[part.kind] = part.norm_power(int(kinds.sizes[part.kind]), p)
                table = table * norms.reshape([-1 if axis == place else 1 for axis in range(len(shape))])
        return table

    def norm_power(self, p: Norm) -> Number:
        return exact(self.orbit_norms(p).max())

    def rows(self, index: Array) -> Array:
        units = np.zeros((self.shape[0], len(index)), self.dtype)
        units[index, np.arange(len(index))] = 1
        return np.ascontiguousarray(self.apply_t(units).T)

    def with_queries(self, queries: Dense) -> OrbitQueries:
        """The same sums and differences with other queries over them."""
        return OrbitQueries(self.kinds, self.parts, queries)


@largest_row_sum.register
def _(matrix: OrbitQueries) -> Number:
    cells = reduce(np.multiply.outer, [matrix.kinds[place].sizes for place in matrix.summed], np.ones(1, np.int64))
    rows = exact((matrix.queries.array @ cells.reshape(-1)).max())
    sums = (
        part.diagonal + (size - 1) * part.rest
        for part, size in zip((part for part in matrix.parts if part is not None), matrix.compared_sizes, strict=True)
    )
    return rows * prod(sums)


def integer_product(left: Array, right: Array) -> Array:
    """The product of two matrices: of integers, by floats where these hold all sums exactly, which is much faster."""
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        return left @ right
    largest = int(abs(right).max(initial=0))
    if int(abs(left).sum(axis=1).max()) * largest <= _EXACT:
        return (left.astype(float) @ right.astype(float)).astype(np.int64)
    return left @ right
