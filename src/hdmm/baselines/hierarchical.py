"""One hierarchy for every attribute that the workload touches, and their Kronecker product."""

from __future__ import annotations

from collections.abc import Callable

from hdmm.matrix import Matrix
from hdmm.operators.base import Aside, Proposal
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded


def hierarchical(workload: Encoded, factor: Callable[[int], Matrix]) -> Proposal | Aside:
    """The Kronecker product of a matrix for each attribute, given its size."""
    axes = workload.axes
    if not axes:
        return Aside("only totals are asked for: there are no ordered values to divide")
    factors = tuple(factor(workload.sizes[axis]) for axis in axes)
    return Proposal(Strategy(workload.sizes, (Block(axes, factors),), "kron"))
