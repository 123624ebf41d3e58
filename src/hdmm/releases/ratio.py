"""The ratio of two counts with an interval that holds, from the law of both errors together.

The ratio of a to b is the p with a − p·b = 0. Every such combination is a linear query with an exact margin, and p is
kept if the combination is within its margin of zero. For Gaussian noise this is Fieller's interval. Nothing is
linearised, so the interval holds even if b is small.
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

_TOLERANCE = 1e-3
"""The ends of an interval are found to this share of their distance from the ratio, and moved outward by it."""
_MAX_ROUNDS = 8
"""Most iterations for an end of an interval."""
_POWERS: tuple[Power, ...] = (2, 4, 6)
_MAX_COEFFICIENTS = 1 << 24
"""Most coefficients of one combination that are written out."""


@final
@dataclass(frozen=True)
class Ratio:
    """A ratio of two counts with its interval, infinite if the denominator may be zero."""

    value: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        """Whether the interval is finite."""
        return isfinite(self.low) and isfinite(self.high)


@final
@dataclass(frozen=True)
class Law:
    """The joint law of the errors of two counts a and b: their coefficients of the same noise variables."""

    noise: Calibration
    blocks: tuple[tuple[Written, Array], ...]
    """For every measured block the coefficients of a, and in the same order those of b."""

    def covariance(self) -> tuple[float, float, float]:
        """The variances of a and b, and their covariance."""
        a, b, both = (self._variance(s, t) for s, t in ((1, 0), (0, 1), (1, 1)))
        return a, b, (a + b - both) / 2

    def _combined(self, s: float, t: float) -> list[Written]:
        """The coefficients of s·a − t·b."""
        return [replace(a, values=s * a.values - t * b_values) for a, b_values in self.blocks]

    def _variance(self, s: float, t: float) -> float:
        return sum(self.noise.variances[part.block] * float(part.power_sum(2)) for part in self._combined(s, t))

    def margin(self, s: float, t: float, level: float) -> float:
        """The margin of s·a − t·b."""
        scales, variances = self.noise.scales, self.noise.variances
        parts = self._combined(s, t)
        if self.noise.kind == "gaussian":
            coarse = [part for part in parts if scales[part.block] < FINE]
            if not coarse:
                return normal_margin(sqrt(self._variance(s, t)), level)
            covered = sum(
                normal_cover(float(scales[part.block]), variances[part.block]) * float(part.power_sum(2))
                for part in parts
            )
            half_step = max(float(part.largest()) for part in coarse) / 2
            return min(normal_margin(sqrt(covered), level) + half_step, chebyshev(level) * sqrt(self._variance(s, t)))
        second, fourth, sixth = (
            sum(float(cumulants(variances[part.block])[place]) * float(part.power_sum(power)) for part in parts)
            for place, power in enumerate(_POWERS)
        )
        largest = max(float(part.largest()) for part in parts)
        many_terms = float(many_terms_margin(second, fourth, sixth, largest, level))
        if not isnan(many_terms):
            return many_terms
        check_size(sum(part.values.size * prod(other.width for other in part.others) for part in parts))
        entries = [(float(scales[part.block]), *part.at(())) for part in parts]
        return margin(
            np.concatenate([np.full(len(sizes), scale) for scale, sizes, _ in entries]),
            np.concatenate([sizes for _, sizes, _ in entries]),
            np.concatenate([often for *_, often in entries]),
            level,
        )


def interval(a: float, b: float, law: Law, level: float) -> Ratio:
    """All p for which a − p·b is within its margin of zero.

    If b is within its margin of zero, so is a − p·b for all large p. Otherwise the set is an interval, as margins of
    log-concave noise are convex in p. Each end is Fieller's, with the margin in standard errors at that end.
    """
    value = a / b if b else nan
    if abs(b) <= law.margin(0, 1, level):
        return Ratio(value, -inf, inf)
    var_a, var_b, cov = law.covariance()
    start, slope = max(var_a - 2 * value * cov + value**2 * var_b, 0.0), value * var_b - cov

    def end(side: int, p: float) -> float:
        """The end by the margin at p: infinite if b could be zero by that margin."""
        s, t = (1.0, p) if isfinite(p) else (0.0, 1.0)
        variance = s**2 * var_a - 2 * s * t * cov + t**2 * var_b
        if variance <= ROUNDING * (s**2 * var_a + t**2 * var_b):
            return value
        square = law.margin(s, t, level) ** 2 / variance
        leading = b**2 - square * var_b
        if leading <= 0:
            return side * inf
        # (p − value)²·b² = square·(variance of a − p·b), solved for p − value
        root = sqrt((square * slope) ** 2 + leading * square * start)
        return value + (square * slope + side * root) / leading

    ends = []
    for side in (-1, 1):
        before, now = value, end(side, value)
        for _ in range(_MAX_ROUNDS):
            before, now = now, end(side, now)
            if before == now or (isfinite(now) and abs(now - before) <= _TOLERANCE * abs(now - value)):
                break
        furthest = side * max(side * before, side * now)  # margins may not settle if the noise has large steps
        ends.append(furthest + _TOLERANCE * (furthest - value))
    return Ratio(value, *ends)


def check_size(coefficients: int) -> None:
    """Refuse to write out more coefficients than memory holds."""
    if coefficients > _MAX_COEFFICIENTS:
        raise TooLargeError(
            f"the error has {coefficients} different coefficients, the limit is {_MAX_COEFFICIENTS}; "
            "use conditions on fewer attributes"
        )
