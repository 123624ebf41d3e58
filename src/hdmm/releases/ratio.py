"""The ratio of two counts with an interval that holds, from the law of both errors together.

A ratio of a to b is the p where a − p·b = 0. Every such combination is a linear query with an exact margin, and p is
kept if the combination is within its margin of zero. For Gaussian noise that is Fieller's interval. Nothing is
linearised, so the interval also holds where b is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, nan, prod, sqrt
from typing import final

import numpy as np

from hdmm.accuracy.margins import chebyshev, cumulants, many_terms_margin, margin, normal_cover, normal_margin
from hdmm.accuracy.predict import FINE, ROUNDING
from hdmm.errors import TooLargeError
from hdmm.estimators.coefficients import Written
from hdmm.estimators.row_types import Power
from hdmm.matrix import Array
from hdmm.privacy.calibrate import Calibration

_CLOSE = 1e-3
"""The ends of an interval are found to this share of their distance from the ratio, and moved outward by it."""
_ROUNDS = 8
_POWERS: tuple[Power, ...] = (2, 4, 6)
_COEFFICIENTS = 1 << 24
"""The most coefficients of one combination that are written out."""


@final
@dataclass(frozen=True)
class Ratio:
    """A ratio of two counts with its interval, infinite where the count below the line may be zero."""

    value: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        """Whether there is a finite interval."""
        return isfinite(self.low) and isfinite(self.high)


@final
@dataclass(frozen=True)
class Law:
    """The joint law of the errors of two counts a and b: the noises that both hold, with the coefficients of each."""

    noise: Calibration
    blocks: tuple[tuple[Written, Array], ...]
    """The coefficients in a, and in the same order those in b."""

    def covariance(self) -> tuple[float, float, float]:
        """The variances of a and b, and their covariance."""
        a, b, both = (self._variance(s, t) for s, t in ((1, 0), (0, 1), (1, 1)))
        return a, b, (a + b - both) / 2

    def _combined(self, s: float, t: float) -> list[Written]:
        return [replace(one, values=s * one.values - t * other) for one, other in self.blocks]

    def _variance(self, s: float, t: float) -> float:
        return sum(self.noise.variances[one.block] * float(one.power_sum(2)) for one in self._combined(s, t))

    def margin(self, s: float, t: float, level: float) -> float:
        """The margin of s·a − t·b."""
        scales, variances = self.noise.scales, self.noise.variances
        parts = self._combined(s, t)
        if self.noise.kind == "gaussian":
            coarse = [one for one in parts if scales[one.block] < FINE]
            if not coarse:
                return normal_margin(sqrt(self._variance(s, t)), level)
            covered = sum(
                normal_cover(float(scales[one.block]), variances[one.block]) * float(one.power_sum(2)) for one in parts
            )
            steps = max(float(one.largest()) for one in coarse) / 2
            return min(normal_margin(sqrt(covered), level) + steps, chebyshev(level) * sqrt(self._variance(s, t)))
        second, fourth, sixth = (
            sum(float(cumulants(variances[one.block])[place]) * float(one.power_sum(power)) for one in parts)
            for place, power in enumerate(_POWERS)
        )
        found = float(many_terms_margin(second, fourth, sixth, max(float(one.largest()) for one in parts), level))
        if not isnan(found):
            return found
        check_size(sum(one.values.size * prod(other.width for other in one.others) for one in parts))
        entries = [(float(scales[one.block]), *one.at(())) for one in parts]
        return margin(
            np.concatenate([np.full(len(sizes), scale) for scale, sizes, _ in entries]),
            np.concatenate([sizes for _, sizes, _ in entries]),
            np.concatenate([often for *_, often in entries]),
            level,
        )


def interval(a: float, b: float, law: Law, level: float) -> Ratio:
    """All p for which a − p·b is within its margin of zero.

    Where b is within its margin of zero, so is a − p·b for all large p. Otherwise the set is an interval, as margins of
    log-concave noise are convex in p. Each end is Fieller's, with the margin counted in standard errors at the end.
    """
    value = a / b if b else nan
    if abs(b) <= law.margin(0, 1, level):
        return Ratio(value, -inf, inf)
    var_a, var_b, cov = law.covariance()
    start, slope = max(var_a - 2 * value * cov + value**2 * var_b, 0.0), value * var_b - cov

    def end(side: int, p: float) -> float:
        """The end by the margin at p, which is infinite where b could be zero by it."""
        s, t = (1.0, p) if isfinite(p) else (0.0, 1.0)
        variance = s**2 * var_a - 2 * s * t * cov + t**2 * var_b
        if variance <= ROUNDING * (s**2 * var_a + t**2 * var_b):
            return value
        square = law.margin(s, t, level) ** 2 / variance
        left = b**2 - square * var_b
        # (p − value)²·b² = square·(variance of a − p·b), solved for p − value
        root = sqrt((square * slope) ** 2 + left * square * start) if left > 0 else inf
        return value + (square * slope + side * root) / left if left > 0 else side * inf

    ends = []
    for side in (-1, 1):
        before, now = value, end(side, value)
        for _ in range(_ROUNDS):
            before, now = now, end(side, now)
            if before == now or (isfinite(now) and abs(now - before) <= _CLOSE * abs(now - value)):
                break
        furthest = side * max(side * before, side * now)  # of noise with large steps, margins may not settle
        ends.append(furthest + _CLOSE * (furthest - value))
    return Ratio(value, *ends)


def check_size(coefficients: int) -> None:
    """Refuse to write out more than memory holds."""
    if coefficients > _COEFFICIENTS:
        raise TooLargeError(
            f"the error depends on {coefficients} measurements in its own way, the limit is {_COEFFICIENTS}; "
            "use conditions on fewer attributes"
        )
