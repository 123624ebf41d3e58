"""The Plan: the chosen strategy with its noise and unit, and the error to expect. It is made without data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, final

from hdmm.accuracy.predict import Accuracy, accuracy, rmse
from hdmm.memory import memory_allowed
from hdmm.objective import Objective
from hdmm.plans.candidate import Candidate
from hdmm.plans.footprint import check_listed
from hdmm.plans.goal import Goal
from hdmm.plans.mechanism import Mechanism
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import NoiseKind, unit_variance
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema
from hdmm.workload import Workload
from hdmm.workload.targets import Target

if TYPE_CHECKING:
    import pyarrow as pa


@final
@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What will be measured, and the error that every answer will have. It holds nothing about the data.

    A user needs ``rmse``, ``errors``, ``bound``, ``certificate``, ``candidates``, ``describe``, ``least_budget``,
    ``accuracy``, ``save`` and ``load``. The parts that it is made of are the ``workload``, the ``mechanism`` (strategy,
    noise and unit), the ``goal`` that it was made for, and what the search found.
    """

    workload: Workload
    mechanism: Mechanism
    goal: Goal
    operator: str
    """The operator that found the strategy."""
    search: tuple[Candidate, ...] = ()
    """What was tried."""
    least_value: float | None = None
    """A proved lower bound on the objective's value at unit noise, for every strategy; None if none is known."""

    def __repr__(self) -> str:
        products = f"{len(self.workload.products)} products"
        return f"Plan({products}, {self.noise} noise, {self.unit}, found by {self.operator})"

    @property
    def noise(self) -> NoiseKind:
        """The kind of noise."""
        return self.mechanism.noise

    @property
    def unit(self) -> Unit:
        """What is protected."""
        return self.mechanism.unit

    @property
    def budget(self) -> Budget | None:
        """The budget that the plan was made for; None for one that is good over the usual range."""
        return self.goal.budget

    @property
    def targets(self) -> Mapping[str, Target]:
        """Margins that products are to keep, if the plan was made for the least budget that meets them."""
        return self.goal.targets

    @cached_property
    def counted(self) -> Schema:
        """The attributes that records are read for: those that a question or a measurement uses.

        A record counts if each of them has a value inside its domain; columns of other attributes need not exist.
        """
        schema = self.workload.schema
        return schema.only({*self.workload.asked, *(schema.names[axis] for axis in self.mechanism.strategy.axes)})

    @cached_property
    def _objective(self) -> Objective:
        return self.goal.objective(self.workload)

    @property
    def certificate(self) -> float | None:
        """How far from optimal the plan can be at most; None if no bound is known.

        It is the total squared error, or under other objectives the largest variance, over its bound, minus 1, for
        noise without steps. At budgets so large that the steps of integer noise show, ``bound`` is further from what
        the plan reaches. If rows are replaced, the bound is that of adding and removing them, which can do no more.
        """
        if not self.least_value:
            return None
        mechanism = self.mechanism
        value = self._objective.value(mechanism.compared, self.workload.encoded, mechanism.norm)
        return value * self.unit.excess(mechanism.strategy.blocks, mechanism.norm) / self.least_value - 1

    @property
    def candidates(self) -> pa.Table:
        """Every operator that was tried: its strategy's RMSE, or the reason why it has none or counts value by value.

        The RMSE is at the budget of the plan, or without one at ε = 1 (Gaussian: δ = 1e-6).
        """
        import pyarrow as pa

        columns = ("operator", "rmse", "seconds", "certificate", "seed", "reason")
        types = (pa.string(), pa.float64(), pa.float64(), pa.float64(), pa.int64(), pa.string())
        rows = [[getattr(candidate, column) for candidate in self.search] for column in columns]
        return pa.table([pa.array(row, type) for row, type in zip(rows, types, strict=True)], names=columns)

    def rmse(self, budget: Budget) -> float:
        """The predicted root mean squared error over all queries, weights included: what the plan minimises.

        It is an upper bound if the errors of the plan are.
        """
        return rmse(self.mechanism.estimator, self.workload.encoded.products, self.mechanism.calibrate(budget))

    def worst(self, budget: Budget) -> float:
        """The largest standard error of any answer, weights included: what ``objective="max"`` minimises."""
        encoded, noise = self.workload.encoded, self.mechanism.calibrate(budget).variances
        return sqrt(Objective.largest(encoded).ratios(self.mechanism.estimator, encoded, noise).max())

    def bound(self, budget: Budget) -> float | None:
        """A lower bound for every strategy of integer queries on what the plan makes small; None if none is known.

        On the RMSE; under ``objective="max"`` on the largest weighted standard error; with targets on the largest ratio
        of a standard error to the one at which a normal margin just keeps its target. It holds for the integer noise
        that is added: if that falls to zero, as it does for counts at very large budgets, so does the bound.
        """
        budget.check(self.noise)
        if self.least_value is None:
            return None
        queries = self.workload.query_count if self._objective.limits is None else 1
        return sqrt(unit_variance(self.noise, budget, self.unit.rows) * self.least_value / queries)

    def accuracy(self, name: str, budget: Budget, level: float = 0.95, *, simultaneous: bool = False) -> Accuracy:
        """The standard error and the margin, at a level of confidence, of every answer to a product.

        With ``simultaneous`` all answers to the product are within their margins together with that confidence.

        Arguments:
            name: The name of the product.
            budget: The budget of the release.
            level: How likely an answer is within its margin.
            simultaneous: Make all answers be within their margins together at that level.
        """
        key = (name, budget, level, simultaneous)
        if key not in self._accuracies:
            product = self.workload.encoded.products[self.workload.place(name)]
            check_listed(product)
            noise = self.mechanism.calibrate(budget)
            self._accuracies[key] = accuracy(self.mechanism.estimator, product, noise, level, together=simultaneous)
        return self._accuracies[key]

    @cached_property
    def _accuracies(self) -> dict[tuple[str, Budget, float, bool], Accuracy]:
        return {}

    def errors(self, budget: Budget) -> pa.Table:
        """One row per product: its predicted RMSE, largest standard error and 95% margin, without weights.

        Beside them the RMSE of Identity and of the plain mechanism for the same workload and budget, and a lower
        bound for the product on its own.
        """
        from hdmm.plans.error_table import error_table

        return error_table(self, budget)

    def least_budget(self, delta: str | None = None) -> Budget:
        """The least budget, to four digits, at which every answer keeps its target.

        ε for Laplace noise; for Gaussian noise ρ, or with ``delta`` the ε beside it.
        """
        from hdmm.plans.least_budget import least_budget

        return least_budget(self, delta)

    def target_margins(self, budget: Budget) -> pa.Table:
        """For every target and product its predicted margin at a budget, and whether it drives the budget."""
        from hdmm.plans.least_budget import target_margins

        return target_margins(self, budget)

    def describe(self, budget: Budget) -> str:
        """The predicted error of every product as text."""
        from hdmm.plans.describe import describe

        return describe(self, budget)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the plan to a file; an existing one is replaced only with ``overwrite=True``.

        Arguments:
            path: The plan file.
            overwrite: Replace an existing file.
        """
        from hdmm.plans.file import save

        save(self, Path(path), overwrite=overwrite)

    @staticmethod
    def load(path: str | Path, *, memory: str | int | None = None) -> Plan:
        """Read a plan; refuse one that is damaged, claims a wrong sensitivity or cannot answer its workload.

        Arguments:
            path: The plan file.
            memory: Memory limit for the release, such as "8GB" (default: half of RAM). A plan whose release would take
                more is refused.
        """
        from hdmm.plans.file import load

        with memory_allowed(memory):
            return load(Path(path))
