"""Exact numbers from text, for whole columns at once.

The regular expressions below and docs/data.md define decimals and integers. Common forms are parsed by vectorised
integer arithmetic, the rest one by one with :class:`decimal.Decimal`. Both are exact, so that a value at the edge of a
bin falls on the same side on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal

import numpy as np
from numpy.typing import NDArray

BLANKS = b" \t\r"
"""The bytes that are trimmed around a field."""

LONGEST_TEXT = 1 << 16
"""Bytes of a value as it stands in its source, blanks included; a longer one is outside every domain.

The limit is public, so that the memory that a record takes never depends on what it holds.
"""
NO_VALUE = "\n"
"""Replaces a value that is too long or is not text: no domain holds it, and it is not empty."""

INTEGER = re.compile(rb"[+-]?[0-9]+")
DECIMAL = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

_DIGITS = 18
"""Digits of a mantissa that fit int64."""
_MAX_FAST = 24
"""Bytes of a text that is parsed by vectorised arithmetic; longer ones are parsed one by one."""
MAX_NUMBER = 4096
"""Bytes of a number; a longer one is outside every domain."""
_HUGE = 1 << 62
"""Larger numbers count as this one, which is outside every domain."""


def floors(
    texts: Sequence[bytes], decimals: int, *, point: bool
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]:
    """Parse texts to ``(valid, floor(x·10^decimals), whether that floor is exact)``.

    ``point=False`` admits integers only. Values beyond ±2^62 are saturated there, which is outside every domain.
    """
    count = len(texts)
    length = np.fromiter(map(len, texts), np.int64, count)
    width = min(int(length.max(initial=1)), _MAX_FAST)
    grid = np.array(texts, dtype=f"S{width}").reshape(count).view(np.uint8).reshape(count, width)

    signed = (grid[:, 0] == ord("-")) | (grid[:, 0] == ord("+"))
    whole = np.zeros(count, np.int64)
    fraction = np.zeros(count, np.int64)
    before = np.zeros(count, np.int64)
    after = np.zeros(count, np.int64)
    points = np.zeros(count, np.int64)
    exact = np.ones(count, bool)
    simple = length <= _MAX_FAST
    for column in range(width):
        byte = grid[:, column]
        inside = column < length
        if column == 0:
            inside &= ~signed
        digit = (byte >= ord("0")) & (byte <= ord("9")) & inside
        dot = (byte == ord(".")) & inside
        simple &= digit | dot | ~inside
        value = byte.astype(np.int64) - ord("0")
        in_whole = digit & (points == 0)
        in_fraction = digit & (points > 0)
        kept = in_fraction & (after < decimals)
        whole = np.where(in_whole, whole * 10 + value, whole)
        fraction = np.where(kept, fraction * 10 + value, fraction)
        exact &= ~(in_fraction & ~kept & (value > 0))
        before += in_whole
        after += in_fraction
        points += dot
    simple &= (before + min(decimals, _DIGITS) <= _DIGITS) & (after <= _DIGITS) & (decimals <= _DIGITS)
    if not point:
        simple &= points == 0
    valid = simple & (before + after > 0) & (points <= 1)

    missing = np.clip(decimals - after, 0, _DIGITS)
    magnitude = whole * 10 ** min(decimals, _DIGITS) + fraction * 10**missing
    negative = grid[:, 0] == ord("-")
    floor = np.where(negative, -magnitude - ~exact, magnitude)

    pattern = DECIMAL if point else INTEGER
    for row in np.flatnonzero(~valid).tolist():
        if length[row] <= MAX_NUMBER and pattern.fullmatch(texts[row]):
            valid[row] = True
            floor[row], exact[row] = _slow_floor(texts[row], decimals)
    return valid, floor, exact


def _slow_floor(text: bytes, decimals: int) -> tuple[int, bool]:
    exact = Context(prec=len(text) + 1100, Emax=10**6, Emin=-(10**6), traps=[])
    scaled = Decimal(text.decode("ascii")).scaleb(decimals, exact)
    if scaled.copy_abs() >= _HUGE:
        return (-_HUGE if scaled < 0 else _HUGE), True
    floor = scaled.to_integral_value(ROUND_FLOOR, exact)
    return int(floor), floor == scaled
