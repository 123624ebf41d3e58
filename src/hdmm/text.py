"""Tables as aligned plain text, the same in a terminal, a log and a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_MAX_PRINTED_BITS = 10_000
"""Larger integers are divided before they are printed: Python refuses to print very long ones."""


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows under their column names: numbers to the right, everything else to the left, nothing for None."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(columns, *cells, strict=True)]
    right = [any(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    lines = [columns, ["─" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def count_text(count: int) -> str:
    """A count for people to read: exact up to 15 digits, beyond that its size, such as 1.2e20."""
    power = 0
    if count.bit_length() > _MAX_PRINTED_BITS:
        power = (count.bit_length() - _MAX_PRINTED_BITS) * 3 // 10
        count //= 10**power
    digits = str(count)
    if len(digits) <= 15 and not power:
        return f"{count:,}"
    return f"{digits[0]}.{digits[1]}e{len(digits) - 1 + power}"


def bytes_text(count: int) -> str:
    """A number of bytes for people to read."""
    for power, unit in enumerate(("B", "KB", "MB", "GB", "TB")):
        if count < 1000 ** (power + 1):
            return f"{count / 1000**power:.3g} {unit}"
    return f"{count_text(count // 10**15)} PB"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not _is_number(value):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Decimal):
        return f"{value:,f}"
    return f"{value:,.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"
