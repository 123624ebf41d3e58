"""Quadtree: count the boxes of a quadtree over two attributes (Cormode et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.baselines.hierarchy import Allocation, check_allocation, halvings, hierarchy, sizes_of_ranges
from hdmm.matrix import Norm
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class Quadtree(Operator):
    """Measure the boxes of a quadtree, for ranges on two attributes: each level splits both in half.

    An attribute that has come down to single cells stays there. Levels share the budget in the geometric way of
    Cormode et al.: weights grow from the root to the cells, by ∛2 per level under Laplace noise and by ∜2, which the
    same analysis gives, under Gaussian noise. Answers are least squares over all levels.

    Arguments:
        allocation: How levels share the budget: "geometric" or "uniform" (default: geometric).
    """

    allocation: Allocation = "geometric"

    def __post_init__(self) -> None:
        check_allocation(self.allocation)

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        sizes = sizes_of_ranges(workload)
        if isinstance(sizes, str):
            return Aside(sizes)
        depths = [(depth, depth) for depth in range(1 + max(map(halvings, sizes)))]
        return Proposal(hierarchy(workload, depths, 2.0, self.allocation, norm))
