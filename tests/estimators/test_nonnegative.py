"""Non-negative least squares: beside scipy's on queries written out, and tables by themselves where no vector fits."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize, nnls

import hdmm
from hdmm.errors import FaultError, NotSupportedError, TooLargeError
from hdmm.estimators import consistent_tables as local
from hdmm.estimators import nonnegative as room
from hdmm.estimators.biased import counts_on
from hdmm.estimators.consistent_tables import largest_sets, nonnegative_tables, on_simplex
from hdmm.estimators.least_squares import least_squares, local_least_squares
from hdmm.estimators.nonnegative import NonnegativeLeastSquares, nonnegative_counts
from hdmm.matrix import Dense, Identity, Spiked
from hdmm.optimise.mprgp import least_nonnegative
from hdmm.strategy import Block, Strategy
from tests.contract.zoo import SCHEMA, STRATEGIES, dense_blocks

every = pytest.mark.parametrize(("strategy", "workload"), STRATEGIES.values(), ids=STRATEGIES)


def nonnegative(strategy, encoded, answers, noise):
    return NonnegativeLeastSquares(least_squares(strategy), encoded).reconstruct(answers, noise)


def measured(strategy, workload, rng, spread=4.0):
    """Noisy answers about few records, so that many estimates would be negative."""
    x = rng.poisson(0.7, np.prod(workload.encoded.sizes))
    blocks = dense_blocks(strategy, workload.encoded)
    noise = rng.uniform(1, spread, len(blocks)) ** 2
    answers = [block @ x + rng.normal(size=len(block)) * np.sqrt(v) for block, v in zip(blocks, noise, strict=True)]
    return blocks, answers, noise


@pytest.mark.parametrize("written", [0, 1 << 17], ids=["iterated", "written out"])
@every
def test_counts_are_the_non_negative_least_squares_of_the_dense_oracle(strategy, workload, written, monkeypatch):
    monkeypatch.setattr(room, "_MAX_WRITTEN", written)
    blocks, answers, noise = measured(strategy, workload, np.random.default_rng(5))
    scale = np.sqrt(np.repeat(noise, [len(block) for block in blocks]))
    A, y = np.vstack(blocks) / scale[:, None], np.concatenate(answers) / scale
    expected, norm = nnls(A, y)
    found = nonnegative_counts(strategy, answers, list(noise))
    assert found.axes == (0, 1, 2)
    x = found.counts
    assert x.min() >= 0
    assert np.linalg.norm(A @ x - y) <= norm * (1 + 1e-9)
    np.testing.assert_allclose(A @ x, A @ expected, atol=1e-5)  # what is seen is unique, also where x is not
    for product in workload.encoded.products:
        np.testing.assert_allclose(found.answer(product), workload.encoded.of(product).dense() @ x, atol=1e-9)


def test_blocks_without_noise_beside_blocks_of_much_settle():
    pairs = Dense(np.array([[0, 1, 1]]))
    blocks = (Block((0, 1), (Identity(2), pairs), Fraction(10**5)), Block((0, 2), (Identity(2), Identity(3))))
    given = [np.zeros(2), np.array([-1.0, 2, -15, 14, -5, -2])]
    x = nonnegative_counts(Strategy((2, 3, 3), blocks, "union"), given, [0.0, 1.0]).counts.reshape(2, 3, 3)
    np.testing.assert_allclose(x.sum(axis=1), [[0, 2, 0], [14, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(x[:, 1:].sum(axis=(1, 2)), 0, atol=1e-6)


def test_negative_estimates_are_really_there_to_be_mended():
    strategy, workload = STRATEGIES["residuals"]
    _, answers, noise = measured(strategy, workload, np.random.default_rng(5))
    estimator = local_least_squares(strategy)
    table = estimator.answer(counts_on({0: 2, 1: 3, 2: 4}), estimator.reconstruct(answers, noise))
    assert (table < -0.1).sum() >= 4


def test_small_counts_come_out_too_large_on_average():
    rng = np.random.default_rng(1)
    strategy = Strategy((50,), (Block((0,), (Identity(50),)),), "kron")
    totals = [nonnegative_counts(strategy, [rng.normal(size=50) * 3], [9.0]).total for _ in range(20)]
    assert np.mean(totals) > 40, "of no records at all, it makes many: the bias that tables are labelled with"


@pytest.mark.parametrize("seed", range(5))
def test_the_solver_meets_scipys_on_ill_conditioned_and_singular_problems(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(25, 40)) * np.logspace(0, -2, 40)
    y = rng.normal(size=25) * 10
    x = least_nonnegative(lambda v: A.T @ (A @ v), A.T @ y)
    assert x.min() >= 0
    assert np.linalg.norm(A @ x - y) <= nnls(A, y)[1] + 1e-6


def test_measurements_of_nothing_are_no_records():
    strategy = Strategy((3,), (Block((0,), (Identity(3),)),), "kron")
    np.testing.assert_array_equal(nonnegative_counts(strategy, [np.zeros(3)], [1.0]).counts, 0)
    np.testing.assert_array_equal(nonnegative_counts(strategy, [np.full(3, -5)], [1.0]).counts, 0)


def test_a_solver_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr("hdmm.optimise.mprgp._MAX_ROUNDS", 2)
    A = np.random.default_rng(0).normal(size=(30, 30))
    with pytest.raises(FaultError, match="did not settle"):
        least_nonnegative(lambda v: A.T @ (A @ v), A.T @ np.arange(30.0))


def test_a_vector_of_too_many_cells_is_refused(monkeypatch):
    strategy, workload = STRATEGIES["marginals"]
    _, answers, noise = measured(strategy, workload, np.random.default_rng(0))
    monkeypatch.setattr(room, "MAX_CELLS", 23)
    with pytest.raises(TooLargeError, match="24 cells are too many to be fitted; the limit is 23"):
        nonnegative_counts(strategy, answers, noise)
    assert nonnegative(strategy, workload.encoded, answers, noise).label.startswith(
        "non-negative marginals, which agree to 0.0"
    )


def test_products_outside_the_measured_attributes_are_refused():
    strategy = Strategy((2, 3), (Block((0,), (Identity(2),)),), "kron")
    found = nonnegative(strategy, hdmm.Workload(SCHEMA).encoded, [np.array([3, -1])], [1.0])
    with pytest.raises(NotSupportedError, match="not measured"):
        found.answer(counts_on({1: 3}))


def test_projection_on_a_simplex_is_the_nearest_point():
    rng = np.random.default_rng(2)
    table = rng.normal(size=7) * 3
    found = on_simplex(table, 4.0)
    sums = LinearConstraint(np.ones((1, 7)), 4.0, 4.0)

    def distance(v: np.ndarray) -> float:
        return ((v - table) ** 2).sum()

    start = np.full(7, 4 / 7)
    expected = minimize(distance, start, bounds=[(0, None)] * 7, constraints=[sums], tol=1e-12)
    np.testing.assert_allclose(found, expected.x, atol=1e-5)
    np.testing.assert_array_equal(on_simplex(table, -1.0), 0)


def test_largest_sets_are_those_that_no_other_holds():
    assert largest_sets([(), (0,), (0, 1), (1, 2), (0, 1), (2,), (3,)]) == ((0, 1), (1, 2), (3,))
    assert largest_sets([()]) == ((),)


PAIRS = [(0, 1), (1, 2), (0, 2)]
WORKLOAD = hdmm.marginals(SCHEMA, up_to=2)


def families():
    plain = tuple(Block(a, tuple(Identity(SCHEMA.sizes[axis]) for axis in a)) for a in PAIRS)
    sets = [(), (0,), (1,), (2,), *PAIRS]
    residuals = (Block(a, tuple(Spiked.centred(SCHEMA.sizes[axis]) for axis in a), Fraction(1, 2)) for a in sets)
    return {
        "marginals": Strategy(SCHEMA.sizes, plain, "marginal"),
        "residuals": Strategy(SCHEMA.sizes, tuple(residuals), "residual"),
        "union": Strategy(SCHEMA.sizes, plain, "union"),
    }


@pytest.mark.parametrize("strategy", families().values(), ids=families())
def test_tables_are_non_negative_have_one_total_and_agree(strategy):
    _, answers, noise = measured(strategy, WORKLOAD, np.random.default_rng(9), 12.0)
    found = nonnegative_tables(local_least_squares(strategy), WORKLOAD.encoded, answers, list(noise))
    assert set(found.tables) == set(PAIRS)
    assert found.disagreement <= 0.01
    for table in found.tables.values():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(found.total)
    one = found.tables[0, 1].reshape(2, 3).sum(axis=0)
    other = found.tables[1, 2].reshape(3, 4).sum(axis=1)
    np.testing.assert_allclose(one, other, atol=12 * 0.01)
    for product in WORKLOAD.encoded.products:
        assert found.answer(product).sum() == pytest.approx(found.total)


def test_tables_are_the_nearest_ones_that_agree(monkeypatch):
    monkeypatch.setattr(local, "_MAX_DISAGREEMENT", 1e-6)
    monkeypatch.setattr(local, "_MAX_ROUNDS", 20_000)
    strategy = families()["residuals"]
    _, answers, noise = measured(strategy, WORKLOAD, np.random.default_rng(9), 12.0)
    noise = list(noise)
    estimator = local_least_squares(strategy)
    found = nonnegative_tables(estimator, WORKLOAD.encoded, answers, noise)
    state = estimator.reconstruct(answers, noise)
    asked = [counts_on({axis: SCHEMA.sizes[axis] for axis in axes}) for axes in PAIRS]
    given = np.concatenate([estimator.answer(product, state) for product in asked])
    weights = np.concatenate([np.full(p.queries, p.queries / estimator.squared_error(p, noise)) for p in asked])
    a, b, c = np.eye(6).reshape(2, 3, 6), np.eye(12).reshape(3, 4, 12), np.eye(8).reshape(2, 4, 8)

    def rows(first, second, third):
        return np.hstack([first, second, third])

    zero = {n: lambda k, n=n: np.zeros((k, n)) for n in (6, 12, 8)}
    agree = np.vstack(
        [
            rows(a.sum(axis=0), -b.sum(axis=1), zero[8](3)),
            rows(a.sum(axis=1), zero[12](2), -c.sum(axis=1)),
            rows(zero[6](4), b.sum(axis=0), -c.sum(axis=0)),
            rows(np.ones((1, 6)), np.zeros((1, 12)), np.zeros((1, 8))),
        ]
    )
    right = np.append(np.zeros(9), found.total)
    penalty = 1e4  # the oracle: agreement as very precise measurements
    A = np.vstack([np.diag(np.sqrt(weights)), penalty * agree])
    expected, _ = nnls(A, np.concatenate([np.sqrt(weights) * given, penalty * right]), maxiter=1000)
    tables = np.concatenate([found.tables[axes] for axes in PAIRS])
    assert given.min() < -0.5
    np.testing.assert_allclose(tables, expected, atol=0.01)


def test_a_domain_of_a_million_million_cells_has_tables():
    schema = hdmm.Schema({f"a{i}": range(10) for i in range(12)})
    workload = hdmm.marginals(schema, up_to=2)
    plan = hdmm.select(workload, noise="gaussian")
    rng = np.random.default_rng(0)
    noise = plan.mechanism.calibrate(hdmm.Budget("1", "1e-6")).variances
    pairs = zip(plan.mechanism.blocks, noise, strict=True)
    answers = [rng.normal(size=block.queries) * np.sqrt(variance) for block, variance in pairs]
    answers[[block.axes for block in plan.mechanism.blocks].index(())] += 1000
    found = nonnegative(plan.mechanism.strategy, workload.encoded, answers, noise)
    assert found.label.startswith("non-negative marginals, which agree to 0.0")
    assert len(found.tables) == 66
    assert found.total > 0
    assert min(table.min() for table in found.tables.values()) >= 0
    assert found.disagreement <= 0.01


def test_no_records_leave_nothing():
    strategy = families()["marginals"]
    answers = [np.full(block.queries, -4.0) for block in strategy.blocks]
    found = nonnegative_tables(local_least_squares(strategy), WORKLOAD.encoded, answers, [1.0] * 3)
    assert found.total == 0
    assert all((table == 0).all() for table in found.tables.values())


def test_tables_answer_only_what_one_of_them_holds():
    strategy = families()["marginals"]
    _, answers, noise = measured(strategy, WORKLOAD, np.random.default_rng(9), 12.0)
    found = nonnegative_tables(local_least_squares(strategy), WORKLOAD.encoded, answers, list(noise))
    with pytest.raises(NotSupportedError, match="no table of the plan holds"):
        found.answer(counts_on({0: 2, 1: 3, 2: 4}))


def test_cells_that_are_not_told_apart_are_refused():
    pairs = hdmm.Workload(SCHEMA).add("some", a=hdmm.Identity(), b=hdmm.Where("b >= 1"))
    strategy = Strategy(SCHEMA.sizes, (Block((), ()), Block((0,), (Spiked.centred(2),))), "residual")
    with pytest.raises(NotSupportedError, match="do not separate the cells"):
        nonnegative_tables(local_least_squares(strategy), pairs.encoded, [np.zeros(1), np.zeros(2)], [1.0, 1.0])


def test_tables_that_do_not_fit_are_refused(monkeypatch):
    strategy = families()["marginals"]
    monkeypatch.setattr(local, "memory_limit", lambda: 100)
    with pytest.raises(TooLargeError, match="limit is 100"):
        nonnegative_tables(local_least_squares(strategy), WORKLOAD.encoded, [], [])
