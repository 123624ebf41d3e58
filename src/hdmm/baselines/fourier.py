"""Fourier: measure the parities that marginals of binary attributes consist of (Barak et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.baselines.asked_marginals import marginals_asked
from hdmm.matrix import Dense, Norm
from hdmm.matrix.axes import subsets
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded

_MAX_QUERIES = 1 << 14
"""The most parities: each is a block of one query."""


@final
@dataclass(frozen=True)
class Fourier(Operator):
    """Measure Fourier queries of marginals over attributes with two values, all equally well.

    The query of a set of attributes adds the records with an even number of second values among them, and subtracts
    the others. A marginal needs the queries of all subsets of its attributes; each is measured once.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        for axis in workload.axes:
            if workload.sizes[axis] != 2:
                return Aside(
                    f"{workload.attribute(axis)} has {workload.sizes[axis]:,} cells; it takes attributes of two"
                )
        marginals = marginals_asked(workload)
        if isinstance(marginals, str):
            return Aside(marginals)
        widest = max(map(len, marginals))
        if 2**widest > _MAX_QUERIES:
            return Aside(f"a marginal needs {2**widest:,} Fourier queries; at most {_MAX_QUERIES:,} are measured")
        parities = {subset for axes in marginals for subset in subsets(axes)}
        if len(parities) > _MAX_QUERIES:
            return Aside(f"the marginals need {len(parities):,} Fourier queries; at most {_MAX_QUERIES:,} are measured")
        signs = Dense(np.array([[1, -1]]))
        blocks = [Block(axes, (signs,) * len(axes)) for axes in sorted(parities, key=lambda axes: (len(axes), axes))]
        return Proposal(Strategy(workload.sizes, tuple(blocks), "residual"))
