"""Marginals under Laplace noise: descend, then hop from one choice of marginals to a better one.

The loss is not convex in the weights, and descent stops at the first choice that no small change improves. Hops are
larger changes: a union of two measured marginals replaces all that lie within it, a marginal is measured without one of
its attributes or no longer, or another one is measured too. All hops are valued at once with the other weights fixed,
and the promising ones are tried with all weights free. If no hop helps, the search leaps: it drops some marginals at
random, measures instead what the workload asks for, and hops again. See docs/math.md, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.operators.marginals.demand import Demand, contained, count_attributes, holds
from hdmm.operators.marginals.weights import ListedMarginals, WeightedMarginals, initial_marginals, settle
from hdmm.optimise.descent import Effort

_LEAST_GAIN = 1e-6
"""Improvements by a smaller ratio do not count."""
_LEAPS_PER_RESTART = 4
_DROPPED_SHARES = (0.1, 0.5)
"""The least and the largest share of the marginals that a leap drops."""
_ADDED_SHARES = (0.0, 0.3, 0.45, 0.6, 0.8, 1.0)
"""Weights of the added marginal, relative to those of the removed ones."""
_WEIGHT_IF_NONE_REMOVED = 0.1
"""The weight that the shares are of if nothing is removed; all weights sum to 1."""
_MAX_TRIED = 512
"""The most hops that are tried one by one after each valuation."""
_PATIENCE = 40
"""How many of them in a row may fail."""
_MAX_EXTRA_ATTRIBUTES = 2
"""How many more attributes a marginal may have than those that the workload asks for."""
_MAX_PAIRED = 1200
"""The most marginals of which all pairs are united; with more, they grow by one attribute at a time."""
_MAX_RESIDUALS_FULL_SEARCH = 1 << 14
"""Marginals with more residuals are searched less, in proportion."""
_MAX_VALUED_RESIDUALS = 1 << 20
"""The most residuals over which hops of one kind are valued; beyond that, hops are left out at random."""


def search_weights(demand: Demand, effort: Effort, restarts: int) -> WeightedMarginals:
    """The best weights under Laplace noise that descent, hops and leaps find."""
    marginals = initial_marginals(demand)
    start = settle(marginals, np.ones(len(marginals.sets)), 1, effort, iterations=300, tolerance=_LEAST_GAIN)
    if demand.sets.dtype == object or not demand.attributes:  # sets beyond machine integers are too slow to hop
        return start
    search = _LocalSearch(demand, effort)
    best = search.hop(_pruned(start, effort))
    scale = min(1.0, _MAX_RESIDUALS_FULL_SEARCH / best.marginals.residuals)
    for _ in range(round(_LEAPS_PER_RESTART * restarts * scale)):
        if effort.over:
            break
        best = min(best, search.hop(search.leap(best)), key=lambda weighted: weighted.error)
    return settle(best.marginals, best.weights, 1, effort, iterations=1000, tolerance=1e-10)


@final
@dataclass(frozen=True, eq=False)
class _Hops:
    """Possible hops: the marginal that is added, those that are removed, and a frame of attributes around all."""

    frames: Array
    added: Array
    owners: Array
    """For each removed marginal the place of its hop, ascending."""
    removed: Array
    """The places of these among the measured marginals."""


@final
@dataclass(frozen=True)
class _Hop:
    """Measure ``added`` with this much more weight, instead of ``removed``."""

    removed: tuple[int, ...]
    added: int
    weight: float


@final
class _LocalSearch:
    """Hops and leaps for one workload, with random numbers of its own."""

    def __init__(self, demand: Demand, effort: Effort) -> None:
        self._demand = demand
        self._effort = effort
        self._rng = effort.random()

    def hop(self, current: WeightedMarginals) -> WeightedMarginals:
        """Hop while that helps."""
        while not self._effort.over:
            before = current.error
            values, hops = self._best_hops(current)
            promising = hops[: int(np.sum(values < 1 - _LEAST_GAIN))]
            while promising:  # all at once, or half of them
                trial = _tried(current, promising, self._effort)
                if trial.error < current.error * (1 - _LEAST_GAIN):
                    current = trial
                    break
                promising = promising[: len(promising) // 2]
            failures = 0
            patience = _PATIENCE * min(1.0, _MAX_RESIDUALS_FULL_SEARCH / current.marginals.residuals)
            for hop in hops[:_MAX_TRIED]:
                if failures >= patience or self._effort.over:
                    break
                trial = _tried(current, [hop], self._effort)
                better = trial.error < current.error * (1 - _LEAST_GAIN)
                current, failures = (trial, 0) if better else (current, failures + 1)
            if current.error >= before * (1 - _LEAST_GAIN):
                break
        return current

    def leap(self, current: WeightedMarginals) -> WeightedMarginals:
        """Drop some marginals, and measure instead what the workload asks for."""
        demand = self._demand
        kept = self._rng.random(len(current.weights)) >= self._rng.uniform(*_DROPPED_SHARES)
        sets = current.marginals.sets[kept]
        weights = dict(zip(sets.tolist(), current.weights[kept].tolist(), strict=True))
        missing = np.delete(demand.largest, np.unique(contained(sets, demand.largest)[1]))
        weights |= dict.fromkeys(missing.tolist(), float(np.median(current.weights)))
        return _settled(demand, weights, self._effort)

    def _best_hops(self, current: WeightedMarginals) -> tuple[Array, list[_Hop]]:
        """The hops with the least losses: these losses, relative to the current one, and the hops."""
        hops = self._possible_hops(current)
        values, weights = _value_hops(current, hops)
        order = np.argsort(values, kind="stable")
        order = order[: max(_MAX_TRIED, int(np.sum(values < 1 - _LEAST_GAIN)))]
        order = order[np.isfinite(values[order])]
        removed = current.marginals.sets[hops.removed]
        first, last = np.searchsorted(hops.owners, [order, order + 1])
        return values[order], [
            _Hop(tuple(removed[start:end].tolist()), int(hops.added[hop]), float(weights[hop]))
            for hop, start, end in zip(order.tolist(), first.tolist(), last.tolist(), strict=True)
        ]

    def _possible_hops(self, current: WeightedMarginals) -> _Hops:
        """Unions instead of all within them, marginals without one attribute, and additional ones."""
        demand, measured = self._demand, current.marginals.sets
        partners = measured if len(measured) <= _MAX_PAIRED else measured[:0]
        unions = np.union1d(demand.grown(measured), measured[:, None] | partners)
        unions = demand.fitting(np.setdiff1d(unions, measured))
        widths = count_attributes(unions, demand.attributes)
        unions = unions[widths <= demand.widths.max() + _MAX_EXTRA_ATTRIBUTES]
        unions = unions[self._affordable(unions)]
        owners, replaced = contained(unions, measured)
        members = np.stack([holds(measured, place) for place in range(demand.attributes)], axis=1)
        whole, place = np.nonzero(members)
        kept = self._affordable(measured[whole])
        whole, bits = whole[kept], 1 << place[kept].astype(measured.dtype)
        others = np.setdiff1d(demand.sets, measured)
        others = others[self._affordable(others)]
        return _Hops(
            frames=np.concatenate([unions, measured[whole], others]),
            added=np.concatenate([unions, measured[whole] - bits, others]),
            owners=np.concatenate([owners, len(unions) + np.arange(len(whole))]),
            removed=np.concatenate([replaced, whole]),
        )

    def _affordable(self, sets: Array) -> Array:
        """The places of sets drawn at random, as many as keep within the limit on residuals, in order."""
        order = self._rng.permutation(len(sets))
        work = np.cumsum(2.0 ** count_attributes(sets, self._demand.attributes)[order])
        return np.sort(order[work <= _MAX_VALUED_RESIDUALS])


def _tried(current: WeightedMarginals, hops: Sequence[_Hop], effort: Effort) -> WeightedMarginals:
    """The weights after some hops, skipping those that a former one made impossible; unchanged if none would remain."""
    weights = dict(zip(current.marginals.sets.tolist(), current.weights.tolist(), strict=True))
    for hop in hops:
        if all(removed in weights for removed in hop.removed):
            for removed in hop.removed:
                del weights[removed]
            if hop.weight > 0:
                weights[hop.added] = weights.get(hop.added, 0.0) + hop.weight
    return _settled(current.marginals.demand, weights, effort) if weights else current


def _settled(demand: Demand, weights: Mapping[int, float], effort: Effort) -> WeightedMarginals:
    sets = sorted(weights)
    start = np.array([weights[a] for a in sets])
    marginals = ListedMarginals(demand, np.array(sets, demand.sets.dtype))
    return _pruned(settle(marginals, start, 1, effort, iterations=40, tolerance=_LEAST_GAIN), effort)


def _pruned(weighted: WeightedMarginals, effort: Effort) -> WeightedMarginals:
    """Listed marginals, without those whose weights went to zero."""
    trial = weighted
    for threshold in (1e-5, 1e-9):
        kept = weighted.weights > threshold * weighted.weights.max()
        if kept.all() and isinstance(weighted.marginals, ListedMarginals):
            return weighted
        marginals = ListedMarginals(weighted.marginals.demand, weighted.marginals.sets[kept])
        trial = settle(marginals, weighted.weights[kept], 1, effort, iterations=5, tolerance=_LEAST_GAIN)
        if trial.error <= weighted.error * (1 + _LEAST_GAIN**2):
            break
    return trial


def _value_hops(current: WeightedMarginals, hops: _Hops) -> tuple[Array, Array]:
    """For each hop the least loss relative to the current one, all other weights being fixed, and the added weight."""
    marginals, demand = current.marginals, current.marginals.demand
    assert isinstance(marginals, ListedMarginals)
    # A hop changes only the residuals within its frame: here are all pairs of a hop and such a residual, hop by hop.
    hop, residual = contained(hops.frames, demand.sets)
    starts = np.searchsorted(hop, np.arange(len(hops.frames)))
    precision = marginals.precisions(current.weights**2)[residual]
    remaining = precision - _removed_precision(current.weights, marginals, hops, hop, residual)
    remaining[remaining < 1e-12 * precision] = 0
    rates = np.where(demand.sets[residual] & ~hops.added[hop] == 0, demand.rates(hops.added)[hop], 0.0)
    freed = np.bincount(hops.owners, current.weights[hops.removed], minlength=len(hops.frames))
    best, weights = np.full(len(freed), np.inf), np.zeros(len(freed))
    for share in _ADDED_SHARES:
        weight = share * np.where(freed > 0, freed, _WEIGHT_IF_NONE_REMOVED)
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = demand.errors[residual] * (1 / (remaining + weight[hop] ** 2 * rates) - 1 / precision)
            values = (1 - freed + weight) ** 2 * (1 + np.add.reduceat(changes, starts) / current.error)
        values[np.isnan(values) | ((freed == 0) & (weight == 0))] = np.inf
        weights = np.where(values < best, weight, weights)
        best = np.minimum(values, best)
    return best, weights


def _removed_precision(weights: Array, marginals: ListedMarginals, hops: _Hops, hop: Array, residual: Array) -> Array:
    """For each pair of a hop and a residual, the part of the residual's precision that the hop removes."""
    index, row = marginals.pairs(hops.removed)
    residuals = len(marginals.demand.sets)
    # A pair as one number, so that pairs can be searched for among those that ascend.
    pair = np.searchsorted(hop * residuals + residual, hops.owners[index] * residuals + row)
    return np.bincount(pair, (weights**2 * marginals.rates)[hops.removed[index]], minlength=len(hop))
