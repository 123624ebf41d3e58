"""Marginals: count every set of attributes that a product of the workload touches, equally well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.matrix import Identity, Norm
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded

_WIDEST = 10
"""A marginal of d attributes has 2^d residuals."""


@final
@dataclass(frozen=True)
class Marginals(Operator):
    """Measure the marginals that the workload lives on, and combine all of them for each answer by least squares.

    For a workload of marginals this is the workload itself as strategy.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        sets = dict.fromkeys(product.axes for product in workload.sought.products)
        widest = max(len(axes) for axes in sets)
        if widest > _WIDEST:
            return Aside(f"a product has {widest} attributes; at most {_WIDEST} have few enough residuals")
        blocks = (Block(axes, tuple(Identity(workload.sizes[axis]) for axis in axes)) for axes in sets)
        return Proposal(Strategy(workload.sizes, tuple(blocks), "marginal"))
