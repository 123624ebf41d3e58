"""New questions after a release: answered as if they had been in the plan from the start, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import hdmm
from hdmm import baselines, operators
from hdmm.errors import InputError, WorkloadError
from hdmm.privacy.calibrate import NoiseKind
from hdmm.workload import Predicates

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(8), hispanic=[False, True])
W = (
    hdmm.Workload(SCHEMA)
    .add("ages", sex=hdmm.Identity(), age=hdmm.Prefix())
    .add("ranges", age=hdmm.AllRange(), hispanic=hdmm.Identity())
)
PAIRS = hdmm.marginals(SCHEMA, up_to=2)
FAMILIES: dict[str, tuple[operators.Operator, hdmm.Workload, NoiseKind]] = {
    "kron": (operators.Kron(), W, "gaussian"),
    "explicit": (operators.Explicit(), W, "gaussian"),
    "union": (operators.Union(), W, "gaussian"),
    "marginal": (operators.Marginal(), PAIRS, "laplace"),
    "marginal over bases": (operators.MarginalPlus(), W, "gaussian"),
    "residual": (operators.Residual(), PAIRS, "gaussian"),
    "identity": (baselines.Identity(), W, "laplace"),
}
BUDGETS = {"laplace": hdmm.Budget("0.5"), "gaussian": hdmm.Budget("0.5", "1e-6")}
COUNT = 25
SETS: list[Callable[[], Predicates]] = [
    hdmm.Identity,
    hdmm.Total,
    hdmm.Prefix,
    lambda: hdmm.Identity() | hdmm.Total(),
    lambda: ~hdmm.Identity(),
]


@cache
def released(family: str) -> hdmm.Release:
    operator, workload, noise = FAMILIES[family]
    plan = hdmm.select(workload, noise, operators=[operator], restarts=1)
    rng = np.random.default_rng(4)
    answers = tuple(rng.integers(-50, 500, block.queries) for block in plan.mechanism.blocks)
    return hdmm.Release(plan, BUDGETS[noise], answers)


def questions(count: int, seed: int) -> hdmm.Workload:
    rng = np.random.default_rng(seed)
    workload = hdmm.Workload(SCHEMA)
    for number in range(count):
        names = [name for name in SCHEMA.names if rng.random() < 0.6]
        sets = {name: SETS[rng.integers(len(SETS))]() for name in names}
        conditions = [None, None, f"age >= {rng.integers(8)}", "sex = 'F' OR hispanic"]
        workload = workload.add(f"q{number}", sets, where=conditions[rng.integers(len(conditions))])
    return workload


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_a_plan_that_asked_from_the_start(family):
    """Random questions that are told, for each family; a thousand of them are asked by `make audit`."""
    release = released(family)
    asked = questions(4 * COUNT, seed=len(family))
    told = [
        product
        for product, encoded in zip(asked.products, asked.encoded.products, strict=True)
        if release.plan.mechanism.local.supports(encoded)
    ][:COUNT]
    assert len(told) == COUNT
    known = hdmm.Workload(SCHEMA, told)
    from_the_start = hdmm.Release(replace(release.plan, workload=known), release.budget, release.measurements)
    found = release.answer(known)
    assert list(found) == [product.name for product in told]
    for name, table in found.items():
        assert table == from_the_start.table(name)


def test_a_question_that_was_not_measured_is_refused_with_the_reason():
    release = released("residual")
    three = dict.fromkeys(SCHEMA.names, hdmm.Identity())
    with pytest.raises(WorkloadError, match="product 'all': the release measured no table of sex × age × hispanic tog"):
        release.answer(hdmm.Workload(SCHEMA).add("all", three))
    ages = hdmm.select(hdmm.Workload(SCHEMA).add("a", age=hdmm.Prefix()))
    only = hdmm.Release(ages, hdmm.Budget("1"), tuple(np.zeros(b.queries, np.int64) for b in ages.mechanism.blocks))
    with pytest.raises(WorkloadError, match="measured nothing about 'sex'; a new plan must ask for it"):
        only.answer(hdmm.Workload(SCHEMA).add("s", sex=hdmm.Identity()))
    adults = hdmm.select(hdmm.Workload(SCHEMA).add("a", age=hdmm.Where("age >= 4")), operators=[baselines.Plain()])
    coarse = hdmm.Release(adults, hdmm.Budget("1"), (np.zeros(1, np.int64),))
    with pytest.raises(WorkloadError, match="but not finely enough for this question"):
        coarse.answer(hdmm.Workload(SCHEMA).add("a", age=hdmm.Identity()))


def test_a_condition_across_attributes_that_were_measured_one_by_one_is_refused():
    """Either of two attributes: their joint counts are needed, though each of them was measured."""
    plan = hdmm.select(hdmm.marginals(SCHEMA, up_to=1), "gaussian", operators=[operators.Residual()])
    release = hdmm.Release(
        plan, BUDGETS["gaussian"], tuple(np.zeros(b.queries, np.int64) for b in plan.mechanism.blocks)
    )
    with pytest.raises(WorkloadError, match="measured no table of sex × hispanic together"):
        release.answer(hdmm.Workload(SCHEMA).add("either", where="sex = 'F' OR hispanic"))
    assert release.answer(hdmm.Workload(SCHEMA).add("one", where="sex = 'F'"))


def test_another_schema_and_no_workload_are_refused():
    release = released("identity")
    with pytest.raises(WorkloadError, match="has another schema than the release"):
        release.answer(hdmm.Workload(hdmm.Schema(sex=["F", "M"])).add("t"))
    text: Any = "SELECT COUNT(*) FROM t"
    with pytest.raises(WorkloadError, match="expected a Workload"):
        release.answer(text)


def test_intervals_are_of_the_level_that_was_asked_for():
    release = released("kron")
    widths = []
    for level in (0.5, 0.95, 0.99):
        table = release.table("ages", level=level)
        assert release.answer(release.plan.workload, level=level)["ages"] == table
        widths.append(np.mean(table["high"].to_numpy() - table["low"].to_numpy()))
    assert widths == sorted(widths)
    assert release.table("ages") == release.table("ages", level=0.95)
    with pytest.raises(InputError, match=r"level=1\.5"):
        release.table("ages", level=1.5)


def test_a_release_tells_shares_ratios_and_quantiles():
    release = released("explicit")
    women = release.share("sex = 'F'")
    assert women.low < women.value < women.high
    assert release.ratio({"sex": "F"}, {"sex": "M"}).value == pytest.approx(women.value / (1 - women.value))
    within = release.shares("ages", within=["sex"])
    assert within.column_names == ["sex", "age", "share", "low", "high"]
    assert within["share"].to_pylist()[7] == pytest.approx(1)
    median = release.quantile("age", where="sex = 'F'")
    assert median.low <= median.value <= median.high
