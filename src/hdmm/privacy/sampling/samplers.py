"""Discrete Laplace and rounded Gaussian noise: exact laws, at millions of values per second, in bounded memory.

docs/noise.md has the whole argument, in the order of `tail_table`, `laplace` and `gaussian`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import BudgetError
from hdmm.privacy.sampling.gaussian import gaussian_block
from hdmm.privacy.sampling.laplace import laplace_block
from hdmm.privacy.scale import MAX_SCALE

_BLOCK = 2**15  # values at a time: the working memory is a few MiB


def discrete_laplace(scale: Fraction, count: int) -> NDArray[np.int64]:
    """Draw independent integers k with probability proportional to exp(-|k|/scale), exactly."""
    _check("scale", scale)
    return _in_blocks(lambda size: laplace_block(scale, size), count)


def rounded_gaussian(sigma: Fraction, count: int) -> NDArray[np.int64]:
    """Draw independent normal reals with standard deviation sigma, each rounded to the nearest integer, exactly."""
    _check("sigma", sigma)
    return _in_blocks(lambda size: gaussian_block(sigma, size), count)


def _check(name: str, value: Fraction) -> None:
    if value <= 0:
        raise BudgetError(f"{name}={value}: expected a positive fraction")
    if value > MAX_SCALE:
        raise BudgetError(f"{name}={value}: exceeds 2**45, and noisy counts would not be exact; raise epsilon")


def _in_blocks(draw: Callable[[int], NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    drawn = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BLOCK):
        drawn[start : start + _BLOCK] = draw(min(_BLOCK, count - start))
    return drawn
