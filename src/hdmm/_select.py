"""Selection: run operators, keep the strategy with the least error. Data is out of reach from here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import final, get_args

from hdmm import baselines
from hdmm._plan import REFERENCE, Candidate, Plan, rmse
from hdmm.bounds import svd_bound
from hdmm.errors import InputError, TooLargeError, WorkloadError
from hdmm.memory import check_memory
from hdmm.operators.base import Operator, loss
from hdmm.privacy.calibrate import NORM, NoiseKind, calibrate, unit_variance
from hdmm.privacy.unit import Unit
from hdmm.strategy import Strategy
from hdmm.workload import Workload


@final
@dataclass(frozen=True)
class Progress:
    """What `on_progress` is told after each candidate: who, its RMSE, the best so far and the bound, at ε = 1."""

    operator: str
    rmse: float
    best: float
    bound: float | None


DEFAULT: tuple[Operator, ...] = (baselines.Identity(), baselines.Plain(), baselines.Marginals())


def select(
    workload: Workload,
    noise: NoiseKind = "laplace",
    *,
    unit: Unit | None = None,
    operators: Sequence[Operator] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Plan:
    """Choose what to measure for a workload: the strategy with the least predicted error.

    ``noise`` is "laplace" (pure ε) or "gaussian" (ε with δ, or ρ). No data is needed and none can be given.
    """
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload={workload!r}: expected a Workload")
    if not workload.products:
        raise WorkloadError("the workload is empty; ask for at least one product")
    if noise not in get_args(NoiseKind):
        raise InputError(f"noise={noise!r}: expected 'laplace' or 'gaussian'")
    chosen = DEFAULT if operators is None else tuple(operators)
    if not chosen or not all(isinstance(operator, Operator) for operator in chosen):
        raise InputError(f"operators={operators!r}: expected operators, for example [hdmm.baselines.Identity()]")

    encoded = workload.encoded
    norm = NORM[noise]
    bound = svd_bound(encoded.compact.gram())
    best: tuple[float, Operator, Strategy] | None = None
    tried = []
    refused: TooLargeError | None = None
    for operator in chosen:
        start = perf_counter()
        strategy = operator.propose(encoded, norm)
        if strategy is None or not _measurable(strategy):
            continue
        try:
            check_memory(strategy, encoded)
        except TooLargeError as error:
            refused = error
            continue
        found = rmse(strategy, encoded.products, calibrate(strategy.blocks, noise, REFERENCE[noise]))
        if best is None or found < best[0]:
            best = (found, operator, strategy)
        certificate = loss(strategy, encoded, norm) / bound - 1 if bound else None
        tried.append(Candidate(operator.name, found, perf_counter() - start, certificate))
        if on_progress is not None:
            least = unit_variance(noise, REFERENCE[noise])
            lowest = None if bound is None else sqrt(least * bound / encoded.query_count)
            on_progress(Progress(operator.name, found, best[0], lowest))
    if best is None:
        raise refused or InputError("none of the given operators has a strategy for this workload")
    return Plan(workload, noise, unit or Unit(), best[2], best[1].name, tuple(tried))


def _measurable(strategy: Strategy) -> bool:
    """Only integer queries can be measured exactly by this version."""
    return all(block.integral for block in strategy.blocks)
