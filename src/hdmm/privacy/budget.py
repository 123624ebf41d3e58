"""Privacy budgets: exact decimals, nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import final

from hdmm.errors import BudgetError

_DECIMAL = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?")


@final
@dataclass(frozen=True)
class Budget:
    """ε for Laplace noise; ε with δ, or ρ, for Gaussian noise.

    >>> Budget(epsilon="0.1").epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def __init__(
        self,
        epsilon: str | int | Decimal | Fraction | None = None,
        delta: str | int | Decimal | Fraction | None = None,
        rho: str | int | Decimal | Fraction | None = None,
    ) -> None:
        if (epsilon is None) == (rho is None):
            raise BudgetError('a budget is epsilon="1", or epsilon="1" with delta="1e-6", or rho="0.5"')
        if rho is not None and delta is not None:
            raise BudgetError(f"delta={delta!r}: rho needs no delta; leave one of them out")
        object.__setattr__(self, "epsilon", _positive("epsilon", epsilon))
        object.__setattr__(self, "rho", _positive("rho", rho))
        exact = _positive("delta", delta)
        if exact is not None and exact >= 1:
            raise BudgetError(
                f'delta={str(delta)!r}: expected a decimal between 0 and 1; write for example delta="1e-6"'
            )
        object.__setattr__(self, "delta", exact)

    def __str__(self) -> str:
        parts = {"ε": self.epsilon, "δ": self.delta, "ρ": self.rho}
        return ", ".join(f"{symbol} = {decimal_text(value)}" for symbol, value in parts.items() if value is not None)

    def check(self, noise: str) -> None:
        """Refuse a budget that does not fit the noise."""
        if noise == "laplace" and self.rho is not None:
            raise BudgetError("rho: Laplace noise takes epsilon; rho is for Gaussian noise")
        if noise == "laplace" and self.delta is not None:
            raise BudgetError("delta: Laplace noise takes epsilon alone; leave delta out, or plan with Gaussian noise")
        if noise == "gaussian" and self.rho is None and self.delta is None:
            raise BudgetError('delta: Gaussian noise needs it beside epsilon; write for example delta="1e-6"')


def decimal_text(value: Fraction) -> str:
    """A decimal fraction as the shortest text that reads back exactly."""
    digits = Decimal(value.numerator) / Decimal(value.denominator) if value.denominator == 1 else _decimal(value)
    return format(digits.normalize(), "f") if -7 < digits.adjusted() < 7 else str(digits.normalize()).replace("E", "e")


def _decimal(value: Fraction) -> Decimal:
    power = 0
    while (value.numerator * 10**power) % value.denominator:
        power += 1
        if power > 1200:
            return Decimal(value.numerator) / Decimal(value.denominator)
    mantissa = value.numerator * 10**power // value.denominator
    return Decimal((0, tuple(int(digit) for digit in str(mantissa)), -power))


def _positive(name: str, given: str | int | Decimal | Fraction | None) -> Fraction | None:
    if given is None:
        return None
    if isinstance(given, float):
        raise BudgetError(f'{name}={given!r}: a float is not an exact decimal; write {name}="{given!r}"')
    if isinstance(given, Fraction):
        exact = given
    else:
        text = str(given).strip()
        if isinstance(given, bool) or not _DECIMAL.fullmatch(text):
            raise BudgetError(f'{name}={given!r}: expected a positive decimal; write for example {name}="0.5"')
        exact = Fraction(text)
    if exact <= 0:
        raise BudgetError(f'{name}={str(given)!r}: expected a positive decimal; write for example {name}="0.5"')
    return exact
