"""Values of columns that have no type, each read by its own, as a text: so that no value changes how another is read.

An integer is its decimal text. A real number is that of a decimal with a point, exactly: it goes into bins, and is no
integer. Truth is "true" or "false".
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from numbers import Integral

import numpy as np

from hdmm.schema.text import LONGEST_TEXT, NO_VALUE

_LONGEST = 4096
"""Digits beyond which a number is none; fields of a file are not longer either."""


def text_of(value: object) -> str | None:
    """The text of one value, None where there is none."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT and _writable(value) else NO_VALUE
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Integral):
        number = int(value)
        return str(number) if number.bit_length() < _LONGEST else NO_VALUE
    if isinstance(value, (float, np.floating)):
        return _real(float(value))
    return _decimal(value) if isinstance(value, Decimal) else NO_VALUE


def _writable(text: str) -> bool:
    """Whether a text has a form in UTF-8: not if half of a pair of surrogates stands alone in it."""
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
    fits = abs(value.adjusted()) < _LONGEST and len(value.as_tuple().digits) < _LONGEST
    return f"{value:f}" if fits else NO_VALUE
