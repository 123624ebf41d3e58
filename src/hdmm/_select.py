"""Selection (OPT_HDMM): run operators, keep the strategy with the least error. Data is out of reach from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod, sqrt
from time import monotonic, perf_counter
from typing import final, get_args

from hdmm import baselines, operators
from hdmm._plan import REFERENCE, Candidate, Plan, objective_of, rmse
from hdmm.bounds import svd_bound
from hdmm.errors import InputError, TooLargeError, WorkloadError
from hdmm.matrix import Norm
from hdmm.matrix.factors import DenseGram
from hdmm.memory import check_memory
from hdmm.objective import Objective
from hdmm.operators.base import Operator, Proposal
from hdmm.operators.descent import Effort
from hdmm.operators.explicit import CELLS, Explicit
from hdmm.operators.gaussian import opt0_gaussian
from hdmm.operators.residual import Residual
from hdmm.operators.worst import least_worst
from hdmm.privacy.calibrate import NORM, NoiseKind, calibrate, unit_variance
from hdmm.privacy.unit import Unit
from hdmm.strategy import Strategy
from hdmm.strategy.integer import integral
from hdmm.workload import Encoded, Workload
from hdmm.workload.spec import Aim
from hdmm.workload.targets import Target, read_targets


@final
@dataclass(frozen=True)
class Progress:
    """What `on_progress` is told when an operator begins, and when it has a candidate: the numbers are at ε = 1."""

    operator: str
    rmse: float | None
    """The candidate's RMSE; None when the operator has only begun.

    Under ``objective="max"`` the largest weighted standard error, with targets the largest ratio of a margin to its.
    """
    best: float | None
    """The least so far."""
    bound: float | None
    """No strategy has a lower one."""


_SIMPLE: tuple[Operator, ...] = (baselines.Identity(), baselines.Plain())
ONE: tuple[Operator, ...] = (*_SIMPLE, operators.Explicit())
SEVERAL: dict[NoiseKind, tuple[Operator, ...]] = {
    "laplace": (
        *_SIMPLE,
        baselines.Marginals(),
        operators.Marginal(),
        operators.MarginalPlus(),
        operators.Explicit(),
        operators.Union(),
        operators.Kron(),
    ),
    "gaussian": (operators.Residual(), operators.Explicit(), *_SIMPLE, operators.Union(), operators.Kron()),
}
"""What is tried where nothing is said, for workloads about one attribute and about several.

Under Gaussian noise residuals are at least as good as marginals, and often proved to be the best there is.
"""
_REFINED = 5
"""Rounds in which the best operator improves the largest error."""
_SETTLED = 1 + 1e-6
"""A loss within this ratio of its lower bound leaves nothing to search for."""


def select(
    workload: Workload,
    noise: NoiseKind = "laplace",
    *,
    unit: Unit | None = None,
    objective: Aim = "total",
    targets: Mapping[str, str | Target] | None = None,
    operators: Sequence[Operator] | None = None,
    restarts: int = 5,
    seed: int = 0,
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Plan:
    """Choose what to measure for a workload: the strategy with the least predicted error.

    ``noise`` is "laplace" (pure ε) or "gaussian" (ε with δ, or ρ). No data is needed and none can be given. The least
    error is that of all answers together, or with ``objective="max"`` the largest standard error of any answer. With
    ``targets``, such as ``{"by sex and age": "50@95%"}``, the plan is the one that meets them with the least budget,
    which :meth:`Plan.least_budget` tells. More ``restarts`` search longer; after ``time_limit`` seconds, or at an
    interrupt, the best so far is kept. The same seed gives the same plan.
    """
    chosen = _checked(workload, noise, operators, restarts, seed, time_limit)
    wanted = read_targets(workload, targets or {})
    if objective not in get_args(Aim):
        raise InputError(f"objective={objective!r}: expected 'total' or 'max'")
    if wanted and objective != "total":
        raise InputError(f"objective={objective!r}: give an objective or targets, not both")
    aim = objective_of(workload, objective, wanted)
    encoded = workload.encoded
    effort = Effort(restarts, seed, None if time_limit is None else monotonic() + time_limit)
    dual = not any(isinstance(operator, Explicit) for operator in chosen)
    bound = _bound(encoded, NORM[noise], dual=dual) if aim.limits is None else None
    search = _Search(encoded, noise, aim, on_progress, seed, bound)
    try:
        for operator in chosen:
            if search.best is not None and (effort.over or search.settled):
                break
            search.attempt(operator, effort)
        search.refine(effort)
    except KeyboardInterrupt:
        if search.best is None:
            raise
    if search.best is None:
        raise search.refused or InputError("none of the given operators has a strategy for this workload")
    strategy, operator = search.best
    tried = tuple(search.tried)
    return Plan(workload, noise, unit or Unit(), strategy, operator.name, tried, search.bound, objective, wanted)


@final
class _Search:
    """The best candidate so far, and what was tried."""

    def __init__(
        self,
        encoded: Encoded,
        noise: NoiseKind,
        objective: Objective,
        on_progress: Callable[[Progress], None] | None,
        seed: int,
        bound: float | None,
    ) -> None:
        self._encoded = encoded
        self._noise: NoiseKind = noise
        self._norm = NORM[noise]
        self._objective = objective
        self._on_progress = on_progress
        self._seed = seed
        self.bound = bound
        self.best: tuple[Strategy, Operator] | None = None
        self._least = inf
        self._value = inf
        self.tried: list[Candidate] = []
        self.refused: TooLargeError | None = None

    @property
    def settled(self) -> bool:
        """Whether the best candidate is proved to be as good as any."""
        return self.bound is not None and self._value <= _SETTLED * self.bound

    def attempt(self, operator: Operator, effort: Effort, rounds: int = 1) -> None:
        """Let one operator propose; what is too large to be found or judged is left out."""
        self._report(operator, None)
        try:
            self._attempt(operator, effort, rounds)
        except TooLargeError as error:
            self.refused = error

    def refine(self, effort: Effort) -> None:
        """Where the largest error counts, let the best operator go on with weights on the answers that err most."""
        if self._objective.limits is not None and self.best is not None and not effort.over:
            _, operator = self.best
            if operator not in (*_SIMPLE, Residual()) and not self.settled:
                self.attempt(operator, effort, _REFINED)

    def _propose(self, operator: Operator, effort: Effort, rounds: int) -> Proposal | None:
        if self._objective.limits is None:
            return operator.propose(self._encoded, self._norm, replace(effort, beat=self._value))
        return least_worst(operator, self._encoded, self._objective.limits, self._norm, effort, rounds)

    def _attempt(self, operator: Operator, effort: Effort, rounds: int) -> None:
        """Make what the operator proposes measurable, and keep it if it is the best."""
        start = perf_counter()
        proposal = self._propose(operator, effort, rounds)
        if proposal is None:
            return
        check_memory(proposal.strategy, self._encoded)
        strategy = self._measurable(proposal.strategy)
        if strategy is None:
            return
        noise = calibrate(strategy.blocks, self._noise, REFERENCE[self._noise])
        found = error = rmse(strategy, self._encoded.products, noise)
        if self._objective.limits is not None:
            found = sqrt(self._objective.ratios(strategy, self._encoded, noise.variances).max())
        value = self._objective.value(strategy, self._encoded, self._norm)
        if proposal.bound is not None:
            self.bound = max(self.bound or 0.0, proposal.bound)
        if found < self._least:
            self._least, self.best = found, (strategy, operator)
            self._value = value
        certificate = value / self.bound - 1 if self.bound else None
        worst = None if self._objective.limits is None else found
        self.tried.append(Candidate(operator.name, error, perf_counter() - start, certificate, self._seed, worst))
        self._report(operator, found)

    def _report(self, operator: Operator, found: float | None) -> None:
        if self._on_progress is not None:
            if self.best is None:
                self._on_progress(Progress(operator.name, found, None, None))
                return
            unit = unit_variance(self._noise, REFERENCE[self._noise])
            queries = self._encoded.query_count if self._objective.limits is None else 1
            lowest = None if self.bound is None else sqrt(unit * self.bound / queries)
            self._on_progress(Progress(operator.name, found, self._least, lowest))

    def _measurable(self, strategy: Strategy) -> Strategy | None:
        """Laplace noise is added to integers: the strategy's queries become integers, at next to no loss."""
        return integral(strategy, self._encoded) if self._noise == "laplace" else strategy


def _bound(encoded: Encoded, norm: Norm, *, dual: bool) -> float | None:
    """The best lower bound on every strategy's loss that is known without a strategy.

    Under Gaussian noise the dual of the problem over all cells may be solved where they are few; OPT_0 does so anyway.
    """
    gram = encoded.compact.gram().on(encoded.axes)
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
) -> tuple[Operator, ...]:
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload={workload!r}: expected a Workload")
    if not workload.products:
        raise WorkloadError("the workload is empty; ask for at least one product")
    if noise not in get_args(NoiseKind):
        raise InputError(f"noise={noise!r}: expected 'laplace' or 'gaussian'")
    for name, value in (("restarts", restarts), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{name}={value!r}: expected an integer from 0, for example {name}=5")
    if time_limit is not None and not (isinstance(time_limit, (int, float)) and time_limit > 0):
        raise InputError(f"time_limit={time_limit!r}: expected seconds, for example time_limit=60")
    if operators is None:
        return ONE if len(workload.encoded.axes) == 1 else SEVERAL[noise]
    chosen = tuple(operators)
    if not chosen or not all(isinstance(operator, Operator) for operator in chosen):
        raise InputError(f"operators={operators!r}: expected operators, for example [hdmm.operators.Kron()]")
    return chosen
