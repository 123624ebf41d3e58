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
from hdmm.operators.marginals.convex import convex_weights
from hdmm.operators.marginals.demand import Demand, demand_of
from hdmm.operators.marginals.local_search import search_weights
from hdmm.operators.marginals.weights import WeightedMarginals
from hdmm.operators.weights import dyadic
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded

_MAX_PRUNING_LOSS = 1e-7
"""How much the loss may grow when marginals of small weight are left out."""


@final
@dataclass(frozen=True)
class Marginal(Operator):
    """Measure marginals, each with its own weight, and combine all of them for each answer by least squares.

    OPT_M in the paper. Choose it for marginals and other tables of counts on several attributes; it also answers
    prefixes and ranges, but from counts of single values.
    """

    restarts: int | None = None

    def random(self, norm: Norm) -> bool:
        return norm == 1 and self.restarts is None

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best weights found, unless the products have too many attributes for a table of their subsets."""
        axes = workload.axes
        demand = demand_of(workload, axes)
        if demand is None:
            return Aside("the products have too many attributes, or cells, for all their marginals to be weighed")
        weighted = best_weights(demand, norm, effort, self.restarts)
        return Proposal(marginal_strategy(workload, axes, weighted, norm, {}))


def best_weights(demand: Demand, norm: Norm, effort: Effort, restarts: int | None) -> WeightedMarginals:
    """The best weights found; ``restarts`` takes the place of the effort's, unless it is None."""
    if norm == 2:
        return convex_weights(demand, effort)
    return search_weights(demand, effort, effort.restarts if restarts is None else restarts)


def marginal_strategy(
    workload: Encoded, axes: Sequence[int], weighted: WeightedMarginals, norm: Norm, bases: Mapping[int, Matrix]
) -> Strategy:
    """The weighted marginals as a strategy, over the given bases of some attributes."""
    blocks = _blocks(workload, axes, _pruned(weighted, norm), bases)
    return Strategy(workload.sizes, tuple(blocks), "marginal")


def _pruned(weighted: WeightedMarginals, norm: Norm) -> list[tuple[int, float]]:
    """The marginals with their weights, without the lightest that together hardly matter."""
    order = np.argsort(weighted.weights, kind="stable")
    low, high = 0, len(order) - 1
    while low < high:
        middle = (low + high + 1) // 2
        weights = weighted.weights.copy()
        weights[order[:middle]] = 0
        error = WeightedMarginals.of(weighted.marginals, weights, norm).error
        low, high = (middle, high) if error <= weighted.error * (1 + _MAX_PRUNING_LOSS) else (low, middle - 1)
    kept = order[low:]
    return list(zip(weighted.marginals.sets[kept].tolist(), weighted.weights[kept].tolist(), strict=True))


def _blocks(
    workload: Encoded, axes: Sequence[int], weighted_sets: Sequence[tuple[int, float]], bases: Mapping[int, Matrix]
) -> Iterator[Block]:
    """The marginals as blocks, those on few attributes first."""
    weights = {tuple(axis for place, axis in enumerate(axes) if a >> place & 1): weight for a, weight in weighted_sets}
    largest = max(weights.values())
    for block_axes in sorted(weights, key=lambda key: (len(key), key)):
        factors = tuple(bases[axis] if axis in bases else Identity(workload.sizes[axis]) for axis in block_axes)
        yield Block(block_axes, factors, dyadic(weights[block_axes] / largest))
