"""The mechanism: a strategy, measured with one kind of noise to protect one privacy unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from hdmm.estimators.estimator import LinearEstimator
from hdmm.estimators.least_squares import least_squares, local_least_squares
from hdmm.matrix import Norm
from hdmm.privacy.budget import Budget, check_budget
from hdmm.privacy.calibrate import NORM, Calibration, NoiseKind, calibrate
from hdmm.privacy.unit import Unit
from hdmm.strategy import Block, Change, Strategy


@final
@dataclass(frozen=True, eq=False)
class Mechanism:
    """What is measured, with which noise, and how answers follow from it."""

    strategy: Strategy
    noise: NoiseKind
    unit: Unit

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What is measured, block by block."""
        return self.strategy.blocks

    @property
    def norm(self) -> Norm:
        """The norm of sensitivities: 1 for Laplace noise, 2 for Gaussian."""
        return NORM[self.noise]

    @cached_property
    def estimator(self) -> LinearEstimator[Any]:
        """How answers follow from the measurements: least squares over all of them if that is not too large."""
        return least_squares(self.strategy)

    @cached_property
    def local(self) -> LinearEstimator[Any]:
        """Least squares as the strategy's family does it; for a union, each product from one block."""
        return local_least_squares(self.strategy)

    @cached_property
    def compared(self) -> LinearEstimator[Any]:
        """What the search compared: least squares over all blocks if its errors are exact, else ``local``."""
        return self.local if self.estimator.totals_bounded else self.estimator

    @cached_property
    def change(self) -> Change:
        """By how much one privacy unit can change the measurements: computed from the strategy alone."""
        return self.unit.change(self.blocks, self.norm)

    def calibrate(self, budget: Budget) -> Calibration:
        """The noise that the budget asks for on each block."""
        check_budget(budget)
        if budget not in self._calibrations:
            self._calibrations[budget] = calibrate(self.blocks, self.noise, budget, self.change)
        return self._calibrations[budget]

    @cached_property
    def _calibrations(self) -> dict[Budget, Calibration]:
        return {}
