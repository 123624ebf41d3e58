"""Competitors that optimise dense matrices, against dense algebra and OPT_0's certificates."""

from dataclasses import replace

import numpy as np
import pytest

import hdmm
from hdmm import baselines, operators
from hdmm.baselines.coa import coa, halves, mirror_of, newton, whole
from hdmm.baselines.eigen_design import eigen_weights
from hdmm.baselines.lrm import _projected, decompose
from hdmm.bounds import svd_bound
from hdmm.estimators.least_squares import strategy_loss
from hdmm.matrix import Norm
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.base import Aside, Operator
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.optimise.descent import Effort
from hdmm.paper.workloads import shuffled
from hdmm.workload import Predicates
from tests.operators.proposals import proposed, reason_aside

PREDICATES = {
    "ranges": hdmm.AllRange(),
    "prefixes": hdmm.Prefix(),
    "width": hdmm.Width(4),
    "with total": hdmm.Identity() | hdmm.Total(),
}
workloads = pytest.mark.parametrize("predicates", PREDICATES.values(), ids=PREDICATES.keys())
CASES: list[tuple[Operator, Norm]] = [
    (baselines.LRM(), 1),
    (baselines.LRM(), 2),
    (baselines.COA(), 2),
    (baselines.EigenDesign(), 2),
    (baselines.MatrixMechanism(), 1),
    (baselines.MatrixMechanism(), 2),
]
QUICK = Effort(restarts=1)


def on(predicates: Predicates, n: int) -> hdmm.Workload:
    return hdmm.Workload(hdmm.Schema(x=range(n))).add("q", x=predicates)


def gram_of(workload: hdmm.Workload) -> np.ndarray:
    matrix = workload.encoded.matrix().dense().astype(float)
    return matrix.T @ matrix


@workloads
@pytest.mark.parametrize(("operator", "norm"), CASES, ids=[f"{operator.name}, {norm}" for operator, norm in CASES])
def test_the_error_is_that_of_dense_algebra_and_the_sensitivity_is_one(operator, norm, predicates):
    workload = on(predicates, 7)
    strategy = proposed(operator, workload.encoded, norm, QUICK).strategy
    (block,) = strategy.blocks
    A, W = block.matrix.dense().astype(float), workload.encoded.matrix().dense()
    assert np.linalg.norm(A, norm, axis=0).max() == pytest.approx(1, abs=1e-9)
    inverse = np.linalg.pinv(A, rcond=1e-10)
    np.testing.assert_allclose(W @ inverse @ A, W, atol=1e-6)
    dense = np.linalg.norm(A, norm, axis=0).max() ** 2 * np.linalg.norm(W @ inverse) ** 2
    assert strategy_loss(strategy, workload.encoded, norm) == pytest.approx(dense, rel=1e-6)


@pytest.mark.parametrize("n", [2, 9, 24])
@pytest.mark.parametrize("predicates", [hdmm.AllRange(), hdmm.Prefix()])
def test_newton_reaches_the_certified_optimum(predicates, n):
    V = gram_of(on(predicates, n))
    best = opt0_gaussian(DenseGram(V), tolerance=1e-7)
    assert best.bound is not None
    error = coa(V).error
    assert best.bound * (1 - 1e-9) <= error <= best.bound * (1 + 1e-4)


def test_newton_keeps_a_unit_diagonal_and_returns_the_inverse():
    V = gram_of(on(hdmm.AllRange(), 12))
    (X,), (inverse,) = newton(V[None])
    np.testing.assert_allclose(np.diagonal(X), 1, atol=1e-12)
    np.testing.assert_allclose(X @ inverse, np.eye(12), atol=1e-8)
    assert np.linalg.eigvalsh(X).min() > 0


@pytest.mark.parametrize("order", [np.arange(12), np.array(shuffled(12))], ids=["in order", "shuffled"])
def test_newton_on_two_halves_takes_the_steps_of_the_whole(order):
    V = gram_of(on(hdmm.AllRange(), 12))[np.ix_(order, order)]
    mirror = mirror_of(V)
    assert mirror is not None
    parts = halves(V, mirror)
    np.testing.assert_allclose(whole(parts, mirror), V)
    for effort in (Effort(deadline=0.0), Effort()):  # after one step, and at the end
        X, inverse = (whole(half, mirror) for half in newton(parts, effort))
        (expected,), (expected_inverse,) = newton(V[None], effort)
        np.testing.assert_allclose(X, expected, atol=1e-6)
        np.testing.assert_allclose(inverse, expected_inverse, atol=1e-5)


@pytest.mark.parametrize("predicates", [hdmm.Prefix(), hdmm.AllRange() | hdmm.Where("x = 3")])
def test_pairs_of_cells_that_make_a_difference_are_not_exchanged(predicates):
    assert mirror_of(gram_of(on(predicates, 12))) is None


@workloads
def test_weights_of_eigenvectors_are_certified_and_between_the_bounds(predicates):
    workload = on(predicates, 16)
    V = gram_of(workload)
    values, vectors = np.linalg.eigh(V)
    kept = values > 1e-9 * values[-1]
    weights, bound = eigen_weights(values[kept], vectors[:, kept] ** 2)
    assert (vectors[:, kept] ** 2 @ weights).max() <= 1 + 1e-12
    total = float((values[kept] / weights).sum())
    assert bound * (1 - 1e-12) <= total <= bound * (1 + 1e-4)
    error = strategy_loss(proposed(baselines.EigenDesign(), workload.encoded, 2).strategy, workload.encoded, 2)
    least = opt0_gaussian(DenseGram(V), tolerance=1e-7).bound
    assert least is not None
    assert least * (1 - 1e-9) <= error <= total * 1.001


def test_eigenvectors_with_the_best_weights_beat_the_roots_of_the_eigenvalues():
    V = gram_of(on(hdmm.Prefix(), 16))
    values, vectors = np.linalg.eigh(V)
    roots = np.sqrt(values)
    plain = (vectors**2 @ roots).max() * (values / roots).sum()
    weights, _ = eigen_weights(values, vectors**2)
    assert (values / weights).sum() < 0.99 * plain


def test_eigenvectors_are_optimal_if_all_cells_are_alike():
    """The Gram of all ranges on a circle is circulant: its roots have a constant diagonal, and meet the SVD bound."""
    n = 9
    rows = [[int((cell - start) % n < width) for cell in range(n)] for width in (1, 2, 5) for start in range(n)]
    workload = on(hdmm.Custom(np.array(rows)), n)
    bound = svd_bound(workload.encoded.gram())
    error = strategy_loss(proposed(baselines.EigenDesign(), workload.encoded, 2).strategy, workload.encoded, 2)
    assert error == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("norm", [1, 2])
@workloads
def test_the_low_rank_factors_give_the_workload_and_stay_in_the_unit_balls(predicates, norm):
    V = gram_of(on(predicates, 12))
    result = decompose(V, norm)
    np.testing.assert_allclose(result.rows.T @ result.rows, V, atol=1e-9 * V.max())
    assert np.linalg.norm(result.rows - result.left @ result.right) <= 0.01
    assert np.linalg.norm(result.right, norm, axis=0).max() <= 1 + 1e-12


def test_over_many_cells_the_low_rank_factors_start_from_those_of_groups(monkeypatch):
    """With few steps the singular vectors would be a start far behind the identity."""
    monkeypatch.setattr("hdmm.baselines.lrm._MAX_STEEP", 32)
    monkeypatch.setattr("hdmm.baselines.lrm._MAX_COST", 1 << 23)
    encoded = on(hdmm.Prefix(), 64).encoded
    error = strategy_loss(proposed(baselines.LRM(), encoded, 1).strategy, encoded, 1)
    assert error < strategy_loss(proposed(baselines.Identity(), encoded, 1).strategy, encoded, 1)
    monkeypatch.setattr("hdmm.baselines.lrm._MAX_STEEP", 64)
    assert error < strategy_loss(proposed(baselines.LRM(), encoded, 1).strategy, encoded, 1)


@pytest.mark.parametrize("norm", [1, 2])
def test_projections_are_the_nearest_points_of_the_unit_balls(norm):
    """No direction into the ball leads closer: (z − p)·(y − p) ≤ 0 for every y in it."""
    random = np.random.default_rng(3)
    points = random.normal(size=(5, 200)) * random.choice([0.1, 1, 10], 200)
    projected = _projected(points, norm)
    assert np.linalg.norm(projected, norm, axis=0).max() <= 1 + 1e-12
    away = points - projected
    farthest = abs(away).max(axis=0) if norm == 1 else np.linalg.norm(away, axis=0)
    assert (farthest - (away * projected).sum(axis=0)).max() <= 1e-9


@workloads
@pytest.mark.parametrize("norm", [1, 2])
def test_no_operator_beats_the_matrix_mechanism_on_a_few_cells(predicates, norm):
    encoded = on(predicates, 5).encoded
    proposal = proposed(baselines.MatrixMechanism(), encoded, norm)
    oracle = strategy_loss(proposal.strategy, encoded, norm)
    assert proposal.bound is not None
    assert proposal.bound <= oracle * (1 + 1e-9)
    others: list[Operator] = [getattr(baselines, name)() for name in baselines.__all__ if name != "MatrixMechanism"]
    compared = 0
    for operator in [*others, operators.Explicit(), operators.Kron(), operators.Marginal()]:
        other = operator.propose(encoded, norm)
        if isinstance(other, Aside):
            continue
        compared += 1
        # Queries of a full rank on every cell cost a singular workload up to a thousandth.
        assert oracle <= strategy_loss(other.strategy, encoded, norm) * 1.001, operator.name
    assert compared >= 5


@pytest.mark.parametrize(
    ("operator", "norm", "n", "reason"),
    [
        (baselines.COA(), 1, 8, "Laplace"),
        (baselines.EigenDesign(), 1, 8, "Laplace"),
        (baselines.MatrixMechanism(), 1, 9, "9 cells; at most 8"),
        (baselines.LRM(), 1, 1025, "1025 cells; at most 1024"),
        (baselines.COA(), 2, 4097, "4097 cells; at most 4096"),
        (baselines.EigenDesign(), 2, 4097, "4097 cells; at most 4096"),
    ],
)
def test_what_is_out_of_reach_is_refused_with_the_limit_and_the_size(operator, norm, n, reason):
    assert reason in reason_aside(operator, on(hdmm.Prefix(), n).encoded, norm).replace(",", "")


def test_several_attributes_are_searched_together_up_to_the_limit():
    schema = hdmm.Schema(x=range(4), y=range(3), z=range(60))
    few = hdmm.Workload(schema).add("q", x=hdmm.Prefix(), y=hdmm.Identity()).add("r", x=hdmm.Identity())
    for operator, norm in CASES[:4]:
        proposal = proposed(operator, few.encoded, norm, QUICK)
        assert proposal.strategy.blocks[0].matrix.shape[1] == 12
    many = few.add("s", y=hdmm.Identity(), z=hdmm.Prefix())
    for operator, norm in CASES[:4]:
        reason = reason_aside(operator, many.encoded, norm)
        assert "the 3 attributes asked about have 720 cells together; at most 512" in reason


@pytest.mark.parametrize(("operator", "norm"), CASES, ids=[f"{operator.name}, {norm}" for operator, norm in CASES])
def test_cells_that_nobody_asks_for_and_totals_alone_are_no_obstacle(operator, norm):
    rows = np.array([[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]])
    workload = on(hdmm.Custom(rows), 6)
    plan = hdmm.select(workload, "laplace" if norm == 1 else "gaussian", operators=[operator], restarts=1)
    assert plan.operator == operator.name
    total = hdmm.Workload(hdmm.Schema(x=range(6))).add("total")
    assert "only totals" in reason_aside(operator, total.encoded, norm)


def test_a_deadline_ends_the_searches():
    encoded = on(hdmm.Prefix(), 8).encoded
    for operator, norm in CASES:
        proposed(operator, encoded, norm, replace(QUICK, deadline=1.0))
