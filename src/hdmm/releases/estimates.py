"""From measurements to the rows of any product, by any estimator; each estimator runs once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm.accuracy.predict import ROUNDING, Accuracy, accuracy
from hdmm.errors import FaultError, WorkloadError
from hdmm.estimators import Choice, LeastSquares, Local
from hdmm.estimators.estimator import Estimator, LinearEstimator
from hdmm.matrix import Array
from hdmm.plans import Plan
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import Calibration
from hdmm.progress import OnProgress, stage
from hdmm.releases.options import USUAL, TableOptions
from hdmm.releases.rounding import round_answers
from hdmm.releases.rows import Rows, labels, pieces
from hdmm.workload import EncodedProduct, Product

NO_BLOCK = 'no single block of the release determines it; use estimator="global", which combines all of them'


@final
@dataclass(frozen=True, eq=False)
class Estimates:
    """The measurements of a release, and the estimates computed from them so far."""

    plan: Plan
    budget: Budget
    measurements: tuple[NDArray[Any], ...]

    def rows(
        self,
        product: Product,
        encoded: EncodedProduct,
        options: TableOptions,
        on_progress: OnProgress | None = None,
    ) -> Rows:
        """The rows of a product that the measurements determine."""
        if options.estimator == Local() and not self.plan.mechanism.local.supports(encoded):
            raise WorkloadError(f"product {product.name!r}: {NO_BLOCK}")
        estimator, state = self.estimator(options.estimator), self.state(options.estimator)
        answers, label = estimator.answer(encoded, state), estimator.label(state)
        linear = estimator.linear
        predicted = None if linear is None else self._accuracy(linear, encoded, options, on_progress)
        estimates = None
        if options.rounded:
            estimates, answers, label = answers, round_answers(answers, encoded), f"{label}, rounded"
        usual = options.estimator == USUAL.estimator and not options.rounded
        columns = labels(self.plan.workload.schema, product.predicates)
        return Rows(columns, answers, predicted, self._rounding, None if usual else label, estimates)

    @property
    def usual(self) -> TableOptions:
        """The options of published tables: least squares over everything; if that does not converge, block by block."""
        try:
            self.state(LeastSquares())
        except FaultError:
            return TableOptions(estimator=Local())
        return USUAL

    def estimator(self, choice: Choice) -> Estimator[Any]:
        """The estimator of this kind."""
        if choice not in self._estimators:
            mechanism = self.plan.mechanism
            self._estimators[choice] = choice.estimator(mechanism.strategy, self.plan.workload.encoded)
        return self._estimators[choice]

    def state(self, choice: Choice) -> Any:
        """The state that an estimator reconstructs from the measurements."""
        estimator = self.estimator(choice)
        if estimator not in self._states:
            self._states[estimator] = estimator.reconstruct(self.measurements, self.noise.variances)
        return self._states[estimator]

    @cached_property
    def exact(self) -> LinearEstimator[Any]:
        """Least squares with exact errors, if need be by one solve per answer; its state is that of least squares."""
        return self.plan.mechanism.estimator.exact()

    @cached_property
    def noise(self) -> Calibration:
        """The noise on the measurements."""
        return self.plan.mechanism.calibrate(self.budget)

    @cached_property
    def _estimators(self) -> dict[Choice, Estimator[Any]]:
        estimator, local = self.plan.mechanism.estimator, self.plan.mechanism.local
        return {LeastSquares(): estimator, Local(): estimator if local.consistent else local}

    @cached_property
    def _states(self) -> dict[Estimator[Any], Any]:
        return {}

    def _accuracy(
        self,
        estimator: LinearEstimator[Any],
        encoded: EncodedProduct,
        options: TableOptions,
        on_progress: OnProgress | None,
    ) -> Accuracy:
        if options.exact and estimator.bounded:
            estimator = self.exact
        if estimator is self.plan.mechanism.estimator and id(encoded) in self._planned:
            return self.plan.accuracy(encoded.name, self.budget, options.level, simultaneous=options.simultaneous)
        report = stage(on_progress, "computing margins")
        together = options.simultaneous
        return accuracy(estimator, encoded, self.noise, options.level, together=together, on_progress=report)

    @cached_property
    def _planned(self) -> frozenset[int]:
        """The identities of the plan's own products, whose errors it knows already."""
        return frozenset(map(id, self.plan.workload.encoded.products))

    @cached_property
    def _rounding(self) -> float:
        """Upper bound on the rounding error of an answer that is not a sum of integers."""
        pairs = zip(self.plan.mechanism.blocks, self.measurements, strict=True)
        return ROUNDING * max(1.0, *(float(block.weight) * _absolute_sum(array) for block, array in pairs))


def _absolute_sum(array: Array) -> float:
    return sum(float(np.abs(part.astype(float)).sum()) for part in pieces(array))
