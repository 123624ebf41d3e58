"""Least squares over all blocks: by iteration as by the pseudo-inverse written out, and never worse than one block."""

from math import prod

import numpy as np
import pytest

import hdmm
from hdmm.accuracy.predict import accuracy
from hdmm.estimators import joint, least_squares
from hdmm.estimators.coordinates import Coordinates
from hdmm.estimators.joint import JointLeastSquares
from hdmm.estimators.kron import KronLeastSquares
from hdmm.matrix import Dense, Identity
from hdmm.strategy import Block, Strategy
from tests.contract.zoo import ESTIMATORS, STRATEGIES, dense_blocks, noise_for

JOINT = {name: case for name, case in ESTIMATORS.items() if isinstance(case[0], JointLeastSquares)}
every = pytest.mark.parametrize(("estimator", "workload"), JOINT.values(), ids=JOINT)


def few_written(monkeypatch):
    monkeypatch.setattr(joint, "_MAX_COORDINATES", 0)


def fresh(estimator, **changes):
    """The same estimator, with nothing computed yet."""
    return JointLeastSquares(estimator.local, **changes)


@every
def test_without_an_inverse_written_out_the_errors_are_bounds(estimator, workload, monkeypatch):
    exact = fresh(estimator)
    assert not exact.bounded
    for kind, budget in (("gaussian", hdmm.Budget("0.1", "1e-6")), ("laplace", hdmm.Budget("0.1"))):
        noise = noise_for(estimator.blocks, kind, budget)
        true = [accuracy(exact, product, noise) for product in workload.encoded.products]
        with monkeypatch.context() as patch:
            few_written(patch)
            rough = fresh(estimator)
            assert rough.bounded
            for product, known in zip(workload.encoded.products, true, strict=True):
                told = accuracy(rough, product, noise)
                assert told.bounded or product.empty
                assert not known.bounded
                for name in ("stderr", "margin"):
                    ours, theirs = (one.expand(getattr(one, name)) for one in (told, known))
                    assert (ours >= theirs * (1 - 1e-9)).all()
                assert rough.squared_error(product, noise.variances) >= exact.squared_error(product, noise.variances)


@every
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_at_the_largest_budgets_iteration_is_right_and_bounds_hold(estimator, workload, kind, monkeypatch):
    few_written(monkeypatch)
    x = np.random.default_rng(2).integers(0, 100, prod(estimator.strategy.sizes))
    answers = [block @ x for block in dense_blocks(estimator, workload.encoded)]
    for amount in (50, 500):
        budget = hdmm.Budget(amount) if kind == "laplace" else hdmm.Budget(rho=200 * amount)
        noise = noise_for(estimator.blocks, kind, budget)
        rough, solved = fresh(estimator), fresh(estimator, solved=True)
        state = rough.reconstruct(answers, noise.variances)
        for product in workload.encoded.products:
            truth = workload.encoded.of(product).dense() @ x
            np.testing.assert_allclose(rough.answer(product, state), truth, atol=1e-6)
        bounds, exact = (accuracy(one, product, noise) for one in (rough, solved))
        assert (bounds.expand(bounds.stderr) >= exact.expand(exact.stderr) * (1 - 1e-6) - 1e-12).all()
        assert np.isfinite(bounds.margin).all()


@every
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_on_request_one_solve_for_each_answer_is_exact(estimator, workload, kind, monkeypatch):
    noise = noise_for(estimator.blocks, kind, hdmm.Budget("0.1", "1e-6" if kind == "gaussian" else None))
    product = workload.encoded.products[-1]
    true = accuracy(fresh(estimator), product, noise)
    few_written(monkeypatch)
    solved = accuracy(fresh(estimator, solved=True), product, noise)
    assert not solved.bounded
    np.testing.assert_allclose(solved.expand(solved.stderr), true.expand(true.stderr), rtol=1e-6)
    np.testing.assert_allclose(solved.expand(solved.margin), true.expand(true.margin), rtol=1e-3, atol=1)


@every
def test_no_answer_has_a_larger_variance_than_from_one_block(estimator, workload):
    noise = noise_for(estimator.blocks, "gaussian", hdmm.Budget("0.1", "1e-6")).variances
    better = 0
    for product in workload.encoded.products:
        ours, local = estimator.squared_error(product, noise), estimator.local.squared_error(product, noise)
        assert ours <= local * (1 + 1e-9)
        better += ours < 0.999 * local
    assert better, "several blocks know more than one"


def test_fewer_queries_than_coordinates_are_answered_as_far_as_they_tell():
    """Of two totals over parts of a table, each tells itself and no more; the shortest solution has both."""
    schema = hdmm.Schema(a=range(4), b=range(3))
    w = hdmm.Workload(schema).add("low", a=hdmm.Where("a < 2"), b=hdmm.Where("b = 0")).add("b", b=hdmm.Where("b >= 1"))
    plan = hdmm.select(w, "gaussian", operators=[hdmm.baselines.Plain()])
    assert isinstance(plan.mechanism.estimator, JointLeastSquares)
    noise = plan.mechanism.calibrate(hdmm.Budget(rho=1)).variances
    state = plan.mechanism.estimator.reconstruct([np.array([5]), np.array([7])], noise)
    for product, answer, variance in zip(w.encoded.products, (5, 7), noise, strict=True):
        np.testing.assert_allclose(plan.mechanism.estimator.answer(product, state), [answer])
        assert plan.mechanism.estimator.squared_error(product, noise) == pytest.approx(variance)


def test_tables_of_many_attributes_need_no_vector_of_all_cells():
    """The pairs along a chain of thirty attributes, with 10^30 cells together."""
    schema = hdmm.Schema({f"a{i}": range(10) for i in range(30)})
    base = Dense(np.vstack([np.eye(10, dtype=np.int64), np.ones((1, 10), np.int64)]))
    blocks = tuple(Block((i, i + 1), (base, Identity(10))) for i in range(29))
    estimator = least_squares.least_squares(Strategy(schema.sizes, blocks, "union"))
    assert isinstance(estimator, JointLeastSquares)
    assert estimator.bounded
    rng = np.random.default_rng(0)
    people = rng.integers(0, 10, (5000, 30))
    truth = [np.bincount(10 * people[:, i] + people[:, i + 1], minlength=100) for i in range(29)]
    answers = [
        block.matrix.apply(table) + rng.normal(size=block.queries) for block, table in zip(blocks, truth, strict=True)
    ]
    state = estimator.reconstruct(answers, [1.0] * 29)
    workload = hdmm.Workload(schema)
    for i in (3, 4, 5):
        workload = workload.add(f"pair {i}", {f"a{i}": hdmm.Identity(), f"a{i + 1}": hdmm.Identity()})
    first, second, third = (estimator.answer(product, state).reshape(10, 10) for product in workload.encoded.products)
    np.testing.assert_allclose(first.sum(axis=0), second.sum(axis=1), atol=1e-8)
    np.testing.assert_allclose(second.sum(axis=0), third.sum(axis=1), atol=1e-8)
    assert abs(second - truth[4].reshape(10, 10)).max() < 6
    total = hdmm.Workload(schema).add("total").encoded.products[0]
    one = estimator.local.answer(total, estimator.local.reconstruct(answers, [1.0] * 29))
    assert abs(estimator.answer(total, state)[0] - 5000) < 6
    assert estimator.answer(total, state)[0] == pytest.approx(first.sum())
    assert one[0] != pytest.approx(first.sum())


def test_it_tells_what_one_block_or_all_of_them_tell(monkeypatch):
    """Ages of women, and all ages: together they tell the ages of men, which no block does alone."""
    schema = hdmm.Schema(sex=["F", "M"], age=range(5))
    asked = hdmm.Workload(schema).add("women", age=hdmm.Identity(), where="sex = 'F'").add("all", age=hdmm.Identity())
    plan = hdmm.select(asked, operators=[hdmm.baselines.Plain()])
    questions = (
        hdmm.Workload(schema)
        .add("men", age=hdmm.Identity(), where="sex = 'M'")
        .add("old", age=hdmm.Where("age >= 3"))
        .add("total")
        .add("of one age", sex=hdmm.Identity(), where="age = 1")
    )
    encoded = questions.encoded.products
    assert [plan.mechanism.local.supports(product) for product in encoded] == [False] * 4
    assert [plan.mechanism.estimator.supports(product) for product in encoded] == [True] * 4
    counts = np.arange(10)
    exact = [
        block.matrix.apply(counts if len(block.axes) == 2 else counts.reshape(2, 5).sum(axis=0))
        for block in plan.mechanism.blocks
    ]
    state = plan.mechanism.estimator.reconstruct(exact, [2.0, 3.0])
    for product in encoded:
        np.testing.assert_allclose(
            plan.mechanism.estimator.answer(product, state), questions.encoded.of(product).apply(counts)
        )
    men = accuracy(
        plan.mechanism.estimator, encoded[0], noise_for(plan.mechanism.blocks, "laplace", hdmm.Budget("0.1"))
    )
    assert men.stderr.min() > 0
    few_written(monkeypatch)
    rough = JointLeastSquares(plan.mechanism.local)
    assert [rough.supports(product) for product in encoded] == [False, True, True, False]
    only = hdmm.select(
        hdmm.Workload(schema).add("w", age=hdmm.Identity(), where="sex = 'F'"), operators=[hdmm.baselines.Plain()]
    )
    assert [only.mechanism.estimator.supports(product) for product in encoded] == [False] * 4
    assert only.mechanism.estimator.supports(only.workload.encoded.products[0])


@every
def test_large_counts_lose_nothing(estimator, workload):
    """Adding a billion people to every cell adds them to the answers, to a thousandth of a person."""
    rng = np.random.default_rng(5)
    people = np.full(np.prod(workload.encoded.sizes), 10**9)
    noise = [rng.normal(size=block.queries) * 30 for block in estimator.blocks]
    exact = [block @ people for block in dense_blocks(estimator, workload.encoded)]
    few, many = (
        estimator.reconstruct(
            [more * one + error for one, error in zip(exact, noise, strict=True)], [900.0] * len(noise)
        )
        for more in (0, 1)
    )
    for product in workload.encoded.products:
        added = estimator.answer(product, many) - estimator.answer(product, few)
        np.testing.assert_allclose(added, workload.encoded.of(product).apply(people), rtol=1e-14, atol=1e-4)


def test_what_is_least_squares_already_stays_as_it_is():
    for name in ("kron", "marginals", "residuals", "explicit"):
        strategy = STRATEGIES[name][0]
        assert type(least_squares.least_squares(strategy)) is type(least_squares.local_least_squares(strategy))
    one = Strategy((3,), (Block((0,), (Identity(3),)),), "union")
    assert isinstance(least_squares.least_squares(one), KronLeastSquares)


def test_where_tables_fit_no_memory_each_is_answered_from_its_block(monkeypatch):
    union = STRATEGIES["union"][0]
    monkeypatch.setattr(least_squares, "_MAX_CELLS", 10)
    assert not least_squares.least_squares(union).consistent


def test_coordinates_of_a_part_are_those_of_the_whole():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(3, 1, 4))
    coordinates = Coordinates((3, 1, 4, 5), [(0, 1, 2), (2, 3)])
    assert coordinates.count == 3 * 4 + 4 * 5 - 4
    numbers = np.zeros(coordinates.count)
    system = np.stack([coordinates.table(row, (0, 1, 2)) for row in np.eye(coordinates.count)], axis=1)
    numbers = np.linalg.lstsq(system, table.reshape(-1), rcond=None)[0]
    np.testing.assert_allclose(coordinates.table(numbers, (0, 1, 2)), table.reshape(-1), atol=1e-12)
    np.testing.assert_allclose(coordinates.table(numbers, (0, 2)), table.sum(axis=1).reshape(-1), atol=1e-12)
    np.testing.assert_allclose(coordinates.table(numbers, (2,)), table.sum(axis=(0, 1)), atol=1e-12)
    np.testing.assert_allclose(coordinates.table(numbers, ()), [table.sum()], atol=1e-12)
    assert coordinates.holds((2, 3))
    assert not coordinates.holds((0, 3))
    back = np.zeros(coordinates.count)
    coordinates.add(back, (0, 1, 2), table.reshape(-1))
    np.testing.assert_allclose(back, system.T @ table.reshape(-1), atol=1e-12)


@pytest.mark.parametrize("ratio", ["1e3", "1e6", "1e9"])
def test_a_light_total_beside_a_heavy_count_under_a_condition_keeps_its_own_error(ratio):
    """The condition's count has contrasts, though its factors are totals: they are as heavy as it is."""
    workload = hdmm.Workload(hdmm.Schema(a=range(14), b=range(4)))
    workload = workload.add("either", where="a > 1 OR b = 2", weight=ratio).add("total")
    plan = hdmm.select(workload, "laplace", operators=[hdmm.baselines.Plain()])
    heavy, light = plan.errors(hdmm.Budget("1")).column("rmse").to_pylist()
    variances = plan.mechanism.calibrate(hdmm.Budget("1")).variances
    assert heavy == pytest.approx(variances[0] ** 0.5, rel=1e-6)
    assert light == pytest.approx(variances[1] ** 0.5, rel=1e-6)
