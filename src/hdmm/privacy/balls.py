"""Ball arithmetic: numbers with proved error bounds, by python-flint, which is imported when it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flint import arb, fmpq


@contextmanager
def precision(bits: int) -> Iterator[Any]:
    """Compute with this many bits inside the `with` block, which gets flint itself.

    flint's precision is global: if another thread changes it, a ball is wider, never wrong.
    """
    import flint

    with flint.ctx.workprec(bits):
        yield flint


def rational(number: Fraction) -> fmpq:
    """A fraction as flint has it."""
    from flint import fmpq

    return fmpq(number.numerator, number.denominator)


def ball(number: Fraction) -> arb:
    """The ball of a fraction at the current precision."""
    from flint import arb

    return arb(rational(number))
