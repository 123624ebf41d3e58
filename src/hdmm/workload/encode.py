"""ImpVec (paper, Algorithm 1): a workload as a stack of Kronecker products, without writing any of it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, final

from hdmm.errors import InputError
from hdmm.matrix import Factor, Gram, Kron, Matrix, Stack
from hdmm.matrix import Total as TotalMatrix
from hdmm.matrix.gram import Term
from hdmm.schema import Schema

if TYPE_CHECKING:
    from hdmm.workload.predicates import Predicates


@final
@dataclass(frozen=True, eq=False)
class EncodedProduct:
    """One product: the matrix on each axis that it touches, in axis order. On every other axis it is Total."""

    factors: Mapping[int, Matrix]
    grams: Mapping[int, Factor]
    weight: Fraction

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that the product touches."""
        return tuple(self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many predicates there are on each axis that the product touches."""
        return tuple(factor.shape[0] for factor in self.factors.values())

    @property
    def queries(self) -> int:
        """How many queries the product holds."""
        return prod(self.shape)


@final
@dataclass(frozen=True, eq=False)
class Encoded:
    """A workload as matrices: the sizes of the attributes, and the products."""

    sizes: tuple[int, ...]
    products: tuple[EncodedProduct, ...]

    @property
    def query_count(self) -> int:
        """How many queries there are in all."""
        return sum(product.queries for product in self.products)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that any product touches."""
        return tuple(sorted({axis for product in self.products for axis in product.factors}))

    def kron(self, product: EncodedProduct) -> Kron:
        """A product's matrix over the full domain."""
        return Kron(product.factors.get(axis) or TotalMatrix(size) for axis, size in enumerate(self.sizes))

    def matrix(self) -> Stack:
        """The whole workload's matrix over the full domain, weights included."""
        weights = [p.weight.numerator if p.weight.denominator == 1 else p.weight for p in self.products]
        return Stack([self.kron(product) for product in self.products], weights)

    def gram(self) -> Gram:
        """The Gram matrix WᵀW of the weighted workload."""
        return Gram(self.sizes, tuple(Term(float(p.weight) ** 2, p.grams) for p in self.products))


@final
class Encoder:
    """Encodes products one by one; equal predicate sets on one attribute share one matrix."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[tuple[str, Predicates], tuple[int, Matrix]] = {}
        self._products: list[tuple[list[tuple[str, Predicates]], Fraction]] = []

    def add(self, predicates: Mapping[str, Predicates], weight: Fraction) -> None:
        """Check and take one product."""
        keys = list(predicates.items())
        for key in keys:
            if key not in self._known:
                name, given = key
                axis = self._schema.axis(name)
                try:
                    self._known[key] = (axis, given.matrix(name, self._schema[name]))
                except InputError as error:
                    raise type(error)(f"attribute {name!r}: {error}") from None
        self._products.append((keys, weight))

    def finish(self) -> Encoded:
        """Everything that was added, as matrices."""
        grams: dict[tuple[str, Predicates], Factor] = {}
        products = []
        for keys, weight in self._products:
            touched = []
            for key in keys:
                axis, matrix = self._known[key]
                if isinstance(matrix, TotalMatrix):
                    continue
                if key not in grams:
                    grams[key] = matrix.gram().factor()
                touched.append((axis, matrix, grams[key]))
            touched.sort(key=lambda item: item[0])
            factors = {axis: matrix for axis, matrix, _ in touched}
            products.append(EncodedProduct(factors, {axis: gram for axis, _, gram in touched}, weight))
        return Encoded(self._schema.sizes, tuple(products))
