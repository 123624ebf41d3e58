"""From a budget to the noise on every block of a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from typing import Literal, final

from hdmm.matrix import Norm
from hdmm.privacy.budget import Budget
from hdmm.privacy.noise import laplace_variance, round_up
from hdmm.strategy import Block, sensitivity

NoiseKind = Literal["laplace", "gaussian"]
NORM: dict[NoiseKind, Norm] = {"laplace": 1, "gaussian": 2}


@final
@dataclass(frozen=True)
class Calibration:
    """The noise on each block: its scale (Laplace) or standard deviation (Gaussian), and its exact variance."""

    kind: NoiseKind
    scales: tuple[Fraction, ...] | tuple[float, ...]
    variances: tuple[float, ...]


def calibrate(blocks: Sequence[Block], kind: NoiseKind, budget: Budget) -> Calibration:
    """The least noise that gives the budget's privacy for all blocks together.

    A person changes the answers of all blocks by at most Δ in weighted norm, so a block of weight θ gets noise of scale
    Δ/(θ·ε), or standard deviation Δ·σ/θ. Laplace scales are fractions, rounded up where they are not representable.
    """
    budget.check(kind)
    if kind == "laplace":
        assert budget.epsilon is not None
        delta = Fraction(sensitivity(blocks, 1))
        scales = tuple(round_up(delta / (block.weight * budget.epsilon)) for block in blocks)
        return Calibration(kind, scales, tuple(laplace_variance(scale) for scale in scales))
    sigma = gaussian_sigma(budget) * sqrt(sensitivity(blocks, 2))
    sigmas = tuple(sigma / float(block.weight) for block in blocks)
    # Published noise is rounded to integers, which adds 1/12.
    return Calibration(kind, sigmas, tuple(value**2 + 1 / 12 for value in sigmas))


def unit_variance(kind: NoiseKind, budget: Budget) -> float:
    """The least noise variance that any strategy of integer queries can have at sensitivity one."""
    if kind == "laplace":
        assert budget.epsilon is not None
        return laplace_variance(1 / budget.epsilon)
    return gaussian_sigma(budget) ** 2


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
