"""Encoded workloads: products of implicit matrices, by the attributes on which they depend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from operator import is_
from typing import Any, final

import numpy as np

from hdmm.matrix import (
    Array,
    AxisGram,
    Condition,
    Dense,
    Filtered,
    Gram,
    Identity,
    Kron,
    Matrix,
    Repeated,
    Stack,
    Total,
)
from hdmm.matrix.compose import filtered_terms
from hdmm.matrix.gram import GramTerm

ONCE = np.ones(1, np.int64)
"""The multiples of a query that is asked once."""
_MAX_WRITTEN_ANSWERS = 1 << 22
"""Most answers that are written out to add up their squares."""
_MIN_SHARE = 1e-10
"""The least share of a product in the squared entries of the workload, relative to the largest: one of less weight
counts as this much in searches. Floating point would lose it, and with it the answers that belong to it."""


@final
@dataclass(frozen=True, eq=False)
class EncodedProduct:
    """One product: the matrix on each axis that it depends on, in axis order. On every other axis it is Total.

    A condition across attributes restricts the records that are counted; its axes are among those of the product.
    """

    factors: Mapping[int, Matrix]
    grams: Mapping[int, AxisGram]
    weight: Fraction
    condition: Condition | None = None
    name: str = ""
    multiples: Array = field(default_factory=lambda: ONCE)
    """For a product without axes: each query asks for this multiple, possibly 0, of the count of all records."""

    @staticmethod
    def of(factors: Mapping[int, Matrix], condition: Condition | None = None) -> EncodedProduct:
        """A product of weight 1 with these factors."""
        grams = {axis: factor.axis_gram() for axis, factor in factors.items()}
        return EncodedProduct(factors, grams, Fraction(1), condition)

    @property
    def empty(self) -> bool:
        """Whether it counts nobody, whatever the records are: its answers are 0."""
        return not self.multiples.any()

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that the product touches."""
        return tuple(self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many queries there are along each axis of the product."""
        return tuple(factor.shape[0] for factor in self.factors.values())

    @cached_property
    def queries(self) -> int:
        """How many queries the product holds."""
        return len(self.multiples) * prod([factor.shape[0] for factor in self.factors.values()])

    @property
    def terms(self) -> tuple[GramTerm, ...]:
        """The Gram of the product without its weight: one term, or one for each pair of the condition's boxes.

        A product that counts nobody has none.
        """
        if self.empty:
            return ()
        return (GramTerm(self.squares, self.grams),) if self.condition is None else self._filtered_terms

    @property
    def total(self) -> EncodedProduct:
        """The product without multiples: itself, or the one count of which its queries are multiples."""
        once = self.multiples is ONCE or np.array_equal(self.multiples, ONCE)
        return self if once else replace(self, multiples=ONCE)

    @property
    def squares(self) -> float:
        """The sum of the squares of the multiples."""
        return float((self.multiples.astype(float) ** 2).sum())

    @property
    def repeats(self) -> Array:
        """The multiples that are asked of each query of :attr:`distinct`."""
        repeats = self.multiples.astype(float)
        for factor in self.factors.values():
            if isinstance(factor, Repeated):
                repeats = np.multiply.outer(repeats, np.multiply.outer(factor.before, factor.after)).reshape(-1)
        return repeats

    @property
    def distinct(self) -> EncodedProduct:
        """The product without repeated rows; itself if there are none."""
        if self.total is self and not any(isinstance(factor, Repeated) for factor in self.factors.values()):
            return self
        inner = {axis: f.inner for axis, f in self.factors.items() if isinstance(f, Repeated)}
        grams = {axis: factor.axis_gram() for axis, factor in inner.items()}
        return replace(self, factors={**self.factors, **inner}, grams={**self.grams, **grams}, multiples=ONCE)

    def once(self) -> EncodedProduct:
        """The product without repeated rows: they become part of its weight."""
        distinct = self.distinct
        if distinct is self:
            return self
        return replace(distinct, weight=self.weight * Fraction(float(np.linalg.norm(self.repeats))))

    def mean_square(self, means: dict[int, float]) -> float:
        """The mean squared length of a column, without the weight; ``means`` caches those of Grams by their `id`."""
        total = 0.0
        for term in self.terms:
            product = term.coefficient
            for gram in term.factors.values():
                if id(gram) not in means:
                    means[id(gram)] = gram.trace() / gram.size
                product *= means[id(gram)]
            total += product
        return max(total, 0.0)  # the terms of a condition may cancel

    @cached_property
    def _filtered_terms(self) -> tuple[GramTerm, ...]:
        assert self.condition is not None
        return filtered_terms(self.grams, self.condition)

    @property
    def coefficients(self) -> Array:
        """The coefficients of the condition's boxes, 1 without a condition."""
        return np.ones(1) if self.condition is None else self.condition.coefficients.astype(float)

    def masks(self, axis: int) -> Array:
        """The cells of an axis that are counted, one row for each of the condition's boxes."""
        size = self.factors[axis].shape[1]
        return np.ones((1, size), bool) if self.condition is None else self.condition.masks(axis, size)

    def matrix(self, sizes: Mapping[int, int]) -> Matrix:
        """The product's queries over the cells of its attributes and any others, given with their sizes."""
        if self.condition is None:
            return self._kron(sizes)
        return Filtered(self._kron(sizes), self.condition.moved({axis: place for place, axis in enumerate(sizes)}))

    def _kron(self, sizes: Mapping[int, int]) -> Kron:
        """The product's queries without its condition."""
        factors = [self.factors.get(axis) or Total(size) for axis, size in sizes.items()]
        if self.multiples is not ONCE:
            factors.insert(0, Dense(self.multiples[:, None]))
        return Kron(factors or [Total(1)])

    def square_sum(self, tables: Array, sizes: Sequence[int]) -> float:
        """The sum of the squares of the answers to tables, each a column over the cells of the product's attributes.

        Few answers are written out. Many are quicker by the Gram matrix, which loses small answers to large tables.
        """
        if self.queries * tables.shape[1] <= _MAX_WRITTEN_ANSWERS:
            matrix = self.matrix({axis: sizes[axis] for axis in self.axes})
            return float((matrix.apply(tables).astype(float) ** 2).sum())
        squares = float((tables * Gram(tuple(sizes), self.terms).on(self.axes).apply(tables)).sum())
        return max(squares, 0.0)  # without rounding errors of terms that cancel

    def answers(self, counts: Array, sizes: Mapping[int, int]) -> Array:
        """The answers, as floats, to counts of the cells of some attributes, given with their sizes."""
        if self.condition is None:
            return self._kron(sizes).apply_float(counts)
        touched = {axis: sizes[axis] for axis in self.axes}
        table = Kron(Identity(n) if axis in touched else Total(n) for axis, n in sizes.items()).apply_float(counts)
        return self.matrix(touched).apply(table)


@final
@dataclass(frozen=True, eq=False)
class Encoded:
    """A workload as matrices: the sizes of the attributes, and the products."""

    sizes: tuple[int, ...]
    products: tuple[EncodedProduct, ...]
    names: tuple[str, ...] = ()
    """The names of the attributes, for messages; none if nobody named them."""

    def __getstate__(self) -> dict[str, Any]:
        """What other processes receive: without what was computed from it."""
        return {"sizes": self.sizes, "products": self.products, "names": self.names}

    def attribute(self, axis: int) -> str:
        """An attribute as messages write it."""
        return repr(self.names[axis]) if self.names else f"attribute {axis + 1}"

    @cached_property
    def query_count(self) -> int:
        """How many queries there are in all."""
        return sum(product.queries for product in self.products)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that any product touches."""
        return tuple(sorted({axis for product in self.products for axis in product.factors}))

    @cached_property
    def sought(self) -> Encoded:
        """The workload as searches see it: products that count somebody, whose weights floating point can compare.

        The Gram is the same, unless some products weigh next to nothing. If nobody is counted, it is a total.
        """
        asked = [product.once() for product in self.products if not product.empty]
        if not asked:
            if not self.products:
                return self
            return Encoded(self.sizes, (EncodedProduct({}, {}, Fraction(1)),), self.names)
        means: dict[int, float] = {}
        shares = [product.mean_square(means) for product in asked]
        heaviest = max(float(p.weight) * sqrt(share) for p, share in zip(asked, shares, strict=True))
        least = [Fraction(heaviest * sqrt(_MIN_SHARE / share)) if share else Fraction(0) for share in shares]
        products = [p if p.weight >= w else replace(p, weight=w) for p, w in zip(asked, least, strict=True)]
        unchanged = len(products) == len(self.products) and all(map(is_, products, self.products))
        return self if unchanged else Encoded(self.sizes, tuple(products), self.names)

    @property
    def same_gram(self) -> bool:
        """Whether `sought` has the same Gram matrix as the workload, so that bounds for one hold for the other."""
        asked = [product for product in self.products if not product.empty]
        pairs = zip(self.sought.products, asked, strict=False)
        return bool(asked) and all(sought.weight == product.once().weight for sought, product in pairs)

    @cached_property
    def compact(self) -> Encoded:
        """`sought` in fewer products, if some can be merged; the products are no longer the user's."""
        from hdmm.workload.compact import compact  # it imports this module

        return compact(self.sought)

    def of(self, product: EncodedProduct) -> Matrix:
        """A product's matrix over the full domain."""
        return product.matrix(dict(enumerate(self.sizes)))

    def matrix(self) -> Stack:
        """The whole workload's matrix over the full domain, weights included."""
        weights = [p.weight.numerator if p.weight.denominator == 1 else p.weight for p in self.products]
        return Stack([self.of(product) for product in self.products], weights)

    def gram(self) -> Gram:
        """The Gram matrix WᵀW of the weighted workload."""
        return self._gram

    @cached_property
    def _gram(self) -> Gram:
        terms = (
            GramTerm(float(product.weight) ** 2 * term.coefficient, term.factors)
            for product in self.products
            for term in product.terms
        )
        return Gram(self.sizes, tuple(terms))
