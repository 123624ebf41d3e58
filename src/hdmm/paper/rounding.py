"""The cost of rounding strategies to integers, beside the paper's numbers: only integer queries can be measured."""

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

MAX_ROUNDING_COST = 1e-4
"""The most that rounding a strategy to integers may add to the RMSE, as a share of it."""


@final
@dataclass(frozen=True)
class Loss:
    """The total squared error of a strategy at unit noise, and that of the strategy rounded to integers.

    None if the integers would be too large to be measured.
    """

    squared: float
    rounded: float | None

    @property
    def rounding(self) -> float | None:
        """The cost of rounding, as a share of the RMSE."""
        return None if self.rounded is None else sqrt(self.rounded / self.squared) - 1

    @property
    def note(self) -> str:
        """The cost of rounding, in words."""
        return "too large to be measured" if self.rounding is None else f"rounded {self.rounding:+.1e}"


def best_loss(losses: Sequence[Loss]) -> Loss:
    """The least error of all strategies, and of all that can be measured."""
    measurable = [loss.rounded for loss in losses if loss.rounded is not None]
    return Loss(min(loss.squared for loss in losses), min(measurable, default=None))


def rounded_loss(strategy: Strategy, encoded: Encoded, norm: Norm) -> float | None:
    """The total squared error with integer queries; None if those would be too large to be measured."""
    try:
        quantised = quantise(strategy, encoded, norm)
    except TooLargeError:
        return None
    assert isinstance(quantised, Quantised)
    return loss(quantised.estimator, encoded, norm)
