"""OPT_0: the best strategy for one attribute (paper, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.matrix import Norm
from hdmm.operators.base import Operator, Proposal
from hdmm.operators.descent import DEFAULT, Effort
from hdmm.operators.kron import Kron
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class Explicit(Operator):
    """Optimise the queries over the one attribute that the workload is about; ``p`` is the number of extra queries."""

    p: int | None = None

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | None:
        """The best strategy found; None for workloads on several attributes."""
        return Kron(p=self.p).propose(workload, norm, effort) if len(workload.axes) == 1 else None
