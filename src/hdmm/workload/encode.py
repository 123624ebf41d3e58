"""ImpVec (paper, Algorithm 1): a workload as a stack of Kronecker products, without writing any of it out.

However a question is written, it is encoded by what it depends on. An attribute on which every predicate counts all
values, or the same multiple of all, is no attribute of the encoded product, and a product that counts nobody has none.
So whoever searches, measures or answers never meets an attribute that does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from operator import is_
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hdmm.errors import InputError, TooLargeError
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
    constant_rows,
)
from hdmm.matrix.compose import filtered_terms, restricted
from hdmm.matrix.gram import GramTerm
from hdmm.memory.limit import memory_limit
from hdmm.memory.workspace import check_answers
from hdmm.schema import Schema
from hdmm.text import bytes_text
from hdmm.workload.conditions import across

if TYPE_CHECKING:
    from hdmm.workload.predicates import Predicates


_ENTRY = 8
"""Bytes of an entry of a matrix that is written out."""
_WRITTEN_ANSWERS = 1 << 22
"""The most answers that are written out to add up their squares."""
_ONCE = np.ones(1, np.int64)
_LIGHTEST = 1e-10
"""The least share of a product in the squared entries of the workload, relative to the largest: one of less weight
counts as this much in searches. Floating point would lose it, and with it the answers that belong to it."""


@final
@dataclass(frozen=True, eq=False)
class EncodedProduct:
    """One product: the matrix on each axis that it depends on, in axis order. On every other axis it is Total.

    A condition across attributes restricts the records that are counted; its axes are among the product's.
    """

    factors: Mapping[int, Matrix]
    grams: Mapping[int, AxisGram]
    weight: Fraction
    condition: Condition | None = None
    name: str = ""
    multiples: Array = field(default_factory=lambda: _ONCE)
    """For a product without axes: how many times the count of all records each of its queries asks, maybe 0 times."""

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
        """The Gram of the product without its weight: one term, or one for each pair of the condition's terms.

        A product that counts nobody has none.
        """
        if self.empty:
            return ()
        return (GramTerm(self.squares, self.grams),) if self.condition is None else self._filtered_terms

    @property
    def total(self) -> EncodedProduct:
        """The product without multiples: itself, or the one count that its queries are multiples of."""
        once = self.multiples is _ONCE or np.array_equal(self.multiples, _ONCE)
        return self if once else replace(self, multiples=_ONCE)

    @property
    def squares(self) -> float:
        """The sum of the squares of the multiples."""
        return float((self.multiples.astype(float) ** 2).sum())

    @property
    def repeats(self) -> Array:
        """How often each query of :attr:`distinct` is asked, as multiples of it."""
        repeats = self.multiples.astype(float)
        for factor in self.factors.values():
            if isinstance(factor, Repeated):
                repeats = np.multiply.outer(repeats, np.multiply.outer(factor.before, factor.after)).reshape(-1)
        return repeats

    @property
    def distinct(self) -> EncodedProduct:
        """The product without repeated rows; itself where there are none."""
        if self.total is self and not any(isinstance(factor, Repeated) for factor in self.factors.values()):
            return self
        inner = {axis: f.inner for axis, f in self.factors.items() if isinstance(f, Repeated)}
        grams = {axis: factor.axis_gram() for axis, factor in inner.items()}
        return replace(self, factors={**self.factors, **inner}, grams={**self.grams, **grams}, multiples=_ONCE)

    def once(self) -> EncodedProduct:
        """The product without repeated rows: they become part of its weight."""
        distinct = self.distinct
        if distinct is self:
            return self
        return replace(distinct, weight=self.weight * Fraction(float(np.linalg.norm(self.repeats))))

    def mean_square(self, known: dict[int, float]) -> float:
        """The mean squared length of a column, without the weight; ``known`` keeps those of Grams, by their address."""
        total = 0.0
        for term in self.terms:
            product = term.coefficient
            for gram in term.factors.values():
                if id(gram) not in known:
                    known[id(gram)] = gram.trace() / gram.size
                product *= known[id(gram)]
            total += product
        return max(total, 0.0)  # the terms of a condition may cancel

    @cached_property
    def _filtered_terms(self) -> tuple[GramTerm, ...]:
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
        if self.condition is None:
            return self._kron(sizes)
        return Filtered(self._kron(sizes), self.condition.moved({axis: place for place, axis in enumerate(sizes)}))

    def _kron(self, sizes: Mapping[int, int]) -> Kron:
        """The product's queries without its condition."""
        factors = [self.factors.get(axis) or Total(size) for axis, size in sizes.items()]
        if self.multiples is not _ONCE:
            factors.insert(0, Dense(self.multiples[:, None]))
        return Kron(factors or [Total(1)])

    def square_sum(self, tables: Array, sizes: Sequence[int]) -> float:
        """The sum of the squares of the answers to tables, each a column over the cells of the product's attributes.

        Few answers are written out. Many are quicker by the Gram matrix, which loses small answers to large tables.
        """
        if self.queries * tables.shape[1] <= _WRITTEN_ANSWERS:
            matrix = self.matrix({axis: sizes[axis] for axis in self.axes})
            return float((matrix.apply(tables).astype(float) ** 2).sum())
        squares = float((tables * Gram(tuple(sizes), self.terms).on(self.axes).apply(tables)).sum())
        return max(squares, 0.0)  # not what rounding leaves of terms that cancel

    def answers(self, counts: Array, sizes: Mapping[int, int]) -> Array:
        """The answers, as floats, to counts of the cells of some attributes, given with their sizes."""
        if self.condition is None:
            return self._kron(sizes).apply_float(counts)
        own = {axis: sizes[axis] for axis in self.axes}
        table = Kron(Identity(n) if axis in own else Total(n) for axis, n in sizes.items()).apply_float(counts)
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
    def sought(self) -> Encoded:
        """The workload as searches see it: products that count somebody, whose weights floating point can compare.

        The Gram is the same, unless some products weigh next to nothing. Where nobody is counted, it is a total.
        """
        asked = [product.once() for product in self.products if not product.empty]
        if not asked:
            if not self.products:
                return self
            return Encoded(self.sizes, (EncodedProduct({}, {}, Fraction(1)),))
        known: dict[int, float] = {}
        shares = [product.mean_square(known) for product in asked]
        heaviest = max(float(p.weight) * sqrt(share) for p, share in zip(asked, shares, strict=True))
        least = [Fraction(heaviest * sqrt(_LIGHTEST / share)) if share else Fraction(0) for share in shares]
        products = [p if p.weight >= w else replace(p, weight=w) for p, w in zip(asked, least, strict=True)]
        unchanged = len(products) == len(self.products) and all(map(is_, products, self.products))
        return self if unchanged else Encoded(self.sizes, tuple(products))

    @property
    def same_gram(self) -> bool:
        """Whether what is sought has the workload's own Gram matrix, so that bounds for one hold for the other."""
        asked = [product for product in self.products if not product.empty]
        pairs = zip(self.sought.products, asked, strict=False)
        return bool(asked) and all(sought.weight == product.once().weight for sought, product in pairs)

    @cached_property
    def compact(self) -> Encoded:
        """What is sought in fewer products, where some can be merged; the products are no longer the user's."""
        from hdmm.workload.compact import compact

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


@final
class Encoder:
    """Encodes products one by one; equal predicate sets on one attribute share one matrix."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[tuple[str, Predicates], tuple[int, Matrix]] = {}
        self._conditions: dict[str, Condition] = {}
        self._written = 0
        self._products: list[tuple[str, list[tuple[str, Predicates]], Fraction, str | None]] = []
        self._constants: dict[int, tuple[Matrix, Array | None]] = {}
        self._grams: dict[int, tuple[Matrix, AxisGram]] = {}

    def add(self, name: str, predicates: Mapping[str, Predicates], weight: Fraction, where: str | None = None) -> None:
        """Check and take one product."""
        keys = list(predicates.items())
        for key in keys:
            if key not in self._known:
                attribute, given = key
                axis = self._schema.axis(attribute)
                try:
                    self._known[key] = (axis, self._matrix(attribute, given))
                except InputError as error:
                    raise type(error)(f"attribute {attribute!r}: {error}") from None
        if where is not None and where not in self._conditions:
            self._conditions[where] = across(where, self._schema)
        self._products.append((name, keys, weight, where))

    def _matrix(self, attribute: str, given: Predicates) -> Matrix:
        """The matrix of a predicate set; refused where all that are written out would not fit together."""
        domain = self._schema[attribute]
        entries = self._written + given.written * domain.size
        if self._written and entries * _ENTRY > memory_limit() // 2:  # of one alone, its own matrix tells
            raise TooLargeError(
                f"with these the predicates that are written out take {bytes_text(entries * _ENTRY)}; "
                f"{bytes_text(memory_limit() // 2)} fit: ask for fewer ranges, values and conditions, declare bins or "
                "a coarser domain, or allow more memory (--memory)"
            )
        self._written = entries
        return given.matrix(attribute, domain)

    def finish(self) -> Encoded:
        """Everything that was added, as matrices."""
        totals = [Total(size) for size in self._schema.sizes]
        narrowed: dict[tuple[str, int, int], Matrix] = {}
        products = []
        for name, keys, weight, where in self._products:
            factors = dict(self._known[key] for key in keys)
            condition = None if where is None else self._conditions[where]
            if condition is not None and where is not None and len(condition.boxes) == 1:
                for axis, mask in condition.boxes[0].masks.items():
                    factor = factors.get(axis) or totals[axis]
                    factors[axis] = narrowed.setdefault((where, axis, id(factor)), restricted(factor, mask))
                condition = None
            if condition is not None:
                filtered = {axis: factors.get(axis) or totals[axis] for axis in condition.axes}
                satisfying, counted = _satisfying(condition, filtered)
                factors, condition = (factors, None) if satisfying == counted else (factors | filtered, condition)
            try:
                own = essential({axis: factors[axis] for axis in sorted(factors)}, condition, self._multiples)
            except TooLargeError as error:
                raise TooLargeError(f"product {name!r}: {error}") from None
            products.append(encoded_product(own, weight, condition, name, self._gram))
        return Encoded(self._schema.sizes, tuple(products))

    def _multiples(self, factor: Matrix) -> Array | None:
        """`constant_rows`, looked up once for each matrix; the matrix is kept so that no other takes its address."""
        if id(factor) not in self._constants:
            self._constants[id(factor)] = (factor, constant_rows(factor))
        return self._constants[id(factor)][1]

    def _gram(self, factor: Matrix) -> AxisGram:
        if id(factor) not in self._grams:
            self._grams[id(factor)] = (factor, factor.axis_gram())
        return self._grams[id(factor)][1]


def essential(
    factors: Mapping[int, Matrix],
    condition: Condition | None,
    multiples_of: Callable[[Matrix], Array | None] = constant_rows,
) -> dict[int, Matrix] | Array:
    """The factors of the attributes on which a product depends; where there are none, its multiples of the total.

    On the other attributes each predicate is a multiple of the total. These multiples repeat the rows of a neighbouring
    attribute, so that all queries stay in their order.
    """
    constants = {axis: _ONCE if isinstance(f, Total) else multiples_of(f) for axis, f in factors.items()}
    if condition is None and constants and all(multiples is None for multiples in constants.values()):
        return dict(factors)
    nobody = any(multiples is not None and not multiples.any() for multiples in constants.values())
    if nobody or (condition is not None and not _satisfying(condition, factors)[0]):
        queries = prod([factor.shape[0] for factor in factors.values()])
        check_answers(queries)
        return np.zeros(queries, np.int64)
    kept: dict[int, Matrix] = {}
    before = _ONCE
    for axis, factor in factors.items():
        multiples = constants[axis]
        if multiples is None or (condition is not None and axis in condition.axes):
            kept[axis] = _repeated(factor if multiples is None else Total(factor.shape[1]), before=before)
            before = _ONCE
        if multiples is not None and kept:
            last = next(reversed(kept))
            kept[last] = _repeated(kept[last], after=multiples)
        elif multiples is not None:
            check_answers(len(before) * len(multiples))
            before = np.multiply.outer(before, multiples).reshape(-1)
    if kept:
        return kept
    return _ONCE if np.array_equal(before, _ONCE) else before


def _repeated(factor: Matrix, before: Array = _ONCE, after: Array = _ONCE) -> Matrix:
    """A factor with its rows repeated; itself where that changes nothing."""
    if np.array_equal(before, _ONCE) and np.array_equal(after, _ONCE):
        return factor
    if isinstance(factor, Repeated):
        before = np.multiply.outer(before, factor.before).reshape(-1)
        after = np.multiply.outer(factor.after, after).reshape(-1)
        factor = factor.inner
    return Repeated(factor, before, after)


def _satisfying(condition: Condition, factors: Mapping[int, Matrix]) -> tuple[int, int]:
    """Of the cells that some query counts, how many satisfy the condition, and how many there are.

    The terms of the condition add up to the first number.
    """
    counted = {axis: factors[axis].column_norms(1) > 0 for axis in condition.axes}
    satisfying = sum(
        term.coefficient * prod([int((cells & term.masks.get(axis, True)).sum()) for axis, cells in counted.items()])
        for term in condition.boxes
    )
    return satisfying, prod([int(cells.sum()) for cells in counted.values()])


def encoded_product(
    own: dict[int, Matrix] | Array,
    weight: Fraction,
    condition: Condition | None = None,
    name: str = "",
    gram_of: Callable[[Matrix], AxisGram] = lambda factor: factor.axis_gram(),
) -> EncodedProduct:
    """A product from what is `essential` of it."""
    if isinstance(own, np.ndarray):
        return EncodedProduct({}, {}, weight, None, name, own)
    return EncodedProduct(own, {axis: gram_of(factor) for axis, factor in own.items()}, weight, condition, name)
