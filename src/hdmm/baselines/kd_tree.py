"""KdTree: count the boxes of a k-d tree over two attributes, split at midpoints (Cormode et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import final

from hdmm.baselines.hierarchy import Allocation, check_allocation, halvings, hierarchy, sizes_of_ranges
from hdmm.matrix import Norm
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class KdTree(Operator):
    """Measure the boxes of a k-d tree, for ranges on two attributes: levels split one and the other in half, in turn.

    Splits are at midpoints. The k-d tree of Cormode et al. that splits at medians looks at the data to choose what to
    measure, which a strategy here never does. Levels share the budget as in :class:`Quadtree`, whose levels are two of
    these: weights grow by the sixth root of 2 per level under Laplace noise, by the eighth under Gaussian noise. Once
    an attribute has come down to single cells, only the other is split. Answers are least squares over all levels.

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
        first, second = map(halvings, sizes)
        turns = [(min((turn + 1) // 2, first), min(turn // 2, second)) for turn in range(2 * max(first, second) + 1)]
        return Proposal(hierarchy(workload, list(dict.fromkeys(turns)), sqrt(2), self.allocation, norm))
