"""OPT_0: the best strategy over all cells, of one attribute or of several with few cells (paper, section 4).

Under Gaussian noise it is optimal for any workload, up to the gap of its certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import final

from hdmm.matrix import Norm
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.base import MAX_CELLS_TOGETHER, Aside, Limits, Operator, Proposal, WorstCase
from hdmm.operators.kron import Kron
from hdmm.operators.minimax.explicit import worst_explicit
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.opt0.laplace import opt0_laplace
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.text import count_text
from hdmm.workload import Encoded

_RESTARTS_PER_START = 5
"""Over the cells of several attributes, a random start takes longer and finds less: there is one for five restarts."""


@final
@dataclass(frozen=True)
class Explicit(Operator, WorstCase):
    """Optimise queries over all cells of the workload's attributes; ``p`` is the number of extra queries.

    OPT_0 in the paper. Choose it for one attribute, or for several with at most 512 cells together: there its
    strategies are the most general.
    """

    p: int | None = None

    def random(self, norm: Norm) -> bool:
        return norm == 1

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best strategy found, for workloads on one attribute, or on several with few cells together."""
        axes = workload.axes
        if len(axes) < 2:
            return Kron(p=self.p).propose(workload, norm, effort)
        cells = prod(workload.sizes[axis] for axis in axes)
        if cells > MAX_CELLS_TOGETHER:
            together = f"{count_text(cells)} cells of {len(axes)} attributes together"
            return Aside(f"{together}; at most {MAX_CELLS_TOGETHER} are searched")
        gram = DenseGram(workload.compact.gram().on(axes).dense())
        if norm == 2:
            solution = opt0_gaussian(gram, effort=effort)
        else:
            fewer = replace(effort, restarts=-(-effort.restarts // _RESTARTS_PER_START))
            solution = opt0_laplace(gram, self.p, effort=fewer)
        block = Block(axes, (solution.matrix,))
        return Proposal(Strategy(workload.sizes, (block,), "explicit"), solution.bound)

    def propose_worst(self, workload: Encoded, limits: Limits, norm: Norm, effort: Effort) -> Proposal | None:
        return worst_explicit(workload, limits, effort) if norm == 2 else None
