"""Shares, ratios and quantiles from released counts, each with an interval that holds.

None of them is linear in the counts, but each hypothesis about them is: the share is p if a − p·b = 0, and the quantile
is at most v if the count up to v is at least a share of the total. Such a combination is a linear query of the release,
and an interval holds the values that its exact margin does not rule out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hdmm.accuracy.margins import check_level
from hdmm.accuracy.predict import ROUNDING, Accuracy, accuracy, covering_margins
from hdmm.errors import InputError, TooLargeError, WorkloadError
from hdmm.estimators import LeastSquares
from hdmm.estimators.coefficients import Written
from hdmm.estimators.estimator import LinearEstimator, Types, types_of, variances
from hdmm.matrix import Array, Dense, Matrix, Spans
from hdmm.matrix.condition import Box
from hdmm.privacy.calibrate import Calibration
from hdmm.releases.estimates import Estimates
from hdmm.releases.ratio import Law, Ratio, check_size, interval
from hdmm.releases.rows import label_columns, labels
from hdmm.releases.selection import (
    Boxes,
    Counted,
    among,
    check_counted,
    each_alone,
    encoded,
    in_both,
    read_boxes,
    rows_of,
    summed,
)
from hdmm.schema import Domain
from hdmm.workload import EncodedProduct

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_SHARES = 1 << 14
"""Most rows of a table of shares: each has an interval to be found."""
_MAX_VALUES = 1 << 11
"""Most values of an attribute whose quantiles have exact margins: a table of their squared number is written out."""


@final
@dataclass(frozen=True)
class Quantile:
    """A quantile, and the interval from the first to the last value that it may be.

    All are None if no value fits: the estimated number of records is then far below zero.
    """

    value: Any
    low: Any
    high: Any


def share(estimates: Estimates, part: Counted, whole: Counted, level: float) -> Ratio:
    """The share of the whole that is also in the part."""
    below = read_boxes(estimates.plan, whole, "whole")
    return _ratio(estimates, in_both(read_boxes(estimates.plan, part, "part"), below), below, level)


def ratio(estimates: Estimates, numerator: Counted, denominator: Counted, level: float) -> Ratio:
    """The ratio of two counts."""
    plan = estimates.plan
    above, below = read_boxes(plan, numerator, "numerator"), read_boxes(plan, denominator, "denominator")
    return _ratio(estimates, above, below, level)


def shares(estimates: Estimates, name: str, within: Sequence[str], level: float) -> pa.Table:
    """Every row of a product as a share of the records that agree with it on the attributes ``within``.

    A column for each attribute, then share, low and high; these two are null if there is no finite interval. The
    product's condition applies to both counts.
    """
    import pyarrow as pa

    check_level(level)
    workload = estimates.plan.workload
    schema, product = workload.schema, workload.product(name)
    if isinstance(within, str) or not set(within) <= set(product.predicates):
        raise InputError(f"within={within!r}: expected a list of attributes among {list(product.predicates)}")
    names = [attribute for attribute in schema if attribute in product.predicates]
    if any("share" in product.predicates[attribute].titles(attribute) for attribute in names):
        raise InputError("column 'share': a table of shares has a column of this name; use share(), or rename it")
    rows = {schema.axis(attribute): rows_of(schema, attribute, product.predicates[attribute]) for attribute in names}
    kept = {schema.axis(attribute) for attribute in within}
    shape = tuple(map(len, rows.values()))
    if prod(shape) > _MAX_SHARES:
        raise TooLargeError(
            f"product {name!r}: {prod(shape)} shares are asked for, the limit is {_MAX_SHARES}; use share()"
        )
    condition = read_boxes(estimates.plan, product.where, "where")
    factors = {axis: Dense(masks.astype(np.int64)) for axis, masks in rows.items()}
    whole = {axis: factor for axis, factor in factors.items() if axis in kept}
    combiner = _Combiner.of(estimates, [each_alone(schema.sizes, condition, part) for part in (factors, whole)])
    top, bottom = encoded(schema.sizes, condition, factors), encoded(schema.sizes, condition, whole)
    narrow = [len(masks) if axis in kept else 1 for axis, masks in rows.items()]
    a, b = combiner.answers(top).reshape(shape), np.broadcast_to(combiner.answers(bottom).reshape(narrow), shape)
    ratios = []
    for place in np.ndindex(shape):
        cells = {axis: masks[at] for (axis, masks), at in zip(rows.items(), place, strict=True)}
        above, below = among(cells, condition), among({axis: cells[axis] for axis in kept}, condition)
        ratios.append(combiner.ratio(float(a[place]), float(b[place]), above, below, level))
    table = pa.table(label_columns(labels(schema, product.predicates), 0, prod(shape)))
    for column, field in (("share", "value"), ("low", "low"), ("high", "high")):
        values = [getattr(row, field) for row in ratios]
        finite = [value if isfinite(value) else None for value in values]
        table = table.append_column(column, pa.array(finite, pa.float64()))
    return table


def quantile(estimates: Estimates, attribute: str, at: float, where: Counted, level: float) -> Quantile:
    """The first value of an attribute, in the domain's order, up to which lies this share of the records.

    Records count if they satisfy ``where`` and have a declared value, not "other" or "missing".
    """
    schema = estimates.plan.workload.schema
    axis, domain = schema.axis(attribute), schema[attribute]
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 < at < 1:
        raise InputError(f"at={at!r}: expected a share between 0 and 1; the median is at=0.5")
    check_counted(estimates.plan, {attribute}, f"attribute {attribute!r}")
    check_level(level)
    counted = read_boxes(estimates.plan, where, "where")
    if not counted:
        raise InputError(f"where={where!r}: it counts no record; ask for others")
    excess, margins = (_excess if domain.declared <= _MAX_VALUES else _long_excess)(
        estimates, counted, axis, domain, at, level
    )
    codes = located(excess, margins + ROUNDING * (1 + abs(excess).max()))
    return Quantile(*(None if code is None else domain.value(code) for code in codes))


def _excess(
    estimates: Estimates, counted: Boxes, axis: int, domain: Domain, at: float, level: float
) -> tuple[Array, Array]:
    """The count up to each value less its share of the total, and the exact margins of these differences."""
    sizes, n = estimates.plan.workload.schema.sizes, domain.declared
    rows = np.zeros((n, domain.size))
    rows[:, :n] = np.tri(n) - at
    factors: dict[int, Matrix] = {axis: Dense(rows)}
    combiner = _Combiner.of(estimates, [each_alone(sizes, counted, factors)])
    query = encoded(sizes, counted, factors)
    return combiner.answers(query), combiner.margins(query, level)


def _long_excess(
    estimates: Estimates, counted: Boxes, axis: int, domain: Domain, at: float, level: float
) -> tuple[Array, Array]:
    """The same for many values, from intervals alone, with margins that may be a little wider under Laplace noise.

    With P the count up to a value, S the count after it and T = P + S, the variance of P − at·T is
    (1 − at)·Var P + at·Var S − at·(1 − at)·Var T.
    """
    sizes, n = estimates.plan.workload.schema.sizes, domain.declared
    ends = np.arange(n)
    up_to: dict[int, Matrix] = {axis: Spans(domain.size, np.zeros(n, np.int64), ends)}
    after: dict[int, Matrix] = {axis: Spans(domain.size, ends[1:], np.full(n - 1, n - 1))}
    combiner = _Combiner.of(estimates, [each_alone(sizes, counted, up_to)])
    prefixes = encoded(sizes, counted, up_to)
    counts, below = combiner.answers(prefixes), combiner.variances(prefixes)
    above = np.append(combiner.variances(encoded(sizes, counted, after)), 0.0)
    squares = (1 - at) * below + at * above - at * (1 - at) * below[-1]
    stderr = np.sqrt(np.maximum(squares, 0.0) + ROUNDING * below.max())
    return counts - at * counts[-1], covering_margins(stderr, combiner.noise, level)


def located(excess: Array, margins: Array) -> tuple[int, int, int] | tuple[None, None, None]:
    """The place of a quantile, and the first and the last place where it may be.

    ``excess`` is the count up to each value less its share of the total: negative before the quantile, and not negative
    from it on. Each of the two is ruled out wrongly with half of the probability that the margins leave.
    """
    maybe_reached = np.flatnonzero(excess >= -margins)
    maybe_short = np.flatnonzero(excess[:-1] <= margins[:-1])
    if not maybe_reached.size:
        return None, None, None
    # The isotonic regression of the excess is negative up to where the sum of the excess is least.
    value = int(np.argmin(np.concatenate([[0.0], np.cumsum(excess)[:-1]])))
    return value, int(maybe_reached[0]), int(maybe_short[-1]) + 1 if maybe_short.size else 0


@final
@dataclass(frozen=True)
class _Combiner:
    """An estimator with its noise and state; it combines the same measurements for all products."""

    estimator: LinearEstimator[Any]
    noise: Calibration
    state: Any

    @staticmethod
    def of(estimates: Estimates, asked: Sequence[Sequence[EncodedProduct]]) -> _Combiner:
        """A combiner for all these products: of a union too large to be solved as a whole, its best block."""
        noise, exact = estimates.noise, estimates.exact
        products = [product for queries in asked for product in queries]
        supporting = [(part, blocks) for part, blocks in exact.parts() if all(map(part.supports, products))]
        if not supporting:
            raise WorkloadError(
                "the release does not determine these counts together: its plan did not measure them, or only each by "
                "itself; plan a workload with a product on all their attributes"
            )
        if supporting[0][0] is exact:
            return _Combiner(exact, noise, estimates.state(LeastSquares()))
        best, blocks = min(supporting, key=lambda pair: pair[0].squared_error(products[0], noise.variances[pair[1]]))
        block_noise = Calibration(noise.kind, noise.scales[blocks], noise.variances[blocks])
        return _Combiner(best, block_noise, best.reconstruct(estimates.measurements[blocks], block_noise.variances))

    def answers(self, query: EncodedProduct) -> Array:
        """The estimates of all queries of a product."""
        return self.estimator.answer(query, self.state)

    def margins(self, query: EncodedProduct, level: float) -> Array:
        """The margins of all queries of a product."""
        predicted = accuracy(self.estimator, query, self.noise, level)
        return predicted.expand(predicted.margin)

    def variances(self, query: EncodedProduct) -> Array:
        """The variances of all queries of a product."""
        types = types_of(self.estimator, query)
        table = variances(self.estimator, query, self.noise.variances, types)
        return Accuracy(types, table, table).expand(table)

    def ratio(self, a: float, b: float, above: Boxes, below: Boxes, level: float) -> Ratio:
        """The ratio of two counts, from their estimates."""
        if not above:
            return Ratio(0.0, 0.0, 0.0)
        if not summed([(1, above), (-1, below)]):
            return Ratio(1.0, 1.0, 1.0)
        return interval(a, b, self.law(above, below), level)

    def law(self, above: Boxes, below: Boxes) -> Law:
        """The joint dependence of two counts on the noise.

        Both are encoded as sums over the same boxes, with the coefficient 0 for the boxes of the other. Estimators
        write coefficients out box by box, so those of both counts come in the same order.
        """
        absent = [tuple(Box(0, box.masks) for box in boxes) for boxes in (above, below)]
        sizes = self.estimator.strategy.sizes
        top, bottom = encoded(sizes, above + absent[1]), encoded(sizes, absent[0] + below)
        types = types_of(self.estimator, top)
        check_size(prod(row_types.width for row_types in types) * len(above + below))
        blocks = []
        for a, b in zip(self._written(top, types), self._written(bottom, types), strict=True):
            blocks.append((replace(a, types=0), b.values))
        return Law(self.noise, tuple(blocks))

    def _written(self, product: EncodedProduct, types: Types) -> Iterator[Written]:
        """The coefficients of a product with a condition: these are always written out."""
        for coefficients in self.estimator.coefficients(product, types, self.noise.variances):
            assert isinstance(coefficients, Written)
            yield coefficients


def _ratio(estimates: Estimates, above: Boxes, below: Boxes, level: float) -> Ratio:
    check_level(level)
    sizes = estimates.plan.workload.schema.sizes
    if not below:
        raise InputError("the denominator selects no records; ask for others")
    combiner = _Combiner.of(estimates, [each_alone(sizes, boxes) for boxes in (above, below) if boxes])
    a, b = (float(combiner.answers(encoded(sizes, boxes))[0]) if boxes else 0.0 for boxes in (above, below))
    return combiner.ratio(a, b, above, below, level)
