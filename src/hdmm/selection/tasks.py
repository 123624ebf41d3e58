"""The tasks of a search: each lets one operator propose, from a few random starts, and judges what it found.

A task knows all that it needs, and nothing of the others, so that it may run anywhere: in this process, in another one,
or on another machine. The result of a search does not depend on where its tasks ran, or on which was done first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod, sqrt
from time import perf_counter
from typing import Any, final
from warnings import warn

from hdmm import baselines
from hdmm.accuracy.predict import rmse
from hdmm.errors import BudgetError, InputError, TooLargeError
from hdmm.estimators.estimator import LinearEstimator
from hdmm.estimators.least_squares import least_squares
from hdmm.matrix import Norm
from hdmm.memory import memory_allowed
from hdmm.objective import Objective
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.operators.minimax.search import least_worst
from hdmm.optimise.descent import Effort
from hdmm.parallel import one_blas_thread
from hdmm.plans import Candidate
from hdmm.plans.footprint import check_memory, remedy
from hdmm.plans.notes import counted_reason, counted_values
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import NORM, NoiseKind, calibrate, unit_variance
from hdmm.privacy.unit import Unit
from hdmm.selection.quantise import quantise
from hdmm.strategy import Strategy
from hdmm.workload import Encoded

_MAX_STARTS = 5
"""The most restarts of one task; more are shared among several."""
_MAX_SMALL_CELLS = 512
"""If no attribute has more cells than this, one thread is faster than several."""
_COUNTING = (baselines.Identity, baselines.Marginals)
"""Operators that count value by value by definition."""
_SEED_STEP = 1_000_003
"""The difference between the seeds of two tasks of one operator."""


@final
@dataclass(frozen=True)
class Task:
    """An operator, the effort of its search, and the rounds of it if the largest error counts."""

    operator: Operator
    effort: Effort
    rounds: int = 1

    @property
    def name(self) -> str:
        """Identifies the task within its search."""
        return f"{self.operator!r} from {self.effort.seed} with {self.effort.restarts} in {self.rounds}"


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a task: a strategy that can be measured, its errors and the objective's value.

    Without a candidate there is the reason why the operator has none.
    """

    name: str
    operator: Operator
    strategy: Strategy | None = None
    score: float = 0.0
    """What is compared: the error, on the geometric mean over the budgets."""
    value: float = 0.0
    bound: float | None = None
    candidate: Candidate | None = None
    reason: str | None = None
    refused: bool = False
    """Whether the reason is that it would not fit."""


@final
@dataclass(frozen=True, eq=False)
class Judge:
    """What every task must know of the search."""

    workload: Encoded
    noise: NoiseKind
    unit: Unit
    objective: Objective
    memory: int
    """Bytes that a release may use."""
    budgets: tuple[Budget, ...]
    """Where candidates are compared; their errors are listed at the first of them."""

    def run(self, task: Task) -> Outcome:
        """Let the operator propose a strategy, round it to integer queries, and compute its error.

        What is too large is refused. A fault in one operator does not end the search: there is a warning, and the
        others go on.
        """
        largest = max((self.workload.sizes[axis] for axis in self.workload.axes), default=1)
        try:
            with memory_allowed(self.memory), one_blas_thread() if largest <= _MAX_SMALL_CELLS else nullcontext():
                return self._run(task)
        except InputError:  # a mistake in the operator's own arguments
            raise
        except Exception as error:
            reason = f"an internal error ({type(error).__name__}: {error}); please report the spec"
            warn(f"{task.operator.name}: {reason}", RuntimeWarning, stacklevel=2)
            return Outcome(task.name, task.operator, reason=reason)

    def _run(self, task: Task) -> Outcome:
        start = perf_counter()
        bound: float | None = None  # holds even if the strategy is too large to be measured
        try:
            proposal = self._propose(task)
            if isinstance(proposal, Aside):
                return Outcome(task.name, task.operator, bound=proposal.bound, reason=proposal.reason)
            bound = proposal.bound
            check_memory(least_squares(proposal.strategy), self.workload)
            quantised = quantise(proposal.strategy, self.workload, NORM[self.noise], self.objective)
            if isinstance(quantised, str):
                return Outcome(task.name, task.operator, bound=bound, reason=quantised)
            estimator = quantised.estimator
            total, worst = self._errors(estimator, self.budgets[0])
            error = total if worst is None else worst
            value = self.objective.value(estimator, self.workload, NORM[self.noise])
            value *= self.unit.excess(estimator.blocks, NORM[self.noise])
        except MemoryError:
            reason = f"{task.operator.name} ran out of memory; {remedy()}"
            return Outcome(task.name, task.operator, bound=bound, reason=reason, refused=True)
        except TooLargeError as refusal:
            return Outcome(task.name, task.operator, bound=bound, reason=str(refusal), refused=True)
        seconds = perf_counter() - start
        counted = [] if isinstance(task.operator, _COUNTING) else counted_values(estimator.strategy, self.workload)
        named = counted_reason(counted, self.workload)
        seed, cost = task.effort.seed, quantised.cost
        candidate = Candidate(task.operator.name, total, seconds, None, seed, worst, cost, named)
        score = geometric_mean([error, *(self._error_at(estimator, budget, error) for budget in self.budgets[1:])])
        return Outcome(task.name, task.operator, estimator.strategy, score, value, bound, candidate)

    def _error_at(self, estimator: LinearEstimator[Any], budget: Budget, first_error: float) -> float:
        """The error that is compared, at another budget than the first."""
        try:
            total, worst = self._errors(estimator, budget)
        except TooLargeError:  # noise too large to be added, which is no reason to refuse the strategy at other budgets
            return first_error * sqrt(unit_variance(self.noise, budget) / unit_variance(self.noise, self.budgets[0]))
        return total if worst is None else worst

    def _errors(self, estimator: LinearEstimator[Any], budget: Budget) -> tuple[float, float | None]:
        """The RMSE at a budget; and the root of the objective if that is not the total error."""
        try:
            blocks = estimator.blocks
            noise = calibrate(blocks, self.noise, budget, self.unit.change(blocks, NORM[self.noise]))
        except BudgetError as error:
            raise TooLargeError(str(error)) from None
        total = rmse(estimator, self.workload.products, noise)
        if self.objective.limits is None:
            return total, None
        return total, sqrt(self.objective.ratios(estimator, self.workload, noise.variances).max())

    def _propose(self, task: Task) -> Proposal | Aside:
        norm = NORM[self.noise]
        if self.objective.limits is None:
            return task.operator.propose(self.workload, norm, task.effort)
        return least_worst(task.operator, self.workload, self.objective.limits, norm, task.effort, task.rounds)


def geometric_mean(errors: Sequence[float]) -> float:
    """The geometric mean: a candidate that errs twice as much at one budget, and half as much at another, is equal."""
    return prod(errors) ** (1 / len(errors))


def tasks_of(operators: Sequence[Operator], effort: Effort, norm: Norm) -> list[Task]:
    """A task for every operator; for those with random starts, one for every few of them."""
    tasks = []
    for operator in operators:
        if not operator.random(norm) or effort.restarts <= _MAX_STARTS:
            tasks.append(Task(operator, effort))
            continue
        for number, start in enumerate(range(0, effort.restarts, _MAX_STARTS)):
            restarts, seed = min(_MAX_STARTS, effort.restarts - start), effort.seed + number * _SEED_STEP
            tasks.append(Task(operator, replace(effort, restarts=restarts, seed=seed)))
    return tasks


def workers(jobs: int | None) -> int:
    """How many tasks run at the same time; without a number, as many as joblib is configured for, else one."""
    if jobs == 1:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def run_all(judge: Judge, tasks: Sequence[Task], jobs: int | None) -> Iterator[Outcome]:
    """The outcomes of tasks as they finish: in as many processes as there are jobs, or on the cluster of joblib."""
    if len(tasks) == 1 or workers(jobs) == 1:
        yield from map(judge.run, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="all")(
        delayed(judge.run)(task) for task in tasks
    )
