"""What is measured: strategies as tuples of blocks, in families that differ in how answers are estimated from them."""

from hdmm.strategy.base import (
    Coefficients,
    Noise,
    Strategy,
    Types,
    in_pieces,
    loss,
    types_of,
    unit_noise,
    variances,
    weighing,
    worst_variance,
)
from hdmm.strategy.block import Block, sensitivity
from hdmm.strategy.direct import DirectStrategy
from hdmm.strategy.explicit import ExplicitStrategy
from hdmm.strategy.joint import JointStrategy, joined
from hdmm.strategy.kron import KronStrategy
from hdmm.strategy.marginal import MarginalStrategy
from hdmm.strategy.residual import ResidualStrategy
from hdmm.strategy.rows import RowTypes, rounded, row_types
from hdmm.strategy.union import UnionStrategy

__all__ = [
    "Block",
    "Coefficients",
    "DirectStrategy",
    "ExplicitStrategy",
    "JointStrategy",
    "KronStrategy",
    "MarginalStrategy",
    "Noise",
    "ResidualStrategy",
    "RowTypes",
    "Strategy",
    "Types",
    "UnionStrategy",
    "in_pieces",
    "joined",
    "loss",
    "rounded",
    "row_types",
    "sensitivity",
    "types_of",
    "unit_noise",
    "variances",
    "weighing",
    "worst_variance",
]
