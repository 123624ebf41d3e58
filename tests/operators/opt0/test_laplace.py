"""OPT_0 under Laplace noise against matrices written out, and against the paper's numbers."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from hdmm import paper
from hdmm.matrix import Dense, Identity, PIdentity, Total
from hdmm.matrix.axis_gram import (
    AllRangeGram,
    AxisGram,
    DenseGram,
    IdentityGram,
    OnesGram,
    PrefixGram,
    RestrictedGram,
    RowsGram,
    SelectedGram,
    SumGram,
    WidthGram,
)
from hdmm.operators.base import Solution
from hdmm.operators.opt0 import signed
from hdmm.operators.opt0.coarse import CellBlocks, coarse_to_fine
from hdmm.operators.opt0.laplace import opt0_laplace
from hdmm.optimise.descent import Effort
from hdmm.optimise.projected import descend_projected
from hdmm.paper.sections.printed import tables

_RNG = np.random.default_rng(5)
_ROWS = _RNG.normal(size=(6, 12))
_THETA = _RNG.random((3, 12))
_QUICK = Effort(restarts=1)

GRAMS: dict[str, AxisGram] = {
    "ranges": AllRangeGram(12),
    "prefixes": PrefixGram(12),
    "widths": WidthGram(12, 5),
    "dense": DenseGram(_ROWS.T @ _ROWS + np.eye(12)),
    "rows": RowsGram(_ROWS),
    "permuted": SelectedGram(PrefixGram(12), _RNG.permutation(12), 12),
    "padded": SelectedGram(AllRangeGram(8), np.arange(2, 10), 12),
    "restricted": RestrictedGram(AllRangeGram(12), np.arange(12) % 3 > 0, np.arange(12) % 3 > 0),
    "sum": SumGram(((2.0, PrefixGram(12)), (0.5, IdentityGram(12)), (3.0, OnesGram(12)))),
    "p-identity": PIdentity(_THETA).axis_gram(),
}
every = pytest.mark.parametrize("gram", GRAMS.values(), ids=GRAMS.keys())


def dense_error(solution: Solution, gram: AxisGram) -> float:
    """tr((AᵀA)⁺V), written out, after checking that the strategy supports the workload and has sensitivity 1."""
    A, V = solution.matrix.dense().astype(float), gram.dense()
    inverse = np.linalg.pinv(A, rcond=1e-10)
    np.testing.assert_allclose(V @ (inverse @ A), V, atol=1e-7 * V.max())
    for column in A.T:
        assert sum(Fraction(float(abs(entry))) for entry in column) <= 1
    return float(np.trace(inverse @ inverse.T @ V))


def rmse(solution: Solution, queries: int) -> float:
    return sqrt(2 * solution.error / queries)


@every
def test_the_gradient_is_that_of_finite_differences(gram: AxisGram):
    blocks = CellBlocks.of(gram)
    _, gradient = blocks.loss(_THETA)
    h = 1e-6
    for place in [(0, 0), (1, 4), (2, 11), (0, 7)]:
        shift = np.zeros(_THETA.shape)
        shift[place] = h
        slope = (blocks.loss(_THETA + shift)[0] - blocks.loss(_THETA - shift)[0]) / (2 * h)
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_the_gradient_of_signed_queries_is_that_of_finite_differences():
    V = np.diag(np.arange(1.0, 6)) + 2
    value = signed._loss(V)
    point = _RNG.random((2, 7, 5))
    _, gradient = value(point)
    for place in [(0, 0, 0), (1, 3, 4), (0, 6, 2), (1, 6, 2)]:
        shift = np.zeros(point.shape)
        shift[place] = 1e-6
        slope = (value(point + shift)[0] - value(point - shift)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_heavy_queries_that_are_almost_alike_have_their_true_loss():
    heavy = 1e4 * _RNG.integers(0, 2, 30)
    theta = np.abs(np.stack([heavy, heavy, heavy, heavy]) * (1 + 1e-3 * _RNG.random((4, 30))))
    gram = DenseGram(np.ones((30, 30)) + np.diag(heavy > 0))
    expected = dense_error(Solution(PIdentity(theta), 0.0), gram)
    assert CellBlocks.of(gram).loss(theta)[0] == pytest.approx(expected, rel=1e-2)
    assert PIdentity(theta).error(gram) == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("p", [None, 2])
def test_cells_that_no_query_tells_apart_are_counted_together(p):
    groups = np.repeat(np.arange(4), [3, 1, 5, 3])
    rows = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])[:, groups].astype(float)
    for gram in (RowsGram(rows), DenseGram(rows.T @ rows)):
        solution = opt0_laplace(gram, p)
        assert solution.error == pytest.approx(dense_error(solution, gram))
        assert solution.error <= 7 + 1e-9  # every group by itself
        again = opt0_laplace(gram, p, effort=Effort(restarts=0), start=solution.matrix)
        assert again.error <= solution.error * (1 + 1e-9)


@every
def test_the_loss_is_the_error_of_the_strategy_written_out(gram: AxisGram):
    strategy = PIdentity(_THETA)
    expected = dense_error(Solution(strategy, 0.0), gram)
    assert CellBlocks.of(gram).loss(_THETA)[0] == pytest.approx(expected)
    assert strategy.error(gram) == pytest.approx(expected)


@pytest.mark.parametrize("gram", [AllRangeGram(1030), WidthGram(1030, 400)])
def test_blocks_have_the_loss_of_their_cells_and_its_gradient(gram: AxisGram):
    coarse, whole = coarse_to_fine(gram, 3)
    point = _RNG.random((3, len(coarse.counts)))
    value, gradient = coarse.loss(point)
    assert sorted(set(coarse.counts)) == [4, 5]
    fine, by_cells = whole.loss(coarse.theta(point))
    assert value == pytest.approx(fine)
    np.testing.assert_allclose(coarse.point(coarse.theta(point)), point)
    np.testing.assert_allclose(gradient, coarse.point(by_cells), rtol=1e-9)


def test_cells_in_no_order_are_searched_one_by_one():
    shuffled = SelectedGram(AllRangeGram(1024), _RNG.permutation(1024), 1024)
    assert len(coarse_to_fine(shuffled, 3)) == 1
    assert len(coarse_to_fine(AllRangeGram(1024), 3)) > 1


def test_the_inverse_is_the_pseudo_inverse():
    strategy = PIdentity(_THETA)
    expected = np.linalg.pinv(strategy.dense(), rcond=1e-10)
    np.testing.assert_allclose(strategy.inverse().dense(), expected, atol=1e-12)
    np.testing.assert_allclose(strategy.solve(np.eye(12)), expected @ expected.T, atol=1e-12)


@pytest.mark.parametrize("theta", [np.array([1.0, 2.0]), np.zeros((0, 3)), -np.ones((1, 2)), np.full((1, 2), np.nan)])
def test_extra_queries_are_checked(theta):
    with pytest.raises(ValueError, match="theta"):
        PIdentity(theta)


@pytest.mark.parametrize("p", [1, 7, 300])
def test_no_column_as_stored_sums_to_more_than_one(p: int):
    theta = np.random.default_rng(p).lognormal(sigma=4, size=(p, 40))
    for column in PIdentity(theta).dense().T:
        total = sum(Fraction(float(entry)) for entry in column)
        assert 1 - Fraction(1, 10**12) < total <= 1


@every
def test_the_error_is_exact_and_no_worse_than_identity(gram: AxisGram):
    solution = opt0_laplace(gram, effort=_QUICK)
    assert solution.error == pytest.approx(dense_error(solution, gram), rel=1e-6)
    assert solution.error <= gram.trace()
    assert solution.bound is None


@pytest.mark.parametrize("kind", ["all-range", "prefix", "width32", "permuted"])
def test_it_is_as_good_as_the_paper(kind):
    encoded = paper.one_d(kind, 64).encoded
    gram = encoded.gram().axis_gram()
    solution = opt0_laplace(gram)
    (row,) = [row for row in tables()["table_opt01_laplace_1d"] if (row["workload"], row["domain"]) == (kind, 64)]
    assert rmse(solution, encoded.query_count) < row["OPT_0"] + 0.005
    assert solution.error == pytest.approx(dense_error(solution, gram), rel=1e-9)


def test_a_permutation_changes_nothing():
    plain, permuted = (opt0_laplace(GRAM, 4, effort=_QUICK) for GRAM in (PrefixGram(12), GRAMS["permuted"]))
    assert permuted.error == plain.error
    assert permuted.matrix.shape == plain.matrix.shape


@pytest.mark.parametrize(
    ("rows", "ratio"),
    [
        (np.tril(np.ones((8, 8))), 0.98),
        (np.tril(np.ones((6, 6))) * np.sqrt(np.arange(1, 7))[:, None], 0.98),
        (np.vstack([np.tril(np.ones((4, 4))), np.full((1, 4), 3.0)]), 0.97),
        (np.vstack([np.tril(np.ones((24, 24))), np.triu(np.ones((24, 24)))]), 0.9),
    ],
    ids=["prefixes of 8", "weighted prefixes of 6", "prefixes of 4 and a heavy total", "prefixes and suffixes of 24"],
)
def test_signed_queries_beat_extra_ones_on_a_small_workload_of_full_rank(rows, ratio):
    gram = DenseGram(rows.T @ rows)
    signed = opt0_laplace(gram)
    assert signed.error < ratio * min(np.trace(gram.array), opt0_laplace(gram, max(1, gram.size // 16)).error)
    assert abs(signed.matrix.dense()).sum(axis=0).max() <= 1
    assert signed.error == pytest.approx(dense_error(signed, gram), rel=1e-9)


def test_signed_queries_beat_extra_ones_on_a_workload_of_low_rank():
    gram = WidthGram(48, 24)
    signed = opt0_laplace(gram)
    assert isinstance(signed.matrix, Dense)
    assert signed.matrix.array.min() < 0
    assert signed.error < 0.96 * opt0_laplace(gram, 3).error
    assert signed.error == pytest.approx(dense_error(signed, gram), rel=1e-9)
    assert np.linalg.cond(signed.matrix.array) < 1e4


@pytest.mark.parametrize("gram", [AllRangeGram(64), PrefixGram(64), WidthGram(48, 24)])
def test_a_start_is_never_made_worse(gram: AxisGram):
    before = opt0_laplace(gram, effort=_QUICK, iterations=20)
    again = opt0_laplace(gram, effort=Effort(restarts=0), start=before.matrix, iterations=50)
    assert again.error <= before.error
    assert type(again.matrix) is type(before.matrix)
    nothing = opt0_laplace(gram, effort=Effort(restarts=0), start=before.matrix, iterations=0)
    assert nothing.error <= before.error * (1 + 1e-12)


def test_a_start_may_cover_cells_that_nobody_asks_about():
    gram = SelectedGram(PrefixGram(40), np.arange(5, 45), 50)
    before = opt0_laplace(gram, effort=_QUICK, iterations=20)
    assert isinstance(before.matrix, PIdentity)
    again = opt0_laplace(gram, effort=Effort(restarts=0), start=before.matrix, iterations=50)
    assert again.error <= before.error


def test_a_start_that_does_not_support_the_workload_is_not_returned():
    solution = opt0_laplace(PrefixGram(12), effort=Effort(restarts=0), start=Total(12))
    assert solution.error == pytest.approx(dense_error(solution, PrefixGram(12)))


@pytest.mark.parametrize(
    "gram",
    [
        SelectedGram(PrefixGram(40), np.arange(5, 45), 50),
        RestrictedGram(PrefixGram(50), np.arange(50) >= 10, np.arange(50) >= 10),
        DenseGram(np.pad(PrefixGram(40).dense(), ((0, 10), (0, 10)))),
    ],
)
def test_cells_that_nobody_asks_about_cost_nothing(gram: AxisGram):
    solution = opt0_laplace(gram, effort=_QUICK)
    assert solution.error == pytest.approx(opt0_laplace(PrefixGram(40), effort=_QUICK).error, rel=1e-6)
    assert solution.error == pytest.approx(dense_error(solution, gram))


def test_a_workload_of_nothing_is_free():
    assert opt0_laplace(DenseGram(np.zeros((3, 3)))).error == 0


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("kind", [AllRangeGram, PrefixGram, IdentityGram, OnesGram])
@pytest.mark.parametrize("p", [None, 1, 3])
def test_tiny_domains(n: int, kind, p):
    gram = kind(n)
    solution = opt0_laplace(gram, p, effort=_QUICK)
    assert solution.error == pytest.approx(dense_error(solution, gram))
    assert solution.error <= gram.trace()


@pytest.mark.parametrize("p", [1, 2, 20])
def test_the_number_of_extra_queries_is_the_users(p: int):
    solution = opt0_laplace(PrefixGram(40), p, effort=_QUICK)
    assert isinstance(solution.matrix, PIdentity)
    assert len(solution.matrix.theta) <= p


def test_more_extra_queries_than_one_help_prefixes():
    one, two = (opt0_laplace(PrefixGram(64), p, effort=_QUICK).error for p in (1, 4))
    assert two < 0.95 * one


@pytest.mark.parametrize("total", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("written", [False, True])
def test_the_total_beside_the_identity_has_its_best_weight(total: float, written: bool):
    gram: AxisGram = SumGram(((1.0, IdentityGram(30)), (total, OnesGram(30))))
    solution = opt0_laplace(DenseGram(gram.dense()) if written else gram)
    weights = np.concatenate([[0], np.geomspace(1e-4, 1e3, 20001)])
    errors = [PIdentity(np.full((1, 30), t)).error(gram) for t in weights[::50]]
    assert solution.error <= min(errors) * (1 + 1e-12)
    assert solution.error == pytest.approx(dense_error(solution, gram))
    if total == 30:
        assert isinstance(solution.matrix, PIdentity)
        assert len(solution.matrix.theta) == 1


def test_a_workload_of_the_total_is_answered_by_it():
    solution = opt0_laplace(SumGram(((2.0, OnesGram(9)),)))
    assert isinstance(solution.matrix, Total)
    assert solution.error == pytest.approx(2)
    assert isinstance(opt0_laplace(IdentityGram(9)).matrix, Identity)


def test_a_large_domain_needs_no_square_matrix():
    gram = PrefixGram(1 << 16)
    solution = opt0_laplace(gram, 4, effort=Effort(restarts=0), iterations=15)
    assert isinstance(solution.matrix, PIdentity)
    assert solution.error < 0.5 * gram.trace()


def test_the_error_on_a_domain_of_blocks_is_exact():
    n = 2048
    solution = opt0_laplace(PrefixGram(n), 4, effort=Effort(restarts=0), iterations=15)
    assert isinstance(solution.matrix, PIdentity)
    answers = np.cumsum(solution.matrix.inverse().dense(), axis=0)
    assert solution.error == pytest.approx(float((answers**2).sum()), rel=1e-9)


def test_time_that_is_up_ends_the_search(monkeypatch):
    evaluations = []
    loss = CellBlocks.loss

    def counted(level, point):
        evaluations.append(1)
        return loss(level, point)

    monkeypatch.setattr(CellBlocks, "loss", counted)
    solution = opt0_laplace(AllRangeGram(1024), effort=Effort(deadline=0.0))
    assert len(evaluations) < 20
    assert solution.error <= AllRangeGram(1024).trace()


def test_the_same_seed_gives_the_same_strategy():
    first, second = (opt0_laplace(PrefixGram(48), effort=Effort(restarts=2, seed=3), iterations=30) for _ in range(2))
    assert first.error == second.error


def test_projected_descent_solves_a_quadratic_between_bounds():
    root = _RNG.normal(size=(40, 30))
    H, b = root.T @ root, 30 * _RNG.normal(size=30)

    def quadratic(x):
        return float(x @ H @ x / 2 - b @ x), H @ x - b

    found = descend_projected(quadratic, np.ones(30), upper=0.5, iterations=500, tolerance=1e-14)
    _, gradient = quadratic(found.point)
    assert found.point.min() == 0
    assert found.point.max() == 0.5
    free = (found.point > 0) & (found.point < 0.5)
    np.testing.assert_allclose(gradient[free], 0, atol=1e-3)
    assert gradient[found.point == 0].min() >= 0
    assert gradient[found.point == 0.5].max() <= 0
