"""Weights as fractions, so that plans state them exactly."""

from __future__ import annotations

from fractions import Fraction
from math import frexp, ldexp

_BITS = 20


def dyadic(weight: float) -> Fraction:
    """A positive weight, rounded to twenty significant bits."""
    mantissa, exponent = frexp(weight)
    return Fraction(ldexp(round(mantissa * 2**_BITS), exponent - _BITS))
