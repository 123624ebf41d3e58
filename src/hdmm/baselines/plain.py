"""Plain: the Laplace or Gaussian mechanism on the workload itself (the paper's baseline)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.matrix import Norm
from hdmm.operators.base import Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class Plain(Operator):
    """Measure every product as it is asked, with noise for all of them together.

    Weights of products become shares of the budget.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal:
        asked = [product for product in workload.products if not product.empty]
        blocks = [Block(p.axes, tuple(p.factors.values()), p.weight, p.condition) for p in asked]
        return Proposal(Strategy(workload.sizes, tuple(blocks or [Block((), ())]), "direct"))
