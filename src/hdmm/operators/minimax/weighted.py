"""Products with limits on their errors and weights on their answers, which the search for the least worst error moves.

Weights of sum 1 on answers turn the largest ratio of a variance to its limit into a weighted sum, for which good
strategies are known. For any weights, no strategy has a largest ratio below the least weighted sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod, sqrt
from typing import final

import numpy as np

from hdmm.bounds import svd_bound
from hdmm.estimators.estimator import Types
from hdmm.matrix import Array, AxisGram, Dense, Gram, Matrix
from hdmm.matrix.axis_gram import DenseGram
from hdmm.matrix.gram import GramTerm
from hdmm.operators.base import MAX_CELLS_TOGETHER, Limits
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.weights import dyadic
from hdmm.workload import Encoded, EncodedProduct

UNLIMITED_WEIGHT = 1e-4
"""The weight of products without a limit, relative to all others: they get about its root of the budget."""
_LEAST_WEIGHT = 1e-100
_MAX_AXIS_CELLS = 4096
"""The most cells of an attribute for which the bound of a single product is computed attribute by attribute."""


@final
@dataclass(frozen=True, eq=False)
class LimitedProduct:
    """A product with its limit, and the weight of its answers."""

    product: EncodedProduct
    limit: float
    counts: bool
    """Whether the limit counts; otherwise the product only has to be answered."""
    weight: float
    rows: Mapping[int, Array] = field(default_factory=dict)
    """For some attributes a weight for every row, of sum 1; on the others all rows weigh the same."""

    def weighted(self, table: Array, types: Types, kept: Sequence[Array] | None = None) -> LimitedProduct:
        """The same with other weights: one for every combination of row types, shared by all rows of a type.

        ``kept`` lists the types on each attribute that the table covers, if it does not cover all of them.
        """
        total = float(table.sum())
        rows = {}
        if total > 0 and self.product.condition is None:
            for place, (axis, row_types) in enumerate(zip(self.product.axes, types, strict=True)):
                if len(row_types) > 1:
                    shares = np.zeros(len(row_types))
                    covered = slice(None) if kept is None else kept[place]
                    shares[covered] = table.sum(axis=tuple(i for i in range(table.ndim) if i != place)) / total
                    counts = np.bincount(row_types.labels, minlength=len(row_types))
                    rows[axis] = (shares / counts)[row_types.labels]
        return replace(self, weight=total, rows=rows)

    def scaled(self, factor: float) -> LimitedProduct:
        """The same with its weight multiplied."""
        return replace(self, weight=factor * self.weight)

    def encoded(self, floor: float) -> EncodedProduct:
        """The weighted answers as a product: its rows are multiplied by the roots of their weights."""
        factors: dict[int, Matrix] = dict(self.product.factors)
        grams: dict[int, AxisGram] = dict(self.product.grams)
        for axis, weights in self.rows.items():
            matrix = factors[axis].dense() * np.sqrt((1 - floor) * len(weights) * weights + floor)[:, None]
            factors[axis] = Dense(matrix)
            grams[axis] = factors[axis].axis_gram()
        scale = sqrt(self.weight / self.limit / self.product.queries)
        return replace(self.product, factors=factors, grams=grams, weight=dyadic(max(scale, _LEAST_WEIGHT)))

    def terms(self, floor: float = 0.0) -> Iterator[GramTerm]:
        """The Gram of the weighted answers; ``floor`` is the share of a row's weight that is the same for all rows."""
        factors: dict[int, AxisGram] = dict(self.product.grams)
        scale = self.weight / self.limit / self.product.queries
        for axis, weights in self.rows.items():
            rows = len(weights)
            matrix = self.product.factors[axis].dense()
            entries = matrix.T @ (((1 - floor) * rows * weights + floor)[:, None] * matrix)
            factors[axis] = DenseGram((entries + entries.T) / 2)
        if self.product.condition is None:
            yield GramTerm(scale, factors)
        else:
            yield from (GramTerm(scale * term.coefficient, term.factors) for term in self.product.terms)


def initial_weights(workload: Encoded, limits: Limits) -> list[LimitedProduct]:
    """All products; those with a limit share the weight 1 equally, the others have little weight beside it."""
    present = [limit for limit in limits if limit is not None]
    typical, others = float(np.median(present)), len(limits) - len(present)
    return [
        LimitedProduct(product, typical, False, UNLIMITED_WEIGHT / others)
        if limit is None
        else LimitedProduct(product, limit, True, 1 / len(present))
        for product, limit in zip(workload.products, limits, strict=True)
    ]


def bound_of(workload: Encoded, products: Sequence[LimitedProduct]) -> float:
    """The least weighted sum of variances over limits, from below: no strategy has a smaller worst ratio."""
    terms = tuple(term for product in products if product.counts for term in product.terms())
    gram = Gram(workload.sizes, terms).on(workload.axes)
    bound = svd_bound(gram) or 0.0
    if len(terms) == 1 and max(gram.sizes, default=1) <= _MAX_AXIS_CELLS:
        (term,) = gram.terms
        bounds = [opt0_gaussian(gram.at(term, axis)).bound or 0.0 for axis in range(len(gram.sizes))]
        return max(bound, term.coefficient * prod(bounds))
    if prod(gram.sizes) <= MAX_CELLS_TOGETHER:
        return max(bound, opt0_gaussian(DenseGram(gram.dense())).bound or 0.0)
    return bound
