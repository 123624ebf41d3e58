"""OPT_⊗: one Kronecker product for the whole workload, optimised one attribute at a time (paper, section 6).

For a single product the attributes are independent, and a certificate of each makes one of all. For a union each
attribute in turn sees a surrogate Gram; attributes with two scalars are optimised jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import final

import numpy as np

from hdmm.demand.kron_loss import Problem
from hdmm.errors import TooLargeError
from hdmm.estimators.inverse import error
from hdmm.matrix import DENSE_LIMIT, Array, AxisGram, Identity, Matrix, Norm
from hdmm.matrix.axis_gram import RowsGram, SelectedGram, SumGram
from hdmm.operators.base import Aside, Operator, Proposal, Solution, WorstCase
from hdmm.operators.minimax.explicit import worst_product
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.opt0.laplace import opt0_laplace, usual_queries
from hdmm.operators.opt0.two_scalars import TwoScalars
from hdmm.optimise.descent import DEFAULT, Effort, descend
from hdmm.strategy import Block, Strategy
from hdmm.text import count_text
from hdmm.workload import Encoded

_MOST = 1 << 400
"""The most cells: the errors of more would overflow."""
_FEWEST, _FEW, _ROUNDS = 2, 3, 25
_ENOUGH = 1e-5
"""A round that improves the loss by less than this ratio is the last."""
_KEPT = 2
"""How many of the starts go on after the first rounds."""
_FAR = 2.0
"""How much larger than the loss to beat a loss may be for the search to go on."""
_QUICKEST, _QUICK, _ITERATIONS = 30, 60, 500
"""Steps of a descent on one attribute: for a rough answer, in the first rounds, and then."""
_LIGHT = 1e-3
_HEAVY = (0.5, 0.9, 0.1)
"""Weights of the totals to start from."""


@final
@dataclass(frozen=True)
class Kron(Operator, WorstCase):
    """Measure one Kronecker product. ``p`` is the number of extra queries on an attribute, by default its size / 16."""

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
        if cells > _MOST:
            raise TooLargeError(
                f"one strategy for {count_text(cells)} cells over {len(axes)} attributes is out of reach: "
                "ask for products of fewer attributes, or declare coarser domains"
            )
        problem = Problem(workload.compact.gram(), axes)
        solved = solve(problem, norm, effort, self.p, self.restarts, alone=len(axes) == 1)
        return Proposal(Strategy(workload.sizes, (Block(axes, tuple(solved.factors)),), "kron"), solved.bound)

    def propose_worst(
        self, workload: Encoded, limits: Sequence[float | None], norm: Norm, effort: Effort
    ) -> Proposal | None:
        return worst_product(workload, limits, effort) if norm == 2 and len(workload.products) == 1 else None


@final
@dataclass(frozen=True, eq=False)
class Solved:
    """A Kronecker strategy of sensitivity 1: its factors, the errors of every Gram factor under them, and its loss."""

    factors: list[Matrix]
    errors: list[Array]
    loss: float
    bound: float | None = None
    """A proved lower bound on the loss of every strategy."""


def solve(
    problem: Problem,
    norm: Norm,
    effort: Effort,
    p: int | None = None,
    restarts: int | None = None,
    *,
    alone: bool = False,
) -> Solved:
    """The best of several descents, most of them short; the attributes of a single product need only one each."""
    if len(problem.coefficients) == 1 or len(problem.axes) == 1:
        return _independent(problem, norm, effort, p, alone)
    starts = 1 + (effort.restarts if restarts is None else restarts)
    if effort.quick:
        return _Descent(problem, norm, effort, p, 0).run(_FEWEST, _QUICKEST).solved()
    tried: list[_Descent] = []
    for start in range(max(starts, len(_HEAVY))):
        if tried and effort.over:
            break
        tried.append(_Descent(problem, norm, effort, p, start).run(_FEW, _QUICK))
    tried.sort(key=lambda one: one.loss)
    if tried[0].loss < _FAR * effort.beat:
        for one in tried[:_KEPT]:
            one.run(_ROUNDS, _QUICK, widely=False)
        best = min(tried, key=lambda one: one.loss)
        return best.run(_ROUNDS, _ITERATIONS).solved()
    return tried[0].solved()


def _independent(problem: Problem, norm: Norm, effort: Effort, p: int | None, alone: bool) -> Solved:
    """One term, or one attribute: the loss is a product over the attributes, and so is its lower bound."""
    errors = [np.ones(len(factors)) for factors in problem.factors]
    factors: list[Matrix] = []
    bounds: list[float | None] = []
    for place in range(len(problem.axes)):
        gram = problem.surrogate(errors, place)  # on one attribute the whole Gram, otherwise this attribute's alone
        iterations = _QUICKEST if effort.quick else _ITERATIONS
        solution = _opt0(gram, norm, effort, p, Identity(gram.size), iterations, alone=alone)
        factors.append(solution.matrix)
        bounds.append(solution.bound)
    errors = [
        np.array([error(factor, gram) for gram in grams])
        for factor, grams in zip(factors, problem.factors, strict=True)
    ]
    known = [bound for bound in bounds if bound is not None]
    scale = problem.coefficients[0] ** (1 - len(problem.axes)) if len(problem.coefficients) == 1 else 1.0
    bound = float(scale * np.prod(known)) if len(known) == len(bounds) else None
    return Solved(factors, errors, problem.loss(errors), bound)


@final
class _Descent:
    """The factors that one start has led to, improved one attribute after the other, the two-scalar ones together."""

    def __init__(self, problem: Problem, norm: Norm, effort: Effort, p: int | None, start: int) -> None:
        self._problem = problem
        self._norm: Norm = norm
        self._effort = effort
        self._p = p
        self._start = start
        pairs = zip(problem.sizes, problem.even, strict=True)
        self._evens = [None if pair is None else TwoScalars(size, norm) for size, pair in pairs]
        count = len(problem.axes)
        random = effort.random(start)
        self._weights = np.full(count, _HEAVY[start]) if start < len(_HEAVY) else random.uniform(0.05, 0.95, count)
        self._factors: list[Matrix] = [Identity(size) for size in problem.sizes]
        self._errors = [np.array([factor.trace() for factor in given]) for given in problem.factors]
        for place, even in enumerate(self._evens):
            if even is not None:
                self._errors[place] = _even_errors(problem, place, even, self._weights[place])

    @property
    def loss(self) -> float:
        """The loss reached."""
        return self._problem.loss(self._errors)

    def run(self, rounds: int, iterations: int, *, widely: bool = True) -> _Descent:
        """Go on until nothing moves; the first round may look beyond what is near, too."""
        before = np.inf
        for turn in range(rounds):
            for place, even in enumerate(self._evens):
                if even is None:
                    self._improve(place, widely and turn == 0, iterations)
            self._weights = _joint(self._problem, self._evens, self._errors, self._weights, self._effort)
            if not self.loss < before * (1 - _ENOUGH) or self._effort.over:
                break
            before = self.loss
        return self

    def solved(self) -> Solved:
        """What was reached."""
        pairs = zip(self._factors, self._evens, self._weights, strict=True)
        factors = [factor if even is None else even.matrix(weight) for factor, even, weight in pairs]
        return Solved(factors, self._errors, self.loss)

    def _improve(self, place: int, widely: bool, iterations: int) -> None:
        gram = self._problem.surrogate(self._errors, place)
        effort = self._effort
        inner = replace(effort, restarts=effort.restarts if widely else 0, seed=effort.seed + self._start)
        solution = _opt0(gram, self._norm, inner, self._p, self._factors[place], iterations)
        self._factors[place] = solution.matrix
        self._errors[place] = np.array([error(solution.matrix, factor) for factor in self._problem.factors[place]])


def _opt0(
    gram: AxisGram, norm: Norm, effort: Effort, p: int | None, before: Matrix, iterations: int, *, alone: bool = False
) -> Solution:
    """The best strategy for one attribute, from the one before; more is tried for an attribute that is alone."""
    if isinstance(gram, RowsGram) and not _roundable(gram):
        return _counts(gram)
    if norm == 2:
        solution = opt0_gaussian(gram, effort=effort)
        return solution if _measurable(solution.matrix) else replace(_counts(gram), bound=solution.bound)
    if not _roundable(gram):
        return _counts(gram)
    if p is None and not alone and gram.two_eigenvalues() is None:
        p = usual_queries(gram.size)
    warm = None if isinstance(before, Identity) else before
    solution = opt0_laplace(gram, p, effort=effort, start=warm, iterations=iterations)
    return solution if _measurable(solution.matrix) else _counts(gram)


def _measurable(matrix: Matrix) -> bool:
    """Whether a strategy can be rounded to integers, for which it is written out."""
    return matrix.dtype.kind == "i" or matrix.shape[0] * matrix.shape[1] <= DENSE_LIMIT


def _counts(gram: AxisGram) -> Solution:
    """Every cell by itself: what is left for an attribute of too many cells."""
    return Solution(Identity(gram.size), gram.trace())


def _roundable(gram: AxisGram) -> bool:
    """Whether an optimised strategy can be, before it is searched for."""
    return gram.size**2 <= DENSE_LIMIT or _least_queries(gram) * gram.size <= DENSE_LIMIT


def _least_queries(gram: AxisGram) -> int:
    """How many queries an optimised strategy has at least: one for each cell that the workload tells apart."""
    match gram:
        case SumGram(terms=((_, only),)):
            return _least_queries(only)
        case SelectedGram():
            return len(gram.columns)
        case RowsGram():  # cells that are alike share a column
            mixed = (np.cos(np.arange(len(gram.rows)))[:, None] * gram.rows).sum(axis=0)  # equal where columns are
            return len(np.unique(mixed))
    return 1 if gram.two_eigenvalues() is not None else gram.size


def _joint(
    problem: Problem, evens: Sequence[TwoScalars | None], errors: list[Array], weights: Array, effort: Effort
) -> Array:
    """Optimise the two-scalar attributes together; their errors are updated in place."""
    places = [place for place, even in enumerate(evens) if even is not None]
    if not places:
        return weights

    def objective(x: Array) -> tuple[float, Array]:
        t = _weights(x)
        trial, slopes = list(errors), []
        for i, place in enumerate(places):
            even, pairs = evens[place], problem.even[place]
            assert even is not None
            assert pairs is not None
            trial[place], slope = even.errors(t[i], pairs)
            slopes.append(slope)
        loss = problem.loss(trial)
        gradient = [problem.shares(trial, place) @ slope for place, slope in zip(places, slopes, strict=True)]
        # The logarithm is better scaled: losses span many orders of magnitude.
        return float(np.log(loss)), np.array(gradient) / loss * t * (1 - t)

    clipped = np.clip(weights[places], 1e-6, 1 - 1e-6)
    found = descend(objective, np.log(clipped / (1 - clipped)), lower=None, iterations=300, effort=effort)
    updated = weights.copy()
    updated[places] = _weights(found.point)
    for place in places:
        even = evens[place]
        assert even is not None
        errors[place] = _even_errors(problem, place, even, updated[place])
        if updated[place] < _LIGHT:  # a total of no weight at all is out of the descent's reach
            without = [*errors[:place], _even_errors(problem, place, even, 0.0), *errors[place + 1 :]]
            if problem.loss(without) <= problem.loss(errors):
                updated[place], errors[place] = 0.0, without[place]
    return updated


def _weights(x: Array) -> Array:
    """Numbers between 0 and 1 from any numbers; the ends themselves are never reached."""
    return 1 / (1 + np.exp(-np.clip(x, -20, 20)))


def _even_errors(problem: Problem, place: int, even: TwoScalars, t: float) -> Array:
    pairs = problem.even[place]
    assert pairs is not None
    return even.errors(float(t), pairs)[0]
