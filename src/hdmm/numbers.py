"""The one way from a text to a number: exact, and bounded before anything is computed.

``1e300000000`` is a short text and a number that fills the memory. So digits and exponents are counted first, and
Decimal, Fraction, int and float only ever see numbers of at most `MAX_DIGITS` digits. Python numbers keep to the same
bound.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import final

MAX_DIGITS = 4000
"""Digits of an integer, or of a numerator or denominator written out: just below Python's limit for printing."""

_MAX_BITS = MAX_DIGITS * 33219281 // 10**7
"""MAX_DIGITS in bits."""
_MAX_TEXT = 2 * MAX_DIGITS + 16
"""Characters of a number: a numerator and a denominator with their signs."""
_MAX_SHOWN = 48
"""Characters of a value that a message repeats."""
_INTEGER = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_DECIMAL = re.compile(r"[+-]?(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
_RATIO = re.compile(r"([+-]?[0-9]+)/([0-9]+)")


@final
class NumberError(ValueError):
    """A text is not a number, or has too many digits. The message gives the reason without the value."""


def integer(value: str | int) -> int:
    """An integer, from text or from an integer.

    >>> integer(" -12 ")
    -12
    """
    if isinstance(value, int):
        return _bounded_integer(value)
    text = _short(value)
    if not _INTEGER.fullmatch(text):
        raise NumberError("expected an integer")
    if len(text) > MAX_DIGITS:
        raise _too_long()
    return int(text)


def decimal(value: str | int | float | Decimal) -> Decimal:
    """A finite decimal from text or from a number; a float stands for the text that Python prints for it.

    >>> decimal("1e-3"), decimal(0.1)
    (Decimal('0.001'), Decimal('0.1'))
    """
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise NumberError("expected a finite number")
        parts = value.as_tuple()
        _check_size(len(parts.digits), int(parts.exponent))
        return value
    if isinstance(value, int):
        return Decimal(_bounded_integer(value))
    text = _short(str(value))
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise NumberError("expected a number")
    whole, after, alone, exponent = match.groups()
    if exponent is not None and len(exponent) > 6:  # leading zeros count: nobody writes them
        raise _too_long()
    _check_size(len(whole or "") + len(after or alone or ""), int(exponent or 0))
    return Decimal(text)


def fraction(value: str | int | float | Decimal | Fraction) -> Fraction:
    """The exact fraction that a text such as ``1/3`` or ``1e-17`` stands for, or a number.

    >>> fraction("1/3"), fraction("1e-3"), fraction(0.1)
    (Fraction(1, 3), Fraction(1, 1000), Fraction(1, 10))
    """
    if isinstance(value, Fraction):
        _bounded_integer(value.numerator)
        _bounded_integer(value.denominator)
        return value
    if isinstance(value, str) and (match := _RATIO.fullmatch(_short(value))):
        numerator, denominator = integer(match[1]), integer(match[2])
        if not denominator:
            raise NumberError("expected a denominator above 0")
        return Fraction(numerator, denominator)
    return Fraction(decimal(value))


def real(value: str | int | float) -> int | float:
    """An integer or a float, which may be infinite or NaN, from text or from a number."""
    if isinstance(value, int):
        return _bounded_integer(value)
    if isinstance(value, str) and _INTEGER.fullmatch(_short(value)):
        return integer(value)
    if isinstance(value, float) or _short(value).lstrip("+-").lower() in ("inf", "infinity", "nan"):
        return float(value)
    return float(decimal(value))


def shown(value: object) -> str:
    """A value as a message repeats it: shortened, and never by printing millions of digits.

    >>> shown("abc"), shown(10**5000), shown("x" * 60)
    ("'abc'", '<an integer of 16610 bits>', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'… (60 characters)")
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]!r}… ({len(value)} characters)"
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return f"<an integer of {value.bit_length()} bits>"
    if isinstance(value, Fraction):
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        if bits > _MAX_BITS:
            return f"<a fraction of {bits} bits>"
    if isinstance(value, (list, tuple, set, frozenset, dict)) and len(value) > _MAX_SHOWN:
        return f"<{len(value)} items>"
    try:
        text = repr(value)
    except ValueError:  # an integer inside is longer than Python prints
        return f"<{type(value).__name__}>"
    return text if len(text) <= 4 * _MAX_SHOWN else f"{text[: 4 * _MAX_SHOWN]}…"


def _short(text: str) -> str:
    if len(text) > _MAX_TEXT:
        raise _too_long()
    return text.strip()


def _check_size(digits: int, exponent: int) -> None:
    if digits + abs(exponent) > MAX_DIGITS:
        raise _too_long()


def _bounded_integer(value: int) -> int:
    if value.bit_length() > _MAX_BITS:
        raise _too_long()
    return value


def _too_long() -> NumberError:
    return NumberError(f"a number has at most {MAX_DIGITS} digits, zeros of its exponent included")
