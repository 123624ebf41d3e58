"""An estimator says when it cannot answer a product, and refuses blocks that are not of its family."""

import numpy as np
import pytest

from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import AllRange, Dense, Identity, Total
from hdmm.schema import Schema
from hdmm.strategy import Block, Strategy
from hdmm.workload import Identity as Each
from hdmm.workload import Prefix, Workload

SCHEMA = Schema(a=range(3), b=range(4))
PRODUCT = Workload(SCHEMA).add("both", a=Each(), b=Prefix()).encoded.products[0]


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(SCHEMA.sizes, (Block((0,), (Identity(3),)),), "kron"),
        Strategy(SCHEMA.sizes, (Block((0, 1), (Identity(3), Total(4))),), "kron"),
        Strategy(SCHEMA.sizes, (Block((0, 1), (Identity(3), Dense(np.array([[1, 1, 0, 0], [0, 0, 1, 1]])))),), "kron"),
        Strategy(SCHEMA.sizes, (Block((0,), (Identity(3),)), Block((1,), (Identity(4),))), "marginal"),
        Strategy(SCHEMA.sizes, (Block((0, 1), (Identity(3), Identity(4))),), "direct"),
    ],
    ids=["no axis", "total only", "coarse", "one-way marginals", "another product"],
)
def test_a_product_outside_the_blocks_is_not_supported(strategy):
    assert not local_least_squares(strategy).supports(PRODUCT)


def test_a_block_needs_a_factor_for_each_axis():
    with pytest.raises(ValueError, match="one factor for each"):
        Block((0, 1, 2), (Identity(3), Identity(4)))


def test_the_bases_of_a_marginal_strategy_separate_all_cells():
    with pytest.raises(ValueError, match="does not separate all cells"):
        local_least_squares(Strategy(SCHEMA.sizes, (Block((0,), (Total(3),)),), "marginal"))


def test_the_blocks_of_a_marginal_strategy_share_their_factors():
    blocks = (Block((0,), (Identity(3),)), Block((0, 1), (AllRange(3), Identity(4))))
    with pytest.raises(ValueError, match="share one factor for each attribute"):
        local_least_squares(Strategy(SCHEMA.sizes, blocks, "marginal"))
