"""Every estimator's answers, errors and variances are those of weighted least squares on its blocks, written out."""

from itertools import pairwise
from math import prod, sqrt
from typing import Any

import numpy as np
import pytest

from hdmm.estimators.as_measured import AsMeasured
from hdmm.estimators.blockwise import BlockLeastSquares
from hdmm.estimators.estimator import LinearEstimator, loss
from hdmm.estimators.row_types import Power
from hdmm.strategy import sensitivity
from hdmm.workload import EncodedProduct, Workload
from tests.contract.zoo import ESTIMATORS, dense_blocks

pytestmark = pytest.mark.parametrize(("estimator", "workload"), ESTIMATORS.values(), ids=ESTIMATORS.keys())


def noise_of(estimator: LinearEstimator[Any]) -> list[float]:
    return np.random.default_rng(5).uniform(1, 5, len(estimator.blocks)).tolist()


def matrices(estimator: LinearEstimator[Any], workload: Workload, noise: list[float]) -> list[np.ndarray]:
    """The matrix from noisy answers to a product's answers, by brute force."""
    blocks = dense_blocks(estimator.strategy, workload.encoded)
    if isinstance(estimator, AsMeasured):
        whole = np.eye(sum(map(len, blocks)))
        rows = [whole[start:end] for start, end in pairwise(np.cumsum([0, *map(len, blocks)]))]
        found = []
        for product in workload.encoded.products:
            measured = (product.axes, tuple(product.factors.values()), product.condition)
            places = [i for i, b in enumerate(estimator.blocks) if (b.axes, b.factors, b.condition) == measured]
            whose = rows[places[0]] if product.axes else product.multiples[:, None] * rows[places[0]]
            found.append(np.zeros((product.queries, len(whole))) if product.empty else whose)
        return found
    if isinstance(estimator, BlockLeastSquares):
        return [local(estimator, workload, blocks, place) for place in range(len(workload.products))]
    spread = np.sqrt(np.repeat(noise, [len(block) for block in blocks]))
    inverse = np.linalg.pinv(np.vstack(blocks) / spread[:, None], rcond=1e-10) / spread
    return [workload.encoded.of(product).dense() @ inverse for product in workload.encoded.products]


def local(estimator: BlockLeastSquares, workload: Workload, blocks: list[np.ndarray], place: int) -> np.ndarray:
    """Least squares on the one block that answers the product."""
    product = workload.encoded.products[place]
    home = estimator.home(product)
    chosen = [
        np.linalg.pinv(block, rcond=1e-10) if i == home else np.zeros(block.T.shape) for i, block in enumerate(blocks)
    ]
    return workload.encoded.of(product).dense() @ np.hstack(chosen)


def test_answers_are_least_squares(estimator: LinearEstimator[Any], workload: Workload):
    noise = noise_of(estimator)
    answers = [np.random.default_rng(1).normal(size=block.queries) for block in estimator.blocks]
    state = estimator.reconstruct(answers, noise)
    for product, matrix in zip(workload.encoded.products, matrices(estimator, workload, noise), strict=True):
        np.testing.assert_allclose(estimator.answer(product, state), matrix @ np.concatenate(answers), atol=1e-9)


def test_answers_are_unbiased(estimator: LinearEstimator[Any], workload: Workload):
    encoded, noise = workload.encoded, noise_of(estimator)
    x = np.random.default_rng(2).integers(0, 100, prod(encoded.sizes))
    state = estimator.reconstruct([block @ x for block in dense_blocks(estimator.strategy, encoded)], noise)
    for product in encoded.products:
        np.testing.assert_allclose(estimator.answer(product, state), encoded.of(product).dense() @ x, atol=1e-8)


def test_the_squared_error_is_the_sum_of_all_variances(estimator: LinearEstimator[Any], workload: Workload):
    noise = noise_of(estimator)
    variances = np.repeat(noise, [block.queries for block in estimator.blocks])
    for product, matrix in zip(workload.encoded.products, matrices(estimator, workload, noise), strict=True):
        assert estimator.squared_error(product, noise) == pytest.approx((matrix**2 @ variances).sum())


def test_the_errors_follow_the_noise_even_if_its_list_is_changed(estimator: LinearEstimator[Any], workload: Workload):
    noise, products = noise_of(estimator), workload.encoded.products
    before = estimator.squared_errors(products, noise)
    np.testing.assert_allclose(before, [estimator.squared_error(product, noise) for product in products])
    noise[:] = [3 * one for one in noise]
    np.testing.assert_allclose(estimator.squared_errors(products, noise), 3 * before)


@pytest.mark.parametrize("power", [2, 4, 6])
def test_the_coefficients_of_every_answer_are_its_row_of_the_estimator(
    estimator: LinearEstimator[Any], workload: Workload, power
):
    noise = noise_of(estimator)
    owner = np.repeat(np.arange(len(estimator.blocks)), [block.queries for block in estimator.blocks])
    for product, matrix in zip(workload.encoded.products, matrices(estimator, workload, noise), strict=True):
        expected = np.stack([(matrix[:, owner == b] ** power).sum(axis=1) for b in range(len(estimator.blocks))])
        np.testing.assert_allclose(power_sums(estimator, product, noise, power), expected, atol=1e-9)


def power_sums(
    estimator: LinearEstimator[Any], product: EncodedProduct, noise: list[float], power: Power
) -> np.ndarray:
    """For every block and every answer, the sum of its coefficients to a power, as the estimator has them."""
    types = [estimator.row_types(product, axis) for axis in product.axes]
    found = np.zeros((len(estimator.blocks), product.queries))
    for one in estimator.coefficients(product, types, noise):
        grid = np.broadcast_to(one.power_sum(power), [len(each) for each in types])
        total = grid * abs(product.multiples) ** power
        found[one.block] = grid[np.ix_(*[each.labels for each in types])].reshape(-1) if types else total
    return found


def test_the_variance_of_every_answer_is_the_one_predicted(estimator: LinearEstimator[Any], workload: Workload):
    """The noise of each measurement is added by itself: the squares of what it does to an answer add up."""
    noise, products = noise_of(estimator), workload.encoded.products
    found = [np.zeros(product.queries) for product in products]
    for place, (block, variance) in enumerate(zip(estimator.blocks, noise, strict=True)):
        for query in range(block.queries):
            answers = [np.zeros(one.queries) for one in estimator.blocks]
            answers[place][query] = sqrt(variance)
            state = estimator.reconstruct(answers, noise)
            for product, total in zip(products, found, strict=True):
                total += estimator.answer(product, state) ** 2
    for product, total in zip(products, found, strict=True):
        np.testing.assert_allclose(total, noise @ power_sums(estimator, product, noise, 2), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_the_sensitivity_is_the_largest_weighted_column_norm(estimator: LinearEstimator[Any], workload: Workload, p):
    blocks = dense_blocks(estimator.strategy, workload.encoded)
    stacked = np.vstack([float(b.weight) * entries for b, entries in zip(estimator.blocks, blocks, strict=True)])
    assert float(sensitivity(estimator.blocks, p)) == pytest.approx((abs(stacked) ** p).sum(axis=0).max())


@pytest.mark.parametrize("p", [1, 2])
def test_the_loss_is_the_weighted_error_at_unit_noise(estimator: LinearEstimator[Any], workload: Workload, p):
    norm = float(sensitivity(estimator.blocks, p)) ** (1 / p)
    noise = [(norm / float(block.weight)) ** 2 for block in estimator.blocks]
    variances = np.repeat(noise, [block.queries for block in estimator.blocks])
    expected = sum(
        float(product.weight) ** 2 * (matrix**2 @ variances).sum()
        for product, matrix in zip(workload.encoded.products, matrices(estimator, workload, noise), strict=True)
    )
    assert loss(estimator, workload.encoded, p) == pytest.approx(expected)


def test_it_supports_its_workload(estimator: LinearEstimator[Any], workload: Workload):
    assert all(estimator.supports(product) for product in workload.encoded.products)


def extremes(estimator: LinearEstimator[Any]) -> dict[str, list[float]]:
    """Noise as it is at very large budgets: none at all, or far less on some blocks than on others."""
    count = len(estimator.blocks)
    return {
        "none": [0.0] * count,
        "denormal": [5e-324] * count,
        "none on the first": [0.0, *[0.1] * (count - 1)],
        "none on the last": [*[0.1] * (count - 1), 0.0],
        "falling": [10.0 ** (-300 * place / count) for place in range(count)],
        "rising": [10.0 ** (-12 * (count - place)) for place in range(count)],
    }


def test_noise_of_any_size_loses_no_block(estimator: LinearEstimator[Any], workload: Workload):
    encoded = workload.encoded
    x = np.random.default_rng(2).integers(0, 100, prod(encoded.sizes))
    answers = [block @ x for block in dense_blocks(estimator.strategy, encoded)]
    for noise in extremes(estimator).values():
        state = estimator.reconstruct(answers, noise)
        for product in encoded.products:
            np.testing.assert_allclose(estimator.answer(product, state), encoded.of(product).dense() @ x, atol=1e-7)


def test_errors_are_those_of_the_estimator_whatever_the_noise(estimator: LinearEstimator[Any], workload: Workload):
    """The noise of each measurement is added by itself, as above; an answer errs no more than from its best block."""
    products = workload.encoded.products
    for noise in extremes(estimator).values():
        found = [np.zeros(product.queries) for product in products]
        for place, (block, variance) in enumerate(zip(estimator.blocks, noise, strict=True)):
            for query in range(block.queries):
                answers = [np.zeros(one.queries) for one in estimator.blocks]
                answers[place][query] = 1
                state = estimator.reconstruct(answers, noise)
                for product, total in zip(products, found, strict=True):
                    total += variance * estimator.answer(product, state) ** 2
        for product, total in zip(products, found, strict=True):
            predicted = noise @ power_sums(estimator, product, noise, 2)
            np.testing.assert_allclose(total, predicted, rtol=1e-4, atol=1e-12)
            assert estimator.squared_error(product, noise) == pytest.approx(total.sum(), rel=1e-4, abs=1e-12)
