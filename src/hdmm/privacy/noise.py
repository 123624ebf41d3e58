"""Discrete Laplace noise, exact on a real computer.

The sampler is algorithm 2 of Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020), run
on many values at once. Why its output has exactly the law P(k) ∝ exp(-|k|/scale):

- the only randomness is whole words from the operating system, made uniform on 0..n-1 by rejection;
- every decision compares such integers, so that nothing is ever rounded: no float, no logarithm, no table;
- loops run until each value is decided. One that is still undecided after 2**17 rounds, which has a probability of at
  most exp(-2**17), means a broken source and is reported as a fault, before an integer could overflow.

There is no seed: the words come from the kernel, which also keeps forked processes apart.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import BudgetError, FaultError

# A value is (u + t·v) // s with u < t ≤ NUMERATOR_LIMIT and v < _ROUNDS, and u + t·v < 2**62 fits int64.
# The scale is at most t: a value leaves ±2**53, where floats stop being exact, with probability below exp(-255).
NUMERATOR_LIMIT = 2**45
_ROUNDS = 2**17
_BLOCK = 2**16


def discrete_laplace(scale: Fraction, count: int) -> NDArray[np.int64]:
    """Draw independent integers k with probability proportional to exp(-|k|/scale), exactly."""
    if scale <= 0:
        raise BudgetError(f"scale={scale}: expected a positive fraction")
    if scale.numerator > NUMERATOR_LIMIT:
        raise BudgetError(f"scale={scale}: the numerator exceeds 2**45; pass the scale through round_up first")
    drawn = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        # Taking the first accepted values, in order, does not bias them.
        accepted = _proposals(scale, min(_BLOCK, 4 * (count - filled)))[: count - filled]
        drawn[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return drawn


def round_up(scale: Fraction) -> Fraction:
    """Return a scale that the sampler can take: never below the given one, and above it by less than 2**-44 of it."""
    if scale <= 0:
        raise BudgetError(f"scale={scale}: expected a positive fraction")
    if scale > NUMERATOR_LIMIT:
        raise BudgetError(
            f"epsilon is too small for this strategy: its noise scale, over 2**{int(scale).bit_length() - 1}, exceeds "
            "2**45 and noisy counts would not be exact; raise epsilon, or choose a strategy with a smaller sensitivity"
        )
    if scale.numerator <= NUMERATOR_LIMIT:
        return scale
    denominator = NUMERATOR_LIMIT // scale
    return Fraction(math.ceil(scale * denominator), denominator)


def laplace_variance(scale: Fraction | float) -> float:
    """Return the variance of the discrete Laplace law with this scale, 2p/(1-p)² where p = exp(-1/scale)."""
    decay = float(min(1 / scale, 1000))  # beyond, the variance is zero in floats
    return 2 * math.exp(-decay) / math.expm1(-decay) ** 2


def _proposals(scale: Fraction, count: int) -> NDArray[np.int64]:
    """Run the algorithm's loop body count times; return the values that it accepts."""
    t, s = scale.numerator, scale.denominator
    u = _uniform(t, count)
    u = u[_bernoulli_exp(u, t)]
    x = u + t * _geometric(u.size)  # P(x) ∝ exp(-x/t) on 0, 1, 2, …
    y = x // min(s, 2**63 - 1)  # every x is below 2**62: a larger s gives zeros just the same
    sign = 1 - 2 * _uniform(2, y.size)
    return (sign * y)[(sign > 0) | (y > 0)]  # zero must not count twice


def _geometric(count: int) -> NDArray[np.int64]:
    """Draw v = 0, 1, 2, … with probability proportional to exp(-v)."""
    v = np.zeros(count, dtype=np.int64)
    active = np.arange(count)
    for _ in range(_ROUNDS):
        active = active[_bernoulli_exp(np.ones_like(active), 1)]
        if not active.size:
            return v
        v[active] += 1
    raise _broken_source()


def _bernoulli_exp(u: NDArray[np.int64], t: int) -> NDArray[np.bool_]:
    """Draw true with probability exp(-u/t), for 0 ≤ u ≤ t: whether the first k with Bernoulli(u/(t·k)) false is odd."""
    odd = np.ones(u.size, dtype=bool)
    active = np.arange(u.size)
    for k in range(1, _ROUNDS):
        # Bernoulli(u/(t·k)) as Bernoulli(1/k) and Bernoulli(u/t): the product t·k is never formed.
        active = active[_uniform(k, active.size) == 0]
        active = active[_uniform(t, active.size) < u[active]]
        if not active.size:
            return odd
        odd[active] ^= True
    raise _broken_source()


def _uniform(n: int, count: int) -> NDArray[np.int64]:
    """Draw integers uniform on 0..n-1, for n ≤ 2**56."""
    if n == 1:
        return np.zeros(count, dtype=np.int64)
    bits = 16 if n <= 2**8 else 32 if n <= 2**24 else 64  # fewer than one word in 2**8 is rejected
    last = 2**bits // n * n - 1  # the words 0..last hold every remainder equally often
    words = np.empty(0, dtype=f"<u{bits // 8}")
    while words.size < count:
        fresh = np.frombuffer(_random_bytes((count - words.size) * bits // 8), dtype=words.dtype)
        words = np.concatenate([words, fresh[fresh <= last]])
    return (words % n).astype(np.int64)


def _random_bytes(count: int) -> bytes:
    return os.urandom(count)


def _broken_source() -> FaultError:
    return FaultError("the operating system's random numbers repeat themselves; no noise was drawn: check the machine")
