"""What every strategy can do, and the form in which it tells how an answer depends on the noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, final

import numpy as np

from hdmm.matrix import Array, Norm
from hdmm.strategy.block import Block, sensitivity
from hdmm.strategy.rows import Power, RowTypes, rounded
from hdmm.workload import Encoded, EncodedProduct

_ENTRIES = 1 << 22
"""Coefficients in memory at a time."""

Noise = Sequence[float]
"""The variance of the noise on each block's answers, one number per block."""


def weighing(blocks: Sequence[Block], noise: Noise, least: float) -> tuple[float, ...]:
    """The variances by which an estimator weighs blocks against each other, up to a common factor.

    Noise is as the weights of the blocks say, v ∝ 1/θ², until a budget is so large that integer noise falls to nothing,
    on some blocks long before it does on others. No block counts as more precise by this than ``least``, as a share of
    the largest v·θ², so that what only the others tell is not lost to rounding. Any weights make an unbiased estimate;
    its error is predicted from the noise itself.
    """
    squares = [float(block.weight) ** 2 for block in blocks]
    relative = [variance * square for variance, square in zip(noise, squares, strict=True)]
    largest = max(relative)
    shares = [max(one / largest, least) for one in relative] if largest > 0 else [1.0] * len(relative)
    return tuple(share / square for share, square in zip(shares, squares, strict=True))


@dataclass(frozen=True, eq=False)
class Coefficients(ABC):
    """How answers depend on the noise of one block, for every combination of row types.

    An answer's error holds each coefficient times as many independent noises as its multiplicity says.
    """

    block: int

    @abstractmethod
    def power_sum(self, power: Power) -> Array:
        """Σ multiplicity · |coefficient|^power, for every combination of types."""

    @abstractmethod
    def largest(self) -> Array:
        """The largest size of a coefficient, for every combination of types."""

    @abstractmethod
    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        """The sizes of the coefficients of one combination of types, and their multiplicities."""


@final
@dataclass(frozen=True, eq=False)
class Spread(Coefficients):
    """Coefficients written out: the types on the first axes, one per axis of the product, the coefficients after them.

    ``others`` are attributes of the block that the product adds up: each of their entries multiplies the coefficients.
    """

    block: int
    values: Array
    counts: Array
    types: int
    others: tuple[RowTypes, ...] = ()

    def power_sum(self, power: Power) -> Array:
        own: Array = np.sum(self.counts * abs(self.values) ** power, axis=tuple(range(self.types, self.values.ndim)))
        return own * prod(float(other.moment(power)[0]) for other in self.others)

    def largest(self) -> Array:
        sizes = np.where(self.counts > 0, abs(self.values), 0)
        own: Array = sizes.max(axis=tuple(range(self.types, sizes.ndim)))
        return own * prod(float(other.moment("largest")[0]) for other in self.others)

    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        values, counts = np.broadcast_arrays(self.values, self.counts)
        here = tuple(index if size > 1 else 0 for index, size in zip(place, values.shape, strict=False))
        return _outer([(abs(values[here]).reshape(-1), counts[here].reshape(-1)), *(_only(o) for o in self.others)])


@final
@dataclass(frozen=True, eq=False)
class Factored(Coefficients):
    """Coefficients that are products of one entry for each attribute: the product's, then those that it adds up."""

    block: int
    own: tuple[RowTypes, ...]
    others: tuple[RowTypes, ...]

    def power_sum(self, power: Power) -> Array:
        return self._products(power)

    def largest(self) -> Array:
        return self._products("largest")

    def at(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        rows = [one.some(index, index + 1) for one, index in zip(self.own, place, strict=True)]
        return _outer([_only(row) for row in (*rows, *self.others)])

    def _products(self, moment: Power | Literal["largest"]) -> Array:
        product: Array = np.array(prod(float(other.moment(moment)[0]) for other in self.others))
        for one in self.own:
            product = np.multiply.outer(product, one.moment(moment))
        return product


def placed(array: Array, place: int, axes: int) -> Array:
    """Types × entries × terms of one attribute, as an array over the types and the entries of all, and the terms."""
    shape = [1] * (2 * axes + 1)
    shape[place], shape[axes + place], shape[-1] = array.shape
    return array.reshape(shape)


def written_types(product: EncodedProduct, axis: int) -> RowTypes:
    """Every row of a product by itself: its entries cell by cell, once for each of the condition's terms."""
    entries = product.factors[axis].dense().astype(float)[:, :, None] * product.masks(axis).T
    return RowTypes.of(np.arange(len(entries)), entries, np.ones(entries.shape[:2]))


def written_rows(product: EncodedProduct, types: Sequence[RowTypes]) -> Array:
    """The queries of these types, each over all cells of the product's attributes."""
    # Axis i runs over the rows on the product's i-th attribute, axis d + i over its cells; the condition's terms come
    # last.
    d = len(types)
    rows = np.ones([1] * (2 * d + 1))
    for place, one in enumerate(types):
        rows = rows * placed(one.values, place, d)
    written: Array = (rows @ product.coefficients).reshape(prod(len(one) for one in types), -1)
    return written


def written_size(product: EncodedProduct, types: Sequence[RowTypes], queries: int) -> int:
    """How many numbers the queries and their coefficients on so many measurements are, for each type of the first."""
    written = prod(one.width for one in types) * len(product.coefficients) + queries
    return prod(len(one) for one in types[1:]) * written


def _only(row: RowTypes) -> tuple[Array, Array]:
    """The entries of a single type with one term."""
    return abs(row.values[0, :, 0]), row.counts[0]


def _outer(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """All products of one entry of each part, with their multiplicities; equal entries of a part are taken together."""
    values, counts = np.ones(1), np.ones(1)
    for sizes, often in parts:
        distinct, which = np.unique(rounded(sizes), return_inverse=True)
        together = np.bincount(which.reshape(-1), weights=often)
        values = np.multiply.outer(values, distinct).reshape(-1)
        counts = np.multiply.outer(counts, together).reshape(-1)
    return values, counts


@dataclass(frozen=True, eq=False)
class Strategy(ABC):
    """Blocks of integer queries, and the unbiased estimate of a workload's answers from their noisy answers.

    Everything here is exact for the estimator that :meth:`answer` computes.
    """

    sizes: tuple[int, ...]
    """The sizes of the schema's attributes."""

    blocks: tuple[Block, ...]
    """What is measured."""

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to other processes: not what was computed from it, some of which is known by its address."""
        return {"sizes": self.sizes, "blocks": self.blocks}

    @property
    def bounded(self) -> bool:
        """Whether the errors that are told are only upper bounds of those of the answers."""
        return False

    def covering(self, noise: Noise) -> Noise:
        """The variances with which errors are told: those of the noise, or larger ones where errors are bounds."""
        return noise

    @abstractmethod
    def supports(self, product: EncodedProduct) -> bool:
        """Whether every query of the product can be answered from the blocks."""

    @abstractmethod
    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        """The expected total squared error of the product's answers, weights left out."""

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        """The same for each of several products."""
        return np.array([self.squared_error(product, noise) for product in products])

    @abstractmethod
    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        """How many coefficients are written out for each type of the product's first axis."""

    @abstractmethod
    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Which predicates of an attribute lead to answers with the same error distribution."""

    @abstractmethod
    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        """How the error of answers of these types, one for each axis of the product, depends on each block's noise.

        Of a product without axes, the one count that its queries are multiples of.
        """

    @abstractmethod
    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Any:
        """What all products are answered from, computed once from the noisy answers of the blocks."""

    @abstractmethod
    def answer(self, product: EncodedProduct, state: Any) -> Array:
        """The answers to a product, from what :meth:`reconstruct` returned."""


Types = tuple[RowTypes, ...]


def types_of(strategy: Strategy, product: EncodedProduct) -> Types:
    """The row types on every axis of a product."""
    return tuple(strategy.row_types(product, axis) for axis in product.axes)


def in_pieces(strategy: Strategy, product: EncodedProduct, types: Types) -> Iterator[Types]:
    """Row types with those of the first axis in pieces, so small that memory holds their coefficients."""
    if not types:
        yield ()
        return
    step = max(1, _ENTRIES // strategy.row_size(product, types))
    for start in range(0, len(types[0]), step):
        yield (types[0].some(start, start + step), *types[1:])


def variances(strategy: Strategy, product: EncodedProduct, noise: Noise, types: Types) -> Array:
    """The variance of the answers to a product, for every combination of row types."""
    return np.concatenate([np.atleast_1d(table) for table in _variances(strategy, product, noise, types)])


def worst_variance(strategy: Strategy, product: EncodedProduct, noise: Noise) -> float:
    """The largest variance of an answer to a product."""
    if product.empty:
        return 0.0
    tables = _variances(strategy, product.total, noise, types_of(strategy, product))
    return float(abs(product.multiples).max()) ** 2 * max(float(table.max()) for table in tables)


def _variances(strategy: Strategy, product: EncodedProduct, noise: Noise, types: Types) -> Iterator[Array]:
    told = strategy.covering(noise)
    for piece in in_pieces(strategy, product, types):
        total = np.zeros(tuple(len(one) for one in piece))
        for block in strategy.coefficients(product, piece, noise):
            total += told[block.block] * block.power_sum(2)
        yield total


def unit_noise(strategy: Strategy, norm: Norm) -> tuple[float, ...]:
    """The variance on each block's answers at unit noise: ‖A‖² over the square of its weight."""
    squared = float(sensitivity(strategy.blocks, norm)) ** (2 / norm)
    return tuple(squared / float(block.weight) ** 2 for block in strategy.blocks)


def loss(strategy: Strategy, workload: Encoded, norm: Norm) -> float:
    """The weighted total squared error at unit noise, ‖A‖²·‖WA⁺‖²_F (paper, prop:error)."""
    noise = unit_noise(strategy, norm)
    squares = np.array([float(product.weight) ** 2 for product in workload.products])
    return float(squares @ strategy.squared_errors(workload.products, noise))
