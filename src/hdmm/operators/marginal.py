"""OPT_M: a weight for every marginal, whatever the workload asks (paper, section 8).

Under Gaussian noise the problem is convex in the squared weights and is solved; under Laplace noise it is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.matrix import Identity, Matrix, Norm
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.operators.marginals.convex import convex
from hdmm.operators.marginals.demand import demand_of
from hdmm.operators.marginals.local_search import search
from hdmm.operators.marginals.weights import Weighted
from hdmm.operators.weights import dyadic
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded

_NEGLIGIBLE = 1e-7
"""How much worse the loss may become by leaving out marginals of small weight."""


@final
@dataclass(frozen=True)
class Marginal(Operator):
    """Measure marginals, each with its own weight, and combine all of them for each answer by least squares."""

    restarts: int | None = None

    def random(self, norm: Norm) -> bool:
        return norm == 1 and self.restarts is None

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best weights found, unless the products have too many attributes for a table of their subsets."""
        axes = workload.axes
        demand = demand_of(workload, axes)
        if demand is None:
            return Aside("the products have too many attributes, or cells, for all their marginals to be weighed")
        restarts = effort.restarts if self.restarts is None else self.restarts
        found = convex(demand, effort) if norm == 2 else search(demand, effort, restarts)
        return Proposal(strategy(workload, axes, found, norm, {}))


def strategy(
    workload: Encoded, axes: Sequence[int], found: Weighted, norm: Norm, bases: Mapping[int, Matrix]
) -> Strategy:
    """The weighted marginals as a strategy, over the given bases of some attributes."""
    blocks = _blocks(workload, axes, _needed(found, norm), bases)
    return Strategy(workload.sizes, tuple(blocks), "marginal")


def _needed(found: Weighted, norm: Norm) -> list[tuple[int, float]]:
    """The marginals with their weights, without the smallest that together hardly matter."""
    order = np.argsort(found.weights, kind="stable")
    few, many = 0, len(order) - 1
    while few < many:
        middle = (few + many + 1) // 2
        weights = found.weights.copy()
        weights[order[:middle]] = 0
        error = Weighted.of(found.marginals, weights, norm).error
        few, many = (middle, many) if error <= found.error * (1 + _NEGLIGIBLE) else (few, middle - 1)
    kept = order[few:]
    return list(zip(found.marginals.sets[kept].tolist(), found.weights[kept].tolist(), strict=True))


def _blocks(
    workload: Encoded, axes: Sequence[int], chosen: Sequence[tuple[int, float]], bases: Mapping[int, Matrix]
) -> Iterator[Block]:
    """The marginals as blocks, small ones first."""
    weights = {tuple(axis for place, axis in enumerate(axes) if one >> place & 1): weight for one, weight in chosen}
    most = max(weights.values())
    for own in sorted(weights, key=lambda own: (len(own), own)):
        factors = tuple(bases[axis] if axis in bases else Identity(workload.sizes[axis]) for axis in own)
        yield Block(own, factors, dyadic(weights[own] / most))
