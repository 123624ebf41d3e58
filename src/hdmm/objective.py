"""The objective of a search: the total squared error, or the largest error of any answer.

For the largest error, every product may have a limit on the variance of its answers. The objective is then the largest
ratio of a variance to its limit, over all rows of all products: the worst row, not the mean. Products without a limit
are answered too, but their errors do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from hdmm.estimators.estimator import LinearEstimator, Noise, loss, types_of, worst_variance
from hdmm.matrix import Array, Norm
from hdmm.workload import Encoded

Aim = Literal["total", "max"]
"""The error to make small: that of all answers together, or the largest one."""


@final
@dataclass(frozen=True)
class Objective:
    """The total squared error; or with limits, one for each product or None, the largest variance relative to them."""

    limits: tuple[float | None, ...] | None = None

    @staticmethod
    def largest(workload: Encoded) -> Objective:
        """The largest weighted standard error: a weight w makes an error count w times."""
        return Objective(tuple(1 / float(product.weight) ** 2 for product in workload.products))

    def value(self, estimator: LinearEstimator[Any], workload: Encoded, norm: Norm) -> float:
        """The objective under a strategy, at unit noise."""
        if self.limits is None:
            return loss(estimator, workload, norm)
        return float(self.ratios(estimator, workload, estimator.strategy.unit_noise(norm)).max())

    def ratios(self, estimator: LinearEstimator[Any], workload: Encoded, noise: Noise) -> Array:
        """For every product the largest variance of an answer over the limit; 0 without a limit."""
        assert self.limits is not None
        means = estimator.squared_errors(workload.products, noise)
        ratios = np.zeros(len(workload.products))
        for number, (product, limit) in enumerate(zip(workload.products, self.limits, strict=True)):
            if limit is None:
                continue
            types = types_of(estimator, product)
            one_type = product.axes and all(len(row_types) == 1 for row_types in types)  # then the mean is the worst
            worst = means[number] / product.queries if one_type else worst_variance(estimator, product, noise)
            ratios[number] = worst / limit
        return ratios
