"""Audit: 95% intervals cover at least 94% of the time, and at most 96% where the noise is not too coarse for that."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import hdmm
from hdmm import baselines, operators
from hdmm.measure import add_noise
from tests.audit import plans
from tests.audit.simulate import errors
from tests.audit.verdict import Audit, Verdict

Margins = Callable[[hdmm.Plan, str, hdmm.Budget], np.ndarray]
"""The margin of every answer to a product."""

CELLS = 60
LEVEL = 0.95


@cache
def line(noise: str) -> hdmm.Plan:
    """Cells that are counted one by one; sums of 1, 2, 3 and 10 of them are independent of one another."""
    workload = hdmm.Workload(hdmm.Schema(x=range(CELLS)))
    for width in (1, 2, 3, 10):
        ranges = [(start, start + width - 1) for start in range(0, CELLS, width)]
        workload = workload.add(f"sums of {width}", x=hdmm.Ranges(ranges))
    return hdmm.select(workload, noise, operators=[baselines.Identity()])


@dataclass(frozen=True)
class Case:
    """A plan at a budget; whether its noise is fine."""

    plan: Callable[[], hdmm.Plan]
    budget: hdmm.Budget
    fine: bool = True


CASES = [
    Case(lambda: line("laplace"), hdmm.Budget("0.02")),
    Case(lambda: line("laplace"), hdmm.Budget("1"), fine=False),
    Case(lambda: line("gaussian"), hdmm.Budget(rho="0.0003")),
    Case(lambda: line("gaussian"), hdmm.Budget(rho="0.5"), fine=False),
    Case(lambda: line("gaussian"), hdmm.Budget(rho="0.12254"), fine=False),
    Case(lambda: plans.plan(operators.Explicit(), "laplace"), hdmm.Budget("0.1")),
    Case(lambda: plans.plan(operators.Marginal(), "laplace"), hdmm.Budget("0.02")),
    Case(lambda: plans.plan(baselines.Plain(), "laplace"), hdmm.Budget("0.1")),
    Case(lambda: plans.plan(operators.Residual(), "gaussian"), hdmm.Budget("0.1", "1e-6")),
]


def run(margins: Margins, releases: int) -> Verdict:
    """By how many points the coverage of the answers to a product is off in the worst case.

    Even if all answers of a release stood or fell together, 20,000 of them scatter by 0.15 points at 95%, and the steps
    of noise that is called fine move the coverage by at most 0.1 points: to be a point off is six standard deviations.
    The single counts, of which normal intervals cover 93.8%, are independent, and 60 in every release.
    """
    off = []
    for case in CASES:
        plan = case.plan()
        for name, found in errors(plan, case.budget, releases, add_noise).items():
            coverage = float(np.mean(abs(found) <= margins(plan, name, case.budget) + 1e-7))
            off.append(abs(coverage - LEVEL) if case.fine else LEVEL - coverage)
    return Verdict("points off 95%", 100 * max(off), "<=", 1)


def stated(plan: hdmm.Plan, name: str, budget: hdmm.Budget) -> np.ndarray:
    """The margins in the tables of a release."""
    found = plan.accuracy(name, budget)
    return found.spread(found.margin)


def normal(plan: hdmm.Plan, name: str, budget: hdmm.Budget) -> np.ndarray:
    """The fault: 1.96 standard errors, also for sums of few Laplace variables."""
    found = plan.accuracy(name, budget)
    return found.spread(1.96 * found.stderr)


AUDITS = [Audit("95% intervals cover", run, stated, {"normal intervals": normal}, 20_000, 20_000, "releases")]
