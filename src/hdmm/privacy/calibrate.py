"""From a budget to the noise on every block of a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, isqrt, sqrt
from typing import Literal, final

import numpy as np

from hdmm.errors import FaultError
from hdmm.matrix import Norm
from hdmm.privacy.balls import ball, precision
from hdmm.privacy.budget import Budget
from hdmm.privacy.scale import laplace_variance, round_up
from hdmm.strategy import Block
from hdmm.strategy.sensitivity import Change

NoiseKind = Literal["laplace", "gaussian"]
NORM: dict[NoiseKind, Norm] = {"laplace": 1, "gaussian": 2}


@final
@dataclass(frozen=True)
class Calibration:
    """The noise on each block: its scale (Laplace) or σ before rounding (Gaussian), and the variance that it has."""

    kind: NoiseKind
    scales: tuple[Fraction, ...]
    variances: tuple[float, ...]


def calibrate(blocks: Sequence[Block], kind: NoiseKind, budget: Budget, change: Change) -> Calibration:
    """The least noise that gives the budget's privacy for all blocks together.

    A person changes the answers of all blocks by at most Δ in weighted norm (``Unit.change``), so a block of weight θ
    gets noise of scale Δ/(θ·ε), or standard deviation Δ·σ/θ: one joint mechanism. All of them are fractions, rounded up
    if they must be rounded.
    """
    budget.check(kind)
    if kind == "laplace":
        assert budget.epsilon is not None
        delta = Fraction(change.power)
        scales = tuple(round_up(delta / (block.weight * budget.epsilon)) for block in blocks)
        return Calibration(kind, scales, tuple(laplace_variance(scale) for scale in scales))
    sigma = certified_sigma(budget) * root_above(Fraction(change.power))
    noises: dict[tuple[int, int], tuple[Fraction, float]] = {}  # a pair of integers is looked up faster than a fraction
    keys = [block.weight.as_integer_ratio() for block in blocks]
    for key, block in zip(keys, blocks, strict=True):
        if key not in noises:
            scale = round_up(sigma / block.weight)
            noises[key] = (scale, rounded_variance(float(scale)))
    scales, variances = zip(*(noises[key] for key in keys), strict=True)
    return Calibration(kind, scales, variances)


def unit_variance(kind: NoiseKind, budget: Budget, rows: int = 1) -> float:
    """The factor from a lower bound at unit noise to one at a budget, for any integer queries, if ``rows`` rows change.

    Queries of integers change by at least 1 for each row, so that no block has noise of a scale s below that of one
    count, s₀. With f(s) the variance of that noise, the error is at least the least f(s)/s² for s ≥ s₀, times that of
    continuous noise. Discrete Laplace noise has f(s)/s² = ½/(s·sinh(1/2s))², which grows with s: it is least at s₀.
    Rounded Gaussian noise has f(s) = Σ (2j + 1)·erfc((2j + 1)/(√8·s)), j ≥ 0, and f(s)/s² grows up to s = 0.4, as each
    erfc(z)/s² does for z ≥ 0.85. From there on f(s) = s² + 1/12 + Σ (−1)ʲ·exp(−2π²j²s²)·(4s² + 1/π²j²), j ≥ 1, which
    is above s² by 0.05 at least. So f(s)/s² is nowhere below what it is at s₀, or not below 1 if it is above 1 there.
    """
    if kind == "laplace":
        assert budget.epsilon is not None
        return laplace_variance(rows / budget.epsilon)
    sigma = rows * gaussian_sigma(budget)
    return min(sigma**2, rounded_variance(sigma))


def rounded_variance(sigma: float) -> float:
    """The variance of Gaussian noise that is rounded to integers: σ² + 1/12, unless σ is so small that steps show."""
    if sigma >= 1:
        return sigma**2 + 1 / 12
    from scipy.special import erfc

    edges = (np.arange(0, 12) + 0.5) / (sqrt(2) * sigma)  # E k² = Σ (2j + 1)·P(|k| > j)
    return float(np.sum((2 * np.arange(12) + 1) * erfc(edges)))


def root_above(value: Fraction) -> Fraction:
    """A fraction that is not below the square root, and above it by less than 2^-60 of it."""
    shift = max(0, 64 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    whole = -(-(value.numerator << 2 * shift) // value.denominator)
    return Fraction(isqrt(whole - 1) + 1 if whole else 0, 1 << shift)


@lru_cache(maxsize=64)
def certified_sigma(budget: Budget) -> Fraction:
    """σ at sensitivity one, rounded up: at most δ is leaked, which ball arithmetic verifies; or ρ = 1/2σ² is kept."""
    if budget.rho is not None:
        return root_above(1 / (2 * budget.rho))
    assert budget.epsilon is not None
    assert budget.delta is not None
    start = Fraction(gaussian_sigma(budget))
    for bits in range(44, 20, -4):
        sigma = round_up(start * (1 + Fraction(1, 2**bits)))
        if leaks_at_most(sigma, budget.epsilon, budget.delta):
            return sigma
    raise FaultError(f"{budget}: no noise for it could be verified; choose a larger delta")


def leaks_at_most(sigma: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise of this σ at sensitivity one is (ε, δ)-private, proved by ball arithmetic.

    The δ that it needs is Φ(1/2σ − εσ) − e^ε·Φ(−1/2σ − εσ) (Balle and Wang 2018, theorem 8).
    """
    with precision(256 + int(2 * epsilon) + delta.denominator.bit_length()) as flint:
        s, e, d = (ball(value) for value in (sigma, epsilon, delta))
        a, b = 1 / (2 * s), e * s
        root = flint.arb(2).sqrt()
        needed = (((b - a) / root).erfc() - e.exp() * ((a + b) / root).erfc()) / 2
        return bool(needed <= d)


def gaussian_sigma(budget: Budget) -> float:
    """The analytic Gaussian mechanism's σ at sensitivity one (Balle and Wang 2018), or 1/√(2ρ)."""
    if budget.rho is not None:
        return 1 / sqrt(2 * budget.rho)
    from scipy.special import log_ndtr

    assert budget.epsilon is not None
    assert budget.delta is not None
    epsilon, delta = float(budget.epsilon), float(budget.delta)

    def leaked(sigma: float) -> float:
        a, b = 1 / (2 * sigma), epsilon * sigma
        return float(exp(log_ndtr(a - b)) - exp(epsilon + log_ndtr(-a - b)))

    low, high = 1e-3, 1.0
    while leaked(high) > delta:
        high *= 2
    while leaked(low) < delta:
        low /= 2
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if leaked(middle) > delta else (low, middle)
    return high
