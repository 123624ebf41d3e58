"""Selection (OPT_HDMM): run operators, keep the strategy with the least error. Data is out of reach from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import get_args

from hdmm.errors import InputError, TooLargeError, WorkloadError, check_integer, is_integer
from hdmm.memory import memory_allowed, memory_limit
from hdmm.objective import Aim, Objective
from hdmm.operators.base import Operator
from hdmm.optimise.descent import Effort
from hdmm.plans import Goal, Mechanism, Plan
from hdmm.plans.footprint import check_limit, check_workload, unlisted
from hdmm.privacy.budget import Budget, check_budget
from hdmm.privacy.calibrate import NORM, NoiseKind
from hdmm.privacy.unit import Unit, check_unit
from hdmm.progress import OnProgress, Progress
from hdmm.selection.search import Search, Stages, default_stages, known_bound
from hdmm.selection.tasks import Judge
from hdmm.syntax import either, example, given
from hdmm.text import count_text
from hdmm.workload import Encoded, Workload
from hdmm.workload.targets import Target, read_targets


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
    on_progress: OnProgress | None = None,
) -> Plan:
    """Choose what to measure for a workload: the strategy with the least predicted error.

    No data is needed and none can be given. The same seed gives the same plan.

    Arguments:
        workload: The questions.
        noise: "laplace" (pure ε) or "gaussian" (ε with δ, or ρ).
        unit: What is protected: a row, or all that a person has (default: one row, added or removed).
        objective: "total" makes the error of all answers together small, "max" the largest standard error.
        targets: Accuracies such as ``{"by sex and age": "50@95%"}``. The plan is then the one that meets them with the
            least budget, which :meth:`Plan.least_budget` returns.
        budget: The budget of the release, if it is known. Noise on a computer moves in steps, so which strategy is best
            depends a little on the budget. Without it, candidates are compared over the usual range.
        operators: The operators to try, for example ``[hdmm.operators.Kron()]`` (default: all that may help).
            An operator that does not apply, or fails, is listed with the reason in :attr:`Plan.candidates`.
        restarts: How many random starts to try; more search longer.
        seed: Where random starts come from.
        time_limit: Seconds after which the best candidate so far is kept. An interrupt (Ctrl-C) does the same.
        jobs: How many processes share the search, -1 for all cores (default: one). Inside joblib's
            ``parallel_config`` the search runs on a Dask, Ray or Spark cluster.
        checkpoint: A file that keeps what was found. The same search, called again after a crash, goes on from there.
        memory: Memory limit for the release, such as "8GB" (default: half of RAM). Strategies whose release would take
            more are left out.
        on_progress: Called with a :class:`Progress` when an operator begins, and when it is done.
    """
    stages = _stages(workload, noise, operators, restarts, seed, time_limit, jobs)
    goal = _goal(workload, noise, objective, targets, budget)
    unit = Unit() if unit is None else unit
    if not isinstance(unit, Unit):
        raise InputError(f"unit={unit!r}: expected a Unit, for example hdmm.Unit(rows=1)")
    check_unit(unit, workload.schema)
    encoded, aim = workload.encoded, goal.objective(workload)
    _check_largest(encoded, aim)
    with memory_allowed(memory):
        limit = memory_limit()
        check_limit()
        check_workload(encoded)
    effort = Effort(restarts, seed, None if time_limit is None else time() + time_limit)
    judge = Judge(encoded, noise, unit, aim, limit, goal.budgets(noise))
    saved = None
    if checkpoint is not None:
        from hdmm.selection.checkpoint import Checkpoint, search_key

        words = [repr(operator) for stage in stages for operator in stage]
        key = search_key(workload, noise, unit, goal, words, restarts, seed, limit if memory else None)
        saved = Checkpoint.open(Path(checkpoint), key, workload)
    bound = known_bound(encoded, NORM[noise], stages) if judge.objective.limits is None else None
    search = Search(judge, jobs, on_progress, bound, saved)
    try:
        search.run_stages(stages, effort)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        if on_progress is not None:
            on_progress(Progress(search.best.operator.name, interrupted=True))
    if search.best is None or search.best.strategy is None:
        raise search.failure()
    mechanism = Mechanism(search.best.strategy, noise, unit)
    return Plan(workload, mechanism, goal, search.best.operator.name, search.candidates(), search.bound)


def _check_largest(workload: Encoded, objective: Objective) -> None:
    """Refuse to make the largest error small of a product with too many answers to look at each."""
    for product, limit in zip(workload.products, objective.limits or (), strict=False):
        if limit is not None and unlisted(product) is not None:
            raise TooLargeError(
                f"product {product.name!r}: its largest error is that of one among {count_text(product.queries)} "
                "answers, too many to look at each; make the total error small, with no target for this product"
            )


def _goal(
    workload: Workload,
    noise: NoiseKind,
    objective: Aim,
    targets: Mapping[str, str | Target] | None,
    budget: Budget | None,
) -> Goal:
    wanted = read_targets(workload, targets or {})
    if objective not in get_args(Aim):
        raise InputError(f"{given('objective', repr(objective))}: expected 'total' or 'max'")
    if wanted and objective != "total":
        raise InputError(f"{given('objective', repr(objective))}: give an objective or targets, not both")
    if budget is not None:
        check_budget(budget)
        if wanted:
            raise InputError(
                f"{either(python='budget', command='--epsilon')}: give a budget or targets, not both; targets find the "
                "least budget"
            )
        budget.check(noise)
    return Goal(objective, wanted, budget)


def _stages(
    workload: Workload,
    noise: NoiseKind,
    operators: Sequence[Operator] | None,
    restarts: int,
    seed: int,
    time_limit: float | None,
    jobs: int | None,
) -> Stages:
    """Check the arguments of a search; return the operators to try."""
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload={workload!r}: expected a Workload")
    if not workload.products:
        raise WorkloadError("the workload is empty; ask for at least one product")
    if noise not in get_args(NoiseKind):
        raise InputError(f"noise={noise!r}: expected 'laplace' or 'gaussian'")
    check_integer("restarts", restarts, 0, example=5)
    check_integer("seed", seed, 0, example=5)
    if jobs is not None and (not is_integer(jobs) or jobs == 0):
        raise InputError(
            f"{given('jobs', repr(jobs))}: expected how many processes share the search, or -1 for all cores"
        )
    if time_limit is not None and not (isinstance(time_limit, (int, float)) and time_limit > 0):
        raise InputError(
            f"{given('time_limit', repr(time_limit))}: expected seconds, for example {example('time_limit', 60)}"
        )
    if operators is None:
        return default_stages(workload.encoded, noise)
    chosen = tuple(operators)
    if not chosen or not all(isinstance(operator, Operator) for operator in chosen):
        raise InputError(f"operators={operators!r}: expected operators, for example [hdmm.operators.Kron()]")
    return (chosen,)
