"""Marginals: count every set of attributes that a product of the workload touches, equally well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.matrix import Identity, Norm
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded

_MAX_ATTRIBUTES = 10
"""The most attributes of a marginal: with d attributes it has 2^d residuals."""


@final
@dataclass(frozen=True)
class Marginals(Operator):
    """Measure the marginals that the workload lives on, and combine all of them for each answer by least squares.

    For a workload of marginals this is the workload itself as strategy.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        sets = dict.fromkeys(product.axes for product in workload.sought.products)
        widest = max(len(axes) for axes in sets)
        if widest > _MAX_ATTRIBUTES:
            return Aside(f"a product has {widest} attributes; at most {_MAX_ATTRIBUTES} have few enough residuals")
        blocks = (Block(axes, tuple(Identity(workload.sizes[axis]) for axis in axes)) for axes in sets)
        return Proposal(Strategy(workload.sizes, tuple(blocks), "marginal"))
