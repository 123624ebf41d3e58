"""Marginals under Laplace noise: descend, then hop from one choice of marginals to a better one.

The loss is not convex in the weights, and descent stops at the first choice that no small change improves. Hops are
larger changes: a union of two measured marginals replaces all that lie within it, a marginal is measured without one of
its attributes or no longer, or another one is measured too. All hops are valued at once with the other weights as they
are, and the promising ones are tried in earnest. Where no hop helps, the search leaps: it forgets some marginals at
random, measures instead what the workload asks for, and hops again. See docs/math.md, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.operators.marginals.demand import Demand, contained, has, widths
from hdmm.operators.marginals.weights import Some, Weighted, own, settle
from hdmm.optimise.descent import Effort

_GAIN = 1e-6
"""An improvement by less than this ratio is none."""
_LEAPS = 4
"""Leaps for each restart."""
_FORGOTTEN = (0.1, 0.5)
"""The least and the largest share of the marginals that a leap forgets."""
_SHARES = (0.0, 0.3, 0.45, 0.6, 0.8, 1.0)
"""Weights of what is added, relative to what is removed."""
_FRESH = 0.1
"""The same relative to all weights, where nothing is removed."""
_TRIED = 512
"""The most hops that are tried one by one after each valuation."""
_PATIENCE = 40
"""How many of them in a row may fail."""
_WIDER = 2
"""How many attributes a marginal may have beyond those that the workload asks for."""
_PAIRED = 1200
"""The most marginals of which all pairs are united; with more, they grow by one attribute at a time."""
_QUICK = 1 << 14
"""Marginals with more residuals are searched less, in proportion."""
_WORK = 1 << 20
"""The most residuals that hops of one kind are valued by; with more, some hops are left out at random."""


def search(demand: Demand, effort: Effort, restarts: int) -> Weighted:
    """The best weights under Laplace noise that descent, hops and leaps find."""
    marginals = own(demand)
    start = settle(marginals, np.ones(len(marginals.sets)), 1, effort, iterations=300, tolerance=_GAIN)
    if demand.sets.dtype == object or not demand.attributes:  # sets beyond machine integers are too slow to hop
        return start
    search = _Search(demand, effort)
    best = search.hop(_pruned(start, effort))
    for _ in range(round(_LEAPS * restarts * min(1.0, _QUICK / best.marginals.residuals))):
        if effort.over:
            break
        best = min(best, search.hop(search.leap(best)), key=lambda one: one.error)
    return settle(best.marginals, best.weights, 1, effort, iterations=1000, tolerance=1e-10)


@final
@dataclass(frozen=True, eq=False)
class _Hops:
    """Possible hops: what is added, what is removed, and a frame of attributes around both."""

    frames: Array
    added: Array
    owners: Array
    """The place of a hop for each marginal that is removed, ascending."""
    removed: Array
    """The places of these among the measured marginals."""


@final
@dataclass(frozen=True)
class _Hop:
    """Measure ``added`` with so much more weight, instead of ``removed``."""

    removed: tuple[int, ...]
    added: int
    weight: float


@final
class _Search:
    """Hops and leaps for one workload, with random numbers of its own."""

    def __init__(self, demand: Demand, effort: Effort) -> None:
        self._demand = demand
        self._effort = effort
        self._rng = effort.random()

    def hop(self, found: Weighted) -> Weighted:
        """Hop while that helps."""
        while not self._effort.over:
            before = found.error
            values, hops = self._best(found)
            promising = hops[: int(np.sum(values < 1 - _GAIN))]
            while promising:  # all at once, or half of them
                trial = _tried(found, promising, self._effort)
                if trial.error < found.error * (1 - _GAIN):
                    found = trial
                    break
                promising = promising[: len(promising) // 2]
            failures, patience = 0, _PATIENCE * min(1.0, _QUICK / found.marginals.residuals)
            for hop in hops[:_TRIED]:
                if failures >= patience or self._effort.over:
                    break
                trial = _tried(found, [hop], self._effort)
                better = trial.error < found.error * (1 - _GAIN)
                found, failures = (trial, 0) if better else (found, failures + 1)
            if found.error >= before * (1 - _GAIN):
                break
        return found

    def leap(self, found: Weighted) -> Weighted:
        """Forget some marginals, and measure instead what the workload asks for."""
        demand = self._demand
        kept = self._rng.random(len(found.weights)) >= self._rng.uniform(*_FORGOTTEN)
        sets = found.marginals.sets[kept]
        weights = dict(zip(sets.tolist(), found.weights[kept].tolist(), strict=True))
        unknown = np.delete(demand.largest, np.unique(contained(sets, demand.largest)[1]))
        weights |= dict.fromkeys(unknown.tolist(), float(np.median(found.weights)))
        return _settled(demand, weights, self._effort)

    def _best(self, found: Weighted) -> tuple[Array, list[_Hop]]:
        """The hops with the least losses, relative to the present one, and these."""
        hops = self._possible(found)
        values, weights = _valued(found, hops)
        order = np.argsort(values, kind="stable")
        order = order[: max(_TRIED, int(np.sum(values < 1 - _GAIN)))]
        order = order[np.isfinite(values[order])]
        removed = found.marginals.sets[hops.removed]
        first, last = np.searchsorted(hops.owners, [order, order + 1])
        return values[order], [
            _Hop(tuple(removed[start:end].tolist()), int(hops.added[hop]), float(weights[hop]))
            for hop, start, end in zip(order.tolist(), first.tolist(), last.tolist(), strict=True)
        ]

    def _possible(self, found: Weighted) -> _Hops:
        """Unions instead of all within them, marginals without one attribute, and additional ones."""
        demand, active = self._demand, found.marginals.sets
        others = active if len(active) <= _PAIRED else active[:0]
        joined = np.union1d(demand.grown(active), active[:, None] | others)
        joined = demand.fitting(np.setdiff1d(joined, active))
        joined = joined[widths(joined, demand.attributes) <= demand.widths.max() + _WIDER]
        joined = joined[self._affordable(joined)]
        within, below = contained(joined, active)
        held, place = np.nonzero(np.stack([has(active, place) for place in range(demand.attributes)], axis=1))
        kept = self._affordable(active[held])
        held, shrunk = held[kept], active[held[kept]] - (1 << place[kept].astype(active.dtype))
        others = np.setdiff1d(demand.sets, active)
        others = others[self._affordable(others)]
        return _Hops(
            np.concatenate([joined, active[held], others]),
            np.concatenate([joined, shrunk, others]),
            np.concatenate([within, len(joined) + np.arange(len(held))]),
            np.concatenate([below, held]),
        )

    def _affordable(self, sets: Array) -> Array:
        """The places of as many sets, in order, as have no more residuals than there may be."""
        order = self._rng.permutation(len(sets))
        work = np.cumsum(2.0 ** widths(sets, self._demand.attributes)[order])
        return np.sort(order[work <= _WORK])


def _tried(found: Weighted, hops: Sequence[_Hop], effort: Effort) -> Weighted:
    """The weights after some hops, without those that a former one made impossible; as before if nothing is left."""
    weights = dict(zip(found.marginals.sets.tolist(), found.weights.tolist(), strict=True))
    for hop in hops:
        if all(one in weights for one in hop.removed):
            for one in hop.removed:
                del weights[one]
            if hop.weight > 0:
                weights[hop.added] = weights.get(hop.added, 0.0) + hop.weight
    return _settled(found.marginals.demand, weights, effort) if weights else found


def _settled(demand: Demand, weights: Mapping[int, float], effort: Effort) -> Weighted:
    sets = sorted(weights)
    start = np.array([weights[one] for one in sets])
    marginals = Some(demand, np.array(sets, demand.sets.dtype))
    return _pruned(settle(marginals, start, 1, effort, iterations=40, tolerance=_GAIN), effort)


def _pruned(found: Weighted, effort: Effort) -> Weighted:
    """Listed marginals, without those whose weights went to zero."""
    trial = found
    for least in (1e-5, 1e-9):
        kept = found.weights > least * found.weights.max()
        if kept.all() and isinstance(found.marginals, Some):
            return found
        marginals = Some(found.marginals.demand, found.marginals.sets[kept])
        trial = settle(marginals, found.weights[kept], 1, effort, iterations=5, tolerance=_GAIN)
        if trial.error <= found.error * (1 + _GAIN**2):
            break
    return trial


def _valued(found: Weighted, hops: _Hops) -> tuple[Array, Array]:
    """For each hop the least loss relative to the present one, all other weights being fixed, and the added weight."""
    marginals, demand = found.marginals, found.marginals.demand
    assert isinstance(marginals, Some)
    # Only residuals within a frame change; those of each frame stand in one stretch.
    frame, row = contained(hops.frames, demand.sets)
    starts = np.searchsorted(frame, np.arange(len(hops.frames)))
    squares = found.weights**2
    present = marginals.precisions(squares)[row]
    pair, gone = marginals.pairs(hops.removed)
    where = np.searchsorted(frame * len(demand.sets) + row, hops.owners[pair] * len(demand.sets) + gone)
    left = present - np.bincount(where, (squares * marginals.rates)[hops.removed[pair]], minlength=len(row))
    left[left < 1e-12 * present] = 0
    rates = np.where(demand.sets[row] & ~hops.added[frame] == 0, demand.rates(hops.added)[frame], 0.0)
    freed = np.bincount(hops.owners, found.weights[hops.removed], minlength=len(hops.frames))
    best, weights = np.full(len(freed), np.inf), np.zeros(len(freed))
    for share in _SHARES:
        weight = share * np.where(freed > 0, freed, _FRESH)
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = demand.errors[row] * (1 / (left + weight[frame] ** 2 * rates) - 1 / present)
            values = (1 - freed + weight) ** 2 * (1 + np.add.reduceat(changes, starts) / found.error)
        values[np.isnan(values) | ((freed == 0) & (weight == 0))] = np.inf
        weights = np.where(values < best, weight, weights)
        best = np.minimum(values, best)
    return best, weights
