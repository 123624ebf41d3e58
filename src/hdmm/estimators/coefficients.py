"""How an answer depends on the noise: the coefficients of each block's noise in its error.

Answers are grouped by the types of their rows (see `row_types`): all answers of one combination of types, one type for
each attribute of the product, depend on the noise in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, final

import numpy as np

from hdmm.estimators.row_types import Power, RowTypes, merge_close
from hdmm.matrix import Array
from hdmm.workload import EncodedProduct


@dataclass(frozen=True, eq=False)
class Coefficients(ABC):
    """The coefficients of one block's noise, for every combination of row types.

    An answer's error holds each coefficient times as many independent noises as its multiplicity says.
    """

    block: int

    @abstractmethod
    def power_sum(self, power: Power) -> Array:
        """Σ multiplicity · |coefficient|^power, for every combination of types."""

    @abstractmethod
    def largest(self) -> Array:
        """The largest absolute coefficient, for every combination of types."""

    @property
    @abstractmethod
    def terms(self) -> int:
        """How many coefficients an answer has, at most."""

    @abstractmethod
    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        """The absolute coefficients of one combination of types, and their multiplicities."""


@final
@dataclass(frozen=True, eq=False)
class Written(Coefficients):
    """Coefficients written out: the types on the first axes, one per attribute of the product, then the coefficients.

    ``others`` are attributes of the block that the product adds up: each of their entries multiplies the coefficients.
    """

    block: int
    values: Array
    counts: Array
    types: int
    others: tuple[RowTypes, ...] = ()

    @staticmethod
    def rows(block: int, values: Array, types: Sequence[RowTypes]) -> Written:
        """A row of coefficients, one for each measurement, for every combination of types."""
        ways = len(types)
        shape = [len(row_types) for row_types in types]
        return Written(block, values.reshape(*shape, -1), np.ones([1] * (ways + 1)), ways)

    @staticmethod
    def products(
        block: int, types: Sequence[RowTypes], term_weights: Array, others: tuple[RowTypes, ...] = ()
    ) -> Written:
        """Products of one entry per attribute, added up over the terms of a condition with their coefficients."""
        grid = Grid(len(types))
        values = grid.products([row_types.values for row_types in types]) @ term_weights
        counts = grid.products([row_types.counts[:, :, None] for row_types in types])[..., 0]
        return Written(block, values, counts, grid.ways, others)

    def power_sum(self, power: Power) -> Array:
        sums = np.sum(self.counts * abs(self.values) ** power, axis=tuple(range(self.types, self.values.ndim)))
        return sums * prod(float(other.moment(power)[0]) for other in self.others)

    def largest(self) -> Array:
        sizes = np.where(self.counts > 0, abs(self.values), 0)
        largest = sizes.max(axis=tuple(range(self.types, sizes.ndim)))
        return largest * prod(float(other.moment("largest")[0]) for other in self.others)

    @property
    def terms(self) -> int:
        return prod(self.values.shape[self.types :]) * prod(other.width for other in self.others)

    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        values, counts = np.broadcast_arrays(self.values, self.counts)
        here = tuple(index if size > 1 else 0 for index, size in zip(place, values.shape, strict=False))
        written = abs(values[here]).reshape(-1), counts[here].reshape(-1)
        return _products([written, *map(_only, self.others)])


@final
@dataclass(frozen=True, eq=False)
class Factored(Coefficients):
    """Coefficients that are products of one entry per attribute: those of the product, then those that it adds up."""

    block: int
    asked: tuple[RowTypes, ...]
    others: tuple[RowTypes, ...]

    def power_sum(self, power: Power) -> Array:
        return self._moments(power)

    def largest(self) -> Array:
        return self._moments("largest")

    @property
    def terms(self) -> int:
        return prod(types.width for types in (*self.asked, *self.others))

    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        rows = [types.some(index, index + 1) for types, index in zip(self.asked, place, strict=True)]
        return _products([_only(row) for row in (*rows, *self.others)])

    def _moments(self, moment: Power | Literal["largest"]) -> Array:
        product = np.array(prod(float(other.moment(moment)[0]) for other in self.others))
        for types in self.asked:
            product = np.multiply.outer(product, types.moment(moment))
        return product


@final
@dataclass(frozen=True, eq=False)
class Part:
    """Products of one row per attribute, by the moments of these rows: the sums of the second, fourth and sixth powers
    of their entries, and the largest size of one."""

    scale: float
    rows: tuple[Array, ...]
    """For each attribute of the product the moments of every type, with the axes type and moment."""
    others: Array
    """The moments of what the product adds up."""

    def moments(self, column: int, power: int) -> Array:
        """For every combination of types the moment of the product."""
        product = np.array(abs(self.scale) ** power * self.others[column])
        for row in self.rows:
            product = np.multiply.outer(product, row[:, column])
        return product


@final
@dataclass(frozen=True, eq=False)
class Orthogonal(Coefficients):
    """Sums of parts that are orthogonal to each other: their squares add up, and other moments are upper bounds.

    ``written`` writes out the coefficients of one combination of types.
    """

    block: int
    parts: tuple[Part, ...]
    count: int
    """How many measurements an answer depends on."""
    written: Callable[[tuple[int, ...]], Coefficients]

    def power_sum(self, power: Power) -> Array:
        column = (2, 4, 6).index(power)
        moments = [part.moments(column, power) for part in self.parts]
        if power == 2:
            return np.sum(moments, axis=0)
        return np.sum([moment ** (1 / power) for moment in moments], axis=0) ** power  # Minkowski's inequality

    def largest(self) -> Array:
        return np.sum([part.moments(3, 1) for part in self.parts], axis=0)

    @property
    def terms(self) -> int:
        return self.count

    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        return self.written(place).at((0,) * len(place))


@final
@dataclass(frozen=True)
class Grid:
    """The layout of arrays over all row types and entries of a product on ``ways`` attributes.

    Axis i runs over the types of the i-th attribute, axis ``ways`` + i over the entries of such a row. Arrays of values
    have one more axis at the end, for the terms of the product's condition.
    """

    ways: int

    @property
    def ones(self) -> Array:
        """Values to multiply, all 1."""
        return np.ones([1] * (2 * self.ways + 1))

    def place(self, values: Array, way: int) -> Array:
        """The values of one attribute, which have the axes type, entry and term."""
        shape = [1] * (2 * self.ways + 1)
        shape[way], shape[self.ways + way], shape[-1] = values.shape
        return values.reshape(shape)

    def products(self, values: Sequence[Array]) -> Array:
        """The products of one value of every attribute."""
        return prod((self.place(array, way) for way, array in enumerate(values)), start=self.ones)


def written_types(product: EncodedProduct, axis: int) -> RowTypes:
    """Every row of a product as a type by itself: its entries cell by cell, once for each of the condition's terms."""
    entries = product.factors[axis].dense().astype(float)[:, :, None] * product.masks(axis).T
    return RowTypes.of(np.arange(len(entries)), entries, np.ones(entries.shape[:2]))


def written_rows(product: EncodedProduct, types: Sequence[RowTypes]) -> Array:
    """The queries of these types, each over all cells of the product's attributes."""
    rows = Grid(len(types)).products([row_types.values for row_types in types]) @ product.coefficients
    return rows.reshape(prod(len(row_types) for row_types in types), -1)


def written_size(product: EncodedProduct, types: Sequence[RowTypes], measurements: int) -> int:
    """How many numbers the queries and their coefficients take for each type of the first attribute."""
    cells = prod(row_types.width for row_types in types) * len(product.coefficients)
    return prod(len(row_types) for row_types in types[1:]) * (cells + measurements)


def _only(row: RowTypes) -> tuple[Array, Array]:
    """The entries of a single type with one term."""
    return abs(row.values[0, :, 0]), row.counts[0]


def _products(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """All products of one entry of each part, with their multiplicities; equal ones are merged before they multiply."""
    if len(parts) == 1:
        return parts[0]
    values, counts = np.ones(1), np.ones(1)
    for sizes, multiplicities in parts:
        distinct, which = np.unique(merge_close(sizes), return_inverse=True)
        merged = np.bincount(which.reshape(-1), weights=multiplicities)
        values = np.multiply.outer(values, distinct).reshape(-1)
        counts = np.multiply.outer(counts, merged).reshape(-1)
    return values, counts
