"""Audit: the simultaneous 95% intervals of a table all hold together in at least 95% of the tables."""

from collections.abc import Mapping
from functools import cache, partial

import hdmm
from hdmm import baselines
from tests.audit.cases import BUDGETS, cases
from tests.audit.published import Case, State, Stated, errors, stated, within
from tests.audit.statistics import LEVEL, clopper_pearson
from tests.audit.verdict import Audit, Verdict


@cache
def tables() -> list[Case]:
    """Tables of 2 to 200 independent rows, where intervals that hold together have nothing to spare; and all plans."""
    every, one = hdmm.Identity(), hdmm.Values([0])
    workload = hdmm.Workload(hdmm.Schema(two=range(2), ten=range(10), more=range(10)))
    workload = workload.add("200 cells", two=every, ten=every, more=every)
    workload = workload.add("20 sums", two=every, ten=every)
    workload = workload.add("2 sums", two=every)
    workload = workload.add("2 cells", two=every, ten=one, more=one)
    plans = {noise: hdmm.select(workload, noise, operators=[baselines.Identity()]) for noise in BUDGETS}
    return [Case(plan, BUDGETS[noise]) for noise, plan in plans.items()] + cases()


def run(state: State, releases: int) -> Verdict:
    """An upper bound of the chance that a table's intervals all hold, where it is lowest (Clopper and Pearson)."""
    shares = []
    for case in tables():
        said = state(case)
        for name, error in errors(case, releases).items():
            shares.append(int(within(error, said[name].margin).all(axis=1).sum()))
    _, high = clopper_pearson(min(shares), releases, LEVEL / len(shares))
    detail = f"{len(shares)} tables; share of which all intervals held {min(shares) / releases:.2%} at least"
    return Verdict("% hold together, at most", 100 * high, ">=", 95, detail)


def apart_in_small_tables(case: Case) -> Mapping[str, Stated]:
    """The fault: tables of two rows have intervals for each answer by itself."""
    each, held = stated(case), stated(case, simultaneous=True)
    return {name: each[name] if len(one.margin) == 2 else one for name, one in held.items()}


AUDITS = [
    Audit(
        "simultaneous intervals hold together",
        run,
        partial(stated, simultaneous=True),
        {"intervals for each answer": stated, "the same in tables of two": apart_in_small_tables},
        20_000,
        5_000,
        "tables of each kind",
    )
]
