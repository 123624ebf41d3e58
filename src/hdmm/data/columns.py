"""How a column of an engine is read as codes: by its declared type, which is public, never by what it holds.

Every rule gives what :meth:`Domain.encode` gives for the text of the value. NULL, and NaN in a column of floats, are
what an empty field is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from itertools import product
from math import inf, nextafter
from typing import Any, final

from hdmm.data.engine import Engine
from hdmm.errors import DataError
from hdmm.schema import OUTSIDE, Bins, Boolean, Domain, Integers, Listed
from hdmm.schema.domain import EXACT

Value = Any
"""An expression of ibis."""

_INT64 = range(-(2**63), 2**63)


@final
@dataclass(frozen=True)
class Direct:
    """Codes that an expression computes: whether a value is a declared one, and its code if so."""

    inside: Callable[[Value], Value]
    code: Callable[[Value], Value]


@final
@dataclass(frozen=True)
class Lookup:
    """Codes that are looked up by a key, in a table of those declared values that the column may hold.

    The table is None where the texts of a value are not a finite set: the column's own texts must be asked for.
    """

    key: Callable[[Engine, Value], Value]
    type: str
    table: Mapping[Any, int] | None


def reading(name: str, domain: Domain, type: Any) -> Direct | Lookup:
    """How a column of this type is read; a type from which the domain cannot be read exactly is refused."""
    whole = type.is_integer() or (type.is_decimal() and type.scale == 0)
    if type.is_string():
        return Lookup(lambda engine, column: engine.bytes_of(engine.trim(column)), "string", _texts(domain))
    if isinstance(domain, Integers) and whole:
        low, high = domain.min, domain.max
        return Direct(lambda column: column.between(low, high), lambda column: column.cast("int64") - low)
    if isinstance(domain, Bins) and (whole or type.is_floating() or type.is_decimal()):
        return _bins(domain, type)
    if isinstance(domain, Boolean) and type.is_boolean():
        return _flags(0, 1)
    if isinstance(domain, Boolean) and whole:
        return Direct(lambda column: column.between(0, 1), lambda column: column.cast("int8"))
    if isinstance(domain, Listed) and type.is_boolean():
        codes = {value: code for code, value in enumerate(domain.values)}
        return _flags(codes.get("false", OUTSIDE), codes.get("true", OUTSIDE))
    if isinstance(domain, Listed) and whole:
        return _listed_integers(domain)
    remedy = {Integers: "an integer type", Bins: "a number", Boolean: "boolean"}.get(domain.__class__, "text")
    raise DataError(
        f"column {name!r} holds {type}, which cannot be read exactly as {domain.__class__.__name__} of the schema; "
        f"cast it to {remedy} in a view, with TRY_CAST or CASE (one value that does not fit stops a plain CAST)"
    )


def empty(type: Any, column: Value) -> Value:
    """Whether there is no value."""
    return column.isnull() | column.isnan() if type.is_floating() else column.isnull()


def _texts(domain: Domain) -> Mapping[bytes, int] | None:
    """The texts of all declared values, where they are finite: their bytes after trimming."""
    if isinstance(domain, Listed):
        return {value.encode(): code for code, value in enumerate(domain.values)}
    if isinstance(domain, Boolean):
        words = (b"false", b"f", b"no", b"0", b"true", b"t", b"yes", b"1")
        cases = (bytes(case) for word in words for case in set(product(*zip(word.lower(), word.upper(), strict=True))))
        texts = list(cases)
        return dict(zip(texts, domain.encode(texts).tolist(), strict=True))
    return None


def _listed_integers(domain: Listed) -> Lookup:
    """Integers match the values that are their decimal texts."""
    numbers = {int(text): code for code, text in enumerate(domain.values) if _is_number(text)}
    low, high = min(numbers, default=0), max(numbers, default=0)

    def key(engine: Engine, column: Value) -> Value:
        import ibis

        return ibis.cases((column.between(low, high), column.cast("int64")))  # a wider column may not fit

    return Lookup(key, "int64", numbers)


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(text)) == text and int(text) in _INT64


def _flags(false: int, true: int) -> Direct:
    """The codes of the two truth values, of which one may be outside."""
    import ibis

    def inside(column: Value) -> Value:
        if OUTSIDE not in (false, true):
            return column.notnull()
        return column.notnull() & ibis.ifelse(column, true != OUTSIDE, false != OUTSIDE)

    return Direct(inside, lambda column: ibis.ifelse(column, true, false))


def _bins(domain: Bins, type: Any) -> Direct:
    """Bins of a number, by comparisons that are exact."""
    import ibis

    below, at_most = _comparisons(type)

    def inside(column: Value) -> Value:
        last = at_most(column, domain.edges[-1]) if domain.closed else below(column, domain.edges[-1])
        return column.notnull() & ~below(column, domain.edges[0]) & last

    def code(column: Value, first: int = 0, last: int = domain.declared - 1) -> Value:
        if first == last:
            return ibis.literal(first, "int32")
        middle = (first + last + 1) // 2
        lower, upper = code(column, first, middle - 1), code(column, middle, last)
        return ibis.ifelse(below(column, domain.edges[middle]), lower, upper)

    return Direct(inside, code)


Compare = Callable[[Value, Decimal], Value]


def _comparisons(type: Any) -> tuple[Compare, Compare]:
    """``column < edge`` and ``column <= edge`` for columns of a type, without rounding the edge to that type."""
    import ibis

    if type.is_floating():
        return (
            lambda column, edge: column.cast("float64") < _double(_float(edge, inf)),
            lambda column, edge: column.cast("float64") <= _double(_float(edge, -inf)),
        )
    if not type.is_integer() and type.scale is None:  # decimals of any length
        return lambda column, edge: column < ibis.literal(edge), lambda column, edge: column <= ibis.literal(edge)
    scale = 0 if type.is_integer() else int(type.scale)
    literal_type = "int64" if type.is_integer() else type

    def rounded(edge: Decimal, rounding: str) -> Value | None:
        """The edge in the column's own type, None where it is beyond all values of that type."""
        found = edge.quantize(Decimal(1).scaleb(-scale), rounding, EXACT)
        if type.is_decimal() and abs(found) >= Decimal(10) ** (int(type.precision) - scale):
            return None
        return ibis.literal(int(found) if type.is_integer() else found, literal_type)

    def below(column: Value, edge: Decimal) -> Value:
        other = rounded(edge, ROUND_CEILING)
        return ibis.literal(edge > 0) if other is None else column < other

    def at_most(column: Value, edge: Decimal) -> Value:
        other = rounded(edge, ROUND_FLOOR)
        return ibis.literal(edge > 0) if other is None else column <= other

    return below, at_most


def _float(edge: Decimal, towards: float) -> float:
    """The least double that is not below the edge, or the greatest that is not above it."""
    number = float(edge)
    off = Fraction(number) - Fraction(edge)
    return nextafter(number, towards) if (off < 0 < towards) or (off > 0 > towards) else number


def _double(number: float) -> Value:
    """A double in SQL, exactly: an integer divided by powers of two, since engines differ in how they read decimals."""
    import ibis

    numerator, denominator = number.as_integer_ratio()
    made = ibis.literal(numerator, "int64").cast("float64")
    while denominator > 1:
        step = min(denominator, 2**60)
        made = made / ibis.literal(step, "int64").cast("float64")
        denominator //= step
    return made
