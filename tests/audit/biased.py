"""Audit: tables by estimators that are kept from being negative have no negative answer, and agree on the total.

Nothing is claimed of their errors; what they were is told beside the verdict. No false alarms: this is no statistic.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa

import hdmm
from hdmm.estimators.graphical import available
from hdmm.measure import add_noise
from tests.audit.plans import CASES, SCHEMA, WORKLOAD, plan
from tests.audit.published import column, release_of, truth
from tests.audit.simulate import releases
from tests.audit.verdict import Audit, Verdict

Biased = Literal["nonnegative", "pgm"]
Answers = dict[str, np.ndarray]
Publish = Callable[[hdmm.Release, Biased], Answers]

BUDGETS = {"laplace": hdmm.Budget("0.5"), "gaussian": hdmm.Budget("2", "1e-6")}
NAMES: dict[Biased, str] = {"nonnegative": "non-negative least squares", "pgm": "Private-PGM"}
FITTED = 20
"""Private-PGM, which takes a second, is asked of one release in so many."""


def run(publish: Publish, count: int) -> Verdict:
    """The largest share of the total by which an answer is negative, or one total differs from another."""
    breaches = [0.0]
    squares: dict[Biased, list[np.ndarray]] = {"nonnegative": [], "pgm": []}
    for number, (operator, noise) in enumerate(CASES * count):
        chosen, budget = plan(operator, noise), BUDGETS[noise]
        release = release_of(chosen, budget, releases(chosen, budget, sparse(), 1, add_noise)[0])
        usual = dict(release.tables())
        for estimator, sums in squares.items():
            if estimator == "pgm" and (number % FITTED or not available()):
                continue
            found = publish(release, estimator)
            all_totals = totals(found)
            if estimator == "pgm":
                all_totals.append(max(1.0, float(column(usual["total"], "answer")[0])))
            lowest = min(float(answers.min()) for answers in found.values())
            breaches.append(max(-lowest, max(all_totals) - min(all_totals)) / max(all_totals))
            sums.append(compared(found, usual))
    return Verdict("share of the total", max(breaches), "<=", 1e-9, "; ".join(map(_beside, NAMES, squares.values())))


def compared(found: Answers, usual: dict[str, pa.Table]) -> np.ndarray:
    """The squared errors of some answers and of least squares, in units of what the latter have on average."""
    total = np.zeros(2)
    for name, true in truth(WORKLOAD, sparse()).items():
        both = np.stack([found[name], column(usual[name], "answer")])
        total += (((both - true) / column(usual[name], "stderr")) ** 2).sum(axis=1)
    return total


def totals(found: Answers) -> list[float]:
    """The total, as each table has it."""
    last = found["prefixes"][-3:]  # of all ages: not hispanic, hispanic, both
    return [float(total) for total in (found["table"].sum(), last[0] + last[1], last[2], found["total"][0])]


def published(release: hdmm.Release, estimator: Biased) -> Answers:
    """What users get."""
    return {name: column(table, "answer") for name, table in release.tables(estimator=estimator)}


def least_squares(release: hdmm.Release, estimator: Biased) -> Answers:
    """The fault: nothing keeps answers from being negative."""
    return {name: column(table, "answer") for name, table in release.tables()}


def cut_off(release: hdmm.Release, estimator: Biased) -> Answers:
    """The fault: negative answers are published as zero, each by itself."""
    return {name: answers.clip(0) for name, answers in least_squares(release, estimator).items()}


@cache
def sparse() -> np.ndarray:
    """A population of which most cells are all but empty."""
    random = np.random.default_rng(5)
    return random.poisson(np.where(random.random(SCHEMA.sizes) < 0.3, 40, 1))


def _beside(estimator: Biased, squares: list[np.ndarray]) -> str:
    """The observed RMSE beside that of least squares."""
    if not squares:
        return f"{NAMES[estimator]} left out: mbi is not installed"
    own, least = np.sum(squares, axis=0)
    return f"RMSE of {NAMES[estimator]} {math.sqrt(own / least):.2f} of that of least squares"


AUDITS = [
    Audit(
        "biased tables: none negative, one total",
        run,
        published,
        {"plain least squares": least_squares, "cut off at zero": cut_off},
        20,
        2,
        "releases of each plan",
    )
]
