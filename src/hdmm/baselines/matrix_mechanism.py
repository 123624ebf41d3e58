"""MatrixMechanism: the matrix mechanism over a handful of cells, as an oracle (Li et al. 2010).

Under Gaussian noise its problem is convex, and is solved to a small gap with a proof (docs/math.md, section 4). Under
Laplace noise it has a constraint on a rank, and no exact method is known: signed queries are descended on from many
starts. The error of the result is exact, but nothing proves that no strategy has a smaller one; the Gaussian optimum
bounds it from below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from hdmm.baselines.written_out import propose_over_cells
from hdmm.matrix import Array, Dense, Norm
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.base import Aside, Operator, Proposal, Solution
from hdmm.operators.opt0.equal_cells import entries_among, expand, kinds_of_cells
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.opt0.laplace import opt0_laplace
from hdmm.operators.opt0.signed import polish
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded

_MAX_CELLS = 8
"""The most cells that are searched."""
_GAP = 1e-6
"""The gap between the Gaussian error and its bound at which the search ends."""
_GAUSSIAN_STEPS = 2000
_STARTS = 4
"""How many times as many starts as an operator usually has."""
_STEPS = 1000
"""Steps of each descent."""


@final
@dataclass(frozen=True)
class MatrixMechanism(Operator):
    """Search strategies of any queries over at most 8 cells (Li et al. 2010), as hard as an oracle may.

    Under Gaussian noise it is the optimum. Under Laplace noise it is the best of dozens of searches.
    """

    def random(self, norm: Norm) -> bool:
        return norm == 1

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best strategy found, with a lower bound on the error of every other one."""
        return propose_over_cells(workload, _MAX_CELLS, lambda V: _best(V, norm, effort))


def _best(V: Array, norm: Norm, effort: Effort) -> Solution:
    gaussian = opt0_gaussian(DenseGram(V), tolerance=_GAP, iterations=_GAUSSIAN_STEPS, effort=effort)
    if norm == 2:
        return gaussian
    many = replace(effort, restarts=_STARTS * effort.restarts)
    best = opt0_laplace(DenseGram(V), effort=many, iterations=_STEPS)
    first, kinds = kinds_of_cells(DenseGram(V))
    distinct = entries_among(DenseGram(V), first)
    if len(first) > 1 and not effort.over:
        start = best.matrix.dense()[:, first].astype(float)
        for solution in polish(distinct, start, replace(many, seed=effort.seed + 1), _STEPS):
            if solution.error < best.error:
                best = Solution(Dense(expand(solution.matrix.dense(), kinds)), solution.error)
    return replace(best, bound=gaussian.bound)
