"""Least squares over all blocks of a union: beside the pseudo-inverse written out, and never worse than one block."""

import numpy as np
import pytest

import hdmm
from hdmm.reconstruct.joint import joint_estimate
from hdmm.strategy import UnionStrategy
from tests.contract.zoo import STRATEGIES, dense_blocks, noise_for

UNIONS = {name: case for name, case in STRATEGIES.items() if isinstance(case[0], UnionStrategy)}
every = pytest.mark.parametrize(("strategy", "workload"), UNIONS.values(), ids=UNIONS)


def pseudo_inverse(strategy, workload, noise):
    blocks = dense_blocks(strategy, workload.encoded)
    spread = np.sqrt(np.repeat(noise, [len(block) for block in blocks]))
    return np.linalg.pinv(np.vstack(blocks) / spread[:, None]) / spread


def test_there_are_unions_to_try():
    assert len(UNIONS) >= 2


@every
def test_answers_are_weighted_least_squares_on_all_blocks(strategy, workload):
    rng = np.random.default_rng(3)
    noise = rng.uniform(1, 5, len(strategy.blocks)).tolist()
    answers = [rng.normal(size=block.queries) * 20 for block in strategy.blocks]
    inverse = pseudo_inverse(strategy, workload, noise)
    joint = joint_estimate(strategy, answers, noise)
    for product in workload.encoded.products:
        expected = workload.encoded.of(product).dense() @ inverse @ np.concatenate(answers)
        np.testing.assert_allclose(joint.answer(product), expected, atol=1e-6)


@every
def test_no_answer_has_a_larger_variance_than_from_one_block(strategy, workload):
    noise = noise_for(strategy.blocks, "gaussian", hdmm.Budget("0.1", "1e-6")).variances
    inverse = pseudo_inverse(strategy, workload, list(noise))
    spread = np.repeat(noise, [block.queries for block in strategy.blocks])
    better = 0
    for product in workload.encoded.products:
        rows = workload.encoded.of(product).dense() @ inverse
        joint = (rows**2 @ spread).sum()
        local = strategy.squared_error(product, noise)
        assert joint <= local * (1 + 1e-9)
        better += joint < 0.999 * local
    assert better, "several blocks know more than one"
