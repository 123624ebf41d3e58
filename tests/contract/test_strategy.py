"""Every strategy's estimator, error and variance are those of weighted least squares on its blocks, written out."""

from itertools import pairwise
from math import prod, sqrt

import numpy as np
import pytest

from hdmm.operators.base import loss
from hdmm.strategy import DirectStrategy, Strategy, UnionStrategy, sensitivity
from hdmm.workload import EncodedProduct, Workload
from tests.contract.zoo import STRATEGIES, dense_blocks

pytestmark = pytest.mark.parametrize(("strategy", "workload"), STRATEGIES.values(), ids=STRATEGIES.keys())


def noise_of(strategy: Strategy) -> list[float]:
    return np.random.default_rng(5).uniform(1, 5, len(strategy.blocks)).tolist()


def estimators(strategy: Strategy, workload: Workload, noise: list[float]) -> list[np.ndarray]:
    """The matrix from noisy answers to a product's answers, by brute force."""
    blocks = dense_blocks(strategy, workload.encoded)
    if isinstance(strategy, DirectStrategy):
        whole = np.eye(sum(map(len, blocks)))
        rows = [whole[start:end] for start, end in pairwise(np.cumsum([0, *map(len, blocks)]))]
        found = []
        for product in workload.encoded.products:
            measured = (product.axes, tuple(product.factors.values()), product.condition)
            places = [i for i, b in enumerate(strategy.blocks) if (b.axes, b.factors, b.condition) == measured]
            whose = rows[places[0]] if product.axes else product.multiples[:, None] * rows[places[0]]
            found.append(np.zeros((product.queries, len(whole))) if product.empty else whose)
        return found
    if isinstance(strategy, UnionStrategy):
        return [local(strategy, workload, blocks, place) for place in range(len(workload.products))]
    spread = np.sqrt(np.repeat(noise, [len(block) for block in blocks]))
    inverse = np.linalg.pinv(np.vstack(blocks) / spread[:, None], rcond=1e-10) / spread
    return [workload.encoded.of(product).dense() @ inverse for product in workload.encoded.products]


def local(strategy: UnionStrategy, workload: Workload, blocks: list[np.ndarray], place: int) -> np.ndarray:
    """Least squares on the one block that answers the product."""
    product = workload.encoded.products[place]
    home = strategy.home(product)
    chosen = [
        np.linalg.pinv(block, rcond=1e-10) if i == home else np.zeros(block.T.shape) for i, block in enumerate(blocks)
    ]
    return workload.encoded.of(product).dense() @ np.hstack(chosen)


def test_answers_are_least_squares(strategy: Strategy, workload: Workload):
    noise = noise_of(strategy)
    answers = [np.random.default_rng(1).normal(size=block.queries) for block in strategy.blocks]
    state = strategy.reconstruct(answers, noise)
    for product, estimator in zip(workload.encoded.products, estimators(strategy, workload, noise), strict=True):
        np.testing.assert_allclose(strategy.answer(product, state), estimator @ np.concatenate(answers), atol=1e-9)


def test_answers_are_unbiased(strategy: Strategy, workload: Workload):
    encoded, noise = workload.encoded, noise_of(strategy)
    x = np.random.default_rng(2).integers(0, 100, prod(encoded.sizes))
    state = strategy.reconstruct([block @ x for block in dense_blocks(strategy, encoded)], noise)
    for product in encoded.products:
        np.testing.assert_allclose(strategy.answer(product, state), encoded.of(product).dense() @ x, atol=1e-8)


def test_the_squared_error_is_the_sum_of_all_variances(strategy: Strategy, workload: Workload):
    noise = noise_of(strategy)
    variances = np.repeat(noise, [block.queries for block in strategy.blocks])
    for product, estimator in zip(workload.encoded.products, estimators(strategy, workload, noise), strict=True):
        assert strategy.squared_error(product, noise) == pytest.approx((estimator**2 @ variances).sum())


def test_the_errors_follow_the_noise_even_if_its_list_is_changed(strategy: Strategy, workload: Workload):
    noise, products = noise_of(strategy), workload.encoded.products
    before = strategy.squared_errors(products, noise)
    np.testing.assert_allclose(before, [strategy.squared_error(product, noise) for product in products])
    noise[:] = [3 * one for one in noise]
    np.testing.assert_allclose(strategy.squared_errors(products, noise), 3 * before)


@pytest.mark.parametrize("power", [2, 4, 6])
def test_the_coefficients_of_every_answer_are_its_row_of_the_estimator(strategy: Strategy, workload: Workload, power):
    noise = noise_of(strategy)
    owner = np.repeat(np.arange(len(strategy.blocks)), [block.queries for block in strategy.blocks])
    for product, estimator in zip(workload.encoded.products, estimators(strategy, workload, noise), strict=True):
        expected = np.stack([(estimator[:, owner == b] ** power).sum(axis=1) for b in range(len(strategy.blocks))])
        np.testing.assert_allclose(power_sums(strategy, product, noise, power), expected, atol=1e-9)


def power_sums(strategy: Strategy, product: EncodedProduct, noise: list[float], power: int) -> np.ndarray:
    """For every block and every answer, the sum of its coefficients to a power, as the strategy has them."""
    types = [strategy.row_types(product, axis) for axis in product.axes]
    found = np.zeros((len(strategy.blocks), product.queries))
    for one in strategy.coefficients(product, types, noise):
        grid = np.broadcast_to(one.power_sum(power), [len(each) for each in types])
        total = grid * abs(product.multiples) ** power
        found[one.block] = grid[np.ix_(*[each.labels for each in types])].reshape(-1) if types else total
    return found


def test_the_variance_of_every_answer_is_the_one_predicted(strategy: Strategy, workload: Workload):
    """The noise of each measurement is added by itself: the squares of what it does to an answer add up."""
    noise, products = noise_of(strategy), workload.encoded.products
    found = [np.zeros(product.queries) for product in products]
    for place, (block, variance) in enumerate(zip(strategy.blocks, noise, strict=True)):
        for query in range(block.queries):
            answers = [np.zeros(one.queries) for one in strategy.blocks]
            answers[place][query] = sqrt(variance)
            state = strategy.reconstruct(answers, noise)
            for product, total in zip(products, found, strict=True):
                total += strategy.answer(product, state) ** 2
    for product, total in zip(products, found, strict=True):
        np.testing.assert_allclose(total, noise @ power_sums(strategy, product, noise, 2), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_the_sensitivity_is_the_largest_weighted_column_norm(strategy: Strategy, workload: Workload, p):
    blocks = dense_blocks(strategy, workload.encoded)
    stacked = np.vstack([float(b.weight) * entries for b, entries in zip(strategy.blocks, blocks, strict=True)])
    assert float(sensitivity(strategy.blocks, p)) == pytest.approx((abs(stacked) ** p).sum(axis=0).max())


@pytest.mark.parametrize("p", [1, 2])
def test_the_loss_is_the_weighted_error_at_unit_noise(strategy: Strategy, workload: Workload, p):
    norm = float(sensitivity(strategy.blocks, p)) ** (1 / p)
    noise = [(norm / float(block.weight)) ** 2 for block in strategy.blocks]
    variances = np.repeat(noise, [block.queries for block in strategy.blocks])
    expected = sum(
        float(product.weight) ** 2 * (estimator**2 @ variances).sum()
        for product, estimator in zip(workload.encoded.products, estimators(strategy, workload, noise), strict=True)
    )
    assert loss(strategy, workload.encoded, p) == pytest.approx(expected)


def test_it_supports_its_workload(strategy: Strategy, workload: Workload):
    assert all(strategy.supports(product) for product in workload.encoded.products)


def extremes(strategy: Strategy) -> dict[str, list[float]]:
    """Noise as it is at very large budgets: none at all, or far less on some blocks than on others."""
    count = len(strategy.blocks)
    return {
        "none": [0.0] * count,
        "denormal": [5e-324] * count,
        "none on the first": [0.0, *[0.1] * (count - 1)],
        "none on the last": [*[0.1] * (count - 1), 0.0],
        "falling": [10.0 ** (-300 * place / count) for place in range(count)],
        "rising": [10.0 ** (-12 * (count - place)) for place in range(count)],
    }


def test_noise_of_any_size_loses_no_block(strategy: Strategy, workload: Workload):
    encoded = workload.encoded
    x = np.random.default_rng(2).integers(0, 100, prod(encoded.sizes))
    answers = [block @ x for block in dense_blocks(strategy, encoded)]
    for noise in extremes(strategy).values():
        state = strategy.reconstruct(answers, noise)
        for product in encoded.products:
            np.testing.assert_allclose(strategy.answer(product, state), encoded.of(product).dense() @ x, atol=1e-7)


def test_errors_are_those_of_the_estimator_whatever_the_noise(strategy: Strategy, workload: Workload):
    """The noise of each measurement is added by itself, as above; an answer errs no more than from its best block."""
    products = workload.encoded.products
    for noise in extremes(strategy).values():
        found = [np.zeros(product.queries) for product in products]
        for place, (block, variance) in enumerate(zip(strategy.blocks, noise, strict=True)):
            for query in range(block.queries):
                answers = [np.zeros(one.queries) for one in strategy.blocks]
                answers[place][query] = 1
                state = strategy.reconstruct(answers, noise)
                for product, total in zip(products, found, strict=True):
                    total += variance * strategy.answer(product, state) ** 2
        for product, total in zip(products, found, strict=True):
            predicted = noise @ power_sums(strategy, product, noise, 2)
            np.testing.assert_allclose(total, predicted, rtol=1e-4, atol=1e-12)
            assert strategy.squared_error(product, noise) == pytest.approx(total.sum(), rel=1e-4, abs=1e-12)
