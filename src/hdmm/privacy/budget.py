"""Privacy budgets: exact decimals, nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import final

from hdmm.errors import BudgetError, InputError
from hdmm.numbers import NumberError, fraction, shown
from hdmm.syntax import argument, example, given

_DECIMAL = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?")

LIMITS = {name: (Fraction(1, 10**100), most) for name, most in (("epsilon", 500), ("delta", 1), ("rho", 100_000))}
"""The least and the largest amount of each kind."""
_EXAMPLES = {"epsilon": "0.5", "delta": "1e-6", "rho": "0.5"}
"""Amounts that messages suggest."""


@final
@dataclass(frozen=True)
class Budget:
    """ε for Laplace noise; ε with δ, or ρ, for Gaussian noise.

    >>> Budget(epsilon="0.1").epsilon
    Fraction(1, 10)

    Arguments:
        epsilon: ε, as text or as an exact number.
        delta: δ, for Gaussian noise beside ε.
        rho: ρ of zero-concentrated differential privacy, for Gaussian noise, instead of ε and δ.
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
            epsilon_alone, with_delta = example("epsilon", "1"), example("delta", "1e-6")
            rho_alone = example("rho", "0.5")
            raise BudgetError(f"a budget is {epsilon_alone}, or {epsilon_alone} with {with_delta}, or {rho_alone}")
        if rho is not None and delta is not None:
            raise BudgetError(f"{given('delta', shown(delta))}: rho needs no delta; leave one of them out")
        object.__setattr__(self, "epsilon", _positive("epsilon", epsilon))
        object.__setattr__(self, "rho", _positive("rho", rho))
        object.__setattr__(self, "delta", _positive("delta", delta))

    def __str__(self) -> str:
        parts = {"ε": self.epsilon, "δ": self.delta, "ρ": self.rho}
        return ", ".join(f"{symbol} = {decimal_text(value)}" for symbol, value in parts.items() if value is not None)

    def check(self, noise: str) -> None:
        """Refuse a budget that does not fit the noise."""
        if noise == "laplace" and self.rho is not None:
            raise BudgetError(
                f"{argument('rho')}: Laplace noise takes {argument('epsilon')}; {argument('rho')} is for Gaussian noise"
            )
        if noise == "laplace" and self.delta is not None:
            raise BudgetError(
                f"{argument('delta')}: Laplace noise takes {argument('epsilon')} alone; leave {argument('delta')} "
                "out, or plan with Gaussian noise"
            )
        if noise == "gaussian" and self.rho is None and self.delta is None:
            raise BudgetError(
                f"{argument('delta')}: Gaussian noise needs it beside {argument('epsilon')}; write for example "
                f"{example('delta', '1e-6')}"
            )


def check_budget(budget: object) -> None:
    """Refuse what is not a budget."""
    if not isinstance(budget, Budget):
        raise InputError(f'budget={budget!r}: expected a Budget, for example hdmm.Budget(epsilon="1")')


def decimal_text(value: Fraction) -> str:
    """A decimal fraction as text that reads back exactly; any other fraction as a fraction."""
    power, rest = 0, value.denominator
    while rest % 10 == 0:
        power, rest = power + 1, rest // 10
    while rest % 2 == 0 or rest % 5 == 0:
        power, rest = power + 1, rest // (2 if rest % 2 == 0 else 5)
    if rest != 1:
        return str(value)
    digits = str(value.numerator * 10**power // value.denominator)
    if power == 0 and len(digits) <= 7:
        return digits
    mantissa = digits.rstrip("0")
    exponent = len(digits) - 1 - power
    if -7 < exponent < 7:
        padded = (
            mantissa.rjust(len(mantissa) - min(exponent, 0), "0") if exponent < 0 else mantissa.ljust(exponent + 1, "0")
        )
        place = max(exponent, 0) + 1
        return padded[:place] + (f".{padded[place:]}" if padded[place:] else "")
    return mantissa[0] + (f".{mantissa[1:]}" if mantissa[1:] else "") + f"e{exponent:+d}"


def _positive(name: str, amount: str | int | Decimal | Fraction | None) -> Fraction | None:
    """The exact amount, checked; None without one."""
    if amount is None:
        return None
    if isinstance(amount, float):
        raise BudgetError(f'{name}={amount!r}: a float is not an exact decimal; write {name}="{amount!r}"')
    try:
        if isinstance(amount, (int, Fraction)) and not isinstance(amount, bool):
            exact = fraction(amount)
        elif not isinstance(amount, bool) and _DECIMAL.fullmatch(str(amount).strip()):
            exact = fraction(str(amount))
        else:
            raise _refused(name, amount, "expected a positive decimal")
    except NumberError as error:
        raise _refused(name, amount, str(error)) from None
    if exact <= 0:
        raise _refused(name, str(amount), "expected a positive decimal")
    least, most = LIMITS[name]
    if name == "delta" and exact >= most:
        raise _refused(name, str(amount), "expected a decimal between 0 and 1")
    if not least <= exact <= most:
        reason = f"above {most} nothing is protected" if exact > most else "nothing can be measured so privately"
        raise _refused(name, str(amount), reason)
    return exact


def _refused(name: str, amount: object, reason: str) -> BudgetError:
    return BudgetError(f"{given(name, shown(amount))}: {reason}; write for example {example(name, _EXAMPLES[name])}")
