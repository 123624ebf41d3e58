"""How an engine's column is read as codes: by its declared type, which is public, never by the values it holds.

Every rule gives the code that :meth:`Domain.encode` gives for the text of the value. NULL, and NaN in a column of
floats, count as an empty field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import reduce, singledispatch
from itertools import product
from math import inf, nextafter
from operator import or_
from typing import Any, final

from hdmm.data.engine import Engine
from hdmm.errors import DataError
from hdmm.schema import OUTSIDE, Bins, Boolean, Dates, Domain, Integers, Listed, Numeric, Times
from hdmm.schema.domain import EXACT

Value = Any
"""An expression of ibis."""

_INT64 = range(-(2**63), 2**63)
_MAX_DIGITS = 19
"""Digits of an integer of 64 bits."""
_UTC = (None, "UTC", "Etc/UTC", "+00:00")
"""Time zones of columns that can be read: none, or UTC."""
_MAX_SCALE = 19
"""Places of decimals that are compared with integers: both fit into 38 digits."""
_MOST_COMPARED = 10**18
"""Numbers of this size and more are compared with columns of floats only."""


@final
@dataclass(frozen=True)
class Direct:
    """Codes that an expression computes."""

    inside: Callable[[Value], Value]
    """Whether a value is a declared one."""
    code: Callable[[Value], Value]
    """The code of a declared value."""

    def read(self, records: Any, number: int) -> tuple[Value, Value]:
        """Whether a numbered column holds a declared value, and its code if so."""
        column = records[f"r{number}"]
        return self.inside(column), self.code(column)


@final
@dataclass(frozen=True)
class Lookup:
    """Codes that are looked up by a key, in a table of the declared values that the column may hold.

    The table is None if a value can be written in infinitely many ways: then the engine is asked for the column's
    distinct texts.
    """

    key: Callable[[Engine, Value], Value]
    type: str
    table: Mapping[Any, int] | None

    def read(self, records: Any, number: int) -> tuple[Value, Value]:
        """Whether a numbered column holds a declared value, and its code if so; the table has been joined."""
        code = records[f"d{number}"]
        return code.notnull(), code


def reading(name: str, domain: Domain, type: Any) -> Direct | Lookup:
    """How a column of this type is read; refuse a type from which the domain cannot be read exactly."""
    if type.is_string():
        return Lookup(lambda engine, column: engine.bytes_of(engine.trim(column)), "string", _texts(domain))
    if type.is_timestamp():
        check_zone(name, type.timezone)
    rule = _typed(domain, type)
    if rule is None:
        kind = domain.__class__
        whole = "; or declare decimals: true, to read whole numbers" if kind is Integers and _is_real(type) else ""
        raise DataError(
            f"column {name!r} holds {type}, which cannot be read exactly as {kind.__name__} of the schema; cast it to "
            f"{_REMEDIES.get(kind, 'text')} in a view, with TRY_CAST or CASE (one value that does not fit stops a "
            f"plain CAST){whole}"
        )
    return rule


def check_zone(name: str, zone: str | None) -> None:
    """Refuse a column of time stamps in a zone other than UTC: which date they have depends on the zone."""
    if zone not in _UTC:
        raise DataError(
            f"column {name!r} has the time zone {zone}; convert it to dates and times without a zone, as they are to "
            "be counted (in pandas .dt.tz_localize(None), in polars .dt.replace_time_zone(None)), or to UTC"
        )


_REMEDIES: Mapping[Any, str] = {
    Integers: "an integer type",
    Bins: "a number",
    Boolean: "boolean",
    Dates: "a date",
    Times: "a time",
}


@singledispatch
def _typed(domain: Domain, type: Any) -> Direct | Lookup | None:
    """The rule for columns of a type other than text; None if there is none."""
    return None


@_typed.register
def _(domain: Integers, type: Any) -> Direct | None:
    if _is_whole(type):
        return _range(domain.min, domain.max)
    return _whole_numbers(domain, type) if domain.decimals and _is_real(type) else None


@_typed.register
def _(domain: Bins, type: Any) -> Direct | None:
    return _bins(domain, type) if type.is_integer() or type.is_decimal() or type.is_floating() else None


@_typed.register
def _(domain: Boolean, type: Any) -> Direct | None:
    if type.is_boolean():
        return _flags(0, 1)
    return _range(0, 1) if _is_whole(type) else None


@_typed.register
def _(domain: Listed, type: Any) -> Direct | Lookup | None:
    if type.is_boolean():
        false, true = (_declared_or_missing(domain, text) for text in (b"false", b"true"))
        return _flags(false, true)
    return _listed_integers(domain) if _is_whole(type) else None


@_typed.register
def _(domain: Dates, type: Any) -> Direct | Lookup | None:
    if type.is_date() or type.is_timestamp():
        return _dates(domain, lambda column: column.date() if type.is_timestamp() else column)
    return _digits if _is_whole(type) and domain.numeric else None


@_typed.register
def _(domain: Times, type: Any) -> Direct | Lookup | None:
    if type.is_time() or is_unknown_time(type):
        return _times(domain, lambda column: column.notnull())
    if type.is_timestamp():
        return _times(domain, lambda column: column.date().between(_date(date.min), _date(date.max)))
    return _digits if _is_whole(type) and domain.numeric else None


_digits = Lookup(lambda engine, column: engine.bytes_of(column.cast("string")), "string", None)
"""Integers that are read as their decimal texts, such as 20210301."""


def _dates(domain: Dates, date_of: Callable[[Value], Value]) -> Direct:
    """Dates by arithmetic on them. Infinite dates, on which arithmetic fails, are outside, and left out of it."""
    import ibis

    def inside(column: Value) -> Value:
        return date_of(column).between(_date(domain.first), _date(domain.last))

    def code(column: Value) -> Value:
        day = date_of(column)
        return ibis.cases((inside(column), _period(domain, day).cast("int64")))

    return Direct(inside, code)


def _period(domain: Dates, day: Value) -> Value:
    """The cell of a day that lies in the range."""
    first = domain.first
    match domain.by:
        case "day":
            return day.delta(_date(first), unit="day")
        case "week":
            return day.delta(_date(first - timedelta(first.weekday())), unit="day") // 7
        case "month":
            return day.year() * 12 + day.month() - (first.year * 12 + first.month)
        case "quarter":
            return day.year() * 4 + (day.month() - 1) // 3 - (first.year * 4 + (first.month - 1) // 3)
    return day.year() - first.year


def _date(day: date) -> Value:
    import ibis

    return ibis.date(day.year, day.month, day.day)


def _times(domain: Times, known: Callable[[Value], Value]) -> Direct:
    """Times by their hours and minutes, of columns that hold a known time."""
    import ibis

    low, high = (int(ends[at]) for ends, at in zip(domain.bounds, (0, -1), strict=True))
    size, start = domain.minutes, low // domain.minutes

    def minute(column: Value) -> Value:
        return ibis.cases((known(column), column.hour().cast("int64") * 60 + column.minute()))

    return Direct(lambda column: minute(column).between(low, high), lambda column: minute(column) // size - start)


def _range(low: int, high: int) -> Direct:
    """The integers from ``low`` to ``high``."""
    return Direct(lambda column: column.between(low, high), lambda column: column.cast("int64") - low)


def _is_whole(type: Any) -> bool:
    """Whether columns of a type hold integers only."""
    return type.is_integer() or (type.is_decimal() and type.scale == 0)


def is_unknown_time(type: Any) -> bool:
    """Whether a type is DuckDB's TIME_NS, which ibis does not know."""
    return type.is_unknown() and "TIME_NS" in str(type)


def _is_real(type: Any) -> bool:
    """Whether columns of a type hold numbers that may have a fraction; those of most decimals cannot be compared."""
    return type.is_floating() or (type.is_decimal() and (type.scale is None or type.scale <= _MAX_SCALE))


def _whole_numbers(domain: Integers, type: Any) -> Direct:
    """Numbers with fractions, of which only whole ones are values; others never meet a cast, which could fail."""
    import ibis

    below, at_most = _comparisons(type)
    wide = "float64" if type.is_floating() else "decimal" if type.scale is None else f"decimal(38, {type.scale})"

    def number(column: Value) -> Value:
        """The column's value if it is between the ends, else the least one."""
        between = ~below(column, Decimal(domain.min)) & at_most(column, Decimal(domain.max))
        return ibis.cases((between, column.cast(wide)), else_=ibis.literal(domain.min, "int64").cast(wide))

    def inside(column: Value) -> Value:
        between = column.notnull() & ~below(column, Decimal(domain.min)) & at_most(column, Decimal(domain.max))
        return between & (number(column).cast("int64").cast(wide) == number(column))

    return Direct(inside, lambda column: number(column).cast("int64") - domain.min)


def absent(domain: Domain, type: Any, column: Value) -> Value:
    """Whether a column that is not text holds a number that the schema declares as missing."""
    import ibis

    if not domain.missing_texts or not (type.is_integer() or type.is_decimal() or type.is_floating()):
        return ibis.literal(False)
    if isinstance(domain, Numeric):
        numbers = sorted(domain.missing_numbers)
    else:
        numbers = [Decimal(text) for text in domain.missing_texts if _is_number(text)]
    if type.is_floating():
        floats = [float(number) for number in numbers if Decimal(float(number)) == number]
        same = [column.cast("float64") == _double(number) for number in floats]
    else:
        same = [_equal(type, column, number) for number in numbers]
    return reduce(or_, same, ibis.literal(False))


def _equal(type: Any, column: Value, number: Decimal) -> Value:
    """Whether a column of integers or decimals holds a number; never, if columns of the type cannot."""
    below, at_most = _comparisons(type)
    if abs(number) >= _MOST_COMPARED:
        import ibis

        return ibis.literal(False)
    return ~below(column, number) & at_most(column, number)


def empty(type: Any, column: Value) -> Value:
    """Whether a column has no value: NULL, or NaN."""
    return column.isnull() | column.isnan() if type.is_floating() else column.isnull()


def _texts(domain: Domain) -> Mapping[bytes, int] | None:
    """The trimmed texts of all declared values, as bytes; None if a value can be written in infinitely many ways."""
    if isinstance(domain, Listed):
        spellings = domain.spellings
        return None if spellings is None else {text.encode(): code for text, code in spellings.items()}
    if isinstance(domain, Boolean):
        words = (b"false", b"f", b"no", b"0", b"true", b"t", b"yes", b"1")
        cases = [case for word in words for case in set(product(*zip(word.lower(), word.upper(), strict=True)))]
        texts = list(map(bytes, cases))
        return dict(zip(texts, domain.encode(texts).tolist(), strict=True))
    return None


def _listed_integers(domain: Listed) -> Lookup:
    """Integers match the listed values, and the texts for missing ones, that are their decimal texts."""
    texts = [*domain.values, *(text for others in domain.aliases.values() for text in others), *domain.missing_texts]
    numbers = {int(text): _declared_or_missing(domain, text.encode()) for text in texts if _is_number(text)}
    low, high = min(numbers, default=0), max(numbers, default=0)

    def key(engine: Engine, column: Value) -> Value:
        import ibis

        return ibis.cases((column.between(low, high), column.cast("int64")))  # a wider column may not fit

    return Lookup(key, "int64", numbers)


def _declared_or_missing(domain: Domain, text: bytes) -> int:
    """The code of a text, −1 if it is in the cell for other values."""
    code = int(domain.encode([text])[0])
    return OUTSIDE if domain.other and code == domain.declared else code


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MAX_DIGITS:
        return False
    return str(int(text)) == text and int(text) in _INT64


def _flags(false: int, true: int) -> Direct:
    """The codes of false and true; either may be outside."""
    import ibis

    def inside(column: Value) -> Value:
        if OUTSIDE not in (false, true):
            return column.notnull()
        return column.notnull() & ibis.ifelse(column, true != OUTSIDE, false != OUTSIDE)

    return Direct(inside, lambda column: ibis.ifelse(column, true, false))


def _bins(domain: Bins, type: Any) -> Direct:
    """Bins of a number, by exact comparisons with the edges: a binary search written as one expression."""
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
    """``column < edge`` and ``column <= edge``, exact even if columns of the type cannot hold the edge."""
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

    def literal(edge: Decimal, rounding: str) -> Value | None:
        """The edge, rounded to the column's type; None if it is beyond all values of that type."""
        number = edge.quantize(Decimal(1).scaleb(-scale), rounding, EXACT)
        if type.is_decimal() and abs(number) >= Decimal(10) ** (int(type.precision) - scale):
            return None
        return ibis.literal(int(number) if type.is_integer() else number, literal_type)

    def below(column: Value, edge: Decimal) -> Value:
        bound = literal(edge, ROUND_CEILING)
        return ibis.literal(edge > 0) if bound is None else column < bound

    def at_most(column: Value, edge: Decimal) -> Value:
        bound = literal(edge, ROUND_FLOOR)
        return ibis.literal(edge > 0) if bound is None else column <= bound

    return below, at_most


def _float(edge: Decimal, towards: float) -> float:
    """The least double that is not below the edge, or the greatest that is not above it."""
    number = float(edge)
    error = Fraction(number) - Fraction(edge)
    return nextafter(number, towards) if (error < 0 < towards) or (error > 0 > towards) else number


def _double(number: float) -> Value:
    """A double in SQL, exactly: an integer times or over powers of two, since engines read decimals differently."""
    import ibis

    numerator, denominator = number.as_integer_ratio()
    shift = max(numerator.bit_length() - 60, 0)  # only zeros: a double has 53 bits that are not
    quotient = ibis.literal(numerator >> shift, "int64").cast("float64")
    while shift > 0:
        quotient = quotient * ibis.literal(2 ** min(shift, 60), "int64").cast("float64")
        shift -= 60
    while denominator > 1:
        step = min(denominator, 2**60)
        quotient = quotient / ibis.literal(step, "int64").cast("float64")
        denominator //= step
    return quotient
