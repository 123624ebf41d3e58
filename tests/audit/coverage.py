"""Audit: 95% intervals in tables cover at least 94% of the time, and at most 96% where they are not to be wider.

They are wider where the noise is so coarse that its steps show, and where errors are told as upper bounds.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

import hdmm
from hdmm import baselines
from hdmm.privacy.calibrate import NoiseKind
from tests.audit.cases import BUDGETS, cases
from tests.audit.published import Case, State, Stated, errors, of_one_block, stated, within
from tests.audit.verdict import Audit, Verdict

LEVEL = 0.95


@cache
def cells(noise: NoiseKind) -> hdmm.Plan:
    """Cells that are counted one by one; a table's sums of 1, 2, 3 or 10 of them are independent of one another."""
    workload = hdmm.Workload(hdmm.Schema(ten=range(10), two=range(2), three=range(3)))
    for attributes in (["ten", "two", "three"], ["ten", "three"], ["ten", "two"], ["two", "three"]):
        workload = workload.add(" × ".join(attributes), dict.fromkeys(attributes, hdmm.Identity()))
    return hdmm.select(workload, noise, operators=[baselines.Identity()])


@cache
def single_cells() -> list[Case]:
    """Fine and coarse noise on single cells."""
    return [
        Case(cells("laplace"), BUDGETS["laplace"]),
        Case(cells("laplace"), hdmm.Budget("1"), fine=False),
        Case(cells("gaussian"), BUDGETS["gaussian"]),
        Case(cells("gaussian"), hdmm.Budget(rho="0.5"), fine=False),
        Case(cells("gaussian"), hdmm.Budget(rho="0.12254"), fine=False),
    ]


def run(state: State, releases: int) -> Verdict:
    """By how many points the coverage of the answers to a product is off in the worst case.

    False alarms: the steps of noise that is called fine move the coverage by at most 0.1 points. However the answers of
    a release depend on each other, by Chernoff's bound their coverage in 25,000 releases is then a point off with a
    chance below 2e-10; there are 128 tables. Single counts, of which normal intervals cover 93.8%, are independent, and
    60 in every release.
    """
    off, shares = [], []
    for case in single_cells() + cases():
        said = state(case)
        for name, error in errors(case, releases).items():
            coverage = float(np.mean(within(error, said[name].margin)))
            tight = case.fine and not case.bounded
            off.append(abs(coverage - LEVEL) if tight else LEVEL - coverage)
            if tight:
                shares.append(coverage)
    detail = f"{len(off)} tables; coverage of exact intervals {min(shares):.2%} to {max(shares):.2%}"
    return Verdict("points off 95%", 100 * max(off), "<=", 1, detail)


def normal(case: Case) -> Mapping[str, Stated]:
    """The fault: 1.96 standard errors, also for sums of few Laplace variables."""
    return {name: replace(one, margin=1.96 * one.stderr) for name, one in stated(case).items()}


AUDITS = [
    Audit(
        "95% intervals in tables cover",
        run,
        stated,
        {
            "normal intervals": normal,
            "intervals at 93%": partial(stated, level=0.93),
            "intervals at 97%": partial(stated, level=0.97),
            "intervals of one block": of_one_block,
        },
        25_000,
        25_000,
        "releases",
    )
]
