"""OPT_0: the best strategy over the cells themselves, on one attribute or on several of few cells (paper, section 4).

Under Gaussian noise it is the optimum up to the certificate, whatever the workload.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import final

from hdmm.matrix import Norm
from hdmm.matrix.factors import DenseGram
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.operators.descent import DEFAULT, Effort
from hdmm.operators.gaussian import opt0_gaussian
from hdmm.operators.kron import Kron
from hdmm.operators.laplace import opt0_laplace
from hdmm.strategy import Block, ExplicitStrategy
from hdmm.texttable import count_text
from hdmm.workload import Encoded

_FEWER = 5
"""Random starts over the cells of several attributes take longer, and find less, than those on one attribute."""
CELLS = 512
"""The most cells over several attributes."""


@final
@dataclass(frozen=True)
class Explicit(Operator):
    """Optimise the queries over all cells of the workload's attributes; ``p`` is the number of extra queries."""

    p: int | None = None

    def random(self, norm: Norm) -> bool:
        return norm == 1

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best strategy found, for workloads on one attribute, or on several with few cells together."""
        axes = workload.axes
        if len(axes) < 2:
            return Kron(p=self.p).propose(workload, norm, effort)
        cells = prod(workload.sizes[axis] for axis in axes)
        if cells > CELLS:
            return Aside(f"{count_text(cells)} cells of {len(axes)} attributes together; at most {CELLS} are searched")
        gram = DenseGram(workload.compact.gram().on(axes).dense())
        if norm == 2:
            solution = opt0_gaussian(gram, effort=effort)
        else:
            fewer = replace(effort, restarts=-(-effort.restarts // _FEWER))
            solution = opt0_laplace(gram, self.p, effort=fewer)
        block = Block(axes, (solution.matrix,))
        return Proposal(ExplicitStrategy(workload.sizes, (block,)), solution.bound)
