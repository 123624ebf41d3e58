"""Predicted standard errors and margins for every answer, from the strategy and its noise alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.privacy.calibrate import Calibration
from hdmm.privacy.intervals import margin, normal_margin
from hdmm.strategy import RowTypes, Strategy, Terms
from hdmm.workload import EncodedProduct


@final
@dataclass(frozen=True)
class Accuracy:
    """Standard error and margin for each combination of row types; answers of one combination err alike."""

    types: tuple[RowTypes, ...]
    stderr: Array
    margin: Array

    def spread(self, values: Array) -> Array:
        """One value per combination of types, as one value per answer."""
        if not self.types:
            return values.reshape(1)
        spread: Array = values[np.ix_(*[types.labels for types in self.types])].reshape(-1)
        return spread


def accuracy(strategy: Strategy, product: EncodedProduct, noise: Calibration, level: float = 0.95) -> Accuracy:
    """The standard error and the margin at that level of every answer to a product."""
    types = tuple(strategy.row_types(product, axis, matrix) for axis, matrix in product.factors.items())
    shape = [len(one.examples) for one in types]
    stderr, margins = np.zeros(shape), np.zeros(shape)
    known: dict[tuple[object, ...], float] = {}
    for place in np.ndindex(*shape):
        rows = [int(one.examples[index]) for one, index in zip(types, place, strict=True)]
        terms = strategy.terms(product, rows, noise.variances)
        stderr[place] = sqrt(terms.variance(noise.variances))
        if noise.kind == "gaussian":
            margins[place] = normal_margin(float(stderr[place]), level)
            continue
        merged = _merge(terms, noise.scales)
        key = tuple(np.round(merged, 9).reshape(-1).tolist())
        if key not in known:
            known[key] = margin(merged[0], merged[1], merged[2], level)
        margins[place] = known[key]
    return Accuracy(types, stderr, margins)


def _merge(terms: Terms, scales: Sequence[Fraction] | Sequence[float]) -> Array:
    """Scale, size and multiplicity of the distinct terms: signs and order do not change a symmetric sum."""
    columns = np.stack([np.array([float(s) for s in scales])[terms.block], abs(terms.coefficient)])
    distinct, place = np.unique(np.round(columns, 12), axis=1, return_inverse=True)
    counts = np.bincount(place.reshape(-1), weights=terms.multiplicity)
    return np.vstack([distinct, counts])
