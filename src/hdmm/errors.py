"""The exceptions that hdmm raises.

HdmmError
├── InputError            a mistake in what the user gave: nothing charged, nothing written (exit code 2)
│   ├── SchemaError       an attribute or its domain
│   ├── WorkloadError     a product, a predicate set or a condition
│   ├── SpecError         a spec file; carries the line
│   ├── BudgetError       epsilon, delta, rho or what is left of them
│   ├── ArtefactError     a plan or release that is damaged, unknown or not to be trusted
│   ├── DataError         a data source as a whole: its path, its header, never its records
│   ├── TooLargeError     something that would not fit; says what would
│   └── NotSupportedError something that this version cannot do; says what it can
└── FaultError            a fault of the machine: disk, permissions, entropy (exit code 1)

A message names the argument, the value and the remedy. It never contains a value from the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import TypeGuard

_LONGEST = 2000
"""Characters of a message: a value that fills pages is cut out of its middle, so that the remedy stays."""
_WORD, _CHOICES = 100, 4096
"""The longest word, and the most choices, for which the nearest one is looked for."""


class HdmmError(Exception):
    """Anything that hdmm raises on purpose."""

    exit_code = 1

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) <= _LONGEST:
            return text
        return f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


class InputError(HdmmError):
    """A mistake in what the user gave; nothing was charged and nothing was written."""

    exit_code = 2


class SchemaError(InputError):
    """An attribute or its domain is not usable."""


class WorkloadError(InputError):
    """A product, a predicate set or a condition is not usable."""


class SpecError(InputError):
    """A spec file is not usable; the message begins with its line."""


class BudgetError(InputError):
    """A privacy budget is malformed or does not fit the noise."""


class ArtefactError(InputError):
    """A plan or release is damaged, of an unknown format, or does not hold what it claims."""


class DataError(InputError):
    """A data source is not usable as a whole: its path or its header, never its records."""


class TooLargeError(InputError):
    """Something would not fit into memory."""


class NotSupportedError(InputError):
    """This version cannot do what was asked."""


class FaultError(HdmmError):
    """The machine failed: disk, permissions, randomness."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint such as ``; did you mean 'age'?``, or the choices when nothing is near."""
    choices = [str(choice) for choice in islice(known, _CHOICES)]
    close = closest(word, choices)
    if close is not None:
        return f"; did you mean {close!r}?"
    if not choices:
        return ""
    shown = ", ".join(repr(choice) for choice in choices[:12])
    return f"; known: {shown}{', …' if len(choices) > 12 else ''}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like another one, if one is; among very many, only the first are looked at."""
    if len(word) > _WORD:
        return None
    choices = [choice for choice in islice(known, _CHOICES) if len(choice) <= _WORD]
    return next(iter(get_close_matches(word, choices, n=1, cutoff=0.6)), None)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_integer(name: str, value: object, low: int, *, example: int) -> None:
    """Refuse an argument that is no integer from ``low`` on."""
    if not is_integer(value) or value < low:
        raise InputError(f"{name}={value!r}: expected an integer from {low}, for example {name}={example}")
