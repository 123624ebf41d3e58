"""The statistics that audits share: each gives the chance of something as extreme where all is well, or a bound on it.

An audit takes several of them together by Bonferroni's rule, and raises an alarm below LEVEL.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.stats import beta, chi2, norm

LEVEL = 1e-6
"""The rate of false alarms of one audit, at most."""


def together(chances: Iterable[float]) -> float:
    """The chance that any of several statistics is as extreme as the most extreme of them (Bonferroni)."""
    found = list(chances)
    return min(1.0, len(found) * min(found))


def normal_chance(deviations: float | np.ndarray) -> float:
    """The chance that one of several standard normal variables is as far out as the furthest of these."""
    sizes = np.abs(np.atleast_1d(deviations))
    return min(1.0, 2 * sizes.size * float(norm.sf(sizes.max())))


def chi_square_chance(draws: np.ndarray, cdf: Callable, scale: Fraction, bins: int = 30) -> float:
    """Pearson's test of integers against a law, over bins that hold at least 0.5% of it, tails included."""
    quantiles = np.sort(np.concatenate([np.arange(-4, 5), float(scale) * np.linspace(-4, 4, bins)]))
    kept, below = [], 0.0
    for edge in np.unique(np.floor(quantiles)):
        reached = float(cdf(edge))
        if reached - below >= 0.005 and 1 - reached >= 0.005:
            kept.append(edge)
            below = reached
    expected = np.diff([0.0, *(float(cdf(edge)) for edge in kept), 1.0]) * draws.size
    observed = np.bincount(np.searchsorted(np.array(kept), draws), minlength=expected.size)  # kept[i-1] < k ≤ kept[i]
    return float(chi2.sf(np.sum((observed - expected) ** 2 / expected), expected.size - 1))


def moment_deviations(draws: np.ndarray, variance: float, fourth: float) -> tuple[float, float, float]:
    """How many standard errors the mean, the variance and the signs of symmetric draws are off."""
    x = draws.astype(float)
    mean = x.mean() / math.sqrt(variance / x.size)
    spread = (np.mean(x**2) - variance) / math.sqrt((fourth - variance**2) / x.size)
    return abs(mean), abs(spread), abs(np.sign(x).sum()) / math.sqrt(np.count_nonzero(x))


def clopper_pearson(hits: int, runs: int, outside: float) -> tuple[float, float]:
    """Bounds on a probability, each wrong with a chance of at most `outside`, whatever the probability is."""
    low = float(beta.ppf(outside, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.isf(outside, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


def mean_chance(values: np.ndarray, mean: float) -> float:
    """The chance that the mean of many values is as far off, corrected for their skewness (Hall 1992).

    Ten times over: for squares of Laplace variables the correction alone gives 1.2 times too few in ten thousand.
    """
    n, spread = values.size, values.std(ddof=1)
    skewness = np.mean((values - values.mean()) ** 3) / spread**3
    off = (values.mean() - mean) / spread
    corrected = off + skewness * off**2 / 3 + skewness**2 * off**3 / 27 + skewness / (6 * n)
    return min(1.0, 10 * normal_chance(math.sqrt(n) * corrected))


def spread_chance(ratio: float, count: int) -> float:
    """A bound on the chance that the mean square of `count` errors is this far from their variance, as a ratio.

    It holds for every weighted sum of independent Laplace or normal variables: no such sum has larger even moments,
    for its variance, than a single Laplace variable Z. Below 1, P ≤ exp(-n·d²/2E[Z⁴]) with E[Z⁴] = 6, because squares
    are not negative; above 1 it is Chernoff's bound for Z², cut off where not one in 10⁹ such audits gets.
    """
    if ratio <= 1:
        return 2 * math.exp(-count * (1 - ratio) ** 2 / 12)
    t, grown = _square_of_laplace(count)
    return min(1.0, 1e-9 + 2 * math.exp(-count * max(0.0, float(np.max(t * ratio - grown)))))


def squares_chance(ratio: float, eigenvalues: np.ndarray, count: int) -> float:
    """A bound on the chance that the mean of `count` sums of squares is this far from its expectation, as a ratio.

    A sum is Σλz², of independent standard normal z and eigenvalues λ that add up to 1. Chernoff's bound holds at every
    t with 2tλ < 1, where log E[exp(tΣλz²)] = -½Σlog(1-2tλ). The least of many is taken, doubled for both sides.
    """
    steps = np.linspace(0, 1, 1_000, endpoint=False)[1:] / (2 * eigenvalues.max())
    t = steps if ratio > 1 else -steps
    grown = -np.log1p(-2 * np.outer(t, eigenvalues)).sum(axis=1) / 2
    return min(1.0, 2 * math.exp(-count * float(np.max(t * ratio - grown))))


@cache
def _square_of_laplace(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Some t, and log E[exp(tZ²)] up to where Z gets in `count` draws with a chance of 10⁻⁹."""
    end = math.log(1e9 * count) / math.sqrt(2)
    places, weights = np.polynomial.legendre.leggauss(400)
    z = (places + 1) * end / 2
    t = np.linspace(0, math.sqrt(2) / end, 200)
    density = math.sqrt(2) * np.exp(t[:, None] * z**2 - math.sqrt(2) * z)
    return t, np.log(density @ (weights * end / 2))
