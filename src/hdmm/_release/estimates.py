"""From measurements to the rows of any product, by the estimator that is asked for; each is made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm._release.how import USUAL, How
from hdmm._release.rows import ROWS, Rows, labels
from hdmm.accuracy import ROUNDING, Accuracy, accuracy
from hdmm.errors import FaultError
from hdmm.matrix import Array
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import Calibration
from hdmm.reconstruct.estimate import Estimate
from hdmm.reconstruct.graphical import graphical_model
from hdmm.reconstruct.nonnegative import nonnegative
from hdmm.reconstruct.rounding import round_answers
from hdmm.strategy import JointStrategy, Strategy
from hdmm.workload import EncodedProduct, Product

_LOCAL = "least squares on one block"
_GLOBAL = "least squares"


@final
@dataclass(frozen=True, eq=False)
class Estimates:
    """What was measured, and all that was made of it so far."""

    plan: Plan
    budget: Budget
    measurements: Sequence[NDArray[Any]]

    def rows(
        self,
        product: Product,
        encoded: EncodedProduct,
        how: How,
        *,
        on_progress: Callable[[float], None] | None = None,
    ) -> Rows:
        """The rows of a product that the measurements can tell."""
        predicted: Accuracy | None = None
        if how.biased:
            estimate = self._biased(how.estimator)
            answers, named = estimate.answer(encoded), estimate.estimator
        else:
            strategy = self._strategy(how)
            answers, named = strategy.answer(encoded, self.state(how.estimator)), self._named(how)
            predicted = self._accuracy(strategy, encoded, how, on_progress)
        estimates = None
        if how.rounded:
            estimates, answers, named = answers, round_answers(answers, encoded), f"{named}, rounded"
        own = labels(self.plan.workload.schema, product.predicates)
        usual = how.estimator == "global" and not how.rounded
        return Rows(own, answers, predicted, self._rounding, None if usual else named, estimates)

    @property
    def usual(self) -> How:
        """What is published: least squares over everything; should that not settle, over one block for each table."""
        try:
            self.state()
        except FaultError:
            return How(estimator="local")
        return USUAL

    @cached_property
    def _noise(self) -> Calibration:
        return self.plan.calibrate(self.budget)

    def _strategy(self, how: How) -> Strategy:
        if how.estimator == "local":
            return self.plan.strategy
        return self.exact if how.exact else self.plan.estimator

    @cached_property
    def exact(self) -> Strategy:
        """The plan's estimator, with exact errors where it has upper bounds: one solve for each answer."""
        strategy = self.plan.estimator
        return replace(strategy, solved=True) if isinstance(strategy, JointStrategy) and strategy.bounded else strategy

    def _named(self, how: How) -> str:
        several = self.plan.estimator is not self.plan.strategy
        return _LOCAL if how.estimator == "local" and several else _GLOBAL

    def _accuracy(
        self, strategy: Strategy, encoded: EncodedProduct, how: How, on_progress: Callable[[float], None] | None
    ) -> Accuracy:
        if strategy is self.plan.estimator and id(encoded) in self._planned:
            return self.plan.accuracy(encoded.name, self.budget, how.level, simultaneous=how.simultaneous)
        return accuracy(strategy, encoded, self._noise, how.level, together=how.simultaneous, on_progress=on_progress)

    def state(self, estimator: str = "global") -> Any:
        """What least squares makes of the measurements."""
        local = self.plan.estimator is self.plan.strategy or estimator == "local"
        if local not in self._states:
            strategy = self.plan.strategy if local else self.plan.estimator
            self._states[local] = strategy.reconstruct(self.measurements, self._noise.variances)
        return self._states[local]

    def _biased(self, estimator: str) -> Estimate:
        if estimator not in self._estimates:
            plan, noise = self.plan, self._noise.variances
            if estimator == "pgm":
                found: Estimate = graphical_model(plan.estimator, self.measurements, noise)
            else:
                found = nonnegative(plan.estimator, plan.workload.encoded, self.measurements, noise)
            self._estimates[estimator] = found
        return self._estimates[estimator]

    @cached_property
    def _planned(self) -> frozenset[int]:
        """The plan's own products, whose errors it knows already."""
        return frozenset(map(id, self.plan.workload.encoded.products))

    @cached_property
    def _states(self) -> dict[bool, Any]:
        return {}

    @cached_property
    def _estimates(self) -> dict[str, Estimate]:
        return {}

    @cached_property
    def _rounding(self) -> float:
        """What floating point may have done to an answer at most, where it is not a sum of integers."""
        pairs = zip(self.plan.strategy.blocks, self.measurements, strict=True)
        return ROUNDING * max(1.0, *(float(block.weight) * _size(array) for block, array in pairs))


def _size(array: Array) -> float:
    """The sum of the sizes of all numbers, some at a time."""
    parts = (array[start : start + ROWS] for start in range(0, len(array), ROWS))
    return sum(float(np.abs(part.astype(float)).sum()) for part in parts)
