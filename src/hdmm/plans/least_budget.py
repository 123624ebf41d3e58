"""The reverse question: how much budget do these accuracies need?

Margins shrink with the budget, in steps if noise is on few integers, so the least budget is found by bisection among
the decimals of four digits. Margins grow only when Gaussian noise on a block becomes so small that its steps are
accounted for, and then by little: the stretches between such places are searched one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING

from hdmm.accuracy.predict import FINE, accuracy
from hdmm.errors import BudgetError, InputError
from hdmm.plans.plan import Plan
from hdmm.privacy.budget import LIMITS, Budget
from hdmm.privacy.calibrate import Calibration
from hdmm.workload.targets import by_product

if TYPE_CHECKING:
    import pyarrow as pa

_DIGITS = Context(prec=4)
_DECADE = 9000
"""How many decimals of four digits there are from one power of ten to just before the next."""
_GUESSES = 4
"""Guesses of the budget, each from the margins at the one before."""
_MAX_GUESS_RATIO = 1e6
"""The largest factor by which a guess changes the budget."""
_MAX_STEP_EFFECT = 1.25
"""If noise is larger by this factor margins are larger, whatever steps add to them."""
_LEAST_DRIVING = 0.99
"""A target drives the budget if its margin uses at least this share of what the worst one uses of its target."""

Margins = list[tuple[str, str, float, float, float]]
"""The name of a target, the product, the target's margin and level, and the predicted margin."""


def least_budget(plan: Plan, delta: str | None) -> Budget:
    """The least budget, to four digits, at which all targets are met."""
    if not plan.targets:
        raise InputError("the plan has no targets; give some to select, or with --target")
    if plan.noise == "laplace" and delta is not None:
        raise BudgetError("delta: Laplace noise takes epsilon alone; leave delta out, or plan with Gaussian noise")
    rho = plan.noise == "gaussian" and delta is None
    limits = LIMITS["rho" if rho else "epsilon"]
    least, most = (_place(Decimal(limit.numerator) / limit.denominator) for limit in limits)

    def budget(place: int) -> Budget:
        return Budget(rho=_amount(place)) if rho else Budget(_amount(place), delta)

    @cache
    def worst(place: int) -> float:
        try:
            return _worst(margins(plan, budget(place)))
        except BudgetError:  # too small: its noise could not be drawn
            return inf

    def met(place: int) -> bool:
        return worst(place) <= 1

    start = 0
    for _ in range(_GUESSES):  # margins are about inversely proportional to ε, and to √ρ
        ratio = Decimal(min(max(worst(start), 1 / _MAX_GUESS_RATIO), _MAX_GUESS_RATIO))
        start = min(max(_place(_amount(start) * (ratio**2 if rho else ratio)), least), most)
    step = 1
    high = low = start
    while not met(high):
        if high == most:
            raise InputError(f"the targets cannot be met, not even with {'ρ' if rho else 'ε'} = {_amount(most)}")
        low, high, step = high, min(high + step, most), 2 * step
    while met(low) and low > least:
        low, high, step = max(low - step, least), low, 2 * step
    high = _first(met, low, high)
    low = least
    for place in _jumps(lambda place: plan.mechanism.calibrate(budget(place)), least, high):
        if met(place):
            high = place
            break
        low = place + 1
    return budget(_first(met, low, high))


def margins(plan: Plan, budget: Budget) -> Margins:
    """The predicted margin of the worst answer to every product with a target."""
    noise = plan.mechanism.calibrate(budget)
    rows = []
    products = zip(plan.workload.encoded.products, by_product(plan.workload, plan.targets), strict=True)
    for product, targets in products:
        for name, target in targets:
            level = float(target.level)
            margin = float(accuracy(plan.mechanism.estimator, product, noise, level).margin.max())
            rows.append((name, product.name, float(target.margin), level, margin))
    return rows


def target_margins(plan: Plan, budget: Budget) -> pa.Table:
    """One row for every target and product."""
    import pyarrow as pa

    rows = margins(plan, budget)
    worst = _worst(rows)
    return pa.Table.from_pylist(
        [
            {
                "target": name,
                "product": product,
                "wanted": wanted,
                "level": level,
                "margin": margin,
                "drives": margin / wanted >= _LEAST_DRIVING * worst,
            }
            for name, product, wanted, level, margin in rows
        ]
    )


def _worst(rows: Margins) -> float:
    """The largest ratio of a margin to its target."""
    return max(margin / wanted for _, _, wanted, _, margin in rows)


def _jumps(noise: Callable[[int], Calibration], least: int, high: int) -> list[int]:
    """The last places, not far below high, at which Gaussian noise on some block is not coarse yet, in order."""
    after = noise(high)
    if after.kind == "laplace" or min(after.scales) >= FINE:
        return []
    low, step = high, 1
    while low > least and noise(low).scales[0] < _MAX_STEP_EFFECT * after.scales[0]:
        low, step = max(low - step, least), 2 * step
    pairs = enumerate(zip(noise(low).scales, after.scales, strict=True))
    crossing = {scales: block for block, scales in pairs if scales[0] >= FINE > scales[1]}
    return sorted(_first(partial(_coarse, noise, block), low, high) - 1 for block in crossing.values())


def _coarse(noise: Callable[[int], Calibration], block: int, place: int) -> bool:
    return noise(place).scales[block] < FINE


def _first(met: Callable[[int], bool], low: int, high: int) -> int:
    """The first place from low to high at which something is met, given that it is at high, and stays so."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle + 1, high)
    return high


def _amount(place: int) -> Decimal:
    """The decimals of four digits in order: 1 at place 0, 1.001 at place 1."""
    exponent, mantissa = divmod(place, _DECADE)
    return Decimal(1000 + mantissa).scaleb(exponent - 3)


def _place(amount: Decimal) -> int:
    """Where an amount, rounded to four digits, is among them."""
    amount = _DIGITS.plus(amount)
    exponent = amount.adjusted()
    return _DECADE * exponent + int(amount.scaleb(3 - exponent)) - 1000
