"""What the releases of a ledger leak together, for a reader; nothing is admitted or refused by it.

Laplace releases leak the sum of their ε. Gaussian releases leak as one Gaussian release, of which the ε at a δ is known
exactly and proved by ball arithmetic. For both together, dp-accounting composes privacy loss distributions, rounded so
that they never promise too much: a Gaussian one, and for every Laplace release a randomised response, the worst of all
ε-private mechanisms. Discrete Laplace noise on answers that one person changes by one is just that, so a continuous
Laplace distribution would promise too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from math import inf, isfinite, log
from typing import Literal, final

from hdmm.privacy.budget import Budget, decimal_text
from hdmm.privacy.calibrate import leaks_at_most, root_above
from hdmm.privacy.ledger.composition import Charged, round_fraction

USUAL_DELTA = Fraction(1, 10**6)

_SIX_UP = Context(prec=6, rounding=ROUND_CEILING)
_UNPROTECTED = 1000  # an ε beyond which nobody asks for six digits, which would take long to prove
_STEPS = 2**15  # of the grid of losses, from zero to about the ε that is leaked
_NOISE = 1e-12  # above what rounding in Fourier transforms adds to a probability, by three orders of magnitude
_LEAST_DELTA = Fraction(1, 10**9)  # below, _NOISE would matter
_MAX_BUDGETS = 50  # that differ; each is one more composition
_EPSILONS = (Fraction(1, 10**7), Fraction(150))  # for which the grid was compared with exact values


@final
@dataclass(frozen=True)
class Leak:
    """What releases with this noise leak: ε, or ε at δ."""

    noise: Literal["Laplace", "Gaussian", "both"]
    epsilon: Fraction
    delta: Fraction | None = None

    def __str__(self) -> str:
        at = "" if self.delta is None else f" at δ = {decimal_text(self.delta)}"
        by = "all together" if self.noise == "both" else f"by {self.noise} noise"
        return f"ε = {decimal_text(self.epsilon)}{at} {by}"


def leaks(releases: Sequence[tuple[Budget, Fraction | None]], delta: Fraction) -> tuple[Leak, ...]:
    """What releases leak at δ, each given by its budget and, if Gaussian, its μ²: by kind of noise, and together."""
    charged = Charged()
    for release in releases:
        charged = charged.plus(*release)
    laplace = [budget.epsilon for budget, mu_squared in releases if mu_squared is None and budget.epsilon is not None]
    mu_squared = sum((mu_squared for _, mu_squared in releases if mu_squared is not None), Fraction(0))
    added = sum(laplace, Fraction(0))
    by_noise = [Leak("Laplace", added)] if laplace else []
    if mu_squared:
        gaussian = gaussian_epsilon(mu_squared, delta)
        by_noise.append(Leak("Gaussian", gaussian, delta))
        if laplace:
            counted = charged.epsilon + gaussian_epsilon(charged.mu_squared, delta)  # as they were admitted
            together = epsilon_together(laplace, mu_squared, min(added + gaussian, counted), delta)
            by_noise.append(Leak("both", together, delta))
    return tuple(by_noise)


def gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """The least ε, to six digits, for which ball arithmetic proves that Gaussian releases leak at most δ."""
    mu = root_above(mu_squared)
    low, high = Fraction(0), mu_squared / 2 + mu * root_above(Fraction(-2 * log(delta) * 1.001))  # Bun and Steinke 2016
    if leaks_at_most(1 / mu, low, delta):
        return low
    if high > _UNPROTECTED:
        return round_fraction(high, _SIX_UP)
    while high - low > high / 10**16:
        middle = (low + high) / 2
        low, high = (low, middle) if leaks_at_most(1 / mu, middle, delta) else (middle, high)
    return round_fraction(high, _SIX_UP)


def epsilon_together(laplace: Sequence[Fraction], mu_squared: Fraction, most: Fraction, delta: Fraction) -> Fraction:
    """An ε, to six digits, at which Laplace releases of these ε and Gaussian ones of this μ² leak at most δ together.

    ``most`` is such an ε that is known already, and the answer if distributions would be inaccurate or slow.
    """
    if delta < _LEAST_DELTA or not _EPSILONS[0] <= most <= _EPSILONS[1] or len(set(laplace)) > _MAX_BUDGETS:
        return round_fraction(most, _SIX_UP)
    epsilon = _by_distributions(laplace, mu_squared, most, delta)
    return round_fraction(min(most, Fraction(epsilon)) if isfinite(epsilon) else most, _SIX_UP)


def _by_distributions(laplace: Sequence[Fraction], mu_squared: Fraction, size: Fraction, delta: Fraction) -> float:
    from dp_accounting.pld import common, privacy_loss_distribution

    mu = _above(root_above(mu_squared))
    step = max(float(size), mu) / _STEPS
    joint = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=step)
    for laplace_epsilon, times in Counter(laplace).items():
        private = common.DifferentialPrivacyParameters(_above(laplace_epsilon), 0)
        worst = privacy_loss_distribution.from_privacy_parameters(private, value_discretization_interval=step)
        joint = joint.compose(worst if times == 1 else worst.self_compose(times))
    epsilon = float(joint.get_epsilon_for_delta(float(delta) - _NOISE))
    return _above(Fraction(epsilon)) if isfinite(epsilon) else inf


def _above(value: Fraction) -> float:
    """A float above a fraction, by more than its rounding error."""
    return float(value) * (1 + 1e-12)
