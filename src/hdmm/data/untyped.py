"""Values of columns that have no type: each is read as a text, by its own type, so that no value affects another.

An integer becomes its decimal text. A real number becomes its exact decimal text with a point: bins hold it, integers
do not. Booleans become "true" and "false", dates and times their ISO texts.
"""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from numbers import Integral

import numpy as np

from hdmm.schema import Domain
from hdmm.schema.text import LONGEST_TEXT, NO_VALUE

_MAX_DIGITS = 4096
"""A number of more digits has no value, like a number in a longer field of a file."""


def text_of(value: object, domain: Domain | None = None) -> str | None:
    """The text of one value, of a number as the domain writes it; None if it is missing."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT and _writable(value) else NO_VALUE
    text = _other(value)
    if domain is None or text is None or text == NO_VALUE or isinstance(value, (bool, np.bool_)):
        return text
    return domain.number_text(text)


def _other(value: object) -> str | None:
    """The plain text of a value that is not text."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Integral):
        number = int(value)
        return str(number) if number.bit_length() < _MAX_DIGITS else NO_VALUE
    if isinstance(value, (float, np.floating)):
        return _real(float(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    return _moment(value) if isinstance(value, (date, time, np.datetime64)) else NO_VALUE


def _moment(value: date | time | np.datetime64) -> str | None:
    """The ISO text of a date, a time or both, as it is written: in its own time zone."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    try:
        if isinstance(value, time):
            return time.isoformat(value)
        return datetime.isoformat(value) if isinstance(value, datetime) else date.isoformat(value)
    except Exception:  # a time zone is a program, and may fail
        return NO_VALUE


def _writable(text: str) -> bool:
    """Whether a text can be written in UTF-8: not if it holds a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _real(value: float) -> str | None:
    if not isfinite(value):
        return None if value != value else NO_VALUE
    text = f"{Decimal(value):f}"
    return text if "." in text else text + ".0"


def _decimal(value: Decimal) -> str | None:
    if not value.is_finite():
        return None if value.is_nan() else NO_VALUE
    fits = abs(value.adjusted()) < _MAX_DIGITS and len(value.as_tuple().digits) < _MAX_DIGITS
    return f"{value:f}" if fits else NO_VALUE
