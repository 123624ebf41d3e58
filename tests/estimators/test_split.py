"""Least squares split by even attributes: the same as over all blocks at once, with every error exact."""

from fractions import Fraction

import numpy as np
import pytest

import hdmm
from hdmm.accuracy.predict import accuracy
from hdmm.estimators.blockwise import BlockLeastSquares
from hdmm.estimators.joint import JointLeastSquares
from hdmm.estimators.split import SplitLeastSquares, splits
from hdmm.matrix import Dense, Identity
from hdmm.strategy import Block, Strategy
from hdmm.workload import EncodedProduct
from tests.contract.zoo import noise_for

SIZES = (3, 5, 4, 6)


def random_strategy(seed):
    """Blocks that count cells on the first two attributes, and ask anything on the other two."""
    rng = np.random.default_rng(seed)
    blocks = []
    for axes in [(0, 2), (1, 2), (0, 1), (1, 3), (0, 1, 2), (), (3,)]:
        if rng.random() < 0.7 or axes in [(0, 2), (1, 3)]:
            factors = [
                Identity(SIZES[axis])
                if axis < 2
                else Dense(rng.integers(-1, 3, (int(rng.integers(1, SIZES[axis] + 3)), SIZES[axis])))
                for axis in axes
            ]
            blocks.append(Block(axes, tuple(factors), Fraction(int(rng.integers(1, 40)), 8)))
    return Strategy(SIZES, tuple(blocks), "union")


def random_product(rng, strategy):
    """A product that some block may answer."""
    block = strategy.blocks[int(rng.integers(len(strategy.blocks)))]
    axes = [axis for axis in block.axes if rng.random() < 0.8]
    factors = {axis: Dense(rng.integers(-1, 3, (int(rng.integers(1, 4)), SIZES[axis]))) for axis in axes}
    for axis in axes:
        if rng.random() < 0.4:
            factors[axis] = block.factors[block.axes.index(axis)]
    return EncodedProduct.of(factors)


@pytest.mark.parametrize("seed", range(25))
def test_split_systems_are_the_joint_least_squares(seed):
    rng = np.random.default_rng([seed, 1])
    strategy = random_strategy(seed)
    assert splits(strategy)
    split, joint = SplitLeastSquares(strategy), JointLeastSquares(BlockLeastSquares(strategy))
    assert not joint.bounded
    products = [random_product(rng, strategy) for _ in range(8)]
    supported = [product for product in products if joint.supports(product)]
    assert supported == [product for product in products if split.supports(product)]
    answers = [rng.integers(-50, 50, block.queries) for block in strategy.blocks]
    for kind, budget in (("gaussian", hdmm.Budget("0.3", "1e-6")), ("laplace", hdmm.Budget("0.2"))):
        noise = noise_for(strategy.blocks, kind, budget)
        np.testing.assert_allclose(
            split.squared_errors(supported, noise.variances),
            joint.squared_errors(supported, noise.variances),
            rtol=1e-8,
        )
        ours, theirs = split.reconstruct(answers, noise.variances), joint.reconstruct(answers, noise.variances)
        for product in supported:
            expected = joint.answer(product, theirs)
            np.testing.assert_allclose(split.answer(product, ours), expected, rtol=1e-8, atol=1e-8)
            one, other = (accuracy(estimator, product, noise) for estimator in (split, joint))
            assert not one.bounded
            for name, tolerance in (("stderr", 1e-6), ("margin", 5e-3)):  # integer noise alone has a margin of its own
                np.testing.assert_allclose(
                    one.expand(getattr(one, name)), other.expand(getattr(other, name)), rtol=tolerance, atol=1e-12
                )
