"""H2, HB, Privelet and GreedyH: as defined, and usable from a spec to a release with the predicted errors."""

from math import floor

import numpy as np
import pytest

import hdmm
from hdmm import baselines
from hdmm.baselines.greedy_h import greedy_tree
from hdmm.baselines.hb import best_branching
from hdmm.errors import ArtefactError
from hdmm.estimators.least_squares import strategy_loss
from hdmm.matrix import AllRange, Dense, Haar, Identity, Tree
from hdmm.operators.base import Aside
from hdmm.paper.sections import CHECKS
from hdmm.paper.sections.cells import Equal
from hdmm.plans import Mechanism
from hdmm.selection.quantise import Quantised, quantise
from hdmm.strategy import Block, Strategy
from tests.operators.proposals import proposed

OPERATORS = {
    "H2": baselines.H2(),
    "HB": baselines.HB(),
    "Privelet": baselines.Privelet(),
    "GreedyH": baselines.GreedyH(),
}
BUDGETS = {"laplace": hdmm.Budget("1"), "gaussian": hdmm.Budget("1", "1e-6")}
every = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS.keys())
several = pytest.mark.parametrize("operator", [OPERATORS[name] for name in ("H2", "HB", "Privelet")], ids=repr)


def one(predicates: hdmm.workload.Predicates, size: int) -> hdmm.Workload:
    return hdmm.Workload(hdmm.Schema(a=range(size))).add("q", a=predicates)


def test_the_paper_s_numbers_up_to_256_values():
    (section,) = CHECKS["hierarchies"]
    tasks = [task for task in section.tasks() if int(task.name.split()[2]) <= 256]
    cells = [cell for cell in section.cells({task.name: task.run() for task in tasks}) if cell.ours is not None]
    assert len(cells) == 64
    assert all(isinstance(cell.rule, Equal) for cell in cells)
    assert [cell for cell in cells if not cell.agrees] == []


@pytest.mark.parametrize("n", [*range(2, 130), 256, 500, 1024])
def test_the_branching_of_hb_is_the_best_of_all(n: int):
    def cost(branching: int) -> int:
        height = next(height for height in range(1, 20) if branching**height >= n)
        return (branching - 1) * height**3 - floor(2 * (branching + 1) * height**2 / 3)

    assert best_branching(n) == min(range(2, n + 1), key=cost)


def test_hb_of_64_values_is_the_identity():
    (block,) = proposed(baselines.HB(), one(hdmm.Prefix(), 64).encoded, 1).strategy.blocks
    assert block.factors == (Identity(64),)


@pytest.mark.parametrize("n", [4, 7, 16, 40])
def test_greedy_weights_are_those_of_the_definition_with_inverses_written_out(n: int):
    """Every node with its inverse Gram matrix, as the definition has it: only row sums are needed of them."""
    ranges = AllRange(n).dense()
    G = ranges.T @ ranges.astype(float)

    def solve(cells: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Strategy rows over all cells, the inverse on these cells, and the carried error."""
        if len(cells) == 1:
            return np.eye(n)[cells], np.ones((1, 1)), float((G[:, cells] ** 2).sum())
        half = -(-len(cells) // 2)
        parts = [solve(half_cells, depth + 1) for half_cells in (cells[:half], cells[half:])]
        u = np.concatenate([inverse.sum(axis=1) for _, inverse, _ in parts])
        kappa, damping = u.sum(), 2 ** (-depth / 2)
        m = ((G[:, cells] @ u) ** 2).sum()
        m1 = ((G[:, cells[:half]] @ u[:half]) ** 2).sum() + ((G[:, cells[half:]] @ u[half:]) ** 2).sum()
        errors = []
        for j in range(100):
            a, b = (100 - j) ** 2, j**2 * damping
            saved = ((m - m1) * damping + m1) * b / (a + b * kappa)
            errors.append((sum(error for *_, error in parts) - saved) / a)
        j = int(np.argmin(errors))
        own = np.isin(np.arange(n), cells) * (j / 100)
        rows = np.concatenate([[own], *((1 - j / 100) * rows for rows, *_ in parts)])
        inside = rows[:, cells]
        return rows, np.linalg.inv(inside.T @ inside), errors[j] * 100**2

    rows, inverse, _ = solve(np.arange(n), 0)
    tree = greedy_tree(AllRange(n).axis_gram()).dense()
    np.testing.assert_allclose(tree.T @ tree, rows.T @ rows, atol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(tree.T @ tree), inverse, atol=1e-6)
    np.testing.assert_allclose(tree.sum(axis=0), 1)


def test_greedy_h_counts_values_together_that_the_workload_does_not_divide():
    ranges = hdmm.Ranges([(0, 4), (5, 9), (0, 19)])
    encoded = one(ranges, 20).encoded
    (block,) = proposed(baselines.GreedyH(), encoded, 1).strategy.blocks
    (tree,) = block.factors
    assert isinstance(tree, Tree)
    # Halves of 10 and 5: the second half of all values is one count.
    assert tree.sizes[-1].tolist() == [5, 5, 10]
    assert isinstance(quantise(Strategy((20,), (block,), "kron"), encoded, 1), Quantised)


@pytest.mark.parametrize("norm", [1, 2])
def test_rounding_greedy_h_costs_next_to_nothing(norm):
    encoded = one(hdmm.AllRange(), 100).encoded
    quantised = quantise(proposed(baselines.GreedyH(), encoded, norm).strategy, encoded, norm)
    assert isinstance(quantised, Quantised)
    assert quantised.cost <= 1e-4
    (factor,) = quantised.strategy.blocks[0].factors
    assert isinstance(factor, Tree)
    assert factor.dtype.kind == "i"


SCHEMA = hdmm.Schema(age=range(9), income=range(5), sex=["F", "M"])
WORKLOAD = (
    hdmm.Workload(SCHEMA)
    .add("prefixes", age=hdmm.Prefix(), sex=hdmm.Identity())
    .add("ranges", age=hdmm.AllRange(), income=hdmm.Prefix(), weight=2)
    .add("adults", age=hdmm.Where("age >= 4"), income=hdmm.Identity())
    .add("either", income=hdmm.Identity(), where="age >= 4 OR sex = 'F'")
    .add("total")
)


@several
@pytest.mark.parametrize("norm", [1, 2])
def test_on_several_attributes_errors_are_those_of_the_product_written_out(operator, norm):
    encoded = WORKLOAD.encoded
    strategy = proposed(operator, encoded, norm).strategy
    (block,) = strategy.blocks
    written = Block(block.axes, tuple(Dense(factor.dense()) for factor in block.factors))
    expected = strategy_loss(Strategy(encoded.sizes, (written,), "kron"), encoded, norm)
    assert strategy_loss(strategy, encoded, norm) == pytest.approx(expected, rel=1e-9)


@several
@pytest.mark.parametrize("noise", BUDGETS)
def test_answers_and_margins_are_those_of_the_product_written_out(operator, noise):
    plan = hdmm.select(WORKLOAD, noise, operators=[operator])
    (block,) = plan.mechanism.blocks
    written = Block(block.axes, tuple(Dense(factor.dense()) for factor in block.factors))
    same = Mechanism(Strategy(SCHEMA.sizes, (written,), "kron"), noise, hdmm.Unit())
    other = hdmm.Plan(WORKLOAD, same, plan.goal, "written out")
    for asked in WORKLOAD.products:
        ours, theirs = (each.accuracy(asked.name, BUDGETS[noise]) for each in (plan, other))
        for values in ("stderr", "margin"):
            np.testing.assert_allclose(
                ours.expand(getattr(ours, values)), theirs.expand(getattr(theirs, values)), rtol=1e-6
            )


@pytest.mark.parametrize(
    ("workload", "reason"),
    [(WORKLOAD, "about 3 attributes"), (one(hdmm.Identity(), 5000), "5,000 values; GreedyH takes at most 4,096")],
    ids=["attributes", "values"],
)
def test_greedy_h_says_what_it_does_not_take(workload, reason):
    aside = baselines.GreedyH().propose(workload.encoded, 1)
    assert isinstance(aside, Aside)
    assert reason in aside.reason


@every
def test_a_workload_of_totals_is_left_to_others(operator):
    assert isinstance(operator.propose(hdmm.Workload(SCHEMA).add("total").encoded, 1), Aside)


@every
@pytest.mark.parametrize("noise", BUDGETS)
def test_a_plan_file_holds_the_hierarchy(operator, noise, tmp_path):
    plan = hdmm.select(one(hdmm.AllRange(), 9), noise, operators=[operator])
    plan.save(tmp_path / "first.plan")
    loaded = hdmm.Plan.load(tmp_path / "first.plan")
    loaded.save(tmp_path / "again.plan")
    assert (tmp_path / "first.plan").read_bytes() == (tmp_path / "again.plan").read_bytes()
    (ours,), (theirs,) = plan.mechanism.blocks[0].factors, loaded.mechanism.blocks[0].factors
    assert type(ours) is type(theirs)
    np.testing.assert_array_equal(ours.dense(), theirs.dense())
    budget = BUDGETS[noise]
    assert loaded.rmse(budget) == plan.rmse(budget)
    assert loaded.errors(budget).equals(plan.errors(budget))


def test_a_factor_of_a_plan_file_that_is_no_hierarchy_is_refused():
    from hdmm.plans.factors import TreeData, array_text, named_factor, read_factor

    for name in ("tree", "tree 1", "tree 02", "tree 2 with root", "tree -2", "haar 2"):
        assert named_factor(name, 4) is None
    rows = array_text(np.array([[4], [4]]))
    for sizes, weights in ((rows, rows), (array_text(np.array([4, 2, 2])), array_text(np.ones(3)))):
        with pytest.raises((ValueError, ArtefactError)):
            read_factor(TreeData(sizes=sizes, weights=weights), 4)


def test_a_table_with_too_many_different_sums_gets_bounds(monkeypatch):
    plan = hdmm.select(one(hdmm.Prefix(), 64), operators=[baselines.H2()])
    exact = plan.accuracy("q", BUDGETS["laplace"])
    monkeypatch.setattr("hdmm.accuracy.predict._MAX_INVERTED", 10)
    anew = hdmm.select(one(hdmm.Prefix(), 64), operators=[baselines.H2()])
    bounds = anew.accuracy("q", BUDGETS["laplace"])
    np.testing.assert_array_equal(bounds.stderr, exact.stderr)
    assert (bounds.margin >= 0.999 * exact.margin).all()
    assert (bounds.margin <= 1.17 * exact.margin).all()


def test_hierarchies_of_many_values_are_planned_without_being_written_out():
    workload = one(hdmm.Prefix(), 1 << 16)
    for operator in (baselines.H2(), baselines.HB(), baselines.Privelet()):
        plan = hdmm.select(workload, "gaussian", operators=[operator])
        (factor,) = plan.mechanism.blocks[0].factors
        assert isinstance(factor, (Haar, Tree))
        assert plan.rmse(BUDGETS["gaussian"]) < 40
