"""Operands of SQL expressions: constants, columns, and values computed for each cell of one attribute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from hdmm.errors import TooLargeError, WorkloadError
from hdmm.memory.limit import memory_limit
from hdmm.memory.workspace import DENSE_LIMIT
from hdmm.numbers import shown
from hdmm.schema import Bins, Boolean, Comparison, Domain, Integers, Level, Listed, Merged
from hdmm.schema.domain import Codes
from hdmm.schema.text import DECIMAL
from hdmm.text import count_text
from hdmm.workload.scalars import OTHER, Other, Value, compared, number, one_kind, text_of_number
from hdmm.workload.truth import Leaf, Mask, Tree, Truth, truth_of, truth_value

Resolve: TypeAlias = Callable[[str], tuple[str, str | None]]
"""From a column's name to an attribute, and to one of its levels or None."""

MIRROR: dict[Comparison, Comparison] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_MAX_CELLS = DENSE_LIMIT
"""Cells of an attribute, and of all comparisons of a condition, whose outcomes are kept."""
_MAX_COMPARED = 1 << 30
"""Cells of all comparisons of a condition; every value of an IN is one."""
_MAX_COMPUTED = 1 << 22
"""Values that functions and arithmetic compute one by one: some seconds."""
_BYTES_PER_CELL = 64
"""Bytes for each cell of an attribute while a condition on it is decided."""


@final
@dataclass(frozen=True)
class Constant:
    """One value, and the text that a domain compares it by; None if it has none."""

    value: Value
    text: str | None

    @staticmethod
    def of(value: Value) -> Constant:
        """A value that was computed."""
        if isinstance(value, bool):
            return Constant(value, "true" if value else "false")
        return Constant(value, value if isinstance(value, str) else _number_text(value))


@final
@dataclass(frozen=True)
class Column:
    """An attribute, or one of its levels."""

    attribute: str
    level: str | None

    @property
    def name(self) -> str:
        """The name that it is asked for by."""
        return self.level or self.attribute


@final
@dataclass(frozen=True, eq=False)
class Computed:
    """A value for each cell of an attribute."""

    attribute: str
    values: Sequence[Value]


Operand: TypeAlias = Constant | Column | Computed


def _number_text(value: Value) -> str | None:
    return None if value is None or isinstance(value, (Other, str)) else text_of_number(value)


def check_cells(name: str, domain: Domain) -> None:
    """Refuse an attribute that has too many cells to keep something for each of them."""
    most = min(memory_limit() // _BYTES_PER_CELL, _MAX_CELLS)
    if domain.size > most:
        raise TooLargeError(
            f"{name!r} has {count_text(domain.size)} values, and these predicates look at each of them; about "
            f"{count_text(most)} values fit: declare bins or a coarser domain"
        )


@final
class Cells:
    """The attributes that a condition is about, and how much work their cells have taken so far."""

    def __init__(self, text: str, resolve: Resolve, domains: Mapping[str, Domain]) -> None:
        self._text = text
        self._resolve = resolve
        self._domains = domains
        self._kept = self._compared = self._computed = 0

    def column(self, name: str) -> Column:
        """The attribute or level of a name."""
        return Column(*self._resolve(name))

    def domain(self, column: Column) -> Domain:
        """The domain of a column."""
        return self._level(column)[0]

    def _level(self, column: Column) -> tuple[Domain, Codes | None]:
        """The domain of a column, and the place there of each of the attribute's cells if it is a level."""
        domain = self._domains[column.attribute]
        if column.level is None:
            return domain, None
        level: Level = domain.levels[column.level]
        return level.domain, level.codes

    def attribute_of(self, operands: Sequence[Operand | Tree]) -> str | None:
        """The attribute that the operands are about, None if they are constants; refuse several."""
        names = dict.fromkeys(part.attribute for part in operands if isinstance(part, (Column, Computed, Leaf)))
        if len(names) > 1:
            listed = " and ".join(map(repr, names))
            raise WorkloadError(
                f"{listed} are attributes of their own, and this looks at both; compare each with values, or merge "
                "them into one attribute"
            )
        return next(iter(names), None)

    def size(self, attribute: str) -> int:
        """How many cells an attribute has."""
        return self._domains[attribute].size

    def values(self, operand: Operand, attribute: str) -> Sequence[Value]:
        """The value of an operand in every cell of an attribute."""
        match operand:
            case Constant():
                return [operand.value] * self.size(attribute)
            case Computed():
                return operand.values
        self.compute(attribute)
        domain, codes = self._level(operand)
        values = [*_declared(operand.name, domain), *[OTHER] * domain.other, *[None] * bool(domain.missing)]
        return values if codes is None else [values[code] for code in codes.tolist()]

    def numbers(self, operand: Operand) -> Operand:
        """An operand of arithmetic: listed values that are all numbers count as these."""
        if not isinstance(operand, Column):
            return operand
        domain = self.domain(operand)
        if not isinstance(domain, Listed) or not all(DECIMAL.fullmatch(value.encode()) for value in domain.values):
            return operand
        values = self.values(operand, operand.attribute)
        return Computed(
            operand.attribute,
            one_kind([number(value) if isinstance(value, str) else value for value in values], operand.name),
        )

    def unknowns(self, attribute: str, truth: Truth) -> list[Value]:
        """Truth values as values: what is unknown is NULL, and OTHER in the cell "other"."""
        domain = self._domains[attribute]
        values: list[Value] = [None if not entry else entry > 0 for entry in truth.tolist()]
        if domain.other and values[domain.declared] is None:
            values[domain.declared] = OTHER
        return values

    def nulls(self, operand: Operand, attribute: str) -> Mask:
        """The cells in which an operand is NULL."""
        if isinstance(operand, Column):
            domain, codes = self._level(operand)
            mask = np.zeros(domain.size, bool)
            mask[domain.size - bool(domain.missing) :] = True
            return mask if codes is None else mask[codes]
        return np.array([value is None for value in self.values(operand, attribute)])

    def compare(self, operator: Comparison, left: Operand, right: Operand) -> Tree:
        """Whether ``left operator right``, for every cell of their attribute."""
        attribute = self.attribute_of((left, right))
        if isinstance(left, Constant) and isinstance(right, Constant):
            return compared(operator, left.value, right.value)
        if isinstance(left, Constant):
            left, right, operator = right, left, MIRROR[operator]
        if isinstance(right, Constant) and right.value is None:
            return None
        assert attribute is not None
        if isinstance(left, Column) and isinstance(right, Constant) and right.text is not None:
            return self.any_of(operator, left, [right.text])
        self.compute(attribute)
        pairs = zip(self.values(left, attribute), self.values(right, attribute), strict=True)
        truth = [truth_value(compared(operator, *pair)) for pair in pairs]
        return self.leaf(attribute, np.array(truth, np.int8))

    def any_of(self, operator: Comparison, column: Column, texts: Sequence[str]) -> Leaf:
        """Whether a column compares so with some of the texts, by its domain's rules."""
        self._keep(column.attribute, len(texts))
        domain, codes = self._level(column)
        true = np.zeros(domain.size, bool)
        decided = operator in ("=", "<>")
        for text in texts:
            cells = domain.compare(operator, text)
            true[: domain.declared] |= cells
            # Other values differ from every declared one; from what is not declared they may differ or not.
            decided = decided and bool((cells if operator == "=" else ~cells).any())
        false = ~true
        false[domain.declared :] = False
        if domain.other and decided:
            true[domain.declared], false[domain.declared] = operator == "<>", operator == "="
        truth = truth_of(true, false)
        return Leaf(column.attribute, truth if codes is None else truth[codes])

    def leaf(self, attribute: str, truth: Truth) -> Leaf:
        """A condition that was decided for every cell."""
        self._keep(attribute, 1)
        return Leaf(attribute, truth)

    def compute(self, attribute: str) -> None:
        """Refuse to compute more values one by one than fit into some seconds."""
        check_cells(attribute, self._domains[attribute])
        self._computed += self.size(attribute)
        if self._computed > _MAX_COMPUTED:
            raise TooLargeError(
                f"functions and arithmetic look at each of the {count_text(self.size(attribute))} values of "
                f"{attribute!r}, too often; compare the attribute itself, or declare a level"
            )

    def _keep(self, attribute: str, comparisons: int) -> None:
        """Refuse more comparisons than can be kept and made."""
        domain = self._domains[attribute]
        check_cells(attribute, domain)
        self._kept += domain.size
        self._compared += domain.size * comparisons
        if self._kept > _MAX_CELLS or self._compared > _MAX_COMPARED:
            raise TooLargeError(
                f"condition {shown(self._text)}: it compares {attribute!r}, of {count_text(domain.size)} values, too "
                f"often; about {count_text(_MAX_CELLS // domain.size)} comparisons fit: use ranges (BETWEEN) or a level"
            )


def _declared(name: str, domain: Domain) -> Sequence[Value]:
    """The values of the declared cells, for those kinds of attributes that have one in each."""
    match domain:
        case Listed():
            return domain.values
        case Integers():
            return range(domain.min, domain.max + 1)
        case Boolean():
            return (False, True)
        case Bins():
            raise WorkloadError(f"{name!r} is in bins, so nothing is computed from it; compare it with an edge")
        case Merged():
            raise WorkloadError(f"{name!r} is merged, so nothing is computed from it; use one of its parts")
    levels = f"; use one of its levels {', '.join(map(repr, domain.levels))}" if domain.levels else ""
    raise WorkloadError(f"nothing is computed from {name!r}; compare it with values{levels}")
