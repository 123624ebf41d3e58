"""Selection (OPT_HDMM): run operators, keep the strategy with the least error. Data is out of reach from here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, prod, sqrt
from time import monotonic, perf_counter
from typing import final, get_args

from hdmm import baselines, operators
from hdmm._plan import REFERENCE, Candidate, Plan, rmse
from hdmm.bounds import svd_bound
from hdmm.errors import InputError, TooLargeError, WorkloadError
from hdmm.matrix import Norm
from hdmm.matrix.factors import DenseGram
from hdmm.memory import check_memory
from hdmm.operators.base import Operator, loss
from hdmm.operators.descent import Effort
from hdmm.operators.explicit import CELLS, Explicit
from hdmm.operators.gaussian import opt0_gaussian
from hdmm.privacy.calibrate import NORM, NoiseKind, calibrate, unit_variance
from hdmm.privacy.unit import Unit
from hdmm.strategy import Strategy
from hdmm.strategy.integer import integral
from hdmm.workload import Encoded, Workload


@final
@dataclass(frozen=True)
class Progress:
    """What `on_progress` is told when an operator begins, and when it has a candidate: the numbers are at ε = 1."""

    operator: str
    rmse: float | None
    """The candidate's RMSE; None when the operator has only begun."""
    best: float | None
    """The least RMSE so far."""
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
_SETTLED = 1 + 1e-6
"""A loss within this ratio of its lower bound leaves nothing to search for."""


def select(
    workload: Workload,
    noise: NoiseKind = "laplace",
    *,
    unit: Unit | None = None,
    operators: Sequence[Operator] | None = None,
    restarts: int = 5,
    seed: int = 0,
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Plan:
    """Choose what to measure for a workload: the strategy with the least predicted error.

    ``noise`` is "laplace" (pure ε) or "gaussian" (ε with δ, or ρ). No data is needed and none can be given. More
    ``restarts`` search longer; after ``time_limit`` seconds, or at an interrupt, the best so far is kept. The same seed
    gives the same plan.
    """
    chosen = _checked(workload, noise, operators, restarts, seed, time_limit)
    encoded = workload.encoded
    effort = Effort(restarts, seed, None if time_limit is None else monotonic() + time_limit)
    dual = not any(isinstance(operator, Explicit) for operator in chosen)
    search = _Search(encoded, noise, on_progress, seed, _bound(encoded, NORM[noise], dual=dual))
    for operator in chosen:
        if search.best is not None and (effort.over or search.settled):
            break
        try:
            search.attempt(operator, replace(effort, beat=search.least_loss))
        except KeyboardInterrupt:
            if search.best is None:
                raise
            break
    if search.best is None:
        raise search.refused or InputError("none of the given operators has a strategy for this workload")
    return Plan(workload, noise, unit or Unit(), *search.best, tuple(search.tried), search.bound)


@final
class _Search:
    """The best candidate so far, and what was tried."""

    def __init__(
        self,
        encoded: Encoded,
        noise: NoiseKind,
        on_progress: Callable[[Progress], None] | None,
        seed: int,
        bound: float | None,
    ) -> None:
        self._encoded = encoded
        self._noise: NoiseKind = noise
        self._norm = NORM[noise]
        self._on_progress = on_progress
        self._seed = seed
        self.bound = bound
        self.best: tuple[Strategy, str] | None = None
        self._least = inf
        self.least_loss = inf
        self.tried: list[Candidate] = []
        self.refused: TooLargeError | None = None

    @property
    def settled(self) -> bool:
        """Whether the best candidate is proved to be as good as any."""
        return self.bound is not None and self.least_loss <= _SETTLED * self.bound

    def attempt(self, operator: Operator, effort: Effort) -> None:
        """Let one operator propose; what is too large to be found or judged is left out."""
        self._report(operator, None)
        try:
            self._attempt(operator, effort)
        except TooLargeError as error:
            self.refused = error

    def _attempt(self, operator: Operator, effort: Effort) -> None:
        """Make what the operator proposes measurable, and keep it if it is the best."""
        start = perf_counter()
        proposal = operator.propose(self._encoded, self._norm, effort)
        if proposal is None:
            return
        check_memory(proposal.strategy, self._encoded)
        strategy = self._measurable(proposal.strategy)
        if strategy is None:
            return
        found = rmse(strategy, self._encoded.products, calibrate(strategy.blocks, self._noise, REFERENCE[self._noise]))
        squared = loss(strategy, self._encoded, self._norm)
        if proposal.bound is not None:
            self.bound = max(self.bound or 0.0, proposal.bound)
        if found < self._least:
            self._least, self.best = found, (strategy, operator.name)
            self.least_loss = squared
        certificate = squared / self.bound - 1 if self.bound else None
        self.tried.append(Candidate(operator.name, found, perf_counter() - start, certificate, self._seed))
        self._report(operator, found)

    def _report(self, operator: Operator, found: float | None) -> None:
        if self._on_progress is not None:
            if self.best is None:
                self._on_progress(Progress(operator.name, found, None, None))
                return
            unit = unit_variance(self._noise, REFERENCE[self._noise])
            lowest = None if self.bound is None else sqrt(unit * self.bound / self._encoded.query_count)
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
