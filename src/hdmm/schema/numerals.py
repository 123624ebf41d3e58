"""How numbers are written: a separator of thousands, a decimal point and a currency sign, if they are declared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from math import isfinite
from typing import final

import numpy as np

from hdmm.errors import SchemaError
from hdmm.numbers import shown
from hdmm.schema.domain import Domain, writable
from hdmm.schema.text import DECIMAL, MAX_NUMBER, NO_VALUE
from hdmm.syntax import example, given

_NOTHING = NO_VALUE.encode()
_MAX_CURRENCY = 8
"""Characters of a currency sign."""
_BLANK = rb"(?:[ \t]|\xc2\xa0|\xe2\x80\xaf)*"
"""Blanks between a number and its currency sign; the last two are no-break spaces."""


@final
@dataclass(frozen=True)
class Numerals:
    """A way to write decimals other than the plain one; ``point`` is None if only thousands are separated by points."""

    thousands: str | None
    point: str | None
    currency: str | None

    def plain(self, texts: Sequence[bytes]) -> list[bytes]:
        """The plain decimals that texts stand for; a text that is no number becomes one that no domain holds."""
        return [self._plain(text) for text in texts]

    def written(self, number: str) -> str:
        """A plain decimal, written so that :meth:`plain` gives it back."""
        if self.point is None:
            return number if "." not in number else NO_VALUE
        return number.replace(".", self.point)

    def _plain(self, text: bytes) -> bytes:
        match = self._pattern.fullmatch(text) if len(text) <= MAX_NUMBER else None
        if match is None or (match["sign"] and match["inner"]) or (match["before"] and match["after"]):
            return _NOTHING
        whole, sign = match["whole"] or b"", match["sign"] or match["inner"] or b""
        if self.thousands is not None:
            whole = whole.replace(self.thousands.encode(), b"")
        fraction = b"" if match["fraction"] is None else b"." + match["fraction"]
        return sign + whole + fraction + (match["exponent"] or b"")

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        grouped = rb"[0-9]{1,3}(?:%s[0-9]{3})+|" % _escaped(self.thousands) if self.thousands is not None else b""
        point = b"(?!)" if self.point is None else _escaped(self.point)  # the former matches nothing
        sign = b"(?!)" if self.currency is None else _escaped(self.currency)
        return re.compile(
            rb"(?P<sign>[+-])?(?P<before>%(blank)s%(currency)s%(blank)s)?(?P<inner>[+-])?"
            rb"(?P<whole>%(grouped)s[0-9]+)?(?:%(point)s(?P<fraction>[0-9]*))?(?P<exponent>[eE][+-]?[0-9]{1,3})?"
            rb"(?P<after>%(blank)s%(currency)s)?"
            % {b"blank": _BLANK, b"currency": sign, b"grouped": grouped, b"point": point}
        )


def _escaped(text: str) -> bytes:
    return re.escape(text.encode())


@dataclass(frozen=True, kw_only=True)
class Numeric(Domain):
    """A domain of numbers. Texts for missing values that are numbers mean these numbers, however they are written."""

    thousands: str | None = None
    """What separates groups of three digits."""
    point: str | None = None
    """The decimal point, if it is not a point."""
    currency: str | None = None
    """A sign that may stand before or after a number."""
    _numerals: Numerals | None = field(init=False, repr=False, compare=False)

    def number_text(self, number: str) -> str:
        return number if self._numerals is None else self._numerals.written(number)

    @cached_property
    def missing_numbers(self) -> frozenset[Decimal]:
        """The numbers among the texts for missing values, and the floats that are nearest to them."""
        numbers: set[Decimal] = set()
        for plain in self._plain([text.encode() for text in self.missing_texts]):
            if DECIMAL.fullmatch(plain):
                number = Decimal(plain.decode())
                with np.errstate(over="ignore"):
                    floats = (float(number), float(np.float32(number)))
                numbers |= {number, *(Decimal(nearest) for nearest in floats if isfinite(nearest))}
        return frozenset(numbers)

    def _plain(self, texts: Sequence[bytes]) -> Sequence[bytes]:
        return texts if self._numerals is None else self._numerals.plain(texts)

    def _absent(self, text: bytes) -> bool:
        if text in self._absent_texts:
            return True
        if not self.missing_numbers or len(text) > MAX_NUMBER:
            return False
        (plain,) = self._plain([text])
        return DECIMAL.fullmatch(plain) is not None and Decimal(plain.decode()) in self.missing_numbers

    def _set_numerals(self, thousands: str | None, point: str | None, currency: str | None, *, decimals: bool) -> None:
        """Set how numbers are written; ``decimals`` says whether they may have a decimal point."""
        for name, mark in (("thousands", thousands), ("point", point)):
            if mark is not None and not _is_mark(mark):
                raise SchemaError(
                    f"{name}={shown(mark)}: expected one character that is not a letter, digit, sign or quote, such as "
                    "',' or '.'"
                )
        if point is not None and not decimals:
            raise SchemaError(
                f"{given('point', repr(point))}: integers have no decimal point; leave it out, or "
                f"add {example('decimals', True)}"
            )
        if currency is not None and not _is_currency(currency):
            raise SchemaError(
                f"{given('currency', shown(currency))}: expected up to {_MAX_CURRENCY} characters without digits, "
                "signs, quotes "
                "and blanks, such as '$' or 'EUR'"
            )
        actual = point if point is not None else "." if decimals or thousands != "." else None
        if thousands is not None and thousands == actual:
            own = given("point", repr(point)) if point is not None else given("point", "'.'") + ", the default"
            raise SchemaError(
                f"{given('thousands', repr(thousands))} and {own}, are the same; declare another point, such as "
                f"{example('point', ',')}"
            )
        for name, mark in (("thousands", thousands), ("point", actual if decimals else None)):
            if currency is not None and mark is not None and mark in currency:
                raise SchemaError(
                    f"{given('currency', repr(currency))} and {given(name, repr(mark))} overlap; "
                    "declare signs that differ"
                )
        plain = thousands is None and currency is None and point in (None, ".")
        numerals = None if plain else Numerals(thousands, actual, currency)
        self._set(thousands=thousands, point=point, currency=currency, _numerals=numerals)


def _is_mark(mark: object) -> bool:
    """Whether a text can separate the digits of a number."""
    if not isinstance(mark, str) or len(mark) != 1 or not writable(mark):
        return False
    return not mark.isalnum() and mark not in '+-"\t\r\n\0'


def _is_currency(sign: object) -> bool:
    if not isinstance(sign, str) or not 1 <= len(sign) <= _MAX_CURRENCY or not writable(sign):
        return False
    return sign.isprintable() and not any(mark.isdigit() or mark.isspace() or mark in '+-"' for mark in sign)
