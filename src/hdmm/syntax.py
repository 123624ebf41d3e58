"""How messages write arguments: as the user does, in Python, on the command line or in a spec.

A message is written where the mistake is found, which is the same place for all three. So an argument goes into it by
one of these functions, and the entry point says which of the three the user writes: Python unless it says otherwise.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Syntax = Literal["python", "command line", "spec"]

_SPEC_KEYS = (
    *("rows", "neighbours", "id", "name", "weight", "width", "ranges", "values", "level", "levels", "min", "max", "by"),
    *("format", "other", "missing", "decimals", "thousands", "point", "currency"),
)
"""Arguments that a spec holds. Others, such as memory, are written as outside of it."""
_SYNTAX: ContextVar[Syntax] = ContextVar("syntax", default="python")
_IN_SPEC: ContextVar[bool] = ContextVar("in_spec", default=False)


@contextmanager
def messages_for(syntax: Syntax) -> Iterator[None]:
    """Write arguments in this syntax in the messages of errors that are raised inside the `with` block."""
    in_spec = _IN_SPEC.set(syntax == "spec")
    outside = _SYNTAX.set(_SYNTAX.get() if syntax == "spec" else syntax)
    try:
        yield
    finally:
        _SYNTAX.reset(outside)
        _IN_SPEC.reset(in_spec)


def argument(name: str, *, option: str | None = None) -> str:
    """The name of an argument: ``delta`` or ``--delta``; ``option`` is its name on the command line if it differs."""
    return f"--{option or name.replace('_', '-')}" if _syntax(name) == "command line" else name


def given(name: str, shown: str, *, option: str | None = None) -> str:
    """An argument as it was given, its value as it is shown: ``rows='2'``, ``--rows '2'`` or ``rows: '2'``."""
    between = {"python": "=", "command line": " ", "spec": ": "}[_syntax(name)]
    return f"{argument(name, option=option)}{between}{shown}"


def example(name: str, value: str | float | bool | None, *, option: str | None = None) -> str:
    """An argument as it should be given: ``delta="1e-6"`` or ``--delta 1e-6``.

    On the command line, True is a flag, and None its denial: ``exact=True`` is ``--exact``, ``ledger=None``
    ``--no-ledger``.
    """
    if _syntax(name) == "command line":
        if value is None:
            return f"--no-{option or name.replace('_', '-')}"
        if value is True:
            return argument(name, option=option)
        return given(name, shlex.quote(str(value)), option=option)
    if _syntax(name) == "spec" and isinstance(value, bool):
        return given(name, str(value).lower(), option=option)
    if _syntax(name) == "spec" and isinstance(value, str) and not value.isalnum():
        return given(name, json.dumps(value, ensure_ascii=False), option=option)
    if _syntax(name) == "spec" or not isinstance(value, str):
        return given(name, str(value), option=option)
    return given(name, json.dumps(value, ensure_ascii=False), option=option)


def either(*, python: str, command: str | None = None, spec: str | None = None) -> str:
    """The phrase for somebody who writes Python, or another one for a command or a spec."""
    if spec is not None and _IN_SPEC.get():
        return spec
    return command if command is not None and _SYNTAX.get() == "command line" else python


def _syntax(name: str) -> Syntax:
    return "spec" if _IN_SPEC.get() and name in _SPEC_KEYS else _SYNTAX.get()
