"""Predicted standard errors and margins for every answer, from the strategy and its noise alone.

Answers are grouped by the types of their rows: answers of one combination of types err alike. Standard errors and the
margins of sums of many terms are computed for all combinations at once; sums of few terms are inverted one by one,
equal ones once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.privacy.calibrate import Calibration
from hdmm.privacy.intervals import cumulants, many_terms_margin, margin, normal_margin, simultaneous, worst_margin
from hdmm.strategy import Coefficients, RowTypes, Strategy, in_pieces, rounded, types_of
from hdmm.workload import EncodedProduct

FINE = 8
"""Gaussian noise of a smaller σ is rounded to so few integers that their steps show."""
ROUNDING = 2.0**-40
"""What floating point may do to a sum of numbers, as a share of the sum of their sizes: intervals are so much wider."""
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

    def spread(self, values: Array, start: int = 0, stop: int | None = None) -> Array:
        """One value per combination of types, as one value per answer, for the answers from start to before stop."""
        shape = [len(types.labels) for types in self.types]
        stop = prod(shape) if stop is None else stop
        if values.size == 1:
            return np.full(stop - start, values.item())
        places = np.unravel_index(np.arange(start, stop), shape)
        spread: Array = values[tuple(types.labels[place] for types, place in zip(self.types, places, strict=True))]
        return spread


def accuracy(
    strategy: Strategy,
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
    types = types_of(strategy, product)
    parts = []
    done = 0
    for piece in in_pieces(strategy, product, types):
        parts.append(_errors(strategy, product, piece, noise, level))
        done += len(piece[0]) if piece else 1
        if on_progress is not None:
            on_progress(done / (len(types[0]) if types else 1))
    stderr, margins = parts[0] if not types else (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return Accuracy(types, stderr, margins, strategy.bounded)


def _errors(
    strategy: Strategy, product: EncodedProduct, types: Sequence[RowTypes], noise: Calibration, level: float
) -> tuple[Array, Array]:
    """Standard errors and margins of all combinations of these types."""
    shape = tuple(len(one) for one in types)
    blocks = list(strategy.coefficients(product, types, noise.variances))
    if strategy.bounded:
        return _bounds(blocks, shape, noise, level)
    second, fourth, sixth, largest = (np.zeros(shape) for _ in range(4))
    if noise.kind == "gaussian":
        for block in blocks:
            second += noise.variances[block.block] * block.power_sum(2)
            if noise.scales[block.block] < FINE:  # steps show: |S| ≤ m where the noise before rounding is within m − ½
                largest = np.maximum(largest, block.largest())
        return np.sqrt(second), normal_margin(1.0, level) * np.sqrt(second) + largest / 2
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


def _bounds(
    blocks: Sequence[Coefficients], shape: tuple[int, ...], noise: Calibration, level: float
) -> tuple[Array, Array]:
    """Bounds of standard errors and margins where answers are known to err no more than sums of these coefficients."""
    second = np.zeros(shape)
    for block in blocks:
        second += noise.variances[block.block] * block.power_sum(2)
    stderr = np.sqrt(second)
    if noise.kind == "laplace":
        return stderr, worst_margin(stderr, min(noise.variances), level)
    coarse = [float(scale) for scale in noise.scales if scale < FINE]  # no coefficient is above stderr/σ
    return stderr, stderr * (normal_margin(1.0, level) + (1 / (2 * min(coarse)) if coarse else 0.0))


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
    pairs, where = np.unique(np.stack([merged[0], rounded(merged[1])]), axis=1, return_inverse=True)
    return margin(pairs[0], pairs[1], np.bincount(where.reshape(-1), weights=merged[2]), level)
