"""Marginals under Gaussian noise: convex in the squared weights, and solved with a certificate.

Where the closed form of the paper (section 8) is real it is optimal. Elsewhere its negative squares are set to zero,
and descent goes on from there (docs/math.md, section 7); marginals that the workload does not ask for enter where their
slopes say that they help.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array
from hdmm.operators.marginals.demand import Demand, has, widths
from hdmm.operators.marginals.weights import LATTICE, All, Marginals, Some, Weighted, own, settle
from hdmm.optimise.descent import Effort, descend

_GAP = 1e-5
"""Where the error is proved to be this close to the least one, relatively, it is good enough."""
_ROUNDS = 20
_ITERATIONS = 1000
_POLISH = 100
_QUICK = 1 << 17
"""Marginals with more residuals are descended on for fewer iterations."""
_GROWN = 1 << 18
"""The most marginals with an attribute more that are looked at."""
_ROUNDING = 1e-13


def convex(demand: Demand, effort: Effort) -> Weighted:
    """The best weights under Gaussian noise, up to a small gap."""
    marginals = own(demand)
    found = Weighted.of(marginals, np.ones(len(marginals.sets)), 2)
    if len(marginals.sets) == len(marginals.errors):
        found = min(Weighted.of(marginals, closed_form(marginals), 2), found, key=lambda one: one.error)
    for _ in range(_ROUNDS):
        whole = among_all(found)
        if whole.gap <= _GAP or effort.over:
            break
        if isinstance(marginals, Some):
            order = np.argsort(-whole.slopes, kind="stable")[: np.count_nonzero(whole.slopes > whole.error)]
            helpful = demand.fitting(whole.marginals.sets[order])
            marginals = Some(demand, np.union1d(marginals.sets, demand.limited(helpful, marginals.sets)))
        weights = np.zeros(len(marginals.sets))
        weights[np.searchsorted(marginals.sets, found.marginals.sets)] = found.weights
        better = _descended(marginals, weights, effort)
        if better.error >= found.error:
            break
        found = better
    return _limited(found, effort)


def _descended(marginals: Marginals, weights: Array, effort: Effort) -> Weighted:
    """Descend in the squared weights, scaled so that the second derivatives of the loss's logarithm are near 1."""
    asked, precisions = marginals.errors, marginals.precisions(weights**2)
    error, _ = marginals.evaluate(weights)
    bent = np.divide(asked, precisions**3, out=np.zeros(len(asked)), where=asked > 0)
    scales = np.sqrt(error / (2 * marginals.rates * marginals.slopes(bent)))

    def logarithm(point: Array) -> tuple[float, Array]:
        total = float(scales @ point)
        error, slopes = marginals.evaluate(np.sqrt(scales * point))
        if not np.isfinite(error):
            return np.inf, np.zeros(len(point))
        return float(np.log(total * error)), scales * (1 / total - slopes / error)

    iterations = max(_ITERATIONS * _QUICK // max(marginals.residuals, _QUICK), _POLISH)
    found = descend(logarithm, weights**2 / scales, iterations=iterations, effort=effort, tolerance=_ROUNDING)
    return settle(marginals, np.sqrt(scales * found.point), 2, effort, iterations=_POLISH, tolerance=_GAP)


def _limited(found: Weighted, effort: Effort) -> Weighted:
    """The same where there are not too many marginals; otherwise the best weights for those with the largest."""
    demand = found.marginals.demand
    sets = found.marginals.sets[np.argsort(-found.weights, kind="stable")][: np.count_nonzero(found.weights)]
    kept = demand.limited(sets, demand.largest)
    if len(kept) == len(sets):
        return found
    marginals = Some(demand, np.union1d(demand.largest, kept))
    start = found.weights[np.searchsorted(found.marginals.sets, marginals.sets)]
    return _descended(marginals, np.maximum(start, found.weights.max() / len(sets)), effort)


def among_all(found: Weighted) -> Weighted:
    """The same weights among all marginals; of too many, among those and the ones with an attribute more."""
    demand, sets = found.marginals.demand, found.marginals.sets
    if demand.attributes <= LATTICE:
        whole: Marginals = All(demand)
    elif len(sets) * demand.attributes <= _GROWN:
        whole = Some(demand, np.union1d(sets, demand.fitting(demand.grown(sets[found.weights > 0]))))
    else:
        return found
    weights = np.zeros(len(whole.sets))
    weights[np.searchsorted(whole.sets, sets)] = found.weights
    return Weighted.of(whole, weights, 2)


def closed_form(marginals: Marginals) -> Array:
    """The weights of the closed form (paper, section 8), zero where they are imaginary.

    At the optimum κ_b is proportional to the root of the workload's eigenvalue, which is p_b over its multiplicity
    ∏_{i∈b}(n_i − 1). Signed sums over supersets lead from κ back to the squared weights.
    """
    demand = marginals.demand
    multiplicity = np.ones(len(marginals.sets))
    for place, size in enumerate(demand.sizes):
        multiplicity *= np.where(has(marginals.sets, place), size - 1, 1.0)
    roots = np.sqrt(marginals.errors / multiplicity) / marginals.rates
    signs = 1 - 2 * (widths(marginals.sets, demand.attributes) % 2)
    scaled = signs * marginals.precisions(signs * roots)
    scaled[scaled < _ROUNDING * marginals.precisions(roots)] = 0
    return np.sqrt(scaled / marginals.rates)
