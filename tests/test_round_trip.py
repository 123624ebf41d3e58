"""What is saved can be loaded, and is then the same: plans, releases and checkpoints, whatever they were made with."""

from dataclasses import replace

import pytest

import hdmm
from hdmm import baselines, operators
from hdmm.plans.file import plan_bytes
from hdmm.releases.write import Format

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(3), other=["a", "b"])
ONE = hdmm.Schema(age=range(5))
IDENTITY, TOTAL, PREFIX = hdmm.Identity(), hdmm.Total(), hdmm.Prefix()


def duplicated():
    """The same product three times, under other names and with weights that floats do not hold."""
    w = hdmm.Workload(SCHEMA)
    for name, weight in {"first": "1", "again": "1/3", "light": "1e-9"}.items():
        w = w.add(name, sex=IDENTITY, age=PREFIX, weight=weight)
    return w.add("apart", other=IDENTITY, weight=7)


def conditional():
    """Conditions on one attribute, across attributes, and one that takes the place of a predicate."""
    w = hdmm.Workload(SCHEMA)
    w = w.add("across", sex=IDENTITY, where="age >= 1 OR other = 'b'")
    w = w.add("narrowed", age=IDENTITY, where="sex = 'F'", weight="1/3")
    w = w.add("adults", age=hdmm.Where("age >= 1"), other=IDENTITY | TOTAL)
    return w.add("all")


def nobody():
    """Products that count nobody beside others."""
    w = hdmm.Workload(SCHEMA).add("none", sex=~TOTAL, age=IDENTITY)
    return w.add("some", sex=IDENTITY, age=hdmm.AllRange()).add("age", age=IDENTITY, weight=2)


def single():
    """One product over one attribute."""
    return hdmm.Workload(ONE).add("ranges", age=hdmm.AllRange() | hdmm.Ranges([(1, 3)]), weight="2/7")


WORKLOADS = {function.__name__: function() for function in (duplicated, conditional, nobody, single)}
OPERATORS = {
    "default": None,
    "Explicit": [operators.Explicit()],
    "Kron": [operators.Kron()],
    "Marginal": [operators.Marginal()],
    "MarginalPlus": [operators.MarginalPlus()],
    "Residual": [operators.Residual()],
    "Symmetric": [operators.Symmetric()],
    "Union": [operators.Union()],
    "Identity": [baselines.Identity()],
    "Plain": [baselines.Plain()],
    "Marginals": [baselines.Marginals()],
}
UNITS = {
    "add-remove": hdmm.Unit(),
    "replace-one": hdmm.Unit(neighbours="replace-one"),
    "three rows": hdmm.Unit(3, id="person"),
}
BUDGETS = {"laplace": hdmm.Budget(epsilon="1"), "gaussian": hdmm.Budget(epsilon="1", delta="1e-6")}


def aims(workload):
    """The error of all answers, the largest one, and targets on some of the products."""
    return {"total": {}, "max": {"objective": "max"}, "targets": {"targets": {workload.products[0].name: "25@95%"}}}


def planned(workload, noise, **given):
    """A plan; None where the operator stands aside."""
    try:
        return hdmm.select(workload, noise, restarts=0, **given)
    except hdmm.errors.InputError as error:
        if "has a strategy for this workload" not in str(error):
            raise
        return None


def check_same(found, plan, budget):
    assert plan_bytes(found) == plan_bytes(plan)
    assert found.mechanism.change == plan.mechanism.change
    assert found.candidates.equals(plan.candidates)
    assert [block.weight for block in found.mechanism.blocks] == [block.weight for block in plan.mechanism.blocks]
    assert found.errors(budget).equals(plan.errors(budget))


@pytest.mark.parametrize("noise", BUDGETS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_plans_and_releases_are_loaded_as_they_were_saved(workload, operator, noise, tmp_path):
    budget = BUDGETS[noise]
    lines = ["person,sex,age,other", *(f"{i % 7},{'FM'[i % 2]},{i % 5},{'abcd'[i % 4]}" for i in range(40))]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    formats: tuple[Format, ...] = ("parquet", "csv", "parquet")
    released = zip(UNITS, formats, strict=True)  # one unit for each aim
    for aim, given in aims(workload).items():
        one, format = next(released)
        found = planned(workload, noise, operators=OPERATORS[operator], **given)
        if found is None:
            continue
        for name, unit in UNITS.items():
            plan = replace(found, mechanism=replace(found.mechanism, unit=unit))
            path = tmp_path / f"{aim} {name}.plan"
            plan.save(path)
            check_same(hdmm.Plan.load(path), plan, budget)
            if name != one:
                continue
            out = path.with_suffix(".out")
            made = hdmm.release(plan, tmp_path / "people.csv", budget, ledger=None, out=out, format=format)
            read = hdmm.Release.load(out)
            check_same(read.plan, plan, budget)
            assert read.plan.describe(budget) == plan.describe(budget)
            for product in workload.products:
                assert read.table(product.name).equals(made.table(product.name))


@pytest.mark.parametrize("aim", ["total", "max", "targets"])
@pytest.mark.parametrize("operator", ["default", "Plain"])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_resumed_search_finds_the_same_plan(workload, operator, aim, tmp_path):
    given = {"operators": OPERATORS[operator], "restarts": 0, **aims(workload)[aim]}
    plan = hdmm.select(workload, **given)
    file = tmp_path / "a.partial"
    hdmm.select(workload, checkpoint=file, **given)
    resumed = hdmm.select(workload, checkpoint=file, **given)
    check_same(resumed, hdmm.select(workload, checkpoint=file, **given), BUDGETS["laplace"])
    assert [block.weight for block in resumed.mechanism.blocks] == [block.weight for block in plan.mechanism.blocks]
    assert resumed.mechanism.change == plan.mechanism.change
    assert resumed.errors(BUDGETS["laplace"]).equals(plan.errors(BUDGETS["laplace"]))
