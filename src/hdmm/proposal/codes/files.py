"""Files with code lists, read with limits: they come from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hdmm.errors import InputError
from hdmm.files.atomic import OversizedError, read_regular
from hdmm.files.structure import Structure

_MAX_BYTES = 1 << 25
"""Bytes of a code list."""
_MAX_MEMORY = 1 << 29
"""Bytes of memory that parsed JSON may take."""


def read_text(path: Path) -> str:
    """The text of a file."""
    try:
        return read_regular(path, _MAX_BYTES).decode("utf-8-sig")
    except OversizedError:
        raise InputError(
            f"--codes {path}: a code list has at most {_MAX_BYTES >> 20} MiB; give a shorter one"
        ) from None
    except OSError as error:
        raise InputError(f"--codes {path}: cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"--codes {path}: is not UTF-8 text; convert it") from None


def read_json(path: Path) -> Any:
    """The data in a JSON file."""
    text = read_text(path)
    structure = Structure()
    structure.add(text.encode())
    if structure.memory > _MAX_MEMORY:
        raise InputError(f"--codes {path}: holds too many values; give a shorter file")
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise InputError(f"--codes {path}: is nested too deeply") from None
    except ValueError:
        raise InputError(f"--codes {path}: is not JSON; a list of codes as CSV must not be called .json") from None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def texts(data: Any) -> list[str]:
    """The texts and numbers in a list, or a single one, as texts; booleans as in JSON."""
    items = data if isinstance(data, list) else [data]
    return [text for item in items if (text := text_of(item)) is not None]


def text_of(item: Any) -> str | None:
    """A value of JSON as the text that a file holds for it; None if it is no single value."""
    if isinstance(item, bool):
        return "true" if item else "false"
    return str(item).strip() if isinstance(item, (str, int, float)) else None


def number_of(item: Any) -> float | None:
    """A limit as a number, from a number or a text; None if it is neither."""
    text = text_of(item)
    try:
        number = None if text is None or isinstance(item, bool) else float(text)
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e15 else None
