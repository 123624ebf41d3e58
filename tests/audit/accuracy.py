"""Audit: every answer is unbiased, and scatters by the variance that the plan predicts for it."""

from collections.abc import Callable

import numpy as np

import hdmm
from hdmm.measure import add_noise
from tests.audit.plans import CASES, plan
from tests.audit.simulate import errors
from tests.audit.statistics import LEVEL, mean_chance, normal_chance, spread_chance, together
from tests.audit.verdict import Audit, Verdict

Predict = Callable[[hdmm.Plan, str, hdmm.Budget], np.ndarray]
"""The standard error of every answer to a product."""

BUDGETS = {"laplace": hdmm.Budget("0.1"), "gaussian": hdmm.Budget("0.5", "1e-6")}


def predicted(plan: hdmm.Plan, name: str, budget: hdmm.Budget) -> np.ndarray:
    """What the tables of a release state."""
    found = plan.accuracy(name, budget)
    return found.spread(found.stderr)


def overstated(plan: hdmm.Plan, name: str, budget: hdmm.Budget) -> np.ndarray:
    """The fault: variances that are 5% too large."""
    return predicted(plan, name, budget) * np.sqrt(1.05)


def understated(plan: hdmm.Plan, name: str, budget: hdmm.Budget) -> np.ndarray:
    """The fault: variances that are 5% too small."""
    return predicted(plan, name, budget) * np.sqrt(0.95)


def run(predict: Predict, releases: int) -> Verdict:
    """The mean and the spread of every answer of every plan, and the spread of all answers to a product together."""
    chances = []
    for operator, noise in CASES:
        chosen, budget = plan(operator, noise), BUDGETS[noise]
        for name, error in errors(chosen, budget, releases, add_noise).items():
            z = error / predict(chosen, name, budget)
            squares = z**2
            chances.append(normal_chance(z.mean(axis=0) * np.sqrt(releases)))
            chances.append(together(spread_chance(ratio, releases) for ratio in squares.mean(axis=0)))
            chances.append(mean_chance(squares.mean(axis=1), 1.0))
    return Verdict("p", together(chances), ">=", LEVEL)


AUDITS = [
    Audit(
        "unbiased answers of the predicted variance",
        run,
        predicted,
        {"variance +5%": overstated, "variance −5%": understated},
        6_000,
        6_000,
        "releases",
    )
]
