"""The error of weighted marginals, residual by residual.

Every measured marginal a ⊇ b measures residual b. With N_a the cells of marginal a, and p_b what the workload asks of
the residual, its squared error under weights θ of norm 1 is

    Σ_b p_b / κ_b,    κ_b = Σ_{a⊇b} θ_a² / N_a,

in the eigenbasis of all marginals, and relative to the size of the domain, which may be too large for floating point.
See paper, section 8; docs/math.md, section 7.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array, Norm
from hdmm.operators.marginals.demand import MAX_CELLS, MAX_RESIDUALS, Demand
from hdmm.optimise.descent import Effort

MAX_LATTICE_ATTRIBUTES = 20
"""The most attributes for which all 2^d sets are considered."""
_STRIDES = (1.9, 1.0)
"""Lengths of a step that are tried, as multiples of the step that never makes weights worse."""


class CandidateMarginals(ABC):
    """Marginals that may be measured, with everything about them that does not depend on their weights."""

    demand: Demand
    sets: Array
    rates: Array
    """1/N_a."""

    @abstractmethod
    def precisions(self, squares: Array) -> Array:
        """κ_b for every residual, from θ²."""

    @abstractmethod
    def slopes(self, shares: Array) -> Array:
        """Σ_{b⊆a} share_b / N_a for every marginal."""

    @property
    @abstractmethod
    def errors(self) -> Array:
        """p_b for every residual."""

    @property
    @abstractmethod
    def residuals(self) -> int:
        """How many residuals all marginals have together."""

    def evaluate(self, weights: Array) -> tuple[float, Array]:
        """The error Σ_b p_b/κ_b, infinite if a residual is not measured, and minus its derivatives by θ²."""
        asked, precisions = self.errors, self.precisions(weights**2)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            parts = np.divide(asked, precisions, out=np.zeros(len(asked)), where=asked > 0)
            total = float(parts.sum())
            if not np.isfinite(total):
                return np.inf, np.zeros(len(weights))
            shares = np.divide(parts, precisions, out=np.zeros(len(asked)), where=asked > 0)
        return total, self.slopes(shares)


@final
class ListedMarginals(CandidateMarginals):
    """Listed marginals: an evaluation takes time in proportion to the residuals within them."""

    def __init__(self, demand: Demand, sets: Array) -> None:
        self.demand, self.sets = demand, sets
        within = demand.within(sets)
        self.rates = np.array([rate for rate, _ in within])
        self.rows = np.concatenate([rows for _, rows in within])
        self.counts = np.array([len(rows) for _, rows in within])
        self.starts = np.cumsum(self.counts) - self.counts

    @property
    def errors(self) -> Array:
        return self.demand.errors

    @property
    def residuals(self) -> int:
        return len(self.rows)

    def precisions(self, squares: Array) -> Array:
        precisions = np.repeat(squares * self.rates, self.counts)
        return np.bincount(self.rows, weights=precisions, minlength=len(self.demand.sets))

    def slopes(self, shares: Array) -> Array:
        # The empty set is a residual of every marginal, so that no count is zero.
        return self.rates * np.add.reduceat(shares[self.rows], self.starts)

    def pairs(self, places: Array) -> tuple[Array, Array]:
        """The residuals of the marginals at some places: the index in ``places`` of each, and its row in the demand."""
        counts = self.counts[places]
        index = np.repeat(np.arange(len(places)), counts)
        starts = np.cumsum(counts) - counts
        return index, self.rows[self.starts[places][index] + np.arange(len(index)) - starts[index]]


@final
class AllMarginals(CandidateMarginals):
    """The marginals on all 2^d sets: sums over supersets and subsets in O(d·2^d)."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.sets = np.arange(1 << demand.attributes)
        self.rates = demand.rates(self.sets)

    @cached_property
    def errors(self) -> Array:
        errors = np.zeros(len(self.sets))
        errors[self.demand.sets] = self.demand.errors
        return errors

    @property
    def residuals(self) -> int:
        return int(3**self.demand.attributes)

    def precisions(self, squares: Array) -> Array:
        sums = squares * self.rates
        for place in range(self.demand.attributes):
            halves = sums.reshape(-1, 2, 1 << place)
            halves[:, 0] += halves[:, 1]
        return sums

    def slopes(self, shares: Array) -> Array:
        sums = shares.copy()
        for place in range(self.demand.attributes):
            halves = sums.reshape(-1, 2, 1 << place)
            halves[:, 1] += halves[:, 0]
        sums *= self.rates
        return sums


def initial_marginals(demand: Demand) -> CandidateMarginals:
    """The marginals on the workload's sets, or on all if that is less work; of too many, those on few attributes."""
    work, d = np.sum(2.0**demand.widths), demand.attributes
    if d <= MAX_LATTICE_ATTRIBUTES and d << d < work and prod(demand.sizes) < MAX_CELLS:
        return AllMarginals(demand)
    if work <= MAX_RESIDUALS:
        return ListedMarginals(demand, demand.sets)
    narrow_first = demand.sets[np.argsort(demand.widths, kind="stable")]
    return ListedMarginals(demand, np.union1d(demand.largest, demand.limited(narrow_first, demand.largest)))


@final
@dataclass(frozen=True, eq=False)
class WeightedMarginals:
    """Weights of norm 1 on marginals, and the workload's squared error under them."""

    marginals: CandidateMarginals
    weights: Array
    error: float
    slopes: Array
    """Minus the derivatives of the error by the squared weights."""

    @staticmethod
    def of(marginals: CandidateMarginals, weights: Array, norm: Norm) -> WeightedMarginals:
        """Any weights, scaled to norm 1."""
        scaled = weights / np.sum(weights**norm) ** (1 / norm)
        return WeightedMarginals(marginals, scaled, *marginals.evaluate(scaled))

    @property
    def gap(self) -> float:
        """The most that the error exceeds the least one under Gaussian noise, as a share of it.

        By Cauchy–Schwarz no weights on these marginals have a smaller error than error²/max slope.
        """
        return float(self.slopes.max()) / self.error - 1


def settle(
    marginals: CandidateMarginals, start: Array, norm: Norm, effort: Effort, *, iterations: int, tolerance: float
) -> WeightedMarginals:
    """Improve weights until a step gains less than the tolerance, or until the gap is within it.

    By convexity Σ_b p_b/κ_b(θ²) ≤ Σ_a θ_a⁴·slope_a/ϑ_a² for every ϑ, with equality at ϑ = θ. The right side is least at
    ϑ_a ∝ (θ_a⁴·slope_a)^(1/(2+norm)), which is never worse than θ. Almost twice that step in logarithms still descends
    near an optimum and is quicker; if it does not descend, the plain step is taken.
    """
    current = WeightedMarginals.of(marginals, start, norm)
    for _ in range(iterations):
        if not np.isfinite(current.error) or effort.over or (norm == 2 and current.gap <= tolerance):
            break
        # Of norm 1, optimal weights have θ^(2 − norm)·slope = error wherever they are positive.
        ratios = current.weights ** (2 - norm) * current.slopes / current.error
        before = current.error
        for stride in _STRIDES:
            trial = WeightedMarginals.of(marginals, current.weights * ratios ** (stride / (2 + norm)), norm)
            if trial.error < before:
                current = trial
                break
        if before - current.error <= (tolerance if norm == 1 else 0) * before:
            break
    return current
