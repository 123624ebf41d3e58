"""Discrete Laplace noise: the digits of the magnitude are independent, and each is drawn from a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from hdmm.privacy.balls import rational
from hdmm.privacy.sampling.tail_table import TailTable, signs

if TYPE_CHECKING:
    from flint import arb

_DIGIT = 8  # bits of a digit of the magnitude


@final
@dataclass(frozen=True)
class LaplaceTables:
    """The law of the discrete Laplace in parts: nonzero or not; the digits of |k| - 1, the highest first."""

    nonzero: TailTable
    digits: tuple[TailTable, ...]

    @classmethod
    def of(cls, scale: Fraction) -> LaplaceTables:
        """Choose the number of digits so that the highest, which is unbounded, is small."""
        places = 0
        while 4 * 2 ** (_DIGIT * places) < scale:
            places += 1
        decays = [2 ** (_DIGIT * place) / scale for place in range(places + 1)]
        low = [TailTable.of(_digit_tail(decay)) for decay in decays[:-1]]
        return cls(TailTable.of(_nonzero_tail(1 / scale)), (TailTable.of(_geometric_tail(decays[-1])), *low[::-1]))


laplace_tables = lru_cache(maxsize=16)(LaplaceTables.of)


def laplace_block(scale: Fraction, count: int) -> NDArray[np.int64]:
    """Draw integers k with probability proportional to exp(-|k|/scale)."""
    tables = laplace_tables(scale)
    magnitude = np.zeros(count, dtype=np.int64)
    for digit in tables.digits:
        magnitude = (magnitude << _DIGIT) + digit.draw(count)
    return signs(count) * (magnitude + 1) * tables.nonzero.draw(count)


def _geometric_tail(decay: Fraction) -> Callable[[int], arb]:
    """Return the tail of the law P(d) ∝ exp(-d·decay) on 0, 1, 2, …"""
    from flint import arb

    rate = rational(decay)
    return lambda i: arb(-i * rate).exp()


def _digit_tail(decay: Fraction) -> Callable[[int], arb]:
    """Return the tail of the law P(d) ∝ exp(-d·decay) on 0..base-1, written so that nothing cancels."""
    from flint import arb

    rate, base = rational(decay), 2**_DIGIT
    return lambda i: arb(-i * rate).exp() * arb(min(i - base, 0) * rate).expm1() / arb(-base * rate).expm1()


def _nonzero_tail(decay: Fraction) -> Callable[[int], arb]:
    """Return the tail of a 0 or 1 that says whether k ≠ 0: tail(1) = 2p/(1+p) with p = exp(-decay)."""
    from flint import arb

    rate = rational(decay)
    return lambda i: 2 / (1 + arb(rate).exp()) if i == 1 else arb(0)
