"""H2: a binary hierarchy of counts over each attribute's ordered values (Hay et al., 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.baselines.hierarchical import hierarchical
from hdmm.matrix import Norm
from hdmm.matrix.tree import Tree
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded


@final
@dataclass(frozen=True)
class H2(Operator):
    """Measure a balanced binary tree of interval counts on every attribute, root and leaves included.

    On several attributes it is the Kronecker product of their trees.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        return hierarchical(workload, lambda n: Tree.balanced(n, 2))
