"""Selection (OPT_HDMM): run operators, keep the strategy with the least error. Data is out of reach from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod, sqrt
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, final, get_args

from hdmm import baselines, operators
from hdmm._plan import USUAL, Candidate, Plan, objective_of
from hdmm._select.tasks import Found, Judge, Task, geometric_mean, run_all, tasks_of, workers
from hdmm.bounds import svd_bound
from hdmm.errors import InputError, TooLargeError, WorkloadError
from hdmm.matrix import Norm
from hdmm.matrix.factors import DenseGram
from hdmm.matrix.workspace import memory_limit
from hdmm.memory import allowed, check_limit, check_workload
from hdmm.operators.base import Operator
from hdmm.operators.descent import Effort
from hdmm.operators.explicit import CELLS, Explicit
from hdmm.operators.gaussian import opt0_gaussian
from hdmm.operators.residual import Residual
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import NORM, NoiseKind, unit_variance
from hdmm.privacy.unit import Unit, check_unit
from hdmm.workload import Encoded, Workload
from hdmm.workload.spec import Aim
from hdmm.workload.targets import Target, read_targets

if TYPE_CHECKING:
    from hdmm._select.checkpoint import Checkpoint


@final
@dataclass(frozen=True)
class Progress:
    """What `on_progress` receives when an operator begins, and when it is done.

    Numbers are at the budget that was given, else at ε = 1 (Gaussian: δ = 1e-6).
    """

    operator: str
    rmse: float | None
    """The candidate's RMSE; None when the operator has only begun.

    Under ``objective="max"`` the largest weighted standard error, with targets the largest ratio of a margin to its.
    """
    best: float | None
    """The least so far."""
    bound: float | None
    """No strategy has a lower one."""
    interrupted: bool = False
    """Whether the search was cut short, and its best candidate so far is kept."""
    reason: str | None = None
    """Why the operator has no candidate."""


_SIMPLE: tuple[Operator, ...] = (baselines.Identity(), baselines.Plain())
Stages = tuple[tuple[Operator, ...], ...]
ONE: Stages = (_SIMPLE, (operators.Explicit(),))
SEVERAL: dict[NoiseKind, Stages] = {
    "laplace": (
        (*_SIMPLE, baselines.Marginals(), operators.Marginal()),
        (operators.MarginalPlus(), operators.Union(), operators.Kron(), operators.Explicit()),
    ),
    "gaussian": (
        (operators.Residual(),),
        (operators.Explicit(), *_SIMPLE),
        (operators.Union(), operators.Kron()),
    ),
}
"""What is tried where nothing is said, for workloads about one attribute and about several.

The operators of a stage may run at the same time; they know what the stages before have found, and are left out where
that is proved to be the best there is. Under Gaussian noise residuals are at least as good as marginals.
"""
_REFINED = 5
"""Rounds in which the best operator improves the largest error."""
_SETTLED = 1 + 1e-4
"""An error within this ratio of its lower bound leaves nothing to search for."""


def select(
    workload: Workload,
    noise: NoiseKind = "laplace",
    *,
    unit: Unit | None = None,
    objective: Aim = "total",
    targets: Mapping[str, str | Target] | None = None,
    budget: Budget | None = None,
    operators: Sequence[Operator] | None = None,
    restarts: int = 5,
    seed: int = 0,
    time_limit: float | None = None,
    jobs: int | None = None,
    checkpoint: str | Path | None = None,
    memory: str | int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Plan:
    """Choose what to measure for a workload: the strategy with the least predicted error.

    ``noise`` is "laplace" (pure ε) or "gaussian" (ε with δ, or ρ), and ``unit`` says what it protects: a row, or all
    that a person has. No data is needed and none can be given. The least error is that of all answers together, or
    with ``objective="max"`` the largest standard error of any answer. With ``targets``, such as
    ``{"by sex and age": "50@95%"}``, the plan is the one that meets them with the least budget, which
    :meth:`Plan.least_budget` tells. Noise on a computer moves in steps, so which strategy is best depends a little on
    the budget: with ``budget`` candidates are compared at just that one, without it over the usual range. More
    ``restarts`` search longer; after ``time_limit`` seconds, or at an interrupt, the best so far is kept. The same seed
    gives the same plan. An operator that does not apply, or fails, is listed with the reason in `Plan.candidates`.

    ``jobs`` processes share the search, by default one, −1 for all cores; within joblib's ``parallel_config`` it runs
    on a Dask, Ray or Spark cluster. What was found is kept in the file ``checkpoint``: the same search, called again
    after a crash, goes on from there. Strategies whose release would take more than ``memory``, such as "8GB", are not
    taken; by default that is half of the machine's.
    """
    stages = _checked(workload, noise, operators, restarts, seed, time_limit, jobs)
    chosen = [operator for stage in stages for operator in stage]
    wanted = read_targets(workload, targets or {})
    if objective not in get_args(Aim):
        raise InputError(f"objective={objective!r}: expected 'total' or 'max'")
    if wanted and objective != "total":
        raise InputError(f"objective={objective!r}: give an objective or targets, not both")
    if budget is not None:
        if not isinstance(budget, Budget):
            raise InputError(f'budget={budget!r}: expected a Budget, for example hdmm.Budget(epsilon="1")')
        if wanted:
            raise InputError("budget: give a budget or targets, not both; targets find the least budget")
        budget.check(noise)
    aim = objective_of(workload, objective, wanted)
    unit = Unit() if unit is None else unit
    if not isinstance(unit, Unit):
        raise InputError(f"unit={unit!r}: expected a Unit, for example hdmm.Unit(rows=1)")
    check_unit(unit, workload.schema)
    with allowed(memory):
        limit = memory_limit()
    check_limit(limit)
    encoded = workload.encoded
    check_workload(encoded, limit)
    effort = Effort(restarts, seed, None if time_limit is None else time() + time_limit)
    dual = not any(isinstance(operator, Explicit) for operator in chosen)
    bound = _bound(encoded, NORM[noise], dual=dual) if aim.limits is None else None
    kept = None
    if checkpoint is not None:
        from hdmm._select.checkpoint import Checkpoint, search_key

        words = [repr(operator) for operator in chosen]
        asked = limit if memory else None
        key = search_key(workload, noise, unit, objective, wanted, budget, words, restarts, seed, asked)
        kept = Checkpoint.open(Path(checkpoint), key, workload)
    budgets = USUAL[noise] if budget is None else (budget,)
    search = _Search(Judge(encoded, noise, unit, aim, limit, budgets), jobs, on_progress, bound, kept)
    try:
        search.recall(stages, effort)
        for stage in stages:
            if search.best is not None and (effort.over or search.settled(stage, effort)):
                break
            search.run(stage, effort)
        search.refine(effort)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        if on_progress is not None:
            on_progress(Progress(search.best.operator.name, None, None, None, interrupted=True))
    if search.best is None:
        raise search.failure()
    best = search.best
    assert best.strategy is not None
    tried = search.candidates()
    name = best.operator.name
    return Plan(workload, noise, unit, best.strategy, name, tried, search.bound, objective, wanted, budget)


@final
class _Search:
    """The best candidate so far, and what was tried."""

    def __init__(
        self,
        judge: Judge,
        jobs: int | None,
        on_progress: Callable[[Progress], None] | None,
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
        self.best: Found | None = None
        self._order: dict[str, int] = {}
        """The tasks by name, in the order in which they are listed."""
        self._done: list[Found] = []

    def settled(self, stage: Sequence[Operator], effort: Effort) -> bool:
        """Whether the best candidate before a stage is proved to be as good as any."""
        best, bound = self._before(self._tasks(stage, effort)[0])
        if bound is None or best is None:
            return False
        return best.score <= _SETTLED * geometric_mean([self._lowest(bound, one) for one in self._judge.budgets])

    def _lowest(self, bound: float, budget: Budget) -> float:
        """The error at a budget that a bound on the loss implies."""
        judge = self._judge
        queries = judge.workload.query_count if judge.objective.limits is None else 1
        return sqrt(unit_variance(judge.noise, budget, judge.unit.rows) * bound / queries)

    def failure(self) -> InputError:
        """Why nothing was found."""
        reasons = {found.operator.name: found for found in self._done if found.reason is not None}
        told = "; ".join(f"{name}: {found.reason}" for name, found in reasons.items())
        refused = [found for found in reasons.values() if found.refused]
        if refused:
            return TooLargeError(refused[0].reason if len(reasons) == 1 or len(refused) == len(reasons) else told)
        return InputError(f"none of the given operators has a strategy for this workload: {told}")

    def run(self, operators: Sequence[Operator], effort: Effort) -> None:
        """Let operators propose; what is too large to be found or judged is left out."""
        best, _ = self._before(self._tasks(operators, effort)[0])
        self._run(self._tasks(operators, replace(effort, beat=inf if best is None else best.value)))

    def _tasks(self, operators: Sequence[Operator], effort: Effort) -> list[Task]:
        return tasks_of(operators, effort, NORM[self._judge.noise])

    def _before(self, task: Task) -> tuple[Found | None, float | None]:
        """The best, and the bound, of all that comes before a task: after a crash more is known, and must not count."""
        done = [found for found in self._done if self._order[found.name] < self._order[task.name]]
        others = [found.bound for found in done] if self._bounding else []
        bounds = [bound for bound in (self._bound, *others) if bound is not None]
        return min((one for one in done if one.candidate), key=self._rank, default=None), max(bounds, default=None)

    def recall(self, stages: Stages, effort: Effort) -> None:
        """Take what was found before from the checkpoint."""
        self._refined = [Task(operator, effort, _REFINED) for stage in stages for operator in stage]
        for task in [*(task for stage in stages for task in self._tasks(stage, effort)), *self._refined]:
            self._order.setdefault(task.name, len(self._order))
            found = None if self._checkpoint is None else self._checkpoint.recall(task)
            if found is not None:
                self._keep(found)

    def refine(self, effort: Effort) -> None:
        """Where the largest error counts, let the best operator go on with weights on the answers that err most."""
        if self._judge.objective.limits is None or effort.over or not self._refined:
            return
        best, _ = self._before(self._refined[0])
        if best is not None and best.operator not in (*_SIMPLE, Residual()):
            self._run([task for task in self._refined if task.operator == best.operator])

    def candidates(self) -> tuple[Candidate, ...]:
        """What was tried, in the order of the tasks, with how far from optimal it can be at most."""
        listed = sorted(self._done, key=lambda found: self._order[found.name])
        bound = self.bound
        refined = {task.name for task in self._refined}
        return tuple(
            Candidate(found.operator.name, None, 0.0, None, reason=found.reason)
            if found.candidate is None
            else replace(found.candidate, certificate=found.value / bound - 1 if bound else None)
            for found in listed
            if found.candidate is not None or found.name not in refined
        )

    def _run(self, tasks: Sequence[Task]) -> None:
        known = {found.name for found in self._done}
        left = [task for task in tasks if task.name not in known]
        alone = workers(self._jobs) == 1
        for task in left[:1] if alone else left:
            self._report(task.operator)
        for number, found in enumerate(run_all(self._judge, left, self._jobs), 1):
            self._keep(found)
            if self._checkpoint is not None:
                self._checkpoint.add(found, self.best)
            if alone and self.best is not None and left[0].effort.over:
                break
            if alone and number < len(left):
                self._report(left[number].operator)

    def _keep(self, found: Found) -> None:
        """Keep what a task found if it is the best; of equally good ones the first in order."""
        self._done.append(found)
        if found.bound is not None and self._bounding:
            self.bound = max(self.bound or 0.0, found.bound)
        if found.candidate is not None and (self.best is None or self._rank(found) < self._rank(self.best)):
            self.best = found
        self._report(found.operator, found.candidate, found.reason)

    def _rank(self, found: Found) -> tuple[float, int]:
        return found.score, self._order[found.name]

    def _report(self, operator: Operator, candidate: Candidate | None = None, reason: str | None = None) -> None:
        if self._on_progress is None:
            return
        error = None if candidate is None else candidate.error
        best = None if self.best is None or self.best.candidate is None else self.best.candidate.error
        lowest = None if self.bound is None or best is None else self._lowest(self.bound, self._judge.budgets[0])
        self._on_progress(Progress(operator.name, error, best, lowest, reason=reason))


def _bound(encoded: Encoded, norm: Norm, *, dual: bool) -> float | None:
    """The best lower bound on every strategy's loss that is known without a strategy.

    Under Gaussian noise the dual of the problem over all cells may be solved where they are few; OPT_0 does so anyway.
    """
    gram = (encoded.compact if encoded.same_gram else encoded).gram().on(encoded.axes)
    bound = svd_bound(gram)
    if dual and norm == 2 and len(gram.terms) > 1 and prod(gram.sizes) <= CELLS:
        found = opt0_gaussian(DenseGram(gram.dense())).bound
        return found if bound is None else max(bound, found or 0.0)
    return bound


def _checked(
    workload: Workload,
    noise: NoiseKind,
    operators: Sequence[Operator] | None,
    restarts: int,
    seed: int,
    time_limit: float | None,
    jobs: int | None,
) -> Stages:
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload={workload!r}: expected a Workload")
    if not workload.products:
        raise WorkloadError("the workload is empty; ask for at least one product")
    if noise not in get_args(NoiseKind):
        raise InputError(f"noise={noise!r}: expected 'laplace' or 'gaussian'")
    for name, value in (("restarts", restarts), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{name}={value!r}: expected an integer from 0, for example {name}=5")
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0):
        raise InputError(f"jobs={jobs!r}: expected how many processes share the search, or -1 for all cores")
    if time_limit is not None and not (isinstance(time_limit, (int, float)) and time_limit > 0):
        raise InputError(f"time_limit={time_limit!r}: expected seconds, for example time_limit=60")
    if operators is None:
        return ONE if len(workload.encoded.axes) == 1 else SEVERAL[noise]
    chosen = tuple(operators)
    if not chosen or not all(isinstance(operator, Operator) for operator in chosen):
        raise InputError(f"operators={operators!r}: expected operators, for example [hdmm.operators.Kron()]")
    return (chosen,)
