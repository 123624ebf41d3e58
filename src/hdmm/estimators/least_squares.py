"""Which least squares belongs to a strategy: by its own family, or over all of its blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdmm.estimators.along import ResidualsAlong
from hdmm.estimators.as_measured import AsMeasured
from hdmm.estimators.blockwise import BlockLeastSquares
from hdmm.estimators.coordinates import MAX_WAYS
from hdmm.estimators.estimator import LinearEstimator, loss
from hdmm.estimators.explicit import ExplicitLeastSquares
from hdmm.estimators.joint import JointLeastSquares
from hdmm.estimators.kron import KronLeastSquares
from hdmm.estimators.marginal import MarginalLeastSquares
from hdmm.estimators.nested import NestedLeastSquares, nested
from hdmm.estimators.residual import ResidualLeastSquares
from hdmm.estimators.split import SplitLeastSquares, splits
from hdmm.estimators.symmetric import SymmetricLeastSquares
from hdmm.matrix import Identity, Matrix, Norm
from hdmm.matrix.solvable import Solvable
from hdmm.strategy import Family, Strategy
from hdmm.workload import Encoded


def _residuals(strategy: Strategy) -> LinearEstimator[Any]:
    """Residuals along an attribute whose factors are not written out; of all attributes otherwise."""
    along = any(isinstance(factor, Solvable) for block in strategy.blocks for factor in block.factors)
    return ResidualsAlong(strategy) if along else ResidualLeastSquares(strategy)


_FAMILIES: dict[Family, Callable[[Strategy], LinearEstimator[Any]]] = {
    "direct": AsMeasured,
    "explicit": ExplicitLeastSquares,
    "kron": KronLeastSquares,
    "marginal": MarginalLeastSquares,
    "residual": _residuals,
    "symmetric": SymmetricLeastSquares,
    "union": BlockLeastSquares,
}
_MAX_CELLS = 1 << 25
"""The most cells of all blocks for which answers from all blocks are the default."""
_MAX_INVERTED = 1 << 24
"""The most entries of a measured product's factor that is inverted so that all answers agree with each other."""


def local_least_squares(strategy: Strategy) -> LinearEstimator[Any]:
    """Least squares as the strategy's family does it; for a union, each product from one block.

    Blocks that are not of the family are a ValueError.
    """
    return _FAMILIES[strategy.family](strategy)


def least_squares(strategy: Strategy) -> LinearEstimator[Any]:
    """Least squares over all blocks; that of the family if it is the same, or if the tables have too many cells."""
    local = local_least_squares(strategy)
    if local.consistent:
        return local
    blocks = strategy.blocks
    if len(blocks) == 1 and blocks[0].condition is None:
        if strategy.family == "direct" and not all(map(_invertible, blocks[0].factors)):
            return local
        return KronLeastSquares(strategy)
    if nested(strategy):
        return NestedLeastSquares(strategy)
    large = sum(block.cells + block.queries for block in blocks) > _MAX_CELLS
    if large or any(len(block.axes) > MAX_WAYS or block.joint for block in blocks):
        return local
    return SplitLeastSquares(strategy) if splits(strategy) else JointLeastSquares(local)


def exact_least_squares(strategy: Strategy) -> LinearEstimator[Any]:
    """What a search compares: least squares over all blocks if its errors are exact, else that of the family."""
    estimator = least_squares(strategy)
    return local_least_squares(strategy) if estimator.totals_bounded else estimator


def strategy_loss(strategy: Strategy, workload: Encoded, norm: Norm) -> float:
    """The weighted total squared error at unit noise: exact, or for large unions that of answers from single blocks."""
    return loss(exact_least_squares(strategy), workload, norm)


def _invertible(factor: Matrix) -> bool:
    """Whether the pseudo-inverse of a factor is affordable: answers to larger ones are published as measured."""
    return isinstance(factor, Identity) or factor.shape[0] * factor.shape[1] <= _MAX_INVERTED
