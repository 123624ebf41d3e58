"""OPT_⊗: one Kronecker product for the whole workload, optimised one attribute at a time (paper, section 6).

The attributes of a single product are independent, and their certificates multiply to one for the product. For a union
each attribute in turn is optimised for a surrogate Gram; attributes with two scalars are optimised jointly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import final

import numpy as np

from hdmm.demand.kron_loss import Problem
from hdmm.errors import TooLargeError
from hdmm.estimators.inverse import error
from hdmm.matrix import DENSE_LIMIT, Array, AxisGram, Hats, Identity, Matrix, Norm, PIdentity, Solvable
from hdmm.matrix.axis_gram import RowsGram, SelectedGram, SumGram
from hdmm.operators.base import Aside, Limits, Operator, Proposal, Solution, WorstCase
from hdmm.operators.merged_cells import merged_cells
from hdmm.operators.minimax.explicit import worst_product
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.opt0.hats import opt0_hats
from hdmm.operators.opt0.laplace import opt0_laplace, usual_queries
from hdmm.operators.opt0.two_scalars import TwoScalars
from hdmm.optimise.descent import DEFAULT, Effort, descend
from hdmm.strategy import Block, Strategy
from hdmm.text import count_text
from hdmm.workload import Encoded

_MAX_CELLS = 1 << 400
"""With more cells, errors would overflow."""
_QUICK_ROUNDS = 2
"""Rounds for a rough answer."""
_FIRST_ROUNDS = 3
"""Rounds from every start."""
_MAX_ROUNDS = 25
"""Rounds from the starts that go on."""
_LEAST_GAIN = 1e-5
"""A round that improves the loss by less than this ratio is the last."""
_KEPT = 2
"""How many of the starts go on after the first rounds."""
_MAX_EXCESS = 2.0
"""The search goes on only if its loss is less than this many times the loss to beat."""
_QUICK_ITERATIONS = 30
"""Steps of a descent on one attribute for a rough answer."""
_FIRST_ITERATIONS = 60
"""Steps of a descent on one attribute while starts compete."""
_ITERATIONS = 500
"""Steps of a descent on one attribute from the best start."""
_MIN_HAT_CELLS = 1 << 10
"""With fewer cells, p-Identity strategies are found in seconds, and are better than pyramids of hats."""
_MAX_DENSE_CELLS = 6 << 10
"""With more cells, pyramids of hats are about as good as the p-Identity strategies that are found, or better."""
_MAX_KINDS = 1 << 9
"""A workload that distinguishes so few kinds of cells is optimised over these."""
_LIGHT_TOTAL = 1e-3
"""Totals of less weight are left out if that is not worse."""
_INITIAL_TOTALS = (0.5, 0.9, 0.1)
"""Weights of the totals to start from."""


@final
@dataclass(frozen=True)
class Kron(Operator, WorstCase):
    """Measure one Kronecker product. ``p`` is the number of extra queries on an attribute, by default its size / 16.

    OPT_⊗ in the paper. Choose it for a single product, or for products that ask about the same attributes.

    Arguments:
        restarts: Random starts (default: those of the search).
        p: Extra queries on each attribute under Laplace noise (default: its size / 16).
    """

    restarts: int | None = None
    p: int | None = None

    def random(self, norm: Norm) -> bool:
        return self.restarts is None

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best Kronecker product found, unless only totals are asked for."""
        axes = workload.axes
        if not axes:
            return Aside("only totals are asked for: there is nothing to optimise")
        cells = prod(workload.sizes[axis] for axis in axes)
        if cells > _MAX_CELLS:
            raise TooLargeError(
                f"one strategy for {count_text(cells)} cells over {len(axes)} attributes is out of reach: "
                "ask for products of fewer attributes, or declare coarser domains"
            )
        problem = Problem(workload.compact.gram(), axes)
        solution = solve_kron(problem, norm, effort, self.p, self.restarts, alone=len(axes) == 1)
        return Proposal(Strategy(workload.sizes, (Block(axes, tuple(solution.factors)),), "kron"), solution.bound)

    def propose_worst(self, workload: Encoded, limits: Limits, norm: Norm, effort: Effort) -> Proposal | None:
        return worst_product(workload, limits, effort) if norm == 2 and len(workload.products) == 1 else None


@final
@dataclass(frozen=True, eq=False)
class KronSolution:
    """A Kronecker strategy of sensitivity 1: its factors, and its loss."""

    factors: list[Matrix]
    loss: float
    bound: float | None = None
    """A proved lower bound on the loss of every strategy."""


def solve_kron(
    problem: Problem,
    norm: Norm,
    effort: Effort,
    p: int | None = None,
    restarts: int | None = None,
    *,
    alone: bool = False,
) -> KronSolution:
    """The best of several descents, most of them short; the attributes of a single product need only one each."""
    if len(problem.coefficients) == 1 or len(problem.axes) == 1:
        return _independent(problem, norm, effort, p, alone)
    if effort.quick:
        return _Descent(problem, norm, effort, p, 0).run(_QUICK_ROUNDS, _QUICK_ITERATIONS).solution()
    starts = 1 + (effort.restarts if restarts is None else restarts)
    descents: list[_Descent] = []
    for start in range(max(starts, len(_INITIAL_TOTALS))):
        if descents and effort.over:
            break
        descents.append(_Descent(problem, norm, effort, p, start).run(_FIRST_ROUNDS, _FIRST_ITERATIONS))
    descents.sort(key=lambda descent: descent.loss)
    if not descents[0].loss < _MAX_EXCESS * effort.beat:
        return descents[0].solution()
    for descent in descents[:_KEPT]:
        descent.run(_MAX_ROUNDS, _FIRST_ITERATIONS, restarted=False)
    best = min(descents, key=lambda descent: descent.loss)
    return best.run(_MAX_ROUNDS, _ITERATIONS).solution()


def _independent(problem: Problem, norm: Norm, effort: Effort, p: int | None, alone: bool) -> KronSolution:
    """One term, or one attribute: the loss is a product over the attributes, and so is its lower bound."""
    ones = [np.ones(len(grams)) for grams in problem.factors]
    iterations = _QUICK_ITERATIONS if effort.quick else _ITERATIONS
    solutions = []
    for place in range(len(problem.axes)):
        gram = problem.surrogate(ones, place)  # on one attribute the whole Gram, otherwise this attribute's alone
        solutions.append(_opt0(gram, norm, effort, p, Identity(gram.size), iterations, alone=alone))
    factors = [solution.matrix for solution in solutions]
    pairs = zip(factors, problem.factors, strict=True)
    loss = problem.loss([np.array([error(factor, gram) for gram in grams]) for factor, grams in pairs])
    bounds = [solution.bound for solution in solutions if solution.bound is not None]
    if len(bounds) < len(solutions):
        return KronSolution(factors, loss)
    scale = problem.coefficients[0] ** (1 - len(problem.axes)) if len(problem.coefficients) == 1 else 1.0
    return KronSolution(factors, loss, float(scale * np.prod(bounds)))


@final
class _Descent:
    """The factors that one start has led to, improved one attribute after the other, the two-scalar ones together."""

    def __init__(self, problem: Problem, norm: Norm, effort: Effort, p: int | None, start: int) -> None:
        self._problem = problem
        self._norm: Norm = norm
        self._effort = effort
        self._p = p
        self._start = start
        self._scalars = _two_scalars(problem, norm)
        count = len(problem.axes)
        if start < len(_INITIAL_TOTALS):
            self._weights = np.full(count, _INITIAL_TOTALS[start])
        else:
            self._weights = effort.random(start).uniform(0.05, 0.95, count)
        self._factors: list[Matrix] = [Identity(size) for size in problem.sizes]
        self._errors = [np.array([gram.trace() for gram in grams]) for grams in problem.factors]
        for place, (scalars, eigenvalues) in self._scalars.items():
            self._errors[place] = scalars.errors(float(self._weights[place]), eigenvalues)[0]

    @property
    def loss(self) -> float:
        """The loss reached."""
        return self._problem.loss(self._errors)

    def run(self, rounds: int, iterations: int, *, restarted: bool = True) -> _Descent:
        """Go on until nothing moves; in the first round each attribute may also be searched from random starts."""
        before = np.inf
        for number in range(rounds):
            for place in range(len(self._factors)):
                if place not in self._scalars:
                    self._improve(place, restarted and number == 0, iterations)
            self._weights = _joint(self._problem, self._scalars, self._errors, self._weights, self._effort)
            if not self.loss < before * (1 - _LEAST_GAIN) or self._effort.over:
                break
            before = self.loss
        return self

    def solution(self) -> KronSolution:
        """The strategy reached."""
        factors = list(self._factors)
        for place, (scalars, _) in self._scalars.items():
            factors[place] = scalars.matrix(self._weights[place])
        return KronSolution(factors, self.loss)

    def _improve(self, place: int, restarted: bool, iterations: int) -> None:
        gram = self._problem.surrogate(self._errors, place)
        effort = self._effort
        inner = replace(effort, restarts=effort.restarts if restarted else 0, seed=effort.seed + self._start)
        solution = _opt0(gram, self._norm, inner, self._p, self._factors[place], iterations)
        self._factors[place] = solution.matrix
        self._errors[place] = np.array([error(solution.matrix, factor) for factor in self._problem.factors[place]])


_Scalars = Mapping[int, tuple[TwoScalars, Array]]
"""The attributes with two scalars, by place, and the two eigenvalues of each of their Grams."""


def _two_scalars(problem: Problem, norm: Norm) -> _Scalars:
    pairs = enumerate(zip(problem.sizes, problem.even, strict=True))
    return {place: (TwoScalars(size, norm), values) for place, (size, values) in pairs if values is not None}


def _opt0(
    gram: AxisGram, norm: Norm, effort: Effort, p: int | None, before: Matrix, iterations: int, *, alone: bool = False
) -> Solution:
    """The best strategy for one attribute, starting from the one before; an attribute alone is searched harder."""
    merged = merged_cells(gram)
    if merged is not None:
        if not merged.searched:
            return merged.counts
        groups = Identity(merged.gram.size)
        return merged.expanded(_opt0(merged.gram, norm, effort, p, groups, iterations, alone=alone))
    if norm == 2:
        if isinstance(gram, RowsGram) and not _roundable(gram):
            return _counts(gram)
        try:
            solution = opt0_gaussian(gram, effort=effort)
        except TooLargeError:
            return _counts(gram)
        return solution if _measurable(solution.matrix) else replace(_counts(gram), bound=solution.bound)
    again = not effort.restarts and not isinstance(before, Identity)  # what was better before is searched on
    structured = None
    if _hats_fit(gram, p) and not (again and isinstance(before, PIdentity)):
        structured = opt0_hats(gram, effort=effort, start=before if isinstance(before, Hats) else None)
    if structured is not None and (gram.size > _MAX_DENSE_CELLS or (again and isinstance(before, Hats))):
        return min((structured, _counts(gram)), key=lambda solution: solution.error)
    if not _roundable(gram):
        return _counts(gram)
    if p is None and not alone and gram.two_eigenvalues() is None:
        p = usual_queries(gram.size)
    start = Identity(gram.size) if isinstance(before, Hats) else before
    solution = opt0_laplace(gram, p, effort=effort, start=start, iterations=iterations)
    if structured is not None and structured.error < solution.error:
        return structured
    return solution if _measurable(solution.matrix) else _counts(gram)


def _hats_fit(gram: AxisGram, p: int | None) -> bool:
    """Whether hats are tried: for many cells, unless there are few kinds of them or a number of queries is given."""
    if gram.size < _MIN_HAT_CELLS or gram.two_eigenvalues() is not None:
        return False
    if _least_queries(gram) <= _MAX_KINDS:
        return False
    return p is None or not _roundable(gram)


def _measurable(matrix: Matrix) -> bool:
    """Whether a strategy keeps its structure when it is rounded to integers, or is small enough to be written out."""
    if isinstance(matrix, Solvable):
        return True
    return matrix.dtype.kind == "i" or matrix.shape[0] * matrix.shape[1] <= DENSE_LIMIT


def _counts(gram: AxisGram) -> Solution:
    """Every cell by itself: the strategy for an attribute of too many cells."""
    return Solution(Identity(gram.size), gram.trace())


def _roundable(gram: AxisGram) -> bool:
    """Whether an optimised strategy may be small enough to be rounded; checked before the search."""
    return gram.size**2 <= DENSE_LIMIT or _least_queries(gram) * gram.size <= DENSE_LIMIT


def _least_queries(gram: AxisGram) -> int:
    """The least number of queries of an optimised strategy: one for each cell that the workload distinguishes."""
    match gram:
        case SumGram(terms=((_, term),)):
            return _least_queries(term)
        case SelectedGram():
            return len(gram.columns)
        case RowsGram():  # equal cells share a column; hashes of equal columns are equal
            hashes = (np.cos(np.arange(len(gram.rows)))[:, None] * gram.rows).sum(axis=0)
            return len(np.unique(hashes))
    return 1 if gram.two_eigenvalues() is not None else gram.size


def _joint(problem: Problem, scalars: _Scalars, errors: list[Array], weights: Array, effort: Effort) -> Array:
    """Optimise the two-scalar attributes together; their errors are updated in place."""
    places = list(scalars)
    if not places:
        return weights

    def objective(x: Array) -> tuple[float, Array]:
        t = _sigmoid(x)
        trial, slopes = list(errors), []
        for weight, (place, (strategy, eigenvalues)) in zip(t, scalars.items(), strict=True):
            trial[place], slope = strategy.errors(weight, eigenvalues)
            slopes.append(slope)
        loss = problem.loss(trial)
        gradient = [problem.shares(trial, place) @ slope for place, slope in zip(places, slopes, strict=True)]
        # The logarithm is better scaled: losses span many orders of magnitude.
        return float(np.log(loss)), np.array(gradient) / loss * t * (1 - t)

    clipped = np.clip(weights[places], 1e-6, 1 - 1e-6)
    end = descend(objective, np.log(clipped / (1 - clipped)), lower=None, iterations=300, effort=effort)
    updated = weights.copy()
    updated[places] = _sigmoid(end.point)
    for place, (strategy, eigenvalues) in scalars.items():
        errors[place] = strategy.errors(float(updated[place]), eigenvalues)[0]
        if updated[place] < _LIGHT_TOTAL:  # descent cannot reach a weight of zero
            without = [*errors[:place], strategy.errors(0.0, eigenvalues)[0], *errors[place + 1 :]]
            if problem.loss(without) <= problem.loss(errors):
                updated[place], errors[place] = 0.0, without[place]
    return updated


def _sigmoid(x: Array) -> Array:
    """Numbers between 0 and 1, both excluded, from any numbers."""
    return 1 / (1 + np.exp(-np.clip(x, -20, 20)))
