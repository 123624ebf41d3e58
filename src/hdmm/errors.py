"""The exceptions that hdmm raises.

HdmmError
├── InputError            a mistake in what the user gave: nothing charged, nothing written (exit code 2)
│   ├── SchemaError       an attribute or its domain
│   ├── WorkloadError     a product, a predicate set or a condition
│   ├── SpecError         a spec file; carries the line
│   ├── BudgetError       epsilon, delta, rho, or what remains of them
│   ├── ArtefactError     a plan or release that is damaged, unknown or not to be trusted
│   ├── DataError         a data source as a whole: its path, its header, never its records
│   ├── TooLargeError     something that would not fit into memory; says what would
│   └── NotSupportedError something that this version cannot do; says what it can
└── FaultError            a fault of the machine: disk, permissions, entropy (exit code 1)

A message names the argument, the value and the remedy. It never contains a value from the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import TypeGuard

from hdmm import syntax

_MAX_MESSAGE = 2000
"""Characters of a message. Longer ones lose their middle, so that the remedy at the end stays."""
_MAX_WORD = 100
"""Longer words are not compared with the choices."""
_MAX_CHOICES = 4096
"""Only this many choices are compared with a word."""
_SIGNS = re.compile(r"[^\w]+")
"""What stands between the words of a name."""


class HdmmError(Exception):
    """Anything that hdmm raises on purpose."""

    exit_code = 1

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) <= _MAX_MESSAGE:
            return text
        return f"{text[: _MAX_MESSAGE // 2]} … {text[-_MAX_MESSAGE // 2 :]}"


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


def nearest(word: str, choices: Iterable[str]) -> str:
    """A hint such as ``; did you mean 'age'?``, or the first choices if none is close."""
    first = [str(choice) for choice in islice(choices, _MAX_CHOICES)]
    close = closest(word, first)
    if close is not None:
        return f"; did you mean {close!r}?"
    if not first:
        return ""
    shown = ", ".join(repr(choice) for choice in first[:12])
    return f"; known: {shown}{', …' if len(first) > 12 else ''}"


def unquoted(name: str, names: Iterable[str]) -> str:
    """A hint for an unknown name that begins a known one such as zip-code, which SQL reads only in quotes.

    >>> unquoted("zip", ["age", "zip-code"])
    '; write a name with such signs in double quotes: "zip-code"'
    >>> unquoted("age", ["zip-code"])
    ''
    """
    whole = next((other for other in names if name != other and _SIGNS.split(other, 1)[0] == name), None)
    return "" if whole is None else f'; write a name with such signs in double quotes: "{whole}"'


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that is most like a word, or None if none is close; only the first choices are compared.

    A choice that differs in case, blanks, dashes or underscores alone is closer than any other.

    >>> closest("male", ["Female", "Male"])
    'Male'
    """
    if len(word) > _MAX_WORD:
        return None
    short = [choice for choice in islice(choices, _MAX_CHOICES) if len(choice) <= _MAX_WORD]
    for same in (str.casefold, plain_word):
        for choice in short:
            if same(choice) == same(word) and plain_word(word):
                return choice
    folded = {choice.casefold(): choice for choice in reversed(short)}
    return next((folded[match] for match in get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)), None)


def plain_word(word: str) -> str:
    """A word without its case, blanks, dashes, underscores and points."""
    return "".join(character for character in word.casefold() if character not in " \t_-.")


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_integer(name: str, value: object, low: int, *, example: int) -> None:
    """Refuse an argument that is not an integer of at least ``low``."""
    if not is_integer(value) or value < low:
        raise InputError(
            f"{syntax.given(name, repr(value))}: expected an integer from {low}, for example "
            f"{syntax.example(name, example)}"
        )
