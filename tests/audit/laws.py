"""Audit: the samplers draw from discrete Laplace and rounded normal laws of exactly the scale that they are given."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.stats import norm

from hdmm.privacy.sampling.samplers import discrete_laplace, rounded_gaussian
from hdmm.privacy.scale import MAX_SCALE, laplace_variance
from tests.audit.statistics import LEVEL, chi_square_chance, moment_deviations, normal_chance, together
from tests.audit.verdict import Audit, Verdict

Sampler = Callable[[Fraction, int], np.ndarray]

SCALES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(7, 3),
    Fraction(10),
    Fraction(2001, 2),
    2**20 + Fraction(1, 3),
    Fraction(MAX_SCALE),
]
DRAWS = 500_000
SHORT = Fraction(98, 100)


def laplace_cdf(scale: Fraction) -> Callable:
    """P(noise ≤ k) of the discrete Laplace law."""
    p = math.exp(-1 / scale)
    return lambda k: np.where(k < 0, p ** np.abs(k) / (1 + p), 1 - p ** (k + 1.0) / (1 + p))


def gaussian_cdf(sigma: Fraction) -> Callable:
    """P(noise ≤ k) of a normal real that is rounded to the nearest integer."""
    return lambda k: norm.cdf((k + 0.5) / float(sigma))


def laplace_moments(scale: Fraction) -> tuple[float, float]:
    """The second and the fourth moment of the discrete Laplace law."""
    v = laplace_variance(scale)
    return v, v + 6 * v**2


def gaussian_moments(sigma: Fraction) -> tuple[float, float]:
    """The same of a rounded normal real, by Sheppard's corrections: exact to exp(-2π²σ²), 3e-9 at σ = 1."""
    s2 = float(sigma) ** 2
    return s2 + 1 / 12, 3 * s2**2 + s2 / 2 + 1 / 80


def shape(cdf: Callable) -> Callable[[Sampler, int], Verdict]:
    """The χ² test against a law, at every scale."""

    def run(sampler: Sampler, draws: int) -> Verdict:
        chances = [chi_square_chance(sampler(scale, draws), cdf(scale), scale) for scale in SCALES]
        return Verdict("p", together(chances), ">=", LEVEL)

    return run


def moments(exact: Callable) -> Callable[[Sampler, int], Verdict]:
    """The mean, the variance and the balance of signs against a law, at every scale but the smallest."""

    def run(sampler: Sampler, draws: int) -> Verdict:
        off = [moment_deviations(sampler(scale, draws), *exact(scale)) for scale in SCALES[1:]]
        return Verdict("p", normal_chance(np.array(off)), ">=", LEVEL)

    return run


def short(sampler: Sampler) -> Sampler:
    """The fault: a scale that is 2% too small."""
    return lambda scale, count: sampler(scale * SHORT, count)


AUDITS = [
    Audit(name, run, sampler, {"scale −2%": short(sampler)}, DRAWS, DRAWS, "draws")
    for name, run, sampler in (
        ("discrete Laplace law, χ²", shape(laplace_cdf), discrete_laplace),
        ("rounded Gaussian law, χ²", shape(gaussian_cdf), rounded_gaussian),
        ("discrete Laplace, mean and variance", moments(laplace_moments), discrete_laplace),
        ("rounded Gaussian, mean and variance", moments(gaussian_moments), rounded_gaussian),
    )
]
