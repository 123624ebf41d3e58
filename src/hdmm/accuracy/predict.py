"""Predicted standard errors and margins for every answer, from the strategy and its noise alone.

Answers are grouped by the types of their rows: answers of one combination of types err alike. Standard errors and the
margins of sums of many terms are computed for all combinations at once; sums of few terms are inverted one by one,
equal ones once; if they are too many, all get bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, prod, sqrt
from typing import Any, final

import numpy as np

from hdmm.accuracy.margins import (
    chebyshev,
    cumulants,
    expansion_bound,
    many_terms_margin,
    margin,
    normal_cover,
    normal_margin,
    rounded_margin,
    simultaneous,
    worst_margin,
)
from hdmm.estimators.coefficients import Coefficients
from hdmm.estimators.estimator import LinearEstimator, Noise, in_pieces, types_of
from hdmm.estimators.row_types import RowTypes, merge_close
from hdmm.matrix import Array
from hdmm.privacy.calibrate import Calibration
from hdmm.workload import EncodedProduct

FINE = 8
"""The least σ at which the steps of rounded Gaussian noise do not show."""
ROUNDING = 2.0**-40
"""What floating point may add to a sum of numbers, as a share of the sum of their sizes. Intervals are wider by it."""
_MAX_REST = 1e-12
"""A sum counts as a single term if all others together have at most this share of its squared coefficient."""
_MAX_INVERTED = 1 << 12
"""The most different sums of few terms that are inverted, in tens of milliseconds each; if there are more, all get a
bound: for prefixes under H2 and ε = 1 a few percent wider."""
_MAX_TERMS = 1 << 22
"""The most terms of all sums that are inverted, for the same reason."""
_SLACK = 1e-9
"""Added to margins off the integers, so that rounding in answer ± margin cannot lose the outermost value."""


@final
@dataclass(frozen=True)
class Accuracy:
    """Standard error and margin for each combination of row types; answers of one combination err alike."""

    types: tuple[RowTypes, ...]
    stderr: Array
    margin: Array
    bounded: bool = False
    """Whether both are upper bounds, from answers that err no less."""

    def expand(self, values: Array, start: int = 0, stop: int | None = None) -> Array:
        """One value per combination of types, as one value per answer, for the answers from start to before stop."""
        shape = [len(types.labels) for types in self.types]
        stop = prod(shape) if stop is None else stop
        if values.size == 1:
            return np.full(stop - start, values.item())
        places = np.unravel_index(np.arange(start, stop), shape)
        return values[tuple(types.labels[place] for types, place in zip(self.types, places, strict=True))]


def accuracy(
    estimator: LinearEstimator[Any],
    product: EncodedProduct,
    noise: Calibration,
    level: float = 0.95,
    *,
    together: bool = False,
    on_progress: Callable[[float], None] | None = None,
) -> Accuracy:
    """The standard error and the margin of every answer to a product, at a level for each answer or all ``together``.

    They are upper bounds if the estimator's errors are.
    """
    if together:
        level = simultaneous(level, product.queries)
    if product.total is not product:
        return _of_multiples(estimator, product, noise, level)
    types = types_of(estimator, product)
    errors = []
    done = 0
    for piece in in_pieces(estimator, product, types):
        errors.append(_errors(estimator, product, piece, noise, level))
        done += len(piece[0]) if piece else 1
        if on_progress is not None:
            on_progress(done / (len(types[0]) if types else 1))
    stderr, margins = errors[0] if not types else (np.concatenate(pieces) for pieces in zip(*errors, strict=True))
    return Accuracy(types, stderr, margins, estimator.bounded)


def rmse(
    estimator: LinearEstimator[Any], products: Sequence[EncodedProduct], noise: Calibration, *, weighted: bool = True
) -> float:
    """The root mean squared error of the answers to some products; with weights, or without."""
    squares = np.array([float(product.weight) ** 2 if weighted else 1.0 for product in products])
    total = float(squares @ estimator.squared_errors(products, noise.variances))
    return sqrt(total / sum(product.queries for product in products))


def _of_multiples(
    estimator: LinearEstimator[Any], product: EncodedProduct, noise: Calibration, level: float
) -> Accuracy:
    """The accuracy of multiples of the total, whose errors are multiples of its error."""
    distinct, labels = np.unique(abs(product.multiples), return_inverse=True)
    types = RowTypes.of(labels, distinct[:, None, None], np.ones((len(distinct), 1)))
    if product.empty:
        return Accuracy((types,), np.zeros(1), np.zeros(1))
    total = accuracy(estimator, product.total, noise, level)
    return Accuracy((types,), distinct * total.stderr, distinct * total.margin, total.bounded)


def _errors(
    estimator: LinearEstimator[Any],
    product: EncodedProduct,
    types: Sequence[RowTypes],
    noise: Calibration,
    level: float,
) -> tuple[Array, Array]:
    """Standard errors and margins of all combinations of these types."""
    shape = tuple(len(row_types) for row_types in types)
    blocks = list(estimator.coefficients(product, types, noise.variances))
    if estimator.bounded:
        return _bounds(blocks, shape, noise, estimator.covering(noise.variances), level)
    if noise.kind == "gaussian":
        return _gaussian_errors(blocks, shape, noise, level)
    return _laplace_errors(blocks, shape, noise, level)


def _laplace_errors(
    blocks: Sequence[Coefficients], shape: tuple[int, ...], noise: Calibration, level: float
) -> tuple[Array, Array]:
    """Standard errors and margins under Laplace noise: sums of few terms one by one, those with equal moments once."""
    second, fourth, sixth, largest = (np.zeros(shape) for _ in range(4))
    for coefficients in blocks:
        two, four, six = cumulants(noise.variances[coefficients.block])
        second += two * coefficients.power_sum(2)
        fourth += four * coefficients.power_sum(4)
        sixth += six * coefficients.power_sum(6)
        largest = np.maximum(largest, coefficients.largest())
    margins = many_terms_margin(second, fourth, sixth, largest, level)
    bounds = expansion_bound(second, fourth, sixth, largest, level)
    most = min(_MAX_INVERTED, _MAX_TERMS // max(1, sum(coefficients.terms for coefficients in blocks)))
    scales = [float(scale) for scale in noise.scales]
    places: dict[tuple[float, ...], list[tuple[int, ...]]] = {}
    for place in map(tuple, np.argwhere(np.isnan(margins))):
        key = tuple(float(f"{moments[place]:.10g}") for moments in (second, fourth, sixth, largest))
        places.setdefault(key, []).append(place)
        if len(places) > most:  # a margin that holds for every sum of this standard error
            few = np.isnan(margins)
            margins[few] = np.minimum(bounds[few], worst_margin(np.sqrt(second[few]), min(noise.variances), level))
            return np.sqrt(second), margins
    for equal in places.values():
        few_terms = _few_terms_margin(blocks, equal[0], scales, level)
        for place in equal:
            margins[place] = few_terms
    return np.sqrt(second), np.where(margins == np.rint(margins), margins, margins * (1 + _SLACK))


def _gaussian_errors(
    blocks: Sequence[Coefficients], shape: tuple[int, ...], noise: Calibration, level: float
) -> tuple[Array, Array]:
    """Standard errors and margins under Gaussian noise: normal, but for the steps of integers if they show."""
    second, covered, squares, steps, largest, sigma = (np.zeros(shape) for _ in range(6))
    for coefficients in blocks:
        variance, scale = noise.variances[coefficients.block], float(noise.scales[coefficients.block])
        square, size = coefficients.power_sum(2), coefficients.largest()
        second += variance * square
        covered += normal_cover(scale, variance) * square
        squares += square
        if scale < FINE:  # |S| ≤ m if the noise before rounding is within m − ½
            steps = np.maximum(steps, size)
        sigma = np.where(size > largest, scale, sigma)
        largest = np.maximum(largest, size)
    margins = normal_margin(1.0, level) * np.sqrt(covered) + steps / 2
    margins = np.where(steps > 0, np.minimum(margins, chebyshev(level) * np.sqrt(second)), margins)
    single = (squares <= largest**2 * (1 + _MAX_REST)) & (sigma < FINE)
    return np.sqrt(second), np.where(single, largest * rounded_margin(sigma, level), margins)


def _bounds(
    blocks: Sequence[Coefficients], shape: tuple[int, ...], noise: Calibration, covering: Noise, level: float
) -> tuple[Array, Array]:
    """Upper bounds of standard errors and margins, for answers that err no more than sums of these coefficients."""
    second = np.zeros(shape)
    for coefficients in blocks:
        second += covering[coefficients.block] * coefficients.power_sum(2)
    stderr = np.sqrt(second)
    return stderr, covering_margins(stderr, noise, level)


def covering_margins(stderr: Array, noise: Calibration, level: float) -> Array:
    """Margins that hold for any sums of the noise with these standard errors, or smaller ones.

    Under Gaussian noise without visible steps they are the margins themselves.
    """
    if noise.kind == "laplace":
        return worst_margin(stderr, min(noise.variances), level)
    coarse = [variance for scale, variance in zip(noise.scales, noise.variances, strict=True) if scale < FINE]
    if not coarse:
        return normal_margin(1.0, level) * stderr
    least = sqrt(min(coarse))  # no coefficient is above stderr over this
    stepped = normal_margin(1.0, level) + 1 / (2 * least) if least else inf
    return stderr * min(stepped, chebyshev(level))


def _few_terms_margin(
    blocks: Sequence[Coefficients], place: tuple[int, ...], scales: Sequence[float], level: float
) -> float:
    """The margin at one combination of types, from the law of its sum. Signs do not matter: the noise is symmetric."""
    terms = []
    for coefficients in blocks:
        sizes, counts = coefficients.at(place)
        kept = (counts > 0) & (sizes > 0)
        terms.append(np.stack([np.full(kept.sum(), scales[coefficients.block]), sizes[kept], counts[kept]]))
    all_scales, all_sizes, all_counts = np.concatenate(terms, axis=1)
    if not all_sizes.size:  # a query that counts nobody has no error
        return 0.0
    close, groups = merge_close(all_sizes), []
    for scale in np.unique(all_scales):  # sorting pairs of a scale and a size is many times slower
        here = all_scales == scale
        sizes, numbers = np.unique(close[here], return_inverse=True)
        groups.append((np.full(len(sizes), scale), sizes, np.bincount(numbers.reshape(-1), weights=all_counts[here])))
    scales_of, sizes_of, counts_of = (np.concatenate(arrays) for arrays in zip(*groups, strict=True))
    return margin(scales_of, sizes_of, counts_of, level)
