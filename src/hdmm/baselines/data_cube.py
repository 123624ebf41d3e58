"""DataCube: measure a few marginals from which all others follow by adding up (Ding, Winslett, Han and Li 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import final

import numpy as np

from hdmm.baselines.asked_marginals import marginals_asked
from hdmm.matrix import Identity, Norm
from hdmm.matrix.axes import Axes
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded

_MAX_MARGINALS = 1 << 12
"""The most marginals of a workload: every two are compared."""
_MAX_ATTRIBUTES = 10
"""The most attributes of a marginal: with d attributes it has 2^d residuals."""


@final
@dataclass(frozen=True)
class DataCube(Operator):
    """Measure some of a workload's marginals, equally well, so that the others are sums of not too many of their cells.

    A marginal C covers a marginal D within it if every cell of D is the sum of at most k cells of C, where k is the
    number of marginals in the workload: measuring all of them would give each k times the noise. Marginals are chosen
    greedily, each time the one that covers most of what is not covered yet. Answers are least squares over all
    measured marginals, as in the paper's tables.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        marginals = marginals_asked(workload)
        if isinstance(marginals, str):
            return Aside(marginals)
        if len(marginals) > _MAX_MARGINALS:
            many = f"the workload asks for {len(marginals):,} marginals"
            return Aside(f"{many}; at most {_MAX_MARGINALS:,} are compared")
        widest = max(map(len, marginals))
        if widest > _MAX_ATTRIBUTES:
            return Aside(f"a marginal has {widest} attributes; at most {_MAX_ATTRIBUTES} have few enough residuals")
        blocks = [
            Block(axes, tuple(Identity(workload.sizes[axis]) for axis in axes))
            for axes in greedy_cover(marginals, workload.sizes)
        ]
        return Proposal(Strategy(workload.sizes, tuple(blocks), "marginal"))


def greedy_cover(marginals: Sequence[Axes], sizes: Sequence[int]) -> list[Axes]:
    """Marginals that cover all; of equally good ones the first in binary order, the first attribute leading."""
    attributes = len(sizes)
    ordered = sorted(marginals, key=lambda axes: sum(1 << (attributes - 1 - axis) for axis in axes))
    members = np.array([[axis in axes for axis in range(attributes)] for axes in ordered])
    within = (~members).astype(float) @ members.T.astype(float) == 0
    cells = members @ np.log(sizes)  # a ratio of cells is an integer, so that rounding does not matter
    covers = within & (cells[:, None] - cells <= log(len(ordered) + 0.5))
    left = np.ones(len(ordered), bool)
    chosen = []
    while left.any():
        best = int((covers & left).sum(axis=1).argmax())
        chosen.append(ordered[best])
        left &= ~covers[best]
    return chosen
