"""One candidate of a search, as plans list it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Candidate:
    """One operator that was tried: the error of its strategy, and how far from optimal it can be; or why it has none.

    Errors are at the budget of the plan, or without one at ε = 1 (Gaussian: δ = 1e-6).
    """

    operator: str
    rmse: float | None
    seconds: float
    certificate: float | None
    seed: int | None = None
    worst: float | None = None
    """The root of what is made small, if that is not the total: the largest weighted standard error, or the largest
    ratio of a margin to its target."""
    rounding: float = 0.0
    """What rounding its queries to integers added to the RMSE, as a share of it."""
    reason: str | None = None
    """Why the operator has no strategy, or what of its strategy is not optimised."""

    @property
    def error(self) -> float | None:
        """The error by which candidates are compared."""
        return self.rmse if self.worst is None else self.worst
