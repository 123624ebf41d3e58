"""The Plan: the chosen strategy with its noise and unit, and what it will cost in error. Made without data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from hdmm import baselines
from hdmm.accuracy import Accuracy, accuracy
from hdmm.bounds import svd_bound
from hdmm.errors import BudgetError, InputError
from hdmm.matrix import Gram
from hdmm.objective import Objective
from hdmm.operators.base import loss
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import NORM, Calibration, NoiseKind, calibrate, unit_variance
from hdmm.privacy.intervals import normal_margin
from hdmm.privacy.unit import Unit
from hdmm.strategy import Strategy, joined
from hdmm.strategy.block import Change, added
from hdmm.workload import EncodedProduct, Workload
from hdmm.workload.spec import Aim
from hdmm.workload.targets import Target, by_product

if TYPE_CHECKING:
    import pyarrow as pa

USUAL: dict[NoiseKind, tuple[Budget, ...]] = {
    "laplace": tuple(Budget(epsilon) for epsilon in ("1", "0.1", "0.3", "3")),
    "gaussian": tuple(Budget(epsilon, "1e-6") for epsilon in ("1", "0.1", "0.3", "3")),
}
"""Where candidates are compared if no budget is given. The first, that of the paper's tables, is the one reported."""


_OTHERS: dict[str, baselines.Identity | baselines.Plain] = {
    "identity": baselines.Identity(),
    "plain": baselines.Plain(),
}
"""What a plan is listed beside."""


@final
@dataclass(frozen=True)
class Candidate:
    """One operator that was tried: its strategy's RMSE, and how far from optimal it can be; or why it has none.

    The RMSE is at the budget of the plan, or without one at ε = 1 (Gaussian: δ = 1e-6). ``worst`` is the root of what
    is made small, where that is not the total: the largest weighted standard error, or the largest ratio of a margin to
    its target.
    """

    operator: str
    rmse: float | None
    seconds: float
    certificate: float | None
    seed: int | None = None
    worst: float | None = None
    rounding: float = 0.0
    """What rounding its queries to integers added to the RMSE, as a share of it."""
    reason: str | None = None
    """Why the operator has no strategy."""

    @property
    def error(self) -> float | None:
        """What candidates are compared by."""
        return self.rmse if self.worst is None else self.worst


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """What will be measured, and the error that every answer will have. It holds nothing about the data."""

    workload: Workload
    noise: NoiseKind
    unit: Unit
    strategy: Strategy
    operator: str
    tried: tuple[Candidate, ...]
    lowest: float | None = None
    """A proved lower bound on the objective's value under every strategy; None where none is known."""
    aim: Aim = "total"
    targets: Mapping[str, Target] = field(default_factory=dict)
    """Margins that products are to keep, where the plan was made for the least budget that meets them."""
    budget: Budget | None = None
    """The budget that the plan was made for; None for one that is good over the usual range."""

    @cached_property
    def objective(self) -> Objective:
        """What the plan makes small."""
        return objective_of(self.workload, self.aim, self.targets)

    @cached_property
    def estimator(self) -> Strategy:
        """How answers are made from the measurements: by least squares over all of them, or as the strategy does it."""
        return joined(self.strategy)

    @cached_property
    def value(self) -> float:
        """The objective's value at unit noise, where a union answers each product from one block."""
        return self.objective.value(self.strategy, self.workload.encoded, NORM[self.noise])

    @cached_property
    def change(self) -> Change:
        """By how much one person, as the unit says, can change the measurements: computed from the strategy alone."""
        return self.unit.change(self.strategy.blocks, NORM[self.noise])

    @cached_property
    def loss(self) -> float:
        """‖A‖²·‖WA⁺‖²_F, the weighted total squared error at unit noise."""
        return loss(self.strategy, self.workload.encoded, NORM[self.noise])

    @property
    def certificate(self) -> float | None:
        """How far from optimal the plan can be at most; None where no bound is known.

        It is the total squared error, or under other objectives the largest variance, over its bound, minus 1, for
        noise without steps. At budgets so large that the steps of integer noise show, ``bound`` is further from what
        the plan reaches. Where rows are replaced, the bound is that of adding and removing them, which can do no more.
        """
        return self.value * excess(self.strategy, self.noise, self.unit) / self.lowest - 1 if self.lowest else None

    @property
    def rounding(self) -> float:
        """What rounding the strategy's queries to integers added to the RMSE, as a share of it."""
        own = [
            (one.error, one.rounding) for one in self.tried if one.operator == self.operator and one.error is not None
        ]
        return min(own)[1] if own else 0.0

    @property
    def candidates(self) -> pa.Table:
        """Every operator that was tried: its strategy's RMSE, or the reason why it has none.

        The RMSE is at the budget of the plan, or without one at ε = 1 (Gaussian: δ = 1e-6).
        """
        import pyarrow as pa

        columns = ("operator", "rmse", "seconds", "certificate", "seed", "reason")
        types = (pa.string(), pa.float64(), pa.float64(), pa.float64(), pa.int64(), pa.string())
        rows = [[getattr(candidate, column) for candidate in self.tried] for column in columns]
        return pa.table([pa.array(row, type) for row, type in zip(rows, types, strict=True)], names=columns)

    def calibrate(self, budget: Budget) -> Calibration:
        """The noise that the budget asks for on each block."""
        if not isinstance(budget, Budget):
            raise InputError(f'budget={budget!r}: expected a Budget, for example hdmm.Budget(epsilon="1")')
        if budget not in self._calibrations:
            self._calibrations[budget] = calibrate(self.strategy.blocks, self.noise, budget, self.change)
        return self._calibrations[budget]

    @cached_property
    def _calibrations(self) -> dict[Budget, Calibration]:
        return {}

    def rmse(self, budget: Budget) -> float:
        """The predicted root mean squared error over all queries, weights included: what the plan minimises.

        It is an upper bound where ``estimator.bounded`` says so.
        """
        return rmse(self.estimator, self.workload.encoded.products, self.calibrate(budget))

    def unweighted_rmse(self, budget: Budget) -> float:
        """The predicted root mean squared error of the published answers, weights left out."""
        return rmse(self.estimator, self.workload.encoded.products, self.calibrate(budget), weighted=False)

    def bound(self, budget: Budget) -> float | None:
        """A lower bound for every strategy of integer queries on what the plan makes small; None where none is known.

        On the RMSE; under ``objective="max"`` on the largest weighted standard error; with targets on the largest ratio
        of a standard error to the one at which a normal margin just keeps its target. It holds for the integer noise
        that is added: where that falls to nothing, as it does for counts at very large budgets, so does the bound.
        """
        budget.check(self.noise)
        if self.lowest is None:
            return None
        queries = self.workload.query_count if self.objective.limits is None else 1
        return sqrt(unit_variance(self.noise, budget, self.unit.rows) * self.lowest / queries)

    def worst(self, budget: Budget) -> float:
        """The largest standard error of any answer, weights included."""
        largest = Objective.largest(self.workload.encoded)
        noise = self.calibrate(budget).variances
        return sqrt(largest.ratios(self.estimator, self.workload.encoded, noise).max())

    def least_budget(self, delta: str | None = None) -> Budget:
        """The least budget, to four digits, at which every answer keeps its target.

        ε for Laplace noise; for Gaussian noise ρ, or with ``delta`` the ε beside it.
        """
        from hdmm._plan.needed import least_budget

        return least_budget(self, delta)

    def target_margins(self, budget: Budget) -> pa.Table:
        """For every target and product its predicted margin at a budget, and whether it drives the budget."""
        from hdmm._plan.needed import target_margins

        return target_margins(self, budget)

    def accuracy(self, name: str, budget: Budget, level: float = 0.95, *, simultaneous: bool = False) -> Accuracy:
        """The standard error and the margin, at a level of confidence, of every answer to a product.

        With ``simultaneous`` all answers to the product are within their margins together with that confidence.
        """
        key = (name, budget, level, simultaneous)
        if key not in self._accuracies:
            product = self.workload.encoded.products[self.workload.place(name)]
            noise = self.calibrate(budget)
            self._accuracies[key] = accuracy(self.estimator, product, noise, level, together=simultaneous)
        return self._accuracies[key]

    @cached_property
    def _accuracies(self) -> dict[tuple[str, Budget, float, bool], Accuracy]:
        return {}

    def errors(self, budget: Budget) -> pa.Table:
        """One row per product: its predicted RMSE, largest standard error and 95% margin, weights left out.

        Beside them the RMSE of Identity and of the plain mechanism for the same workload and budget, and a lower
        bound for the product on its own. Where ``estimator.bounded`` says so, those of the plan are upper bounds.
        """
        import pyarrow as pa

        encoded = self.workload.encoded
        noise = self.calibrate(budget)
        others: dict[str, tuple[Strategy, Calibration] | None] = {}
        for name, operator in _OTHERS.items():
            strategy = operator.propose(encoded, NORM[self.noise]).strategy
            change = self.unit.change(strategy.blocks, NORM[self.noise])
            try:
                others[name] = (strategy, calibrate(strategy.blocks, self.noise, budget, change))
            except BudgetError:  # weights that are too far apart: there is no such mechanism
                others[name] = None
        unit = unit_variance(self.noise, budget, self.unit.rows)
        rows = []
        for product, code in zip(self.workload.products, encoded.products, strict=True):
            predicted = self.accuracy(product.name, budget)
            bound = svd_bound(Gram(encoded.sizes, code.terms))
            rows.append(
                {
                    "product": product.name,
                    "queries": code.queries,
                    "rmse": rmse(self.estimator, [code], noise, weighted=False),
                    "stderr_max": float(predicted.stderr.max()),
                    "margin95": float(predicted.margin.max()),
                    **{
                        name: other and rmse(other[0], [code], other[1], weighted=False)
                        for name, other in others.items()
                    },
                    "bound": None if bound is None else sqrt(unit * bound / code.queries),
                }
            )
        return pa.Table.from_pylist(rows)

    def describe(self, budget: Budget) -> str:
        """The predicted error of every product as text."""
        from hdmm._plan.describe import describe

        return describe(self, budget)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the plan to a file; an existing one is replaced only with ``overwrite=True``."""
        from hdmm._plan.file import save

        save(self, Path(path), overwrite=overwrite)

    @staticmethod
    def load(path: str | Path, *, memory: str | int | None = None) -> Plan:
        """Read a plan; refuse one that is damaged, claims a wrong sensitivity or cannot answer its workload.

        One whose release would take more than ``memory``, such as "8GB", by default half of the machine's, is refused
        too.
        """
        from hdmm._plan.file import load
        from hdmm.memory import allowed

        with allowed(memory):
            return load(Path(path))


def excess(strategy: Strategy, noise: NoiseKind, unit: Unit) -> float:
    """The squared change by the unit over that of as many rows added or removed: by so much is the loss larger."""
    if unit.neighbours == "add-remove":
        return 1.0
    p = NORM[noise]
    ratio = unit.change(strategy.blocks, p).power / (unit.rows**p * added(strategy.blocks, p).power)
    return float(ratio) ** (2 // p)


def rmse(strategy: Strategy, products: Sequence[EncodedProduct], noise: Calibration, *, weighted: bool = True) -> float:
    """The root mean squared error of a strategy's answers under some noise."""
    squares = np.array([float(product.weight) ** 2 if weighted else 1.0 for product in products])
    total = float(squares @ strategy.squared_errors(products, noise.variances))
    return sqrt(total / sum(product.queries for product in products))


def objective_of(workload: Workload, aim: Aim, targets: Mapping[str, Target]) -> Objective:
    """What is to be small: with targets, the largest ratio of a variance to that at which a normal margin is kept."""
    if targets:
        limits = [
            min((float(target.margin) / normal_margin(1.0, float(target.level))) ** 2 for _, target in found)
            if found
            else None
            for found in by_product(workload, targets)
        ]
        return Objective(tuple(limits))
    return Objective() if aim == "total" else Objective.largest(workload.encoded)
