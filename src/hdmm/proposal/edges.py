"""Round edges for bins: of equal width if that suits the numbers, otherwise near their quantiles."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import ceil, floor, log10
from typing import final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]

_BINS = 10
_MAX_DECIMALS, _MAX_DIGITS = 12, 18
"""Digits that edges may have."""
_FEW = 15
"""Up to this many different numbers get a bin each."""
_EQUAL = range(7, 15)
"""Numbers of bins of equal width that are accepted."""
_LARGEST_SHARE = 0.3
"""No bin of equal width holds more of the records."""
_SMALLEST_SHARE = 0.002
"""Nor does any but the first and the last hold less than this."""
_TAIL = 0.01
"""Share of the records that get a bin of their own at either end, if they are spread over a wide range."""
_SLACK = 0.35
"""How far an edge may be moved to be round: a share of the way to the nearest other one."""


@final
class Edges(list[Decimal]):
    """Edges in ascending order; ``closed`` if the last one is itself a value."""

    closed: bool = False


def nice_edges(values: Numbers, counts: Counts) -> Edges:
    """Some ten bins that hold all of the numbers, which are in order."""
    whole = bool(np.all(values == np.floor(values)))
    edges = None if len(values) <= _FEW else _equal(values, counts)
    return _writable(edges or _by_quantiles(values, counts, whole), float(values[0]), float(values[-1]))


def even_edges(low: float, high: float) -> Edges:
    """Some ten bins of equal width between two limits, which both are values."""
    step = _steps(high - low)[0]
    first, last = floor(low / float(step)), ceil(high / float(step))
    return _writable(Edges(step * at for at in range(first, last + 1)), low, high)


def _writable(edges: Edges, low: float, high: float) -> Edges:
    """The edges with no more digits than bins may have; the ends still hold all numbers."""
    largest = max(abs(edges[0]), abs(edges[-1]), Decimal(1))
    unit = Decimal(1).scaleb(-min(_MAX_DECIMALS, _MAX_DIGITS - 2 - largest.adjusted()))
    begin = min(edges[0], Decimal(repr(low))).quantize(unit, ROUND_FLOOR)
    end = max(edges[-1], Decimal(repr(high)), begin + unit).quantize(unit, ROUND_CEILING)
    inner = {edge.quantize(unit) for edge in edges[1:-1]}
    rounded = Edges(_plain(edge) for edge in sorted({begin, end, *(edge for edge in inner if begin < edge < end)}))
    rounded.closed = rounded[-1] == Decimal(repr(high))
    return rounded


def _plain(number: Decimal) -> Decimal:
    """The same number without zeros at the end of its decimals, and without an exponent."""
    return Decimal(f"{number.normalize():f}")


def _steps(width: float) -> list[Decimal]:
    """Round widths that make about ten bins, the most suitable first."""
    power = floor(log10(width / _BINS)) if width > 0 else 0
    steps = [Decimal(mantissa).scaleb(power + more) for more in (0, 1) for mantissa in ("1", "2", "2.5", "5")]
    return sorted(steps, key=lambda step: abs(log10(max(width, 1e-300) / float(step) / _BINS)))


def _equal(values: Numbers, counts: Counts) -> Edges | None:
    low, high = float(values[0]), float(values[-1])
    for step in _steps(high - low):
        first, last = floor(low / float(step)), ceil(high / float(step))
        edges = Edges(step * at for at in range(first, last + 1))
        if len(edges) - 1 not in _EQUAL:
            continue
        inner = np.searchsorted(values, [float(edge) for edge in edges[1:-1]])
        held = np.diff([0, *inner, len(values)])
        if np.all(held > 0):
            shares = np.add.reduceat(counts, [0, *inner]) / counts.sum()
            if shares.max() <= _LARGEST_SHARE and shares[1:-1].min() >= _SMALLEST_SHARE:
                return edges
    return None


def _by_quantiles(values: Numbers, counts: Counts, whole: bool) -> Edges:
    """Edges near the quantiles. A very frequent number counts as one bin, and gets one to itself if it is the least."""
    starts = np.arange(1, len(values)) if len(values) <= _FEW else _starts(values, counts)
    low, high = float(values[0]), float(values[-1])
    points = [low, *values[starts].tolist(), high]
    edges = []
    for at, start in enumerate(starts.tolist(), 1):
        before, point = float(values[start - 1]), points[at]
        slack = _SLACK * min(point - points[at - 1], points[at + 1] - point)
        if start == 1 or slack == 0 or len(values) <= _FEW:
            edges.append(roundest(before + (point - before) / 8, point, whole))
        else:
            edges.append(roundest(max(point - slack, before + (point - before) / 8), point + slack, whole))
    first, last = (float(edges[0]), float(edges[-1])) if edges else (high, low)
    wide = (high - low) / 8
    below, above = min(wide, max(first - low, abs(low) / 10)), min(wide, max(high - last, abs(high) / 10))
    begin = roundest(low - below if low < 0 else max(low - below, 0.0), low, whole)
    end = roundest(high, high + above, whole)
    return Edges(sorted({begin, *(edge for edge in edges if begin < edge < end), end}))


def _starts(values: Numbers, counts: Counts) -> NDArray[np.int64]:
    """The places of the numbers with which bins begin."""
    capped = np.minimum(counts, counts.sum() / _BINS)
    reached = np.cumsum(capped) / capped.sum()
    places = np.searchsorted(reached, np.arange(1, _BINS) / _BINS, side="right")
    if counts[0] >= counts.sum() / _BINS:
        places = np.append(places, 1)
    places = np.unique(places[(places > 0) & (places < len(values))])
    if not len(places):
        return places
    first, last = np.searchsorted(reached, [_TAIL, 1 - _TAIL], side="right").tolist()
    if 0 < first < places[0] and 2 * values[first] > values[0] + values[places[0]]:
        places = np.append(first, places)
    if places[-1] < last < len(values) and 2 * values[last] < values[-1] + values[places[-1]]:
        places = np.append(places, last)
    return places


def roundest(low: float, high: float, whole: bool = False) -> Decimal:
    """The number with the fewest digits between two limits, the ends included; an integer if there may be no other."""
    if low <= 0 <= high:
        return Decimal(0)
    power = floor(log10(max(abs(low), abs(high)))) + 1
    while power > -320:
        for mantissa in ("1", "0.5", "0.2"):
            step = Decimal(mantissa).scaleb(power)
            if whole and step < 1:
                return Decimal(ceil(low))
            number = step * (Decimal(repr((low + high) / 2)) / step).to_integral_value()
            for candidate in (number, number - step, number + step):
                if low <= float(candidate) <= high:
                    return _plain(candidate)
        power -= 1
    return Decimal(repr(high))
