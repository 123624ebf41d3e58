"""Values in SQL expressions and what is computed from them, exactly: integers, decimals, texts and truth values.

A Python integer is an integer of SQL, a Fraction a decimal, None is NULL. OTHER stands for the values that the cell
"other" counts: what they are is not known, so nothing can be computed from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor, trunc
from operator import eq, ge, gt, le, lt, ne
from typing import Final, TypeAlias, final

from hdmm.errors import WorkloadError
from hdmm.schema import Comparison
from hdmm.schema.domain import number_of
from hdmm.schema.text import INTEGER


@final
class Other:
    """The type of OTHER."""

    def __repr__(self) -> str:
        return "OTHER"


OTHER: Final = Other()
Known: TypeAlias = bool | int | Fraction | str
Value: TypeAlias = Known | Other | None

_COMPARE: dict[Comparison, Callable[[Known, Known], bool]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_MAX_NUMBER = 10**40
"""Numerators and denominators of what is computed; beyond it, arithmetic would become slow."""


def number(text: str) -> int | Fraction:
    """The integer or decimal that a text stands for."""
    exact = number_of(text)  # refuses a text of millions of digits before anything is computed
    return int(exact) if INTEGER.fullmatch(text.strip().encode()) else Fraction(exact)


def compared(operator: Comparison, left: Value, right: Value) -> bool | None:
    """Whether ``left operator right``; None if it is unknown."""
    if left is None or right is None or isinstance(left, Other) or isinstance(right, Other):
        return None
    if isinstance(left, str) != isinstance(right, str) and not isinstance(left, bool) and not isinstance(right, bool):
        left, right = (number(side) if isinstance(side, str) else side for side in (left, right))
    if _kind(left) != _kind(right):
        raise WorkloadError(f"a {_kind(left)} is compared with a {_kind(right)}; compare values of one kind")
    if _kind(left) != "number" and operator not in ("=", "<>"):
        raise WorkloadError(
            f"'{operator}' does not order computed texts or truth values; use = or <>, or compare the attribute itself"
        )
    return _COMPARE[operator](left, right)


def _kind(value: Known) -> str:
    return "truth value" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def one_kind(values: Sequence[Value], what: str) -> list[Value]:
    """Values as they share a column: integers among decimals become decimals; numbers among texts are refused."""
    known = [value for value in values if value is not None and not isinstance(value, Other)]
    kinds = sorted({_kind(value) for value in known})
    if len(kinds) > 1:
        raise WorkloadError(
            f"{what} gives a {kinds[0]} in one case and a {kinds[1]} in another; give one kind of value"
        )
    if not any(isinstance(value, Fraction) for value in known):
        return list(values)
    return [Fraction(value) if isinstance(value, int) else value for value in values]


def text_of_number(value: int | Fraction) -> str | None:
    """A number as a decimal; None if its digits do not end."""
    for places in range(41):
        scaled = value * 10**places
        if scaled == int(scaled):
            digits = str(abs(int(scaled))).rjust(places + 1, "0")
            sign = "-" if value < 0 else ""
            return f"{sign}{digits[: len(digits) - places]}" + (f".{digits[-places:]}" if places else "")
    return None


def bounded(value: Value) -> Value:
    """A value; refused if it is a number of too many digits."""
    if isinstance(value, (int, Fraction)) and max(abs(value.numerator), value.denominator) > _MAX_NUMBER:
        raise WorkloadError("arithmetic goes up to 40 digits; use smaller numbers")
    return value


def divided(left: int | Fraction, right: int | Fraction) -> int | Fraction | None:
    """``/``: of two integers the integer towards zero, else exact; NULL if divided by zero."""
    if not right:
        return None
    quotient = Fraction(left) / right
    return trunc(quotient) if isinstance(left, int) and isinstance(right, int) else quotient


def divided_whole(left: int | Fraction, right: int | Fraction) -> int | Fraction | None:
    """``//``: the integer towards zero, of integers only; NULL if divided by zero."""
    if isinstance(left, Fraction) or isinstance(right, Fraction):
        raise WorkloadError("'//' divides integers; write FLOOR(x / y)")
    return divided(left, right)


def remainder(left: int | Fraction, right: int | Fraction) -> int | Fraction | None:
    """``%``: what remains of a division towards zero, with the sign of the dividend; NULL if divided by zero."""
    return left - right * trunc(Fraction(left) / right) if right else None


def rounded(value: int | Fraction, places: int = 0) -> int | Fraction:
    """ROUND: to so many decimal places, halves away from zero."""
    scale = Fraction(10**places) if places >= 0 else Fraction(1, 10**-places)
    size = floor((-value if value < 0 else value) * scale + Fraction(1, 2)) / scale
    signed = -size if value < 0 else size
    return int(signed) if isinstance(value, int) and signed == int(signed) else signed


def lower(text: str) -> str:
    """LOWER, letter by letter."""
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def upper(text: str) -> str:
    """UPPER, letter by letter."""
    return "".join(large if len(large := letter.upper()) == 1 else letter for letter in text)


def substring(text: str, start: int, length: int | None = None) -> str:
    """SUBSTRING: from the letter ``start``, of which the first is 1."""
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def right(text: str, count: int) -> str:
    """RIGHT: the last letters."""
    return text[-count:] if count else ""


def as_decimal(function: Callable[[int | Fraction], int]) -> Callable[[int | Fraction], Fraction]:
    """FLOOR and CEIL give decimals, as in databases: dividing them by an integer does not cut off the fraction."""
    return lambda value: Fraction(function(value))


sql_floor, sql_ceil = as_decimal(floor), as_decimal(ceil)


def like(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """LIKE: ``%`` stands for any letters and ``_`` for one; a letter after ``escape`` stands for itself.

    The pieces between ``%`` are looked for one after the other, so that no pattern is slow.
    """
    pieces = [""]
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, None)
            if escaped is None:
                raise WorkloadError(f"LIKE {pattern!r}: nothing follows the escape character at its end")
            pieces[-1] += re.escape(escaped)
        elif letter == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if letter == "_" else re.escape(letter)
    if len(pieces) == 1:
        whole = re.compile(pieces[0], re.DOTALL)
        return lambda text: whole.fullmatch(text) is not None
    first, *middle = (re.compile(piece, re.DOTALL) for piece in pieces[:-1])
    last = re.compile(f"(?:{pieces[-1]})\\Z", re.DOTALL)
    width = len(re.sub(r"\\(.)", r"\1", pieces[-1], flags=re.DOTALL))

    def matches(text: str) -> bool:
        found = first.match(text)
        for piece in middle:
            found = found and piece.search(text, found.end())
        return found is not None and found.end() + width <= len(text) and bool(last.match(text, len(text) - width))

    return matches
