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


class HdmmError(Exception):
    """Anything that hdmm raises on purpose."""

    exit_code = 1


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
    choices = [str(choice) for choice in known]
    close = get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    if not choices:
        return ""
    shown = ", ".join(repr(choice) for choice in choices[:12])
    return f"; known: {shown}{', …' if len(choices) > 12 else ''}"
