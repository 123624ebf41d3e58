"""Workloads: named, weighted unions of products of predicate sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias, final

from hdmm.errors import InputError, TooLargeError, WorkloadError, nearest
from hdmm.numbers import NumberError, fraction, shown
from hdmm.schema import RESERVED, Schema, writable
from hdmm.syntax import example, given
from hdmm.workload.clauses import columns_of
from hdmm.workload.encode import Encoder
from hdmm.workload.encoded import Encoded
from hdmm.workload.predicates import Predicates
from hdmm.workload.values import Total

Weight: TypeAlias = int | float | Fraction | Decimal | str

MAX_PRODUCTS = 1 << 18
"""Products of a workload: each is a table with its name, and a file of a release."""
_MIN_WEIGHT = Fraction(1, 10**30)
"""The least weight; one over it is the largest."""
_ONE = Fraction(1)


@final
@dataclass(frozen=True)
class Product:
    """Every conjunction of one predicate per attribute; an attribute that is not named is Total.

    A weight w multiplies the product's rows: its squared error counts w². With ``where``, an SQL condition on any
    attributes, only the records that satisfy it are counted.

    Arguments:
        name: A name of its own.
        predicates: Predicate sets by attribute.
        weight: A weight w multiplies the rows: squared errors count w².
        where: An SQL condition on any attributes: only the records that satisfy it are counted.
    """

    name: str
    predicates: Mapping[str, Predicates] = field(default_factory=dict)
    weight: Fraction = Fraction(1)
    where: str | None = None

    def __init__(
        self,
        name: str,
        predicates: Mapping[str, Predicates] | None = None,
        weight: Weight = 1,
        where: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip() or "\n" in name or not writable(name):
            wrong = given("name", repr(name))
            raise WorkloadError(f"{wrong}: a product needs a name on one line, for example 'by sex and age'")
        if predicates is not None and not isinstance(predicates, Mapping):
            raise WorkloadError(f"product {name!r}: {predicates!r} is not a mapping from attributes to predicate sets")
        for attribute, chosen in (predicates or {}).items():
            if not isinstance(attribute, str):
                raise WorkloadError(f"product {name!r}, attribute {attribute!r}: an attribute's name is text")
            if not isinstance(chosen, Predicates):
                raise WorkloadError(
                    f"product {name!r}, attribute {attribute!r}: {chosen!r} is not a predicate set; "
                    "use for example Identity() or Where('age >= 18')"
                )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "predicates", MappingProxyType(dict(predicates or {})))
        object.__setattr__(self, "weight", _weight(name, weight))
        if where is not None and not isinstance(where, str):
            raise WorkloadError(
                f"product {name!r}, where={where!r}: expected an SQL condition as text, for example "
                "\"sex = 'F' OR age >= 65\""
            )
        object.__setattr__(self, "where", where)

    @property
    def asked(self) -> list[str]:
        """The attributes that it has predicates on, other than Total."""
        return [name for name, chosen in self.predicates.items() if not isinstance(chosen, Total)]


def named_in(condition: str, schema: Schema) -> set[str]:
    """The attributes that a condition names, themselves or by a level or a part."""
    return {schema.resolve(column)[0] for column in columns_of(condition)}


@final
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Workload:
    """The questions: a schema and named products, in order.

    >>> import hdmm
    >>> person = hdmm.Schema(sex=["F", "M"], age=range(115))
    >>> w = hdmm.Workload(person).add("by sex", sex=hdmm.Identity())
    >>> w = w.add("adults", {"age": hdmm.Where("age >= 18")}, weight=2)
    >>> w.query_count
    3

    Arguments:
        schema: The attributes of the records.
        products: The products; more can be added one by one.
    """

    schema: Schema
    products: tuple[Product, ...]
    _encoder: Encoder

    def __init__(self, schema: Schema, products: Iterable[Product] = ()) -> None:
        if not isinstance(schema, Schema):
            raise WorkloadError(f"schema={schema!r}: expected a Schema")
        entries = tuple(islice(products, MAX_PRODUCTS + 1))
        if len(entries) > MAX_PRODUCTS:
            raise TooLargeError(
                f"products: more than {MAX_PRODUCTS:,} are too many for one workload; ask for fewer, or for marginals "
                "of fewer attributes"
            )
        encoder = Encoder(schema)
        names = set()
        for product in entries:
            if not isinstance(product, Product):
                raise WorkloadError(f"products: {product!r} is not a Product")
            if product.name in names:
                raise WorkloadError(f"product {product.name!r} is named twice; give each product its own name")
            names.add(product.name)
            try:
                _check_titles(product)
                encoder.add(product.name, product.predicates, product.weight, product.where)
            except InputError as error:
                raise type(error)(f"product {product.name!r}: {error}") from None
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "products", entries)
        object.__setattr__(self, "_encoder", encoder)

    def add(
        self,
        name: str,
        product: Mapping[str, Predicates] | None = None,
        /,
        *,
        weight: Weight = 1,
        where: str | None = None,
        **attributes: Predicates,
    ) -> Workload:
        """A workload with one more product; attributes whose names are not identifiers go into the mapping.

        ``where`` is an SQL condition on any attributes: only the records that satisfy it are counted.

        Arguments:
            name: A name of its own.
            product: Predicate sets by attribute, for names that are not identifiers.
            weight: How much its errors count: a weight w multiplies squared errors by w².
            where: An SQL condition on any attributes: only the records that satisfy it are counted.
            attributes: Predicate sets by attribute. An attribute that is not named is added up.
        """
        if product is not None and not isinstance(product, Mapping):
            raise WorkloadError(f"product {name!r}: {product!r} is not a mapping from attributes to predicate sets")
        for attribute in attributes:
            if attribute in (product or {}):
                raise WorkloadError(f"product {name!r}: attribute {attribute!r} is given twice")
        predicates = {**(product or {}), **attributes}
        return Workload(self.schema, (*self.products, Product(name, predicates, weight, where)))

    def add_sql(self, name: str, sql: str, /, *, weight: Weight = 1) -> Workload:
        """A workload with the products of one or more SQL statements, ``SELECT …, COUNT(*) FROM t WHERE … GROUP BY …``.

        >>> import hdmm
        >>> person = hdmm.Schema(sex=["F", "M"], age=range(115), hispanic=[False, True])
        >>> sql = "SELECT sex, age, COUNT(*) FROM person WHERE hispanic GROUP BY sex, age"
        >>> hdmm.Workload(person).add_sql("hispanic", sql).query_count
        230

        Arguments:
            name: The name of the product; several products are numbered.
            sql: One or more statements, separated by semicolons. The table may have any name.
            weight: How much the errors count, as for :meth:`add`.
        """
        from hdmm.workload.sql import read_sql

        try:
            products = read_sql(self.schema, name, sql, weight)
        except InputError as error:
            raise type(error)(f"product {name!r}: {error}") from None
        return Workload(self.schema, (*self.products, *products))

    def __add__(self, other: Workload) -> Workload:
        if not isinstance(other, Workload):
            return NotImplemented
        if other.schema != self.schema:
            raise WorkloadError("workloads over different schemas do not add; use one Schema for both")
        return Workload(self.schema, self.products + other.products)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and (self.schema, self.products) == (other.schema, other.products)

    def __hash__(self) -> int:
        return hash((self.schema, tuple(product.name for product in self.products)))

    def __repr__(self) -> str:
        return f"Workload({len(self.products)} products, {self.query_count} queries, {self.schema!r})"

    @cached_property
    def encoded(self) -> Encoded:
        """The workload as an implicit matrix: a stack of Kronecker products (the paper's ImpVec)."""
        return self._encoder.finish()

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The attributes that some product has predicates on, other than Total, or names in its condition.

        Only these decide which records count; the columns of all others need not exist.
        """
        names = {name for product in self.products for name in product.asked}
        for condition in {product.where for product in self.products if product.where is not None}:
            names |= named_in(condition, self.schema)
        return tuple(name for name in self.schema if name in names)

    @property
    def query_count(self) -> int:
        """How many counting queries there are in all."""
        return self.encoded.query_count

    @cached_property
    def _places(self) -> dict[str, int]:
        return {product.name: place for place, product in enumerate(self.products)}

    def product(self, name: str) -> Product:
        """The product of that name."""
        return self.products[self.place(name)]

    def place(self, name: str) -> int:
        """The position of the product of that name; an unknown name is refused with the nearest known one."""
        if name in self._places:
            return self._places[name]
        raise WorkloadError(f"product {name!r} is not in the workload{nearest(name, (p.name for p in self.products))}")


def _check_titles(product: Product) -> None:
    """Refuse a product whose table would have two columns of one name."""
    titles = list(RESERVED)
    for attribute, predicates in product.predicates.items():
        titles += predicates.titles(attribute)
    if len(set(titles)) < len(titles):
        twice = next(title for title in titles if titles.count(title) > 1)
        raise WorkloadError(f"its table would have two columns {twice!r}; name one of them otherwise (AS …)")


def _weight(name: str, weight: Weight) -> Fraction:
    if type(weight) is int and weight == 1:
        return _ONE
    try:
        exact = fraction(weight) if not isinstance(weight, bool) else Fraction(0)
    except NumberError as error:
        reason = str(error)
    else:
        if _MIN_WEIGHT <= exact <= 1 / _MIN_WEIGHT:
            return exact
        reason = "weights are between 1e-30 and 1e30"
    remedy = f"expected a positive number, for example {example('weight', 2)}; {reason}"
    raise WorkloadError(f"product {name!r}, {given('weight', shown(weight))}: {remedy}")
