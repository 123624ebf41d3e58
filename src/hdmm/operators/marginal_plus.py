"""OPT_M+: weighted marginals in which attributes have a strategy of their own instead of single cells.

Any full-rank A_i of unit columns may stand in for the identity on attribute i. With X = AᵀA, κ = 1ᵀX⁻¹1 and f =
X⁻¹1/√κ, a factor V counts by fᵀVf on totals and by tr(X⁻¹V) − fᵀVf on the rest, and κ takes the place of the number of
cells: all that OPT_M does with weights stays as it is. The bases are OPT_0's for what the weights make of the
attribute's workloads plus λ11ᵀ, and bases and weights are improved in turn. See docs/math.md, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hdmm.demand.subsets import Subsets, subsets_of
from hdmm.estimators.inverse import error
from hdmm.matrix import Array, AxisGram, Identity, Matrix, Norm
from hdmm.matrix.axis_gram import DenseGram, IdentityGram, OnesGram, SumGram
from hdmm.matrix.solvable import Solvable
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.operators.marginal import best_weights, marginal_strategy
from hdmm.operators.marginals.demand import LEAST_SHARE, MAX_CELLS, MAX_RESIDUALS, Demand
from hdmm.operators.marginals.weights import ListedMarginals, WeightedMarginals, settle
from hdmm.operators.opt0.equal_cells import kinds_of_cells
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.opt0.hats import opt0_hats
from hdmm.operators.opt0.laplace import opt0_laplace, usual_queries
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.parallel import one_blas_thread
from hdmm.workload import Encoded

_MAX_BASE_CELLS = 2048
"""The most cells of an attribute with a base that is written out."""
_MANY_CELLS = 1 << 17
"""From this many cells on, fewer bases are tried; under Laplace noise, from those on that are not written out."""
_MAX_ROUNDS = 4
_LEAST_GAIN = 1e-3
"""A round that improves the loss by less than this ratio is the last."""
_TOTAL_SHARES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
"""λ, relative to the mean of V's diagonal."""
_FEW_SHARES = (0.0, 1.0)
"""The same for attributes of many cells."""
_ITERATIONS = 200
"""Steps of each descent on a base, and on the weights."""
_LEAST_SINGULAR_RATIO = 1e-4
"""The least ratio of a base's singular values: measurements of a weaker direction would be rounded away."""


@final
@dataclass(frozen=True)
class MarginalPlus(Operator):
    """Measure marginals, some attributes by an optimised strategy, and combine all of them by least squares.

    OPT_M+ in the documentation; the paper does not have it. Choose it for several tables that ask for prefixes or
    ranges on some attributes.
    """

    restarts: int | None = None

    def random(self, norm: Norm) -> bool:
        return norm == 1 and self.restarts is None

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best bases and weights found, unless the identity is the best base, or there are too many attributes."""
        gram = workload.compact.gram()
        if sum(2.0 ** len(term.factors) for term in gram.terms) > MAX_RESIDUALS or len(gram.sizes) > 62:
            return Aside("the products have too many attributes for all their marginals to be weighed")
        bases = _Bases(subsets_of(gram), norm, effort)
        if not bases.searched:
            return Aside("no attribute needs more than counts of its cells; Marginal weighs these")
        if np.prod([float(gram.sizes[axis]) for axis in bases.subsets.axes]) > MAX_CELLS:
            return Aside("the attributes have too many cells together for floating point")
        with one_blas_thread():
            bases.run()
        weighted = best_weights(bases.demand(), norm, effort, self.restarts)
        return Proposal(marginal_strategy(workload, bases.subsets.axes, weighted, norm, bases.matrices()))


@final
@dataclass(frozen=True, eq=False)
class _Base:
    """The strategy of an attribute, its κ, and for each Gram factor V there fᵀVf/κ and (tr(X⁻¹V) − fᵀVf)/κ."""

    matrix: Matrix
    kappa: float
    errors: Array


@final
class _Bases:
    """The bases of all attributes, and the weights of the marginals over them."""

    def __init__(self, subsets: Subsets, norm: Norm, effort: Effort) -> None:
        self.subsets = subsets
        self._norm: Norm = norm
        self._effort = effort
        problem = subsets.problem
        self._numbers = np.array([sum(1 << place for place in a) for a in subsets.sets], np.int64)
        self._bases = [self._identity(i) for i in range(len(problem.sizes))]
        self.searched = [
            i
            for i, pairs in enumerate(problem.even)
            if pairs is None and (self._ordered(i) if self._large(i) else self._all_distinct(i))
        ]
        """The places of the attributes whose bases are searched."""

    def run(self) -> None:
        """Improve one base after the other, and the weights with them, until nothing moves."""
        best = best_weights(self.demand(), self._norm, self._effort, 0)
        for _ in range(_MAX_ROUNDS):
            before = best.error
            for i in self.searched:
                best = self._improve(i, best)
                if self._effort.over:
                    return
            if best.error > before * (1 - _LEAST_GAIN) or (self._norm == 1 and any(map(self._large, self.searched))):
                break

    def matrices(self) -> Mapping[int, Matrix]:
        """The bases by axis."""
        return {self.subsets.axes[i]: self._bases[i].matrix for i in self.searched}

    def demand(self, bases: list[_Base] | None = None) -> Demand:
        """What the workload asks of the residuals over these bases."""
        bases = bases or self._bases
        asked = self.subsets.asked([base.errors for base in bases])
        order = np.argsort(self._numbers)
        errors = np.maximum(asked, LEAST_SHARE * asked.sum())
        return Demand(tuple(base.kappa for base in bases), self._numbers[order], errors[order])

    def _reweighted(self, demand: Demand, before: WeightedMarginals) -> WeightedMarginals:
        """The best weights under Gaussian noise; under Laplace noise, the best near those before."""
        if self._norm == 2:
            return best_weights(demand, 2, self._effort, None)
        marginals = ListedMarginals(demand, before.marginals.sets)
        return settle(marginals, before.weights, 1, self._effort, iterations=_ITERATIONS, tolerance=1e-6)

    def _improve(self, i: int, best: WeightedMarginals) -> WeightedMarginals:
        """Try bases for one attribute, from little to much weight on totals; the best weights then."""
        demand = self.demand()
        precisions = ListedMarginals(demand, best.marginals.sets).precisions(best.weights**2)
        weights = 1 / precisions[np.searchsorted(demand.sets, self._numbers)]
        slopes = self.subsets.slopes(i, weights, [base.errors for base in self._bases])
        demanded = self._demanded(i, slopes / slopes.max())
        scale = demanded.trace() / demanded.size
        few = demanded.size >= _MANY_CELLS or (self._large(i) and self._norm == 1)
        for share in _FEW_SHARES if few else _TOTAL_SHARES:
            base = self._base(i, self._opt0(_with_total(demanded, share * scale), i))
            if base is None:
                continue
            trial = [*self._bases[:i], base, *self._bases[i + 1 :]]
            weighted = self._reweighted(self.demand(trial), best)
            if weighted.error < best.error:
                best, self._bases = weighted, trial
            if self._effort.over:
                break
        return best

    def _demanded(self, i: int, shares: Array) -> AxisGram:
        """The sum of an attribute's Grams with these shares."""
        problem = self.subsets.problem
        if not self._large(i):
            return DenseGram(problem.added(shares, i))
        pairs = zip(shares.tolist(), problem.factors[i], strict=True)
        return SumGram(tuple((share, factor) for share, factor in pairs if share > 0))

    def _opt0(self, gram: AxisGram, i: int) -> Matrix:
        if self._norm == 2:
            return opt0_gaussian(gram, effort=self._effort).matrix
        if self._large(i):
            solution = opt0_hats(gram, effort=self._effort)
            return Identity(gram.size) if solution is None else solution.matrix
        before = self._bases[i].matrix
        effort = replace(self._effort, restarts=1 if isinstance(before, Identity) else 0)
        p = usual_queries(gram.size)
        return opt0_laplace(gram, p, effort=effort, start=before, iterations=_ITERATIONS).matrix

    def _base(self, i: int, matrix: Matrix) -> _Base | None:
        """An attribute's base; None if it does not distinguish all cells."""
        if isinstance(matrix, Identity):
            return self._identity(i)
        if isinstance(matrix, Solvable):
            return self._implicit_base(i, matrix)
        if self._large(i):
            return None
        A = matrix.dense()
        values = np.linalg.svd(A, compute_uv=False)
        if len(values) < A.shape[1] or values[-1] < _LEAST_SINGULAR_RATIO * values[0]:
            return None
        inverse = np.linalg.inv(A.T @ A)
        kappa = float(inverse.sum())
        f = inverse.sum(axis=1) / np.sqrt(kappa)
        errors = []
        for V in self.subsets.problem.written(i):
            on_total = float(f @ V @ f)
            errors.append((on_total / kappa, (float(np.sum(inverse * V)) - on_total) / kappa))
        return _Base(matrix, kappa, np.array(errors).T)

    def _implicit_base(self, i: int, matrix: Solvable) -> _Base | None:
        """The same for a base that is not written out."""
        n = matrix.shape[1]
        if not matrix.determines(IdentityGram(n)):
            return None
        sums = matrix.solve_t(np.ones(n))
        kappa = float(sums @ sums)
        f = matrix.solve(sums) / np.sqrt(kappa)
        factors = self.subsets.problem.factors[i]
        totals = np.array([f @ factor.apply(f) for factor in factors])
        rest = np.array([error(matrix, factor) for factor in factors]) - totals
        return _Base(matrix, kappa, np.stack([totals, rest]) / kappa)

    def _identity(self, i: int) -> _Base:
        n, factors = self.subsets.problem.sizes[i], self.subsets.problem.factors[i]
        totals = np.array([factor.total() / n for factor in factors])
        traces = np.array([factor.trace() for factor in factors])
        return _Base(Identity(n), float(n), np.stack([totals, traces - totals]) / n)

    def _large(self, i: int) -> bool:
        """Whether the attribute has too many cells for a base that is written out."""
        return self.subsets.problem.sizes[i] > _MAX_BASE_CELLS

    def _ordered(self, i: int) -> bool:
        """Whether the workload asks for sums over intervals of an attribute's cells, which need no written-out base."""
        return all(factor.as_squares() is not None for factor in self.subsets.problem.factors[i])

    def _all_distinct(self, i: int) -> bool:
        """Whether the workload distinguishes all cells of the attribute: a base must do so."""
        problem = self.subsets.problem
        first, _ = kinds_of_cells(DenseGram(problem.added(np.ones(len(problem.factors[i])), i)))
        return len(first) == problem.sizes[i]


def _with_total(gram: AxisGram, share: float) -> AxisGram:
    """The Gram with a share of the total's added to it."""
    if isinstance(gram, DenseGram):
        return DenseGram(gram.array + share)
    terms = gram.terms if isinstance(gram, SumGram) else ((1.0, gram),)
    return SumGram((*terms, (share, OnesGram(gram.size)))) if share else gram
