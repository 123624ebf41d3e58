"""Identity: count every cell of the attributes that the workload touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm import matrix
from hdmm.matrix import Norm
from hdmm.operators.base import Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class Identity(Operator):
    """Measure every cell once, and add cells up for each answer."""

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal:
        factors = tuple(matrix.Identity(workload.sizes[axis]) for axis in workload.axes)
        return Proposal(Strategy(workload.sizes, (Block(workload.axes, factors),), "kron"))
