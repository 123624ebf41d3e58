"""The one way from a text to a number: exact, and bounded before anything is computed.

``1e300000000`` is a short text and a number that fills the memory. So digits and exponents are counted first, and
Decimal, Fraction, int and float only ever see numbers of at most `MOST_DIGITS` digits. Numbers that are given as Python
numbers keep to the same bound.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import final

MOST_DIGITS = 4000
"""Digits of an integer, or of a numerator or denominator written out: just below those that Python prints."""

_MOST_BITS = MOST_DIGITS * 33219281 // 10**7
_LONGEST = 2 * MOST_DIGITS + 16  # a numerator and a denominator with their signs
_SHOWN = 48  # characters of a value that a message repeats
_INTEGER = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_DECIMAL = re.compile(r"[+-]?(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
_RATIO = re.compile(r"([+-]?[0-9]+)/([0-9]+)")


@final
class NumberError(ValueError):
    """A text is no number, or one of more digits than are ever needed; the message is a reason without the value."""


def integer(given: str | int) -> int:
    """An integer from text, or an integer as it is.

    >>> integer(" -12 ")
    -12
    """
    if isinstance(given, int):
        return _bounded_integer(given)
    text = _short(given)
    if not _INTEGER.fullmatch(text):
        raise NumberError("expected an integer")
    if len(text) > MOST_DIGITS:
        raise _too_long()
    return int(text)


def decimal(given: str | int | float | Decimal) -> Decimal:
    """A finite decimal from text or from a number; floats are what Python prints for them.

    >>> decimal("1e-3"), decimal(0.1)
    (Decimal('0.001'), Decimal('0.1'))
    """
    if isinstance(given, Decimal):
        if not given.is_finite():
            raise NumberError("expected a finite number")
        parts = given.as_tuple()
        _check_size(len(parts.digits), int(parts.exponent))
        return given
    if isinstance(given, int):
        return Decimal(_bounded_integer(given))
    text = _short(str(given))
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise NumberError("expected a number")
    whole, after, alone, exponent = found.groups()
    if exponent is not None and len(exponent) > 6:  # leading zeros count: nobody writes them
        raise _too_long()
    _check_size(len(whole or "") + len(after or alone or ""), int(exponent or 0))
    return Decimal(text)


def fraction(given: str | int | float | Decimal | Fraction) -> Fraction:
    """The exact fraction that a text such as ``1/3`` or ``1e-17`` stands for, or a number.

    >>> fraction("1/3"), fraction("1e-3"), fraction(0.1)
    (Fraction(1, 3), Fraction(1, 1000), Fraction(1, 10))
    """
    if isinstance(given, Fraction):
        _bounded_integer(given.numerator)
        _bounded_integer(given.denominator)
        return given
    if isinstance(given, str):
        text = _short(given)
        found = _RATIO.fullmatch(text)
        if found is not None:
            numerator, denominator = integer(found[1]), integer(found[2])
            if not denominator:
                raise NumberError("expected a denominator above 0")
            return Fraction(numerator, denominator)
    return Fraction(decimal(given))


def real(given: str | int | float) -> int | float:
    """An integer, or a floating-point number, which may be infinite or NaN, from text or as it is."""
    if isinstance(given, int):
        return _bounded_integer(given)
    if isinstance(given, str) and _INTEGER.fullmatch(_short(given)):
        return integer(given)
    if isinstance(given, float) or _short(given).lstrip("+-").lower() in ("inf", "infinity", "nan"):
        return float(given)
    return float(decimal(given))


def shown(value: object) -> str:
    """A value as a message repeats it: shortened, and never by printing millions of digits.

    >>> shown("abc"), shown(10**5000), shown("x" * 60)
    ("'abc'", '<an integer of 16610 bits>', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'… (60 characters)")
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}… ({len(value)} characters)"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"<an integer of {value.bit_length()} bits>"
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        return f"<a fraction of {max(value.numerator.bit_length(), value.denominator.bit_length())} bits>"
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return f"<{len(value)} items>" if len(value) > _SHOWN else _cut(value)
    return _cut(value)


def _cut(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer inside is longer than Python prints
        return f"<{type(value).__name__}>"
    return text if len(text) <= 4 * _SHOWN else f"{text[: 4 * _SHOWN]}…"


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        raise _too_long()
    return text.strip()


def _check_size(digits: int, exponent: int) -> None:
    if digits + abs(exponent) > MOST_DIGITS:
        raise _too_long()


def _bounded_integer(given: int) -> int:
    if given.bit_length() > _MOST_BITS:
        raise _too_long()
    return given


def _too_long() -> NumberError:
    return NumberError(f"a number has at most {MOST_DIGITS} digits, zeros of its exponent included")
