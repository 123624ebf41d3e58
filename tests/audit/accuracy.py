"""Audit: every published answer is unbiased, and scatters by its standard error, or by no more than a bound."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from tests.audit.cases import cases
from tests.audit.published import Case, State, Stated, errors, of_one_block, stated
from tests.audit.statistics import LEVEL, mean_chance, normal_chance, spread_chance, together
from tests.audit.verdict import Audit, Verdict

RELEASES = 6_000


def run(state: State, published: int) -> Verdict:
    """The mean and the spread of every answer of every plan, and the spread of all answers to a product together."""
    chances: list[float] = []
    exact: list[float] = []
    bounded: list[float] = []
    for case in cases():
        said = state(case)
        for name, error in errors(case, RELEASES, published).items():
            z = error / said[name].stderr
            squares = z**2
            chances.append(normal_chance(z.mean(axis=0) * np.sqrt(RELEASES)))
            ratios = squares.mean(axis=0)
            if case.bounded:  # less than a bound is as it should be
                ratios = ratios[ratios > 1]
            if ratios.size:
                chances.append(together(spread_chance(ratio, RELEASES) for ratio in ratios))
            if not case.bounded or squares.mean() > 1:
                chances.append(mean_chance(squares.mean(axis=1), 1.0))
            (bounded if case.bounded else exact).append(math.sqrt(squares.mean()))
    detail = (
        f"RMSE of a product over {RELEASES:,} releases {min(exact):.3f} to {max(exact):.3f} of the stated one; "
        f"{min(bounded):.3f} to {max(bounded):.3f} of upper bounds"
    )
    return Verdict("p", together(chances), ">=", LEVEL, detail)


def scaled(case: Case, *, variance: float) -> Mapping[str, Stated]:
    """The fault: variances that are off by a factor."""
    said = stated(case).items()
    return {name: replace(one, stderr=one.stderr * math.sqrt(variance)) for name, one in said}


def low_bounds(case: Case) -> Mapping[str, Stated]:
    """The fault: upper bounds of the variance that are 5% too low to be any."""
    return scaled(replace(case, large=False), variance=0.95) if case.bounded else stated(case)


AUDITS = [
    Audit(
        "published answers are unbiased, of the stated error",
        run,
        stated,
        {
            "variance +5%": partial(scaled, variance=1.05),
            "variance −5%": partial(scaled, variance=0.95),
            "errors of one block": of_one_block,
            "upper bounds 5% too low": low_bounds,
        },
        200,
        3,
        "releases one by one",
    )
]
