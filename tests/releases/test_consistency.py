"""All tables of one release add up to each other: every table is the sum of each of its refinements, to 1e-6."""

from __future__ import annotations

import numpy as np
import pytest

import hdmm
from hdmm import baselines, operators
from hdmm.estimators.split import SplitLeastSquares
from hdmm.matrix import Identity, Kron, Total
from hdmm.measure import add_noise, exact_answers

GROUPS = {"child": [(0, 17)], "young": [(18, 24)], "adult": [(25, 64)], "old": [(65, 114)]}
CENSUS = hdmm.Schema(
    sex=["F", "M"],
    age=hdmm.Integers(0, 114, levels={"age group": GROUPS}),
    hispanic=[False, True],
    race=range(7),
    relationship=range(5),
)
E_ = hdmm.Identity()
WORKLOAD = (
    hdmm.Workload(CENSUS)
    .add("total")
    .add("sex", sex=E_)
    .add("age", age=E_)
    .add("age groups", age=hdmm.Level("age group"))
    .add("up to an age", sex=E_, age=hdmm.Prefix())
    .add("sex and age", sex=E_, age=E_)
    .add("race", race=E_, hispanic=E_)
    .add("race of groups", race=E_, hispanic=E_, age=hdmm.Level("age group"))
    .add("race and sex", race=E_, hispanic=E_, sex=E_)
    .add("relationship", relationship=E_)
    .add("relationship and sex", relationship=E_, sex=E_)
    .add("relationship and race", relationship=E_, race=E_, hispanic=E_)
    .add("adults", sex=E_, relationship=E_, where="age >= 18")
    .add("either", sex=E_, race=E_, where="hispanic OR race >= 5")
)
CASES = [
    (operators.Union(groups=()), "laplace"),
    (operators.Union(groups=()), "gaussian"),
    (operators.Kron(), "laplace"),
    (operators.MarginalPlus(), "laplace"),
    (operators.MarginalPlus(), "gaussian"),
    (baselines.Plain(), "laplace"),
    (baselines.Plain(), "gaussian"),
]


def released(plan: hdmm.Plan, budget: hdmm.Budget, counts: np.ndarray) -> hdmm.Release:
    """A release of these counts over all cells, with real noise."""
    noise = plan.mechanism.calibrate(budget)
    sizes = plan.workload.schema.sizes
    answers = []
    for block, scale in zip(plan.mechanism.blocks, noise.scales, strict=True):
        own = Kron(Identity(n) if axis in block.axes else Total(n) for axis, n in enumerate(sizes)).apply(counts)
        answers.append(add_noise(exact_answers(block, own), noise.kind, scale))
    return hdmm.Release(plan, budget, tuple(answers))


def disagreement(release: hdmm.Release) -> tuple[float, int]:
    """The largest difference between a table and the sums of a refinement, over all pairs, and how many pairs."""
    workload = release.plan.workload
    pairs = list(zip(workload.products, workload.encoded.products, strict=True))
    answers = {product.name: release.table(product.name)["answer"].to_numpy() for product, _ in pairs}
    largest, count = 0.0, 0
    for fine, code in pairs:
        if code.condition is not None or not all(isinstance(factor, Identity) for factor in code.factors.values()):
            continue
        sizes = {axis: workload.schema.sizes[axis] for axis in code.axes}
        for coarse, other in pairs:
            if coarse is fine or not set(other.axes) <= set(code.axes):
                continue
            own = {axis: sizes[axis] for axis in other.axes}
            summed = Kron([Identity(n) if axis in own else Total(n) for axis, n in sizes.items()] or [Total(1)])
            expected = other.matrix(own).apply(summed.apply(answers[fine.name]))
            largest, count = max(largest, float(abs(expected - answers[coarse.name]).max())), count + 1
    return largest, count


@pytest.mark.parametrize(("operator", "noise"), CASES, ids=lambda case: getattr(case, "name", case))
def test_every_table_is_the_sum_of_its_refinements(operator, noise):
    plan = hdmm.select(WORKLOAD, noise, operators=[operator], restarts=1)
    budget = hdmm.Budget("0.5", None if noise == "laplace" else "1e-6")
    counts = np.random.default_rng(0).poisson(30, CENSUS.cells)
    largest, pairs = disagreement(released(plan, budget, counts))
    assert pairs >= 20
    assert largest < 1e-6


def test_answers_from_one_block_each_would_not_add_up():
    """What the test above is about: the answers of a union's blocks differ by far more than rounding."""
    plan = hdmm.select(WORKLOAD, operators=[operators.Union(groups=())], restarts=1)
    assert isinstance(plan.mechanism.estimator, SplitLeastSquares)
    release = released(plan, hdmm.Budget("0.5"), np.random.default_rng(0).poisson(30, CENSUS.cells))
    local = {name: table["answer"].to_numpy().sum() for name, table in release.tables(estimator="local")}
    sums = [local[name] for name in ("total", "sex", "age", "race", "relationship")]
    assert max(sums) - min(sums) > 0.1
