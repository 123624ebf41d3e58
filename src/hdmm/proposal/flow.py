"""Values as YAML on one line, so that every text is read back as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_PLAIN = re.compile(
    r"[A-Za-z_][A-Za-z0-9_ .+-]*[A-Za-z0-9_]|[A-Za-z_]|-?(0|[1-9][0-9]*)(\.[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}"
)
"""Texts that need no quotes."""
_WORDS = {"null", "true", "false"}
"""Texts that other readers of YAML take for something else."""


def flow(value: Any) -> str:
    """A value on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return f"[{', '.join(flow(item) for item in value)}]"
        case Mapping():
            return "{" + ", ".join(f"{scalar(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
        case Decimal():
            return f"{value:f}"
    return scalar(str(value))


def scalar(text: str) -> str:
    """A text, in quotes unless it is plain; what cannot be printed is escaped."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    marks = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(marks.get(mark) or (mark if mark.isprintable() else _escaped(mark)) for mark in text) + '"'


def _escaped(mark: str) -> str:
    return f"\\U{ord(mark):08x}" if ord(mark) > 0xFFFF else f"\\u{ord(mark):04x}"
