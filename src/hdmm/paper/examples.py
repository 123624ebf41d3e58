"""The worked examples: total squared error at unit Laplace noise, ‖A‖₁²·‖WA⁺‖²_F, and the strategies themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from hdmm.estimators.kron import KronLeastSquares
from hdmm.estimators.least_squares import strategy_loss
from hdmm.matrix import Identity as Each
from hdmm.matrix import Matrix
from hdmm.operators.base import Operator, Proposal
from hdmm.schema import Schema
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded, Prefix, Total, Workload, marginals


def pairs_of_four() -> Workload:
    """All two-way marginals of attributes with 2, 5, 50 and 100 values (paper, section 9)."""
    return marginals(Schema(a=range(2), b=range(5), c=range(50), d=range(100)), k=2)


def two_prefixes() -> Workload:
    """Prefixes on each of two attributes of 100 values (paper, section 6.2)."""
    workload = Workload(Schema(a=range(100), b=range(100)))
    return workload.add("a", a=Prefix(), b=Total()).add("b", a=Total(), b=Prefix())


EXAMPLES: dict[str, Callable[[], Workload]] = {"two-way marginals": pairs_of_four, "two prefixes": two_prefixes}
"""The workloads by their names."""


def example_error(example: str, operator: Operator, apart: bool = False) -> Mapping[str, Any]:
    """The strategy of an operator, and its error: by least squares, or with each product apart, from its own block."""
    encoded = EXAMPLES[example]().encoded
    start = perf_counter()
    proposal = operator.propose(encoded, 1)
    assert isinstance(proposal, Proposal)
    strategy = proposal.strategy
    squared = _loss_apart(strategy, encoded) if apart else strategy_loss(strategy, encoded, 1)
    return {
        "squared": squared,
        "seconds": perf_counter() - start,
        "queries": strategy.queries,
        "strategy": _lines(strategy),
    }


def _loss_apart(strategy: Strategy, workload: Encoded) -> float:
    """The error if each product is answered from the block on its attributes alone, as the paper defines OPT_+."""
    noise = dict(zip((block.axes for block in strategy.blocks), strategy.unit_noise(1), strict=True))
    blocks = {block.axes: KronLeastSquares(Strategy(strategy.sizes, (block,), "kron")) for block in strategy.blocks}
    return sum(blocks[p.axes].squared_error(p, (noise[p.axes],)) for p in workload.products)


def _lines(strategy: Strategy) -> list[list[str]]:
    """Each block as a weight, with all weights adding up to 1, and a factor for each attribute."""
    whole = sum(float(block.weight) for block in strategy.blocks)
    blocks = sorted(strategy.blocks, key=lambda block: -block.weight)
    return [[f"{float(block.weight) / whole:.2f}", *_factors(strategy, block)] for block in blocks]


def _factors(strategy: Strategy, block: Block) -> list[str]:
    factors = dict(zip(block.axes, block.factors, strict=True))
    return [_factor(factors[axis]) if axis in factors else "T" for axis in range(len(strategy.sizes))]


def _factor(factor: Matrix) -> str:
    """A factor in terms of Identity and Total, if it is built of them."""
    if isinstance(factor, Each):
        return "I"
    entries = factor.dense()
    n = factor.shape[1]
    if factor.shape[0] == n + 1:
        totals = [row for row in entries if np.ptp(row) == 0]
        if len(totals) == 1:
            return f"{abs(entries).max():.2f} I + {float(totals[0][0]):.2f} T"
    return f"{factor.shape[0]} queries"
