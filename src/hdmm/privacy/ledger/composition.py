"""What releases add up to, and whether that fits what was granted, whichever way their budgets were chosen.

- Laplace releases, ε alone: the ε add up (basic composition), as exact fractions.
- Gaussian releases, (ε, δ) or ρ: each is a Gaussian mechanism with μ = 1/σ at sensitivity one, rounded afterwards. Such
  releases together are again one, whose μ² is the sum (Dong, Roth and Su 2019), so that nothing is lost. μ² is kept
  as a decimal that is rounded up.
- Granted ρ: ρ-zCDP adds up (Bun and Steinke 2016). A Gaussian release has ρ = μ²/2, a Laplace release ρ = ε²/2.
- Granted (ε, δ): the Gaussian releases must fit (ε', δ) by the analytic Gaussian mechanism, where ε' is ε less what the
  Laplace releases before the first Gaussian one took. A Laplace release after it counts as the Gaussian release that
  leaks whatever it leaks and more. A Gaussian release that is the only one may also use that (ε', δ) exactly, because
  that is what it promises.
- Granted ε alone: Gaussian releases have no such ε and are refused.

Queries may be chosen by looking at earlier releases, and so may budgets (Feldman and Zrnic 2021; Smith and Thakurta
2022): which rule a release is counted by is settled by what came before it. docs/privacy.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, final

from hdmm.errors import BudgetError, FaultError
from hdmm.privacy.balls import ball, precision
from hdmm.privacy.budget import LIMITS, Budget, decimal_text
from hdmm.privacy.calibrate import certified_sigma

_UP = Context(prec=20, rounding=ROUND_CEILING)  # for what is charged
_DOWN = Context(prec=6, rounding=ROUND_FLOOR)  # for what is left
_LEAST_EPSILON, _ = LIMITS["epsilon"]


@final
@dataclass(frozen=True)
class Amount:
    """What is spent or left: ε of Laplace noise and ρ of Gaussian noise, or ρ of both if ρ is granted.

    Under (ε, δ), ``late`` says that the ρ which was spent is also that of Laplace releases after a Gaussian one.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    joined: Literal["and", "or"] = "and"
    late: bool = False

    def __bool__(self) -> bool:
        """Whether it is more than nothing."""
        return bool(self.epsilon or self.rho)

    def __str__(self) -> str:
        epsilon = None if self.epsilon is None else f"ε = {decimal_text(self.epsilon)}"
        rho = None if self.rho is None else f"ρ = {decimal_text(self.rho)}"
        if epsilon and rho:
            after = " and Laplace noise after it" if self.late else ""
            return f"{epsilon} by Laplace noise {self.joined} {rho} by Gaussian noise{after}"
        return epsilon or rho or ""


@final
@dataclass(frozen=True)
class Charged:
    """What releases add up to, by each of the rules."""

    epsilon: Fraction = Fraction(0)  # of Laplace releases before the first Gaussian one
    mu_squared: Fraction = Fraction(0)  # of Gaussian releases, and of the Laplace releases after the first of them
    rho: Fraction = Fraction(0)  # of all
    gaussians: int = 0
    late: int = 0  # how many Laplace releases came after a Gaussian one
    last: Budget | None = None  # of the Gaussian releases

    def plus(self, budget: Budget, mu_squared: Fraction | None) -> Charged:
        """With one more release; μ² is that of a Gaussian one."""
        if mu_squared is not None:
            return replace(
                self,
                mu_squared=self.mu_squared + mu_squared,
                rho=self.rho + (mu_squared / 2 if budget.rho is None else budget.rho),
                gaussians=self.gaussians + 1,
                last=budget,
            )
        assert budget.epsilon is not None
        rho = self.rho + budget.epsilon**2 / 2
        if not self.gaussians:
            return replace(self, epsilon=self.epsilon + budget.epsilon, rho=rho)
        late = self.mu_squared + mu_squared_of_laplace(budget.epsilon)
        return replace(self, mu_squared=late, rho=rho, late=self.late + 1)

    def fits(self, granted: Budget) -> bool:
        """Whether all of this is as private as was granted."""
        if granted.rho is not None:
            return self.rho <= granted.rho
        assert granted.epsilon is not None
        rest = granted.epsilon - self.epsilon
        if self.last is None:
            return rest >= 0
        if granted.delta is None:
            return False
        promised = self.gaussians == 1 and not self.late and _within(self.last, rest, granted.delta)
        return promised or self.mu_squared <= capacity(rest, granted.delta)

    def spent(self, granted: Budget) -> Amount:
        """What was taken of the grant, by the rule that holds for it."""
        if granted.rho is not None:
            return Amount(None, self.rho)
        return Amount(self.epsilon, None if granted.delta is None else self.mu_squared / 2, late=bool(self.late))

    def left(self, granted: Budget) -> Amount:
        """What one more release may take; under (ε, δ), one amount by Laplace noise or another by Gaussian noise."""
        if granted.rho is not None:
            return Amount(None, max(granted.rho - self.rho, Fraction(0)))
        assert granted.epsilon is not None
        rest = max(granted.epsilon - self.epsilon, Fraction(0))
        if granted.delta is None:
            return Amount(rest, None)
        free = max(capacity(rest, granted.delta) - self.mu_squared, Fraction(0))
        epsilon = epsilon_of_laplace(free) if self.gaussians else rest
        return Amount(epsilon, round_fraction(free / 2, _DOWN), "or")


def _within(budget: Budget, epsilon: Fraction, delta: Fraction) -> bool:
    if budget.epsilon is None or budget.delta is None:
        return False
    return budget.epsilon <= epsilon and budget.delta <= delta


def mu_squared_of(budget: Budget) -> Fraction | None:
    """μ² of a Gaussian release at this budget, rounded up; None for a Laplace release."""
    if budget.rho is not None:
        return round_fraction(2 * budget.rho, _UP)
    return None if budget.delta is None else round_fraction(1 / certified_sigma(budget) ** 2, _UP)


@lru_cache(maxsize=256)
def capacity(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The μ² that Gaussian releases may have together at (ε, δ): one for which ball arithmetic proves it."""
    if epsilon < _LEAST_EPSILON:
        return Fraction(0)
    try:
        return 1 / certified_sigma(Budget(epsilon, delta)) ** 2
    except (FaultError, BudgetError):  # no noise that could be verified, or drawn
        return Fraction(0)


@lru_cache(maxsize=256)
def mu_squared_of_laplace(epsilon: Fraction) -> Fraction:
    """μ² of the least Gaussian release that leaks all that any ε-private one leaks, rounded up.

    At μ = 2·Φ⁻¹(e^ε/(1 + e^ε)) the trade-off curves of both meet (Dong, Roth and Su 2019).
    """
    with precision(320 + int(3 * epsilon) + 2 * epsilon.denominator.bit_length()):
        half = ball(epsilon / 2)
        quantile = half.tanh().erfinv() if epsilon < 1 else (2 / (1 + (2 * half).exp())).erfcinv()
        return round_fraction(_fraction((8 * quantile**2).upper()), _UP)


def epsilon_of_laplace(mu_squared: Fraction) -> Fraction:
    """The largest ε at which a Laplace release counts as at most this μ², rounded down."""
    if mu_squared < _LEAST_EPSILON**2:
        return Fraction(0)
    with precision(320 + int(mu_squared) + 2 * mu_squared.denominator.bit_length()):
        root = (ball(mu_squared) / 8).sqrt()
        epsilon = (root.erf().atanh() * 2) if mu_squared < 1 else (2 / root.erfc() - 1).log()
        rounded_down = round_fraction(_fraction(epsilon.lower()), _DOWN)
    return rounded_down if rounded_down >= _LEAST_EPSILON else Fraction(0)


def _fraction(end: Any) -> Fraction:
    """The exact value of an end of a ball."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def round_fraction(value: Fraction, context: Context) -> Fraction:
    """A decimal near a fraction, to the digits and in the direction of the context."""
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))
