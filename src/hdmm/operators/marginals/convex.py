"""Marginals under Gaussian noise: convex in the squared weights, and solved with a certificate.

If the closed form of the paper (section 8) is real it is optimal. Otherwise its negative squares are set to zero, and
descent goes on from there (docs/math.md, section 7); marginals that the workload does not ask for enter if their slopes
show that they help.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array
from hdmm.operators.marginals.demand import Demand, count_attributes, holds
from hdmm.operators.marginals.weights import (
    MAX_LATTICE_ATTRIBUTES,
    AllMarginals,
    CandidateMarginals,
    ListedMarginals,
    WeightedMarginals,
    initial_marginals,
    settle,
)
from hdmm.optimise.descent import Effort, descend

_GAP = 1e-5
"""Good enough: the error is proved to exceed the least one by at most this share."""
_MAX_ROUNDS = 20
"""The most rounds in which marginals enter."""
_ITERATIONS = 1000
"""Steps of the descent in each round."""
_LAST_ITERATIONS = 100
"""Steps of the fixed point after each descent."""
_MAX_RESIDUALS_ALL_ITERATIONS = 1 << 17
"""With more residuals the descent has fewer steps, in proportion."""
_MAX_GROWN = 1 << 18
"""The most marginals with one attribute more that are considered."""
_ROUNDING = 1e-13


def convex_weights(demand: Demand, effort: Effort) -> WeightedMarginals:
    """The best weights under Gaussian noise, up to a small gap."""
    marginals = initial_marginals(demand)
    best = WeightedMarginals.of(marginals, np.ones(len(marginals.sets)), 2)
    if len(marginals.sets) == len(marginals.errors):
        closed = WeightedMarginals.of(marginals, closed_form(marginals), 2)
        best = min(closed, best, key=lambda weighted: weighted.error)
    for _ in range(_MAX_ROUNDS):
        whole = among_all(best)
        if whole.gap <= _GAP or effort.over:
            break
        if isinstance(marginals, ListedMarginals):
            order = np.argsort(-whole.slopes, kind="stable")[: np.count_nonzero(whole.slopes > whole.error)]
            helpful = demand.fitting(whole.marginals.sets[order])
            marginals = ListedMarginals(demand, np.union1d(marginals.sets, demand.limited(helpful, marginals.sets)))
        weights = np.zeros(len(marginals.sets))
        weights[np.searchsorted(marginals.sets, best.marginals.sets)] = best.weights
        better = _descended(marginals, weights, effort)
        if better.error >= best.error:
            break
        best = better
    return _limited(best, effort)


def _descended(marginals: CandidateMarginals, weights: Array, effort: Effort) -> WeightedMarginals:
    """Descend in the squared weights, scaled so that the second derivatives of the loss's logarithm are near 1."""
    asked, precisions = marginals.errors, marginals.precisions(weights**2)
    error, _ = marginals.evaluate(weights)
    curvatures = np.divide(asked, precisions**3, out=np.zeros(len(asked)), where=asked > 0)
    scales = np.sqrt(error / (2 * marginals.rates * marginals.slopes(curvatures)))

    def logarithm(point: Array) -> tuple[float, Array]:
        total = float(scales @ point)
        error, slopes = marginals.evaluate(np.sqrt(scales * point))
        if not np.isfinite(error):
            return np.inf, np.zeros(len(point))
        return float(np.log(total * error)), scales * (1 / total - slopes / error)

    full = _MAX_RESIDUALS_ALL_ITERATIONS
    iterations = max(_ITERATIONS * full // max(marginals.residuals, full), _LAST_ITERATIONS)
    end = descend(logarithm, weights**2 / scales, iterations=iterations, effort=effort, tolerance=_ROUNDING)
    return settle(marginals, np.sqrt(scales * end.point), 2, effort, iterations=_LAST_ITERATIONS, tolerance=_GAP)


def _limited(weighted: WeightedMarginals, effort: Effort) -> WeightedMarginals:
    """The same weights; of too many marginals, the best weights for those with the largest."""
    demand = weighted.marginals.demand
    order = np.argsort(-weighted.weights, kind="stable")
    sets = weighted.marginals.sets[order][: np.count_nonzero(weighted.weights)]
    kept = demand.limited(sets, demand.largest)
    if len(kept) == len(sets):
        return weighted
    marginals = ListedMarginals(demand, np.union1d(demand.largest, kept))
    start = weighted.weights[np.searchsorted(weighted.marginals.sets, marginals.sets)]
    return _descended(marginals, np.maximum(start, weighted.weights.max() / len(sets)), effort)


def among_all(weighted: WeightedMarginals) -> WeightedMarginals:
    """The same weights among all marginals; of too many, among these and those with one attribute more."""
    demand, sets = weighted.marginals.demand, weighted.marginals.sets
    if demand.attributes <= MAX_LATTICE_ATTRIBUTES:
        whole: CandidateMarginals = AllMarginals(demand)
    elif len(sets) * demand.attributes <= _MAX_GROWN:
        grown = demand.fitting(demand.grown(sets[weighted.weights > 0]))
        whole = ListedMarginals(demand, np.union1d(sets, grown))
    else:
        return weighted
    weights = np.zeros(len(whole.sets))
    weights[np.searchsorted(whole.sets, sets)] = weighted.weights
    return WeightedMarginals.of(whole, weights, 2)


def closed_form(marginals: CandidateMarginals) -> Array:
    """The weights of the closed form (paper, section 8), zero if they are imaginary.

    At the optimum κ_b is proportional to the root of the workload's eigenvalue, which is p_b over its multiplicity
    ∏_{i∈b}(n_i − 1). Signed sums over supersets lead from κ back to the squared weights.
    """
    demand = marginals.demand
    multiplicity = np.ones(len(marginals.sets))
    for place, size in enumerate(demand.sizes):
        multiplicity *= np.where(holds(marginals.sets, place), size - 1, 1.0)
    roots = np.sqrt(marginals.errors / multiplicity) / marginals.rates
    signs = 1 - 2 * (count_attributes(marginals.sets, demand.attributes) % 2)
    scaled = signs * marginals.precisions(signs * roots)
    scaled[scaled < _ROUNDING * marginals.precisions(roots)] = 0
    return np.sqrt(scaled / marginals.rates)
