"""OPT_S against the same problem without symmetry, written out."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hdmm
from hdmm import operators
from hdmm.demand import roots
from hdmm.demand.symmetry import symmetry_of
from hdmm.estimators.least_squares import local_least_squares, strategy_loss
from hdmm.matrix.axis_gram import DenseGram
from hdmm.objective import Objective
from hdmm.operators import symmetric_search
from hdmm.operators.base import Aside
from hdmm.operators.integer_span import integer_basis
from hdmm.operators.lower_bound import sum_of_bounds
from hdmm.operators.minimax.search import least_worst
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.symmetric_search import dual_bound
from hdmm.optimise.descent import DEFAULT
from hdmm.privacy.calibrate import NoiseKind
from hdmm.strategy import sensitivity
from hdmm.workload import Encoded
from tests.contract.zoo import dense_blocks
from tests.operators.proposals import proposed

BUDGET = hdmm.Budget(epsilon="1", delta="1e-6")
PREDICATES = [
    hdmm.Identity(),
    hdmm.Total(),
    hdmm.Prefix(),
    hdmm.AllRange(),
    hdmm.Identity() | hdmm.Total(),
    hdmm.Values([0, 1]),
    ~hdmm.Values([0]),
    hdmm.Custom([[1, 1, -1, 0, 0][:3], [2, 0, 0, 0, 0][:3]]),
]


@st.composite
def workloads(draw) -> hdmm.Workload:
    """A few products over three attributes of three values each, some under a condition."""
    names = ["a", "b", "c"]
    workload = hdmm.Workload(hdmm.Schema({name: range(3) for name in names}))
    for number in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
        sets = {name: draw(st.sampled_from(PREDICATES)) for name in chosen}
        where = draw(st.sampled_from([None, None, "a = 1 OR b >= 1", "NOT (a = 2 AND c = 0)"]))
        weight = draw(st.sampled_from([1, 1, 3, "1/7"]))
        workload = workload.add(f"p{number}", sets, weight=weight, where=where)
    return workload


def dense_gram(encoded: Encoded) -> np.ndarray:
    return encoded.gram().dense()


def dense_loss(encoded: Encoded, strategy) -> float:
    """‖A‖²·tr(X⁺V), everything written out."""
    blocks = [
        float(block.weight) * rows for block, rows in zip(strategy.blocks, dense_blocks(strategy, encoded), strict=True)
    ]
    X = np.concatenate(blocks).T @ np.concatenate(blocks)
    return float(np.diagonal(X).max() * np.trace(np.linalg.pinv(X, rcond=1e-9, hermitian=True) @ dense_gram(encoded)))


@settings(max_examples=40)
@given(workloads())
def test_the_reduced_optimum_is_that_of_the_whole_problem(workload):
    encoded = workload.encoded.sought
    if not encoded.axes:
        return
    proposal = operators.Symmetric().propose(encoded, 2)
    assert not isinstance(proposal, Aside)
    assert proposal.bound is not None
    whole = opt0_gaussian(DenseGram(dense_gram(encoded)), tolerance=1e-6)
    loss = dense_loss(encoded, proposal.strategy)
    assert loss == pytest.approx(strategy_loss(proposal.strategy, encoded, 2), rel=1e-6)
    assert proposal.bound <= whole.error * (1 + 1e-9)
    assert whole.bound is not None
    assert loss <= whole.bound * (1 + 5e-4) + 1e-9
    assert loss >= whole.bound * (1 - 1e-9)


@settings(max_examples=20)
@given(workloads())
def test_plans_hold_integers_with_the_exact_sensitivity(workload):
    if not workload.encoded.sought.axes:
        return
    plan = hdmm.select(workload, "gaussian", operators=[operators.Symmetric()])
    strategy = plan.mechanism.strategy
    weighted = [
        float(block.weight) * rows
        for block, rows in zip(strategy.blocks, dense_blocks(strategy, workload.encoded), strict=True)
    ]
    X = np.concatenate(weighted).T @ np.concatenate(weighted)
    assert float(sensitivity(strategy.blocks, 2)) == pytest.approx(np.diagonal(X).max(), rel=1e-9)
    pairs = np.diagonal(X)[:, None] + np.diagonal(X) - 2 * X
    change = hdmm.Unit(neighbours="replace-one").change(strategy.blocks, 2)
    assert float(change.power) == pytest.approx(max(pairs.max(), np.diagonal(X).max()), rel=1e-9)
    assert change.exact
    assert plan.certificate is not None
    assert -1e-9 < plan.certificate < 1e-3


def test_cells_that_can_be_exchanged_are_of_one_kind():
    schema = hdmm.Schema(age=range(10), state=range(6))
    workload = hdmm.Workload(schema).add("ages", age=hdmm.Ranges([(0, 2), (3, 6)]), state=hdmm.Identity())
    symmetry = symmetry_of(workload.encoded.gram())
    assert [kinds.labels.tolist() for kinds in symmetry.kinds] == [[0] * 3 + [1] * 4 + [2] * 3, [0] * 6]


ORDERED = hdmm.Schema(a=range(4), b=range(3), c=range(5))
WAYS = {
    "products": hdmm.Workload(ORDERED)
    .add("x", a=hdmm.Where("a >= 2"), b=hdmm.Identity())
    .add("y", b=hdmm.Identity(), c=hdmm.Prefix()),
    "another order, and one product in parts": hdmm.Workload(ORDERED)
    .add("y", b=hdmm.Values([2, 0]), c=hdmm.Prefix())
    .add("y too", b=hdmm.Where("b = 1"), c=hdmm.Prefix())
    .add("x", a=hdmm.Custom([[0, 0, 1, 1]]), b=hdmm.Permuted(hdmm.Identity(), [2, 1, 0])),
    "SQL": hdmm.Workload(ORDERED)
    .add_sql("x", "SELECT b, COUNT(*) FROM t WHERE NOT a < 2 GROUP BY b")
    .add("y", c=hdmm.Prefix(), b=hdmm.Identity()),
    "a condition across attributes": hdmm.Workload(ORDERED)
    .add("x", b=hdmm.Identity(), where="(a >= 2 AND c >= 0) OR (a >= 2 AND b >= 0)")
    .add("y", b=hdmm.Identity(), c=hdmm.Prefix()),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_kinds_do_not_depend_on_how_the_workload_is_written(way):
    symmetry = symmetry_of(WAYS[way].encoded.compact.gram())
    assert [kinds.labels.tolist() for kinds in symmetry.kinds] == [[0, 0, 1, 1], [0, 0, 0], [0, 1, 2, 3, 4]]
    plans = [hdmm.select(WAYS[name], "gaussian").rmse(BUDGET) for name in (way, "products")]
    assert plans[0] == pytest.approx(plans[1], rel=3e-4)


def test_values_in_another_order_are_as_alike():
    schema = hdmm.Schema(a=range(6), b=range(2))
    order = [3, 0, 5, 1, 4, 2]
    usual = hdmm.Workload(schema).add("x", a=hdmm.Ranges([(0, 1), (2, 5)]), b=hdmm.Identity())
    permuted = hdmm.Workload(schema).add(
        "x", a=hdmm.Permuted(hdmm.Ranges([(order[0], order[1]), (order[2], order[5])]), order), b=hdmm.Identity()
    )
    sizes = [sorted(symmetry_of(w.encoded.gram()).kinds[0].sizes.tolist()) for w in (usual, permuted)]
    assert sizes == [[2, 4], [2, 4]]


@given(workloads())
@settings(max_examples=20)
def test_the_dual_bound_holds_for_both_noises(workload):
    encoded = workload.encoded.sought
    if not encoded.axes:
        return
    bound = dual_bound(encoded.gram())
    assert bound is not None
    identity = proposed(hdmm.baselines.Identity(), encoded, 1).strategy
    for norm in (1, 2):
        assert bound <= strategy_loss(identity, encoded, norm) * (1 + 1e-9)
    assert bound <= opt0_gaussian(DenseGram(dense_gram(encoded)), tolerance=1e-6).error * (1 + 1e-9)


def test_every_plan_of_a_small_workload_has_a_bound_under_both_noises():
    workload = WAYS["products"]
    budgets: dict[NoiseKind, hdmm.Budget] = {"laplace": hdmm.Budget("1"), "gaussian": BUDGET}
    for noise, budget in budgets.items():
        plan = hdmm.select(workload, noise)
        bound = plan.bound(budget)
        assert bound is not None
        assert 0 < bound <= plan.rmse(budget) * (1 + 1e-9)
        assert plan.certificate is not None


def test_a_workload_that_treats_too_few_cells_alike_is_left_to_others():
    schema = hdmm.Schema(a=range(100), b=range(100))
    workload = hdmm.Workload(schema).add("x", a=hdmm.Prefix(), b=hdmm.Prefix())
    proposal = operators.Symmetric().propose(workload.encoded, 2)
    assert isinstance(proposal, Aside)
    assert proposal.reason == "more than 1,643 questions differ over 10,000 combinations of unlike cells"
    one = dual_bound(hdmm.Workload(schema).add("x", a=hdmm.Prefix()).encoded.gram())
    assert one is not None
    assert proposal.bound == pytest.approx(one**2, rel=1e-2)


def test_few_questions_over_many_unlike_cells_are_certified():
    """4,000 combinations of cells differ, and the questions span 140 dimensions of them."""
    schema = hdmm.Schema(sex=["F", "M"], age=range(50), income=range(80))
    workload = (
        hdmm.Workload(schema)
        .add("ages", age=hdmm.Prefix(), sex=hdmm.Identity())
        .add("incomes", income=hdmm.Prefix())
        .add("both", age=hdmm.Ranges([(0, 17), (18, 49)]), income=hdmm.Ranges([(0, 9), (10, 39), (40, 79)]))
    )
    plan = hdmm.select(workload, "gaussian", operators=[operators.Symmetric()])
    assert plan.certificate is not None
    assert 0 <= plan.certificate < 2e-3
    strategy = plan.mechanism.strategy
    residual = hdmm.select(workload, "gaussian", operators=[operators.Residual()])
    assert plan.rmse(BUDGET) < 0.97 * residual.rmse(BUDGET)
    assert residual.bound(BUDGET) == pytest.approx(plan.bound(BUDGET), rel=2e-3)
    assert all(local_least_squares(strategy).supports(product) for product in workload.encoded.products)


@settings(max_examples=25)
@given(workloads())
def test_the_optimum_is_the_same_by_pivots_and_written_out(workload):
    encoded = workload.encoded.sought
    if not encoded.axes:
        return
    written = symmetry_of(encoded.gram())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roots, "_SMALL", 0)
        patch.setattr(roots, "_MAX_WRITTEN_ROWS", 0)
        pivoted = symmetry_of(encoded.gram())
        proposal = proposed(operators.Symmetric(), encoded, 2)
    assert [block.within for block in pivoted.blocks] == [block.within for block in written.blocks]
    for first, second in zip(written.blocks, pivoted.blocks, strict=True):
        assert first.root.shape == second.root.shape
        gram = first.root @ first.root.T
        assert np.allclose(gram, second.root @ second.root.T, rtol=0, atol=1e-9 * gram.max())
    assert dense_loss(encoded, proposal.strategy) == pytest.approx(
        dense_loss(encoded, proposed(operators.Symmetric(), encoded, 2).strategy), rel=1e-4
    )


@settings(max_examples=40)
@given(workloads(), st.integers(1, 12))
def test_bounds_over_some_cells_or_of_single_products_are_bounds(workload, orbits):
    encoded = workload.encoded.sought
    if not encoded.axes:
        return
    least = opt0_gaussian(DenseGram(dense_gram(encoded)), tolerance=1e-6).error
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetric_search, "_MAX_SAMPLED_ORBITS", orbits)
        sampled = symmetric_search.sampled_bound(encoded.gram())
    assert sampled is not None
    assert sampled <= least * (1 + 1e-9)
    assert sum_of_bounds(encoded) <= least * (1 + 1e-9)


def test_all_cells_give_the_bound_itself():
    gram = WAYS["products"].encoded.gram()
    assert symmetric_search.sampled_bound(gram) == pytest.approx(dual_bound(gram), rel=1e-9)


def test_sums_of_small_tables_have_a_basis_of_small_integers():
    """f(a) + g(b) + h(c): cells that are far apart need fractions, those near the first one do not."""
    shape = (7, 6, 5)
    units = [np.eye(size)[places] for size, places in zip(shape, np.indices(shape).reshape(3, -1), strict=True)]
    values, vectors = np.linalg.eigh(np.sum([one @ one.T for one in units], axis=0))
    root = vectors[:, values > 1e-9]
    basis = integer_basis(root, shape)
    assert basis is not None
    assert basis.shape == (7 + 6 + 5 - 2, 7 * 6 * 5)
    assert abs(basis).max() <= 2
    assert np.allclose(basis.T @ np.linalg.lstsq(basis.T.astype(float), root, rcond=1e-10)[0], root)


def test_queries_without_small_integers_have_no_integer_basis():
    assert integer_basis(np.array([[1.0], [np.sqrt(2)], [0.3]]), (3,)) is None


def test_it_is_for_gaussian_noise():
    assert operators.Symmetric().propose(WAYS["products"].encoded, 1) == Aside("it is for Gaussian noise")


def test_on_marginals_it_meets_the_closed_form():
    schema = hdmm.Schema(a=range(2), b=range(5), c=range(9))
    workload = hdmm.marginals(schema, up_to=2)
    residual, symmetric = (proposed(one, workload.encoded, 2) for one in (operators.Residual(), operators.Symmetric()))
    losses = [strategy_loss(one.strategy, workload.encoded, 2) for one in (residual, symmetric)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert prod(len(kinds) for kinds in symmetry_of(workload.encoded.gram()).kinds) == 1


@settings(max_examples=25)
@given(workloads())
def test_the_least_largest_error_is_that_of_the_whole_problem(workload):
    encoded = workload.encoded
    limits = tuple(1 / float(product.weight) ** 2 for product in encoded.products)
    symmetric = least_worst(operators.Symmetric(), encoded, limits, 2, DEFAULT)
    whole = least_worst(operators.Explicit(), encoded, limits, 2, DEFAULT)
    if isinstance(symmetric, Aside) or isinstance(whole, Aside) or whole.bound is None:
        return
    objective = Objective(limits)
    values = [objective.value(local_least_squares(proposal.strategy), encoded, 2) for proposal in (symmetric, whole)]
    assert symmetric.bound is not None
    assert symmetric.bound <= values[1] * (1 + 1e-9)
    assert whole.bound <= values[0] * (1 + 1e-9)
    assert values[0] <= values[1] * 1.02


def test_products_without_a_limit_are_answered_beside_the_largest_error_of_others():
    workload = WAYS["products"].add("free", a=hdmm.Identity(), c=hdmm.Identity())
    plan = hdmm.select(workload, "gaussian", targets={"x": "50@95%"}, operators=[operators.Symmetric()])
    budget = plan.least_budget()
    assert plan.accuracy("x", budget).margin.max() <= 50
    assert np.isfinite(plan.accuracy("free", budget).stderr).all()
    assert plan.certificate is not None
    assert -1e-9 < plan.certificate < 0.2


def test_the_largest_error_of_an_everyday_workload_is_certified():
    schema = hdmm.Schema(sex=["F", "M"], age=range(40), region=range(25))
    workload = (
        hdmm.Workload(schema)
        .add("ages", sex=hdmm.Identity() | hdmm.Total(), age=hdmm.Prefix())
        .add("regions", age=hdmm.Where("age >= 6"), region=hdmm.Identity())
        .add("groups", age=hdmm.Ranges([(0, 4), (5, 9), (10, 39)]), sex=hdmm.Identity(), region=hdmm.Identity())
    )
    plan = hdmm.select(workload, "gaussian", objective="max")
    assert plan.operator == "Symmetric"
    assert plan.certificate is not None
    assert 0 <= plan.certificate < 3e-3
    assert plan.worst(BUDGET) == pytest.approx(
        max(plan.accuracy(product.name, BUDGET).stderr.max() for product in workload.products)
    )


def test_more_attributes_than_an_array_has_axes_are_refused():
    encoded = hdmm.marginals(hdmm.Schema({f"a{place}": [False, True] for place in range(65)}), k=1).encoded
    proposal = operators.Symmetric().propose(encoded, 2)
    assert isinstance(proposal, Aside)
    assert proposal.reason == "65 attributes; at most 60 are searched together"
