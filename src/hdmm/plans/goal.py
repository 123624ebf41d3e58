"""What a plan is made for: which errors are to be small, and at which budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from hdmm.accuracy.margins import normal_margin
from hdmm.objective import Aim, Objective
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import NoiseKind
from hdmm.workload import Workload
from hdmm.workload.targets import Target, by_product

_USUAL: dict[NoiseKind, tuple[Budget, ...]] = {
    "laplace": tuple(Budget(epsilon) for epsilon in ("1", "0.1", "0.3", "3")),
    "gaussian": tuple(Budget(epsilon, "1e-6") for epsilon in ("1", "0.1", "0.3", "3")),
}
"""The budgets that stand for the usual range. The first, that of the paper's tables, is the one that is reported."""


@final
@dataclass(frozen=True)
class Goal:
    """The total error or the largest one, or margins to keep; and the budget, if it is known."""

    aim: Aim = "total"
    targets: Mapping[str, Target] = field(default_factory=dict)
    """Margins that products are to keep: the plan is then the one that meets them with the least budget."""
    budget: Budget | None = None
    """The budget that the plan is made for; None for a plan that is good over the usual range."""

    def budgets(self, noise: NoiseKind) -> tuple[Budget, ...]:
        """Where candidates are compared; their errors are reported at the first."""
        return _USUAL[noise] if self.budget is None else (self.budget,)

    def objective(self, workload: Workload) -> Objective:
        """What is to be small: with targets, the largest ratio of a variance to the one that a normal margin allows."""
        if not self.targets:
            return Objective() if self.aim == "total" else Objective.largest(workload.encoded)
        limits = [
            min((float(target.margin) / normal_margin(1.0, float(target.level))) ** 2 for _, target in targets)
            if targets
            else None
            for targets in by_product(workload, self.targets)
        ]
        return Objective(tuple(limits))
