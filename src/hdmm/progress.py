"""Progress of long work, as it is reported to the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Progress:
    """What `on_progress` receives: a stage begins, advances or ends."""

    stage: str
    """What runs: the operator that is tried, or "counting records", "adding noise", "computing margins",
    "writing tables"."""
    done: float | None = None
    """The share of the stage that is done, from 0 to 1; None if it is not known."""
    error: float | None = None
    """Of an operator that is done: the error that candidates are compared by. It is the RMSE, or under
    ``objective="max"`` the largest weighted standard error, or with targets the largest ratio of a margin to its
    target; at the budget that was given, else at ε = 1 (Gaussian: δ = 1e-6)."""
    best: float | None = None
    """The least error so far."""
    bound: float | None = None
    """No strategy has a lower error."""
    reason: str | None = None
    """Why the operator has no candidate."""
    interrupted: bool = False
    """Whether the search was cut short, and its best candidate so far is kept."""


OnProgress = Callable[[Progress], None]


def stage(on_progress: OnProgress | None, name: str) -> Callable[[float], None]:
    """A function that reports how much of a stage is done."""
    if on_progress is None:
        return lambda done: None
    return lambda done: on_progress(Progress(name, done))
