"""The search: operators in stages, the best candidate so far, and what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt
from typing import TYPE_CHECKING, final

from hdmm import baselines, operators
from hdmm.bounds import svd_bound
from hdmm.errors import InputError, TooLargeError
from hdmm.matrix import Norm
from hdmm.operators.base import Operator
from hdmm.operators.lower_bound import workload_bound
from hdmm.operators.residual_along import long_axis
from hdmm.operators.residual_search import MANY_CELLS
from hdmm.optimise.descent import Effort
from hdmm.plans import Candidate
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import NORM, NoiseKind, unit_variance
from hdmm.progress import OnProgress, Progress
from hdmm.selection.tasks import Judge, Outcome, Task, geometric_mean, run_all, tasks_of, workers
from hdmm.workload import Encoded

if TYPE_CHECKING:
    from hdmm.selection.checkpoint import Checkpoint

Stages = tuple[tuple[Operator, ...], ...]
"""Operators in the order in which they are tried; those of one stage may run at the same time."""

_SIMPLE: tuple[Operator, ...] = (baselines.Identity(), baselines.Plain())
_ONE_ATTRIBUTE: Stages = (_SIMPLE, (operators.Explicit(),))
_SEVERAL_ATTRIBUTES: dict[NoiseKind, Stages] = {
    "laplace": (
        (*_SIMPLE, baselines.Marginals(), operators.Marginal()),
        (operators.MarginalPlus(), operators.Union(), operators.Kron(), operators.Explicit()),
    ),
    "gaussian": (
        (operators.Symmetric(),),
        (operators.Residual(),),
        (operators.Explicit(), *_SIMPLE),
        (operators.Union(), operators.Kron()),
    ),
}
_FINAL: tuple[Operator, ...] = (*_SIMPLE, operators.Residual(), operators.Symmetric())
"""Operators that weights on the answers do not improve: they ignore them, or have found the best already."""
_REFINING_ROUNDS = 5
"""Rounds in which the best operator improves the largest error."""
_SETTLED = 1 + 1e-4
"""An error within this ratio of its lower bound leaves nothing to search for."""
_SETTLED_LARGEST = 1 + 1e-3
"""The same for the largest error, whose bounds are less tight."""


def default_stages(workload: Encoded, noise: NoiseKind) -> Stages:
    """The operators that are tried if none are given.

    Those of a stage may run at the same time. They know what the stages before have found, and are left out if that is
    proved to be the best there is. Under Gaussian noise residuals are at least as good as marginals, and the best for
    workloads of marginals; along one attribute of many cells they are at least as good as unions and products, too.
    """
    if len(workload.axes) == 1:
        return _ONE_ATTRIBUTE
    stages = _SEVERAL_ATTRIBUTES[noise]
    if noise == "gaussian" and max((workload.sizes[axis] for axis in workload.axes), default=0) > MANY_CELLS:
        if long_axis(workload.compact.gram()) is not None:
            return stages[:-1]
        stages = (*stages[:-1], (operators.MarginalPlus(), *stages[-1]))
    if noise == "gaussian" and _of_marginals(workload):
        return ((operators.Residual(),), *(stage for stage in stages if stage != (operators.Residual(),)))
    return stages


def _of_marginals(workload: Encoded) -> bool:
    """Whether every product asks for cells and totals only."""
    grams = {id(gram): gram for product in workload.products for gram in product.grams.values()}
    even = all(gram.two_eigenvalues() is not None for gram in grams.values())
    return even and all(product.condition is None for product in workload.products)


def known_bound(workload: Encoded, norm: Norm, stages: Stages) -> float | None:
    """The best lower bound on every strategy's loss that is known without a strategy.

    It is that of the reduced problem (docs/math.md, section 13), unless an operator of the stages solves it anyway.
    """
    asked = workload.compact if workload.same_gram else workload
    bound = svd_bound(asked.gram().on(workload.axes))
    solving = {operators.Explicit().name, operators.Symmetric().name}
    if norm == 2 and any(operator.name in solving for stage in stages for operator in stage):
        return bound
    dual = workload_bound(asked)
    return bound if dual is None else max(bound or 0.0, dual)


@final
class Search:
    """The best candidate so far, and what was tried."""

    def __init__(
        self,
        judge: Judge,
        jobs: int | None,
        on_progress: OnProgress | None,
        bound: float | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self._judge = judge
        self._jobs = jobs
        self._on_progress = on_progress
        self._checkpoint = checkpoint
        self.bound = self._bound = bound
        self._bounding = judge.objective.limits is not None or judge.workload.same_gram
        """Whether the bounds that operators find are about the workload itself."""
        self._refined: list[Task] = []
        self.best: Outcome | None = None
        self._order: dict[str, int] = {}
        """The tasks by name, in the order in which they are listed."""
        self._done: list[Outcome] = []

    def _settled(self, stage: Sequence[Operator], effort: Effort) -> bool:
        """Whether the best candidate before a stage is proved to be as good as any."""
        best, bound = self._before(self._tasks(stage, effort)[0])
        if bound is None or best is None:
            return False
        near = _SETTLED if self._judge.objective.limits is None else _SETTLED_LARGEST
        return best.score <= near * geometric_mean([self._least_error(bound, budget) for budget in self._judge.budgets])

    def _least_error(self, bound: float, budget: Budget) -> float:
        """The error at a budget that a bound on the loss implies."""
        judge = self._judge
        queries = judge.workload.query_count if judge.objective.limits is None else 1
        return sqrt(unit_variance(judge.noise, budget, judge.unit.rows) * bound / queries)

    def failure(self) -> InputError:
        """The error for a search without a candidate: why no operator has a strategy."""
        reasons = {outcome.operator.name: outcome for outcome in self._done if outcome.reason is not None}
        every = "; ".join(f"{name}: {outcome.reason}" for name, outcome in reasons.items())
        refused = [outcome for outcome in reasons.values() if outcome.refused]
        if refused:
            return TooLargeError(refused[0].reason if len(reasons) == 1 or len(refused) == len(reasons) else every)
        return InputError(f"none of the given operators has a strategy for this workload: {every}")

    def run_stages(self, stages: Stages, effort: Effort) -> None:
        """Run the stages, until the best candidate is proved to be as good as any, or the time is up."""
        self._recall(stages, effort)
        for stage in stages:
            if self.best is not None and (effort.over or self._settled(stage, effort)):
                break
            self._run_stage(stage, effort)
        self._refine(effort)

    def _run_stage(self, operators: Sequence[Operator], effort: Effort) -> None:
        """Let operators propose; what is too large to be proposed or judged is left out."""
        best, _ = self._before(self._tasks(operators, effort)[0])
        self._run(self._tasks(operators, replace(effort, beat=inf if best is None else best.value)))

    def _tasks(self, operators: Sequence[Operator], effort: Effort) -> list[Task]:
        return tasks_of(operators, effort, NORM[self._judge.noise])

    def _before(self, task: Task) -> tuple[Outcome | None, float | None]:
        """The best and the bound of all tasks before this one. After a crash more is known, which must not count."""
        done = [outcome for outcome in self._done if self._order[outcome.name] < self._order[task.name]]
        others = [outcome.bound for outcome in done] if self._bounding else []
        bounds = [bound for bound in (self._bound, *others) if bound is not None]
        best = min((outcome for outcome in done if outcome.candidate), key=self._rank, default=None)
        return best, max(bounds, default=None)

    def _recall(self, stages: Stages, effort: Effort) -> None:
        """Take what was found before from the checkpoint."""
        self._refined = [Task(operator, effort, _REFINING_ROUNDS) for stage in stages for operator in stage]
        for task in [*(task for stage in stages for task in self._tasks(stage, effort)), *self._refined]:
            self._order.setdefault(task.name, len(self._order))
            outcome = None if self._checkpoint is None else self._checkpoint.recall(task)
            if outcome is not None:
                self._keep(outcome)

    def _refine(self, effort: Effort) -> None:
        """If the largest error counts, let the best operator go on with weights on the answers that err most."""
        if self._judge.objective.limits is None or effort.over or not self._refined:
            return
        best, _ = self._before(self._refined[0])
        if best is not None and best.operator not in _FINAL:
            self._run([task for task in self._refined if task.operator == best.operator])

    def candidates(self) -> tuple[Candidate, ...]:
        """What was tried, in the order of the tasks, with how far from optimal it can be at most."""
        listed = sorted(self._done, key=lambda outcome: self._order[outcome.name])
        bound, refined = self.bound, {task.name for task in self._refined}
        return tuple(
            Candidate(outcome.operator.name, None, 0.0, None, reason=outcome.reason)
            if outcome.candidate is None
            else replace(outcome.candidate, certificate=outcome.value / bound - 1 if bound else None)
            for outcome in listed
            if outcome.candidate is not None or outcome.name not in refined
        )

    def _run(self, tasks: Sequence[Task]) -> None:
        done = {outcome.name for outcome in self._done}
        pending = [task for task in tasks if task.name not in done]
        alone = workers(self._jobs) == 1
        for task in pending[:1] if alone else pending:
            self._report(task.operator)
        for number, outcome in enumerate(run_all(self._judge, pending, self._jobs), 1):
            self._keep(outcome)
            if self._checkpoint is not None:
                self._checkpoint.add(outcome, self.best)
            if alone and self.best is not None and pending[0].effort.over:
                break
            if alone and number < len(pending):
                self._report(pending[number].operator)

    def _keep(self, outcome: Outcome) -> None:
        """Note what a task found, and keep it if it is the best; of equally good ones, the first in order."""
        self._done.append(outcome)
        if outcome.bound is not None and self._bounding:
            self.bound = max(self.bound or 0.0, outcome.bound)
        if outcome.candidate is not None and (self.best is None or self._rank(outcome) < self._rank(self.best)):
            self.best = outcome
        self._report(outcome.operator, outcome.candidate, outcome.reason)

    def _rank(self, outcome: Outcome) -> tuple[float, int]:
        return outcome.score, self._order[outcome.name]

    def _report(self, operator: Operator, candidate: Candidate | None = None, reason: str | None = None) -> None:
        if self._on_progress is None:
            return
        error = None if candidate is None else candidate.error
        best = None if self.best is None or self.best.candidate is None else self.best.candidate.error
        lowest = None if self.bound is None or best is None else self._least_error(self.bound, self._judge.budgets[0])
        self._on_progress(Progress(operator.name, error=error, best=best, bound=lowest, reason=reason))
