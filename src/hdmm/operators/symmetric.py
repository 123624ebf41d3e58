"""OPT_S: the proved Gaussian optimum of workloads that treat many cells alike (docs/math.md, section 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.errors import TooLargeError
from hdmm.matrix import Norm
from hdmm.operators.base import Aside, Limits, Operator, Proposal, WorstCase
from hdmm.operators.lower_bound import workload_bound
from hdmm.operators.minimax.symmetric import worst_symmetric
from hdmm.operators.symmetric_search import SymmetricSearch, measurable_symmetry
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class Symmetric(Operator, WorstCase):
    """The best strategy there is, with a proof, if the workload treats many values alike. For Gaussian noise.

    Values are alike if exchanging them changes no question's place in the workload: states, races, single years within
    an age group. The first choice for a few tables over several attributes.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The optimum up to its certificate, under Gaussian noise, if not too many combinations of values differ."""
        if norm == 1:
            return Aside("it is for Gaussian noise")
        try:
            search = SymmetricSearch(measurable_symmetry(workload.compact.gram()))
        except TooLargeError as error:
            return Aside(str(error), workload_bound(workload.compact))
        search.run(effort)
        return Proposal(search.strategy(workload.sizes), search.bound)

    def propose_worst(self, workload: Encoded, limits: Limits, norm: Norm, effort: Effort) -> Proposal | None:
        return worst_symmetric(workload, limits, effort) if norm == 2 else None
