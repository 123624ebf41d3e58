"""Audit: a new question after a release is answered as if it had been in the plan from the start."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

import hdmm
from tests.audit.verdict import Audit, Verdict
from tests.releases.test_answer import FAMILIES, SCHEMA, questions, released

Answer = Callable[[hdmm.Release, hdmm.Workload], dict[str, pa.Table]]


def run(answer: Answer, count: int) -> Verdict:
    """How many of so many random questions of every family have another table than the plan's; or are not told."""
    wrong = 0
    for family in FAMILIES:
        release = released(family)
        drawn = questions(4 * count, seed=len(family))
        pairs = zip(drawn.products, drawn.encoded.products, strict=True)
        told = [product for product, code in pairs if release.plan.mechanism.local.supports(code)][:count]
        known = hdmm.Workload(SCHEMA, told)
        planned = hdmm.Release(replace(release.plan, workload=known), release.budget, release.measurements)
        found = answer(release, known)
        right = sum(found[product.name].equals(planned.table(product.name)) for product in told)
        wrong += count - right
    return Verdict("wrong tables", wrong, "<=", 0, f"{count * len(FAMILIES):,} questions")


def of_another_level(release: hdmm.Release, workload: hdmm.Workload) -> dict[str, pa.Table]:
    return release.answer(workload, level=0.949)


def of_a_changed_measurement(release: hdmm.Release, workload: hdmm.Workload) -> dict[str, pa.Table]:
    first, *others = (array.copy() for array in release.measurements)
    first[0] += 1
    return hdmm.Release(release.plan, release.budget, (first, *others)).answer(workload)


AUDITS = [
    Audit(
        "new questions have the plan's answers",
        run,
        hdmm.Release.answer,
        {"intervals of 94.9%": of_another_level, "one measurement is off by 1": of_a_changed_measurement},
        full=150,
        fast=4,
        unit="questions of each family",
    )
]
