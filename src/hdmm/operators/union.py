"""OPT_+: the workload in groups, each with a Kronecker product of its own and a share of the budget (paper, section 6).

With E_j the loss of group j alone, the best weights are ∛E_j under Laplace noise and ∜E_j under Gaussian, for a total
of (Σ∛E_j)³ and (Σ√E_j)². Groups are the user's, or the best found of: every product by itself, products on the same
attributes, and pairs merged greedily while that helps (docs/math.md, section 6). If all groups share one factor for
each attribute, they are marginals over a base for each attribute, which have exact global least squares. Under Laplace
noise the blocks that were found are then improved together for global least squares (see `joint`); given groups are
left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import inf
from typing import Any, final

import numpy as np

from hdmm.demand.kron_loss import Problem
from hdmm.errors import WorkloadError, nearest
from hdmm.estimators.estimator import LinearEstimator, loss
from hdmm.estimators.least_squares import exact_least_squares, local_least_squares
from hdmm.matrix import AxisGram, Gram, Matrix, Norm
from hdmm.matrix.gram import GramTerm
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.operators.joint.polish import polished
from hdmm.operators.kron import KronSolution, solve_kron
from hdmm.operators.weights import dyadic
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded, EncodedProduct

_MAX_MERGED_GROUPS = 12
"""The most groups among which pairs are merged."""
_MAX_EXCESS = 4.0
"""Single products are tried too if their loss, each from its own block, is less than this many times the best."""
_AS_GOOD = 1 + 1e-6
"""Two ways to answer whose losses differ by less than this ratio are the same, but for rounding."""
_MAX_ATTRIBUTES_GLOBAL = 12
"""The most attributes of a block for global least squares: it has a residual for each subset of them."""

Group = tuple[EncodedProduct, ...]


@final
@dataclass(frozen=True)
class Union(Operator):
    """Measure one Kronecker product per group. ``groups`` lists products by name; those not named stand alone.

    OPT_+ in the paper. Choose it for products that differ much, for example on different attributes.

    Arguments:
        groups: Products by name, group by group; those not named stand alone (default: groups are found).
        restarts: Random starts (default: those of the search).
        p: Extra queries on each attribute, as for :class:`Kron`.
    """

    groups: tuple[tuple[str, ...], ...] | None = None
    restarts: int | None = None
    p: int | None = None

    def random(self, norm: Norm) -> bool:
        return self.restarts is None

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best grouping found, unless there is one product only, which OPT_⊗ answers best."""
        split = _Split(workload, norm, effort, self.p, self.restarts)
        if self.groups is not None:
            return Proposal(split.strategy(_named(workload, self.groups)))
        if len(workload.compact.products) < 2:
            return Aside("there is only one product, or several that are one together; Kron answers it best")
        partitions = [_single(workload.sought), _single(workload.compact), _by_axes(workload.compact)]
        best: Sequence[Group] = min(partitions, key=split.loss)
        best = split.merged(_by_axes(workload.compact), best)
        candidates = [best]
        if best is not partitions[0] and split.loss(partitions[0]) < _MAX_EXCESS * split.loss(best):
            candidates.append(partitions[0])  # least squares over all blocks may still make it the best
        best = min(candidates, key=lambda c: split.error(split.estimator(c, quick=True)))
        return Proposal(split.polished(split.strategy(best)))


@final
class _Split:
    """Solves groups, each once, and puts them together with the best shares of the budget."""

    def __init__(self, workload: Encoded, norm: Norm, effort: Effort, p: int | None, restarts: int | None) -> None:
        self._workload = workload
        self._norm: Norm = norm
        self._effort = replace(effort, beat=inf)  # no loss to beat is known for a group alone
        self._p = p
        self._restarts = restarts
        self._groups: dict[tuple[frozenset[EncodedProduct], bool], KronSolution] = {}
        self._factors: dict[tuple[AxisGram, bool], KronSolution] = {}

    def loss(self, partition: Sequence[Group]) -> float:
        """The loss of all groups together, each answered from its own block; roughly, to compare partitions."""
        losses = np.array([self._solution(group, quick=True).loss for group in partition])
        return float(np.sum(losses ** (1 / 3)) ** 3 if self._norm == 1 else np.sum(losses**0.5) ** 2)

    def merged(self, partition: Sequence[Group], best: Sequence[Group]) -> Sequence[Group]:
        """Merge the pair of groups that helps most, again and again; the best partition seen."""
        groups = list(partition)
        while 1 < len(groups) <= _MAX_MERGED_GROUPS and not self._effort.over:
            trials = []
            for first, second in combinations(groups, 2):
                trials.append([group for group in groups if group not in (first, second)] + [first + second])
            groups = min(trials, key=self.loss)
            if self.loss(groups) < self.loss(best):
                best = groups
        return best

    def strategy(self, partition: Sequence[Group]) -> Strategy:
        """The blocks of a partition, weighted."""
        return self.estimator(partition).strategy

    def estimator(self, partition: Sequence[Group], *, quick: bool = False) -> LinearEstimator[Any]:
        """The blocks of a partition, weighted; with shared factors, for global least squares if that is better."""
        solutions = [self._solution(group, quick=quick) for group in partition]
        power = 1 / 3 if self._norm == 1 else 1 / 4
        weights = np.array([solution.loss for solution in solutions]) ** power
        blocks = [
            Block(_axes(group), tuple(solution.factors), dyadic(weight / weights.max()))
            for group, solution, weight in zip(partition, solutions, weights, strict=True)
        ]
        union = exact_least_squares(Strategy(self._workload.sizes, tuple(blocks), "union"))
        shared = _shared(self._workload, blocks)
        return shared if shared is not None and self.error(shared) <= _AS_GOOD * self.error(union) else union

    def polished(self, strategy: Strategy) -> Strategy:
        """The strategy with all queries improved together for global least squares, if that helps."""
        better = None if self._norm == 2 or self._effort.over else polished(strategy, self._workload, self._effort)
        strategies = [strategy] if better is None else [strategy, better]
        return min(strategies, key=lambda candidate: self.error(exact_least_squares(candidate)))

    def error(self, estimator: LinearEstimator[Any]) -> float:
        """The loss of a strategy; infinite if it does not answer every question."""
        if not all(estimator.supports(product) for product in self._workload.products):
            return inf
        return loss(estimator, self._workload, self._norm)

    def _solution(self, group: Group, *, quick: bool) -> KronSolution:
        """A Kronecker product for one group; computed once."""
        key = (frozenset(group), quick)
        if key not in self._groups:
            self._groups[key] = self._solve(group, replace(self._effort, quick=quick))
        return self._groups[key]

    def _solve(self, group: Group, effort: Effort) -> KronSolution:
        if len(group) == 1 and group[0].condition is None:
            return self._solve_product(group[0], effort)
        terms = [
            GramTerm(float(product.weight) ** 2 * term.coefficient, term.factors)
            for product in group
            for term in product.terms
        ]
        problem = Problem(Gram(self._workload.sizes, tuple(terms)), _axes(group))
        return solve_kron(problem, self._norm, effort, self._p, self._restarts)

    def _solve_product(self, product: EncodedProduct, effort: Effort) -> KronSolution:
        """A product alone: each attribute by itself, equal ones once."""
        factors: list[Matrix] = []
        total = float(product.weight) ** 2
        for gram in product.grams.values():
            key = (gram, effort.quick)
            if key not in self._factors:
                problem = Problem(Gram.of(gram), (0,))
                self._factors[key] = solve_kron(problem, self._norm, effort, self._p, self._restarts)
            factors += self._factors[key].factors
            total *= self._factors[key].loss
        return KronSolution(factors, total)


def _shared(workload: Encoded, blocks: Sequence[Block]) -> LinearEstimator[Any] | None:
    """Global least squares on the same blocks; None if they do not share factors or do not determine all cells."""
    weights: dict[tuple[int, ...], Fraction] = {}
    factors: dict[int, Matrix] = {}
    for block in blocks:
        weights[block.axes] = weights.get(block.axes, Fraction(0)) + block.weight
        for axis, factor in zip(block.axes, block.factors, strict=True):
            if factors.setdefault(axis, factor) != factor or len(block.axes) > _MAX_ATTRIBUTES_GLOBAL:
                return None
    merged = tuple(Block(axes, tuple(factors[axis] for axis in axes), weight) for axes, weight in weights.items())
    try:
        return local_least_squares(Strategy(workload.sizes, merged, "marginal"))
    except ValueError:
        return None


def _axes(group: Group) -> tuple[int, ...]:
    return tuple(sorted({axis for product in group for axis in product.axes}))


def _single(workload: Encoded) -> list[Group]:
    return [(product,) for product in workload.products]


def _by_axes(workload: Encoded) -> list[Group]:
    groups: dict[tuple[int, ...], Group] = {}
    for product in workload.products:
        groups[product.axes] = (*groups.get(product.axes, ()), product)
    return list(groups.values())


def _named(workload: Encoded, groups: Sequence[Sequence[str]]) -> list[Group]:
    """The user's groups, and each other product by itself; products that count nobody are left out."""
    all_names = [product.name for product in workload.products]
    listed = [name for names in groups for name in names]
    for name in listed:
        if name not in all_names:
            raise WorkloadError(f"groups: product {name!r} is not in the workload{nearest(name, all_names)}")
        if listed.count(name) > 1:
            raise WorkloadError(f"groups: product {name!r} is in two groups; list it once")
    products = {product.name: product for product in workload.sought.products}
    chosen = [tuple(products[name] for name in names if name in products) for names in groups]
    return [group for group in chosen if group] + [(p,) for name, p in products.items() if name not in listed]
