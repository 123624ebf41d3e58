"""What rounding a strategy to integers costs, beside the paper's numbers: integers are what can be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import final

from hdmm.errors import TooLargeError
from hdmm.estimators.estimator import loss
from hdmm.matrix import Norm
from hdmm.selection.quantise import Quantised, quantise
from hdmm.strategy import Strategy
from hdmm.workload import Encoded

ROUNDING = 1e-4
"""How much of the RMSE rounding a strategy to integers may cost."""


@final
@dataclass(frozen=True)
class Loss:
    """The total squared error of a strategy at unit noise; rounded to integers, if they are not too large for that."""

    squared: float
    rounded: float | None

    @property
    def rounding(self) -> float | None:
        """What rounding costs, as a share of the RMSE."""
        return None if self.rounded is None else sqrt(self.rounded / self.squared) - 1

    @property
    def note(self) -> str:
        """What rounding costs, in words."""
        return "too large to be measured" if self.rounding is None else f"rounded {self.rounding:+.1e}"


def best_loss(losses: Sequence[Loss]) -> Loss:
    """The least error of all strategies, and of all that can be measured."""
    measurable = [one.rounded for one in losses if one.rounded is not None]
    return Loss(min(one.squared for one in losses), min(measurable, default=None))


def rounded(strategy: Strategy, encoded: Encoded, norm: Norm) -> float | None:
    """Its total squared error with integer queries; None where those would be too large to be measured."""
    try:
        quantised = quantise(strategy, encoded, norm)
    except TooLargeError:
        return None
    assert isinstance(quantised, Quantised)
    return loss(quantised.estimator, encoded, norm)
