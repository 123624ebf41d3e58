"""Privelet: the Haar wavelet over each attribute's ordered values (Xiao, Wang and Gehrke, 2010), unweighted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.baselines.hierarchical import hierarchical
from hdmm.matrix import Norm
from hdmm.matrix.haar import Haar
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class Privelet(Operator):
    """Measure the total and, for each part of a balanced binary tree, the difference of its two halves.

    On several attributes it is the Kronecker product of their wavelets.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        return hierarchical(workload, Haar)
