"""ImpVec (paper, Algorithm 1): a workload as a stack of Kronecker products, without writing any of it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar, final

from hdmm.errors import InputError, TooLargeError
from hdmm.matrix import Condition, Matrix, Total, constant_rows
from hdmm.matrix.compose import restricted
from hdmm.memory.limit import memory_limit, more_memory
from hdmm.schema import Schema
from hdmm.text import bytes_text
from hdmm.workload.conditions import across
from hdmm.workload.encoded import Encoded
from hdmm.workload.essential import essential_product, satisfying_cells

if TYPE_CHECKING:
    from hdmm.workload.predicates import Predicates

_ENTRY = 8
"""Bytes of an entry of a matrix that is written out."""

Result = TypeVar("Result")


@final
class Encoder:
    """Encodes products one by one; equal predicate sets on one attribute share one matrix."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._totals = [Total(size) for size in schema.sizes]
        self._factors: dict[tuple[str, Predicates], tuple[int, Matrix]] = {}
        self._conditions: dict[str, Condition] = {}
        self._narrowed: dict[tuple[str, int, Matrix], Matrix] = {}
        self._written = 0
        self._products: list[tuple[str, list[tuple[str, Predicates]], Fraction, str | None]] = []

    def add(self, name: str, predicates: Mapping[str, Predicates], weight: Fraction, where: str | None = None) -> None:
        """Check and take one product."""
        keys = list(predicates.items())
        for attribute, chosen in keys:
            if (attribute, chosen) not in self._factors:
                axis = self._schema.axis(attribute)
                try:
                    self._factors[attribute, chosen] = (axis, self._matrix(attribute, chosen))
                except InputError as error:
                    raise type(error)(f"attribute {attribute!r}: {error}") from None
        if where is not None and where not in self._conditions:
            self._conditions[where] = across(where, self._schema)
        self._products.append((name, keys, weight, where))

    def _matrix(self, attribute: str, predicates: Predicates) -> Matrix:
        """The matrix of a predicate set; refused if all that are written out would not fit together."""
        domain = self._schema[attribute]
        entries = self._written + predicates.written(domain.size) * domain.size
        if self._written and entries * _ENTRY > memory_limit() // 2:  # one alone is checked when it is written out
            raise TooLargeError(
                f"with these the predicates that are written out take {bytes_text(entries * _ENTRY)}; "
                f"{bytes_text(memory_limit() // 2)} fit: ask for fewer ranges, values and conditions, declare bins or "
                f"a coarser domain{more_memory()}"
            )
        self._written = entries
        return predicates.matrix(attribute, domain)

    def finish(self) -> Encoded:
        """Everything that was added, as matrices."""
        multiples_of, gram_of = _once_for_each(constant_rows), _once_for_each(Matrix.axis_gram)
        products = []
        for name, keys, weight, where in self._products:
            factors, condition = self._restricted(dict(self._factors[key] for key in keys), where)
            ordered = {axis: factors[axis] for axis in sorted(factors)}
            try:
                products.append(essential_product(ordered, condition, weight, name, multiples_of, gram_of))
            except TooLargeError as error:
                raise TooLargeError(f"product {name!r}: {error}") from None
        return Encoded(self._schema.sizes, tuple(products), self._schema.names)

    def _restricted(self, factors: dict[int, Matrix], where: str | None) -> tuple[dict[int, Matrix], Condition | None]:
        """The factors under a condition, and the condition unless it is part of them or always holds."""
        if where is None:
            return factors, None
        condition = self._conditions[where]
        filtered = {axis: factors.get(axis) or self._totals[axis] for axis in condition.axes}
        if len(condition.boxes) == 1:
            for axis, mask in condition.boxes[0].masks.items():
                key = (where, axis, filtered[axis])
                filtered[axis] = self._narrowed.setdefault(key, restricted(filtered[axis], mask))
            return factors | filtered, None
        satisfying, counted = satisfying_cells(condition, filtered)
        return (factors, None) if satisfying == counted else (factors | filtered, condition)


def _once_for_each(function: Callable[[Matrix], Result]) -> Callable[[Matrix], Result]:
    """A function that is computed once for each matrix, which is kept so that no other takes its `id`."""
    results: dict[int, tuple[Matrix, Result]] = {}

    def cached(matrix: Matrix) -> Result:
        if id(matrix) not in results:
            results[id(matrix)] = (matrix, function(matrix))
        return results[id(matrix)][1]

    return cached
