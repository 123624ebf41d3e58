"""Predicted standard errors and margins for every answer, from the strategy and its noise alone.

Answers are grouped by the types of their rows: answers of one combination of types err alike. Standard errors and the
margins of sums of many terms are computed for all combinations at once; sums of few terms are inverted one by one,
equal ones once.
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
"""Gaussian noise of a smaller σ is rounded to so few integers that their steps show."""
ROUNDING = 2.0**-40
"""What floating point may do to a sum of numbers, as a share of the sum of their sizes: intervals are so much wider."""
_ALONE = 1e-12
"""A sum has a single term where all others have less than this share of its squared coefficients."""
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
    """The standard error and the margin at that level of every answer to a product; or the level of all ``together``.

    Where the strategy knows only bounds of its errors, these are told.
    """
    if together:
        level = simultaneous(level, product.queries)
    if product.total is not product:
        return _of_multiples(estimator, product, noise, level)
    types = types_of(estimator, product)
    parts = []
    done = 0
    for piece in in_pieces(estimator, product, types):
        parts.append(_errors(estimator, product, piece, noise, level))
        done += len(piece[0]) if piece else 1
        if on_progress is not None:
            on_progress(done / (len(types[0]) if types else 1))
    stderr, margins = parts[0] if not types else (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
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
    """The same for multiples of the total, which err by as many times its error; of those by 0 nothing is needed."""
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
    shape = tuple(len(one) for one in types)
    blocks = list(estimator.coefficients(product, types, noise.variances))
    if estimator.bounded:
        return _bounds(blocks, shape, noise, estimator.covering(noise.variances), level)
    second, fourth, sixth, largest = (np.zeros(shape) for _ in range(4))
    if noise.kind == "gaussian":
        return _gaussian_errors(blocks, shape, noise, level)
    for block in blocks:
        two, four, six = cumulants(noise.variances[block.block])
        second += two * block.power_sum(2)
        fourth += four * block.power_sum(4)
        sixth += six * block.power_sum(6)
        largest = np.maximum(largest, block.largest())
    stderr = np.sqrt(second)
    margins = many_terms_margin(second, fourth, sixth, largest, level)
    scales = [float(scale) for scale in noise.scales]
    known: dict[tuple[float, ...], float] = {}
    for place in zip(*np.nonzero(np.isnan(margins)), strict=True) if shape else [()] * int(np.isnan(margins)):
        key = tuple(float(f"{array[place]:.10g}") for array in (second, fourth, sixth, largest))
        if key not in known:
            known[key] = _few_terms_margin(blocks, place, scales, level)
        margins[place] = known[key]
    return stderr, np.where(margins == np.rint(margins), margins, margins * (1 + _SLACK))


def _gaussian_errors(
    blocks: Sequence[Coefficients], shape: tuple[int, ...], noise: Calibration, level: float
) -> tuple[Array, Array]:
    """Standard errors and margins under Gaussian noise: normal, but for the steps of integers where they show."""
    second, covered, squares, steps, largest, sigma = (np.zeros(shape) for _ in range(6))
    for block in blocks:
        variance, scale = noise.variances[block.block], float(noise.scales[block.block])
        square, size = block.power_sum(2), block.largest()
        second += variance * square
        covered += normal_cover(scale, variance) * square
        squares += square
        if scale < FINE:  # |S| ≤ m where the noise before rounding is within m − ½
            steps = np.maximum(steps, size)
        sigma = np.where(size > largest, scale, sigma)
        largest = np.maximum(largest, size)
    margins = normal_margin(1.0, level) * np.sqrt(covered) + steps / 2
    margins = np.where(steps > 0, np.minimum(margins, chebyshev(level) * np.sqrt(second)), margins)
    single = (squares <= largest**2 * (1 + _ALONE)) & (sigma < FINE)
    return np.sqrt(second), np.where(single, largest * rounded_margin(sigma, level), margins)


def _bounds(
    blocks: Sequence[Coefficients], shape: tuple[int, ...], noise: Calibration, covering: Noise, level: float
) -> tuple[Array, Array]:
    """Bounds of standard errors and margins where answers are known to err no more than sums of these coefficients."""
    second = np.zeros(shape)
    for block in blocks:
        second += covering[block.block] * block.power_sum(2)
    stderr = np.sqrt(second)
    if noise.kind == "laplace":
        return stderr, worst_margin(stderr, min(noise.variances), level)
    coarse = [variance for scale, variance in zip(noise.scales, noise.variances, strict=True) if scale < FINE]
    if not coarse:
        return stderr, normal_margin(1.0, level) * stderr
    least = sqrt(min(coarse))  # no coefficient is above stderr over the noise's own
    steps = normal_margin(1.0, level) + 1 / (2 * least) if least else inf
    return stderr, stderr * min(steps, chebyshev(level))


def _few_terms_margin(
    blocks: Sequence[Coefficients],
    place: tuple[int, ...],
    scales: Sequence[float],
    level: float,
) -> float:
    """The margin at one combination of types, from the law of its sum. Signs do not matter: the noise is symmetric."""
    terms = []
    for block in blocks:
        sizes, often = block.at(place)
        keep = (often > 0) & (sizes > 0)
        terms.append(np.stack([np.full(keep.sum(), scales[block.block]), sizes[keep], often[keep]]))
    merged = np.concatenate(terms, axis=1)
    if not merged.size:  # a query that counts nobody has no error
        return 0.0
    pairs, where = np.unique(np.stack([merged[0], merge_close(merged[1])]), axis=1, return_inverse=True)
    return margin(pairs[0], pairs[1], np.bincount(where.reshape(-1), weights=merged[2]), level)
