"""HB: a hierarchy of counts whose branching suits the number of values (Qardaji, Yang and Li, 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.baselines.hierarchical import hierarchical
from hdmm.matrix import Identity, Matrix, Norm
from hdmm.matrix.tree import Tree
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class HB(Operator):
    """Measure a balanced tree of interval counts on every attribute, without its root.

    Its branching makes the mean error of range queries small; for few values it is the identity. On several attributes
    it is the Kronecker product of their trees.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        return hierarchical(workload, _tree)


def best_branching(n: int) -> int:
    """The b from 2 to n with the least (b − 1)h³ − ⌊2(b + 1)h²/3⌋, where h is the height of the tree, ⌈log_b n⌉."""
    costs: list[tuple[int, int]] = []
    height, least = 1, n
    while least >= 2:  # for each height the least branching that reaches it: the cost grows with the branching
        costs.append(((least - 1) * height**3 - 2 * (least + 1) * height**2 // 3, least))
        if least == 2:
            break
        height += 1
        least = _least_branching(n, height)
    return min(costs)[1]


def _tree(n: int) -> Matrix:
    branching = best_branching(n) if n > 1 else 1
    return Identity(n) if branching >= n else Tree.balanced(n, branching, root=False)


def _least_branching(n: int, height: int) -> int:
    """The least b ≥ 2 with b^height ≥ n."""
    branching = max(2, int(n ** (1 / height)) - 1)
    while branching**height < n:
        branching += 1
    return branching
