"""Shares, ratios and quantiles from released counts, each with an interval that holds.

None of them is linear in the counts, but each hypothesis about them is: the share is p where a − p·b = 0, and the
quantile is at most v where the count up to v is at least a share of the total. Such a combination is a linear query of
the release, and an interval holds the values that its exact margin does not rule out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from hdmm.accuracy import ROUNDING, accuracy
from hdmm.errors import InputError, TooLargeError, WorkloadError
from hdmm.matrix import Array, Dense
from hdmm.matrix.condition import Term
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import Calibration
from hdmm.privacy.intervals import check_level
from hdmm.reconstruct.counted import Counted, Terms, among, each_alone, encoded, in_both, rows_of, summed, terms_of
from hdmm.reconstruct.quotient import Law, Ratio, check_size, interval
from hdmm.strategy import DirectStrategy, KronStrategy, Strategy, UnionStrategy, types_of
from hdmm.strategy.base import Spread
from hdmm.workload import EncodedProduct, Workload

if TYPE_CHECKING:
    import pyarrow as pa

_CELLS = 1 << 14
"""The most rows of a table of shares: each has an interval to be found."""
_VALUES = 1 << 11
"""The most values of an attribute whose quantiles are asked for: a table of their squared number is written out."""


class Planned(Protocol):
    """What is needed of the plan of a release."""

    @property
    def workload(self) -> Workload: ...
    def calibrate(self, budget: Budget, /) -> Calibration: ...


class Released(Protocol):
    """What is needed of a release."""

    @property
    def plan(self) -> Planned: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def measurements(self) -> tuple[NDArray[Any], ...]: ...
    def table(self, name: str, /) -> pa.Table: ...
    def solution(self) -> tuple[Strategy, Any]: ...


@final
@dataclass(frozen=True)
class Quantile:
    """A quantile with the first and the last value that it may be.

    All are None where no value fits: the estimated number of records is then far below zero.
    """

    value: Any
    low: Any
    high: Any


def share(release: Released, part: Counted, whole: Counted = None, *, level: float = 0.95) -> Ratio:
    """Which share of the whole, by default of all records, is also in the part."""
    schema = release.plan.workload.schema
    below = terms_of(schema, whole, "whole")
    return _ratio(release, in_both(terms_of(schema, part, "part"), below), below, level)


def ratio(release: Released, numerator: Counted, denominator: Counted, *, level: float = 0.95) -> Ratio:
    """The ratio of two counts."""
    schema = release.plan.workload.schema
    above, below = terms_of(schema, numerator, "numerator"), terms_of(schema, denominator, "denominator")
    return _ratio(release, above, below, level)


def shares(release: Released, name: str, within: Sequence[str] = (), *, level: float = 0.95) -> pa.Table:
    """Every row of a product as a share of the records that agree with it on the attributes ``within``.

    A column for each attribute, then share, low and high; these two are null where there is no finite interval. A
    condition of the whole product holds for both counts.
    """
    import pyarrow as pa

    check_level(level)
    workload = release.plan.workload
    schema, asked = workload.schema, workload.product(name)
    if isinstance(within, str) or not set(within) <= set(asked.predicates):
        raise InputError(f"within={within!r}: expected a list of attributes among {list(asked.predicates)}")
    names = [attribute for attribute in schema if attribute in asked.predicates]
    if "share" in names:
        raise InputError("attribute 'share': a table of shares has a column of this name; use share(), or rename it")
    rows = {schema.axis(each): rows_of(schema, each, asked.predicates[each]) for each in names}
    kept = {schema.axis(each) for each in within}
    shape = tuple(len(one) for one in rows.values())
    if prod(shape) > _CELLS:
        raise TooLargeError(f"product {name!r}: {prod(shape)} shares are asked for, the limit is {_CELLS}; use share()")
    given = terms_of(schema, asked.where, "where")
    factors = {axis: Dense(one.astype(np.int64)) for axis, one in rows.items()}
    whole = {axis: factor for axis, factor in factors.items() if axis in kept}
    estimator = _Estimator.of(release, [each_alone(schema.sizes, given, held) for held in (factors, whole)])
    top, bottom = encoded(schema.sizes, given, factors), encoded(schema.sizes, given, whole)
    narrow = [len(one) if axis in kept else 1 for axis, one in rows.items()]
    a, b = estimator.answers(top).reshape(shape), np.broadcast_to(estimator.answers(bottom).reshape(narrow), shape)
    found = []
    for place in np.ndindex(shape):
        own = {axis: one[at] for (axis, one), at in zip(rows.items(), place, strict=True)}
        above, below = among(own, given), among({axis: own[axis] for axis in kept}, given)
        found.append(estimator.ratio(float(a[place]), float(b[place]), above, below, level))
    table = release.table(name).select(names)
    for column in ("value", "low", "high"):
        values = [getattr(one, column) for one in found]
        finite = [value if isfinite(value) else None for value in values]
        table = table.append_column("share" if column == "value" else column, pa.array(finite, pa.float64()))
    return table


def quantile(
    release: Released, attribute: str, at: float = 0.5, *, where: Counted = None, level: float = 0.95
) -> Quantile:
    """The first value of an attribute up to which there is this share of the records, by default half of them.

    Values are in the domain's order. The records that are counted have one of them, not "other" or "missing", and
    satisfy ``where``.
    """
    schema = release.plan.workload.schema
    axis, domain = schema.axis(attribute), schema[attribute]
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 < at < 1:
        raise InputError(f"at={at!r}: expected a share between 0 and 1; the median is at=0.5")
    check_level(level)
    n = domain.declared
    if n > _VALUES:
        raise TooLargeError(f"attribute {attribute!r}: quantiles are found among {_VALUES} values at most, it has {n}")
    rows = np.zeros((n, domain.size))
    rows[:, :n] = np.tri(n) - at
    counted, factors = terms_of(schema, where, "where"), {axis: Dense(rows)}
    if not counted:
        raise InputError(f"where={where!r}: it counts no record; ask for others")
    estimator = _Estimator.of(release, [each_alone(schema.sizes, counted, factors)])
    query = encoded(schema.sizes, counted, factors)
    excess, margins = estimator.answers(query), estimator.margins(query, level)
    codes = located(excess, margins + ROUNDING * (1 + abs(excess).max()))
    return Quantile(*(None if code is None else domain.value(code) for code in codes))


def located(excess: Array, margins: Array) -> tuple[int, int, int] | tuple[None, None, None]:
    """Where a quantile is, and the first and the last place where it may be.

    ``excess`` is the count up to each value less its share of the total: negative before the quantile, and not negative
    from it on. Each of the two is ruled out wrongly with half of the probability that the margins leave.
    """
    enough, few = np.flatnonzero(excess >= -margins), np.flatnonzero(excess[:-1] <= margins[:-1])
    if not enough.size:
        return None, None, None
    # The isotonic regression of the excess is negative up to where the sum of the excess is least.
    value = int(np.argmin(np.concatenate([[0.0], np.cumsum(excess)[:-1]])))
    return value, int(enough[0]), int(few[-1]) + 1 if few.size else 0


@final
@dataclass(frozen=True)
class _Estimator:
    """A strategy with its noise and what it made of the measurements: linear in them for all products alike."""

    strategy: Strategy
    noise: Calibration
    state: Any

    @staticmethod
    def of(release: Released, asked: Sequence[Sequence[EncodedProduct]]) -> _Estimator:
        """One that answers all these products; of a union that is too large to be taken as a whole, its best block."""
        (strategy, state), noise = release.solution(), release.plan.calibrate(release.budget)

        def tells(candidate: Strategy) -> bool:
            return all(candidate.supports(each) for queries in asked for each in queries)

        # A direct strategy answers what it measured, and no combinations of it.
        if not isinstance(strategy, (DirectStrategy, UnionStrategy)) and tells(strategy):
            return _Estimator(strategy, noise, state)
        blocks = enumerate(strategy.blocks if isinstance(strategy, UnionStrategy) else ())
        parts = ((KronStrategy(strategy.sizes, (block,)), slice(at, at + 1)) for at, block in blocks)
        able = [(part, own) for part, own in parts if tells(part)]
        if not able:
            raise WorkloadError(
                "these counts cannot be told together from the release: its plan did not measure them, or only each by "
                "itself; plan a workload with a product on all their attributes"
            )
        best, own = min(able, key=lambda pair: pair[0].squared_error(asked[0][0], noise.variances[pair[1]]))
        noise = Calibration(noise.kind, noise.scales[own], noise.variances[own])
        return _Estimator(best, noise, best.reconstruct(release.measurements[own], noise.variances))

    def answers(self, query: EncodedProduct) -> Array:
        """The estimates of all queries of a product."""
        return self.strategy.answer(query, self.state)

    def margins(self, query: EncodedProduct, level: float) -> Array:
        """The margins of all queries of a product."""
        found = accuracy(self.strategy, query, self.noise, level)
        return found.spread(found.margin)

    def ratio(self, a: float, b: float, above: Terms, below: Terms, level: float) -> Ratio:
        """The ratio of two counts, from their estimates."""
        if not above:
            return Ratio(0.0, 0.0, 0.0)
        if not summed([(1, above), (-1, below)]):
            return Ratio(1.0, 1.0, 1.0)
        return interval(a, b, self.law(above, below), level)

    def law(self, above: Terms, below: Terms) -> Law:
        """How two counts depend on the noise together."""
        none = [tuple(Term(0, term.masks) for term in terms) for terms in (above, below)]
        top = encoded(self.strategy.sizes, above + none[1])
        bottom = encoded(self.strategy.sizes, none[0] + below)
        types = types_of(self.strategy, top)
        check_size(prod(one.width for one in types) * len(above + below))
        blocks = []
        # What a strategy writes out is in the same order for both: it goes by the masks, whatever their coefficients.
        for one, other in zip(
            self.strategy.coefficients(top, types, self.noise.variances),
            self.strategy.coefficients(bottom, types, self.noise.variances),
            strict=True,
        ):
            assert isinstance(one, Spread)
            assert isinstance(other, Spread)
            blocks.append((replace(one, types=0), other.values))
        return Law(self.noise, tuple(blocks))


def _ratio(release: Released, above: Terms, below: Terms, level: float) -> Ratio:
    check_level(level)
    sizes = release.plan.workload.schema.sizes
    if not below:
        raise InputError("no record can be among those that a ratio is taken of; ask for others")
    asked = [each_alone(sizes, terms) for terms in (above, below) if terms]
    estimator = _Estimator.of(release, asked)
    a, b = (float(estimator.answers(encoded(sizes, terms))[0]) if terms else 0.0 for terms in (above, below))
    return estimator.ratio(a, b, above, below, level)
