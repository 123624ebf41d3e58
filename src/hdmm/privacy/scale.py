"""Noise scales as fractions that the samplers can take, and the variance of the noise that is then added."""

from __future__ import annotations

import math
from fractions import Fraction

from hdmm.errors import BudgetError

MAX_SCALE = 2**45
"""The largest scale, and the largest numerator of one. At this scale a value leaves ±2**53, beyond which floats are not
exact, with a probability below exp(-255) (Laplace) or exp(-2**14) (Gaussian)."""


def round_up(scale: Fraction) -> Fraction:
    """Return a scale that the sampler can take: never below the given one, and above it by less than 2**-44 of it."""
    if scale <= 0:
        raise BudgetError(f"scale={scale}: expected a positive fraction")
    if scale > MAX_SCALE:
        raise BudgetError(
            f"epsilon is too small for this strategy: its noise scale, over 2**{int(scale).bit_length() - 1}, exceeds "
            "2**45 and noisy counts would not be exact; raise epsilon, or choose a strategy with a smaller sensitivity"
        )
    if scale.numerator <= MAX_SCALE:
        return scale
    denominator = MAX_SCALE // scale
    return Fraction(math.ceil(scale * denominator), denominator)


def laplace_variance(scale: Fraction | float) -> float:
    """Return the variance of the discrete Laplace law with this scale, 2p/(1-p)² with p = exp(-1/scale)."""
    decay = float(min(1 / scale, 1000))  # beyond, the variance is zero in floats
    return 2 * math.exp(-decay) / math.expm1(-decay) ** 2
