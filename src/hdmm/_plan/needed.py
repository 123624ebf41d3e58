"""The reverse question: how much budget do these accuracies need?

Margins shrink with the budget, so the least one is found by scaling until the worst margin just keeps its target, and
then rounded up to four digits. It is not taken on trust: the margins are predicted at that very budget.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

from hdmm._plan.plan import Plan
from hdmm.accuracy import accuracy
from hdmm.errors import BudgetError, InputError
from hdmm.privacy.budget import Budget
from hdmm.workload.targets import by_product

if TYPE_CHECKING:
    import pyarrow as pa

_DIGITS = Context(prec=4, rounding=ROUND_CEILING)
_CLOSE = 1e-3
_TRIES = 40
_DRIVES = 0.99
"""A margin of at least this share of its target, beside the worst, drives the budget."""

Margins = list[tuple[str, str, float, float, float]]
"""The name of a target, the product, the target's margin and level, and the predicted margin."""


def least_budget(plan: Plan, delta: str | None) -> Budget:
    """The least budget, to four digits, at which all targets are met."""
    if not plan.targets:
        raise InputError("the plan has no targets; give some to select, or with --target")
    if plan.noise == "laplace" and delta is not None:
        raise BudgetError("delta: Laplace noise takes epsilon alone; leave delta out, or plan with Gaussian noise")
    rho = plan.noise == "gaussian" and delta is None

    def budget(amount: Decimal) -> Budget:
        try:
            return Budget(rho=amount) if rho else Budget(amount, delta)
        except BudgetError:
            raise InputError(f"the targets cannot be met: they would need {'ρ' if rho else 'ε'} = {amount}") from None

    amount = 1.0
    for _ in range(_TRIES):
        worst = _worst(margins(plan, budget(_rounded(amount))))
        if 1 - _CLOSE <= worst <= 1:
            break
        amount *= (worst**2 if rho else worst) * (1 + _CLOSE / 10)
    found = _rounded(amount * (1 - 2 * _CLOSE))
    while _worst(margins(plan, budget(found))) > 1:
        found = found + Decimal((0, (1,), found.adjusted() - 3))
    return budget(found)


def margins(plan: Plan, budget: Budget) -> Margins:
    """The predicted margin of the worst answer to every product with a target."""
    noise = plan.calibrate(budget)
    found = []
    products = zip(plan.workload.encoded.products, by_product(plan.workload, plan.targets), strict=True)
    for product, targets in products:
        for name, target in targets:
            level = float(target.level)
            margin = float(accuracy(plan.estimator, product, noise, level).margin.max())
            found.append((name, product.name, float(target.margin), level, margin))
    return found


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
                "drives": margin / wanted >= _DRIVES * worst,
            }
            for name, product, wanted, level, margin in rows
        ]
    )


def _worst(rows: Margins) -> float:
    """The largest ratio of a margin to its target."""
    return max(margin / wanted for _, _, wanted, _, margin in rows)


def _rounded(amount: float) -> Decimal:
    return _DIGITS.create_decimal(Decimal(amount))
