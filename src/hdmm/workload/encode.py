"""ImpVec (paper, Algorithm 1): a workload as a stack of Kronecker products, without writing any of it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hdmm.errors import InputError
from hdmm.matrix import Array, Condition, Factor, Filtered, Gram, Identity, Kron, Matrix, Stack, Total
from hdmm.matrix.compose import filtered_terms, restricted
from hdmm.matrix.gram import Term
from hdmm.schema import Schema
from hdmm.workload.conditions import across

if TYPE_CHECKING:
    from hdmm.workload.predicates import Predicates


@final
@dataclass(frozen=True, eq=False)
class EncodedProduct:
    """One product: the matrix on each axis that it touches, in axis order. On every other axis it is Total.

    A condition across attributes restricts the records that are counted; its axes are among the product's.
    """

    factors: Mapping[int, Matrix]
    grams: Mapping[int, Factor]
    weight: Fraction
    condition: Condition | None = None
    name: str = ""

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that the product touches."""
        return tuple(self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many predicates there are on each axis that the product touches."""
        return tuple(factor.shape[0] for factor in self.factors.values())

    @cached_property
    def queries(self) -> int:
        """How many queries the product holds."""
        return prod([factor.shape[0] for factor in self.factors.values()])

    @property
    def terms(self) -> tuple[Term, ...]:
        """The Gram of the product without its weight: one term, or one for each pair of the condition's terms."""
        return (Term(1.0, self.grams),) if self.condition is None else self._filtered_terms

    @cached_property
    def _filtered_terms(self) -> tuple[Term, ...]:
        assert self.condition is not None
        return filtered_terms(self.grams, self.condition)

    @property
    def coefficients(self) -> Array:
        """The coefficients of the condition's terms, 1 without a condition."""
        return np.ones(1) if self.condition is None else self.condition.coefficients.astype(float)

    def masks(self, axis: int) -> Array:
        """The cells of an axis that are counted, one row for each of the condition's terms."""
        size = self.factors[axis].shape[1]
        return np.ones((1, size), bool) if self.condition is None else self.condition.masks(axis, size)

    def matrix(self, sizes: Mapping[int, int]) -> Matrix:
        """The product's queries over the cells of some attributes, given with their sizes: its own and any others."""
        kron = Kron([self.factors.get(axis) or Total(size) for axis, size in sizes.items()] or [Total(1)])
        if self.condition is None:
            return kron
        return Filtered(kron, self.condition.moved({axis: place for place, axis in enumerate(sizes)}))

    def answers(self, counts: Array, sizes: Mapping[int, int]) -> Array:
        """The answers, as floats, to counts of the cells of some attributes, given with their sizes."""
        held = sizes or {-1: 1}
        if self.condition is None:
            return Kron(self.factors.get(axis) or Total(n) for axis, n in held.items()).apply_float(counts)
        own = {axis: sizes[axis] for axis in self.axes}
        table = Kron(Identity(n) if axis in own else Total(n) for axis, n in held.items()).apply_float(counts)
        return self.matrix(own).apply(table)


@final
@dataclass(frozen=True, eq=False)
class Encoded:
    """A workload as matrices: the sizes of the attributes, and the products."""

    sizes: tuple[int, ...]
    products: tuple[EncodedProduct, ...]

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to other processes: not what was computed from it."""
        return {"sizes": self.sizes, "products": self.products}

    @cached_property
    def query_count(self) -> int:
        """How many queries there are in all."""
        return sum(product.queries for product in self.products)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that any product touches."""
        return tuple(sorted({axis for product in self.products for axis in product.factors}))

    @cached_property
    def compact(self) -> Encoded:
        """The same queries in fewer products, where some can be merged; the products are no longer the user's."""
        from hdmm.workload.compact import compact

        return compact(self)

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
            Term(float(product.weight) ** 2 * term.coefficient, term.factors)
            for product in self.products
            for term in product.terms
        )
        return Gram(self.sizes, tuple(terms))


@final
class Encoder:
    """Encodes products one by one; equal predicate sets on one attribute share one matrix."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[tuple[str, Predicates], tuple[int, Matrix]] = {}
        self._conditions: dict[str, Condition] = {}
        self._products: list[tuple[str, list[tuple[str, Predicates]], Fraction, str | None]] = []

    def add(self, name: str, predicates: Mapping[str, Predicates], weight: Fraction, where: str | None = None) -> None:
        """Check and take one product."""
        keys = list(predicates.items())
        for key in keys:
            if key not in self._known:
                attribute, given = key
                axis = self._schema.axis(attribute)
                try:
                    self._known[key] = (axis, given.matrix(attribute, self._schema[attribute]))
                except InputError as error:
                    raise type(error)(f"attribute {attribute!r}: {error}") from None
        if where is not None and where not in self._conditions:
            self._conditions[where] = across(where, self._schema)
        self._products.append((name, keys, weight, where))

    def finish(self) -> Encoded:
        """Everything that was added, as matrices."""
        totals = [Total(size) for size in self._schema.sizes]
        grams: dict[int, Factor] = {}
        narrowed: dict[tuple[str, int, int], Matrix] = {}
        products = []
        for name, keys, weight, where in self._products:
            factors = dict(self._known[key] for key in keys)
            condition = None if where is None else self._conditions[where]
            if condition is not None and where is not None and len(condition.terms) == 1:
                for axis, mask in condition.terms[0].masks.items():
                    factor = factors.get(axis) or totals[axis]
                    factors[axis] = narrowed.setdefault((where, axis, id(factor)), restricted(factor, mask))
                condition = None
            filtered = () if condition is None else condition.axes
            factors = {axis: factor for axis, factor in factors.items() if not isinstance(factor, Total)} | {
                axis: factors.get(axis) or totals[axis] for axis in filtered
            }
            factors = {axis: factors[axis] for axis in sorted(factors)}
            own = {axis: grams.get(id(factor)) or factor.gram().factor() for axis, factor in factors.items()}
            grams |= {id(factor): own[axis] for axis, factor in factors.items()}
            products.append(EncodedProduct(factors, own, weight, condition, name))
        return Encoded(self._schema.sizes, tuple(products))
