"""The tasks of a search: each lets one operator propose, from a few random starts, and judges what it found.

A task knows all that it needs, and nothing of the others, so that it may run anywhere: in this process, in another one,
or on another machine. What comes of a search does not depend on where its tasks ran, or on which was done first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import sqrt
from time import perf_counter
from typing import final

from hdmm._plan import REFERENCE, Candidate, excess, rmse
from hdmm.errors import BudgetError, TooLargeError
from hdmm.matrix import Norm
from hdmm.memory import check_memory
from hdmm.objective import Objective
from hdmm.operators.base import Operator, Proposal
from hdmm.operators.descent import Effort
from hdmm.operators.threads import one_thread
from hdmm.operators.worst import least_worst
from hdmm.privacy.calibrate import NORM, Calibration, NoiseKind, calibrate
from hdmm.privacy.unit import Unit
from hdmm.strategy import Strategy, joined
from hdmm.strategy.integer import round_strategy
from hdmm.workload import Encoded

_STARTS = 5
"""The most restarts of one task: of more, there are several."""
_SMALL = 512
"""Where no attribute has more cells than this, more than one thread for its matrices would only get in the way."""
_APART = 1_000_003
"""Between the seeds of two tasks of one operator."""


@final
@dataclass(frozen=True)
class Task:
    """An operator, how hard it is to search, and in how many rounds where the largest error counts."""

    operator: Operator
    effort: Effort
    rounds: int = 1

    @property
    def name(self) -> str:
        """What tells it from the other tasks of a search."""
        return f"{self.operator!r} from {self.effort.seed} with {self.effort.restarts} in {self.rounds}"


@final
@dataclass(frozen=True, eq=False)
class Found:
    """What came of a task: a strategy that can be measured, its error at the reference budget, the objective's value.

    Without a candidate, there was none to be found, or it was too large.
    """

    name: str
    operator: Operator
    strategy: Strategy | None = None
    error: float = 0.0
    """What is compared: the RMSE, or the root of the largest ratio."""
    value: float = 0.0
    bound: float | None = None
    candidate: Candidate | None = None
    refused: TooLargeError | None = None


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

    def run(self, task: Task) -> Found:
        """Let the operator propose, make that measurable, and tell its error; what is too large is refused."""
        largest = max((self.workload.sizes[axis] for axis in self.workload.axes), default=1)
        with one_thread() if largest <= _SMALL else nullcontext():
            return self._run(task)

    def _run(self, task: Task) -> Found:
        start = perf_counter()
        bound: float | None = None  # holds even if the strategy is too large to be measured
        try:
            proposal = self._propose(task)
            if proposal is None:
                return Found(task.name, task.operator)
            bound = proposal.bound
            check_memory(joined(proposal.strategy), self.workload, self.memory)
            rounded = round_strategy(proposal.strategy, self.workload, NORM[self.noise])
            if rounded is None:
                return Found(task.name, task.operator, bound=bound)
            strategy = rounded.strategy
            noise = self._noise(strategy)
            total = error = rmse(strategy, self.workload.products, noise)
            worst = None
            if self.objective.limits is not None:
                ratios = self.objective.ratios(strategy, self.workload, noise.variances)
                error = worst = sqrt(ratios.max())
            value = self.objective.value(strategy, self.workload, NORM[self.noise])
            value *= excess(strategy, self.noise, self.unit)
        except TooLargeError as refused:
            return Found(task.name, task.operator, bound=bound, refused=refused)
        seconds = perf_counter() - start
        candidate = Candidate(task.operator.name, total, seconds, None, task.effort.seed, worst, rounded.cost)
        return Found(task.name, task.operator, strategy, error, value, bound, candidate)

    def _noise(self, strategy: Strategy) -> Calibration:
        try:
            change = self.unit.change(strategy.blocks, NORM[self.noise])
            return calibrate(strategy.blocks, self.noise, REFERENCE[self.noise], change)
        except BudgetError as error:
            raise TooLargeError(str(error)) from None

    def _propose(self, task: Task) -> Proposal | None:
        norm = NORM[self.noise]
        if self.objective.limits is None:
            return task.operator.propose(self.workload, norm, task.effort)
        return least_worst(task.operator, self.workload, self.objective.limits, norm, task.effort, task.rounds)


def tasks_of(operators: Sequence[Operator], effort: Effort, norm: Norm) -> list[Task]:
    """A task for every operator, and for those that many random starts help, one for every few of them."""
    tasks = []
    for operator in operators:
        if not operator.random(norm) or effort.restarts <= _STARTS:
            tasks.append(Task(operator, effort))
            continue
        for number, start in enumerate(range(0, effort.restarts, _STARTS)):
            restarts, seed = min(_STARTS, effort.restarts - start), effort.seed + number * _APART
            tasks.append(Task(operator, replace(effort, restarts=restarts, seed=seed)))
    return tasks


def workers(jobs: int | None) -> int:
    """How many tasks run at the same time; without a number, as many as joblib was told of, else one."""
    if jobs == 1:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def run_all(judge: Judge, tasks: Sequence[Task], jobs: int | None) -> Iterator[Found]:
    """What comes of tasks, as they are done: in as many processes as there are jobs, or on the cluster of joblib."""
    if len(tasks) == 1 or workers(jobs) == 1:
        yield from map(judge.run, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="all")(
        delayed(judge.run)(task) for task in tasks
    )
