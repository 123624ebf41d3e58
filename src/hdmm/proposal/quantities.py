"""Domains for numbers: integers from … to, or bins with round edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from hdmm.proposal.attribute import Attribute, extra_cells
from hdmm.proposal.edges import nice_edges
from hdmm.proposal.gaps import gaps
from hdmm.proposal.names import limits
from hdmm.proposal.readings import Amounts
from hdmm.proposal.summary import ColumnSummary
from hdmm.proposal.words import words

_MAX_INTEGERS = 400
"""More integers become bins."""
_EXACT_SPAN = 32
"""Limits that are this close are kept as they are; others are rounded outwards."""
_SPARSE_SPAN = 100
"""Fewer integers than this are listed from the least to the largest, even if most do not occur."""
_MAX_CODES = 64
"""Integers from 0 or 1 on that all occur are codes if there are no more than this."""
_YEARS = (1700, 2200)
_HOURS = range(0, 2401, 100)


def propose_quantity(summary: ColumnSummary) -> Attribute:
    """Integers if there are few, otherwise bins."""
    gap = gaps(summary)
    values, weights = summary.values[~gap.coded], summary.weights[~gap.coded]
    written = summary.reading.options if isinstance(summary.reading, Amounts) else {}
    whole = bool(np.all(values == np.floor(values)))
    low, high = float(values[0]), float(values[-1])
    name = summary.column.name
    notes: list[str] = []
    domain: dict[str, Any]
    if whole and _is_clock(name, values):
        domain, cells = {"bins": list(_HOURS), "closed": True}, len(_HOURS) - 1
        notes.append("Clock times written HHMM, by the hour.")
    elif whole and high - low < _MAX_INTEGERS and not _are_sparse(values):
        first, last = _rounded(name, int(low), int(high), len(values))
        domain, cells = {"min": first, "max": last}, last - first + 1
        if summary.pointed or summary.column.type == "float":
            domain["decimals"] = True
            notes.append("Integers, some of which are written with a fraction of zeros.")
    else:
        edges = nice_edges(values, weights)
        domain = {"bins": list(edges)} | ({"closed": True} if edges.closed else {})
        cells = len(edges) - 1
        notes.append(f"{'Integers' if whole else 'Numbers'} from {_shown(low)} to {_shown(high)} in the public data.")
    domain |= {**written, **gap.options}
    return Attribute(name, domain, cells + extra_cells(domain), True, (*notes, *gap.notes))


def _rounded(name: str, low: int, high: int, distinct: int) -> tuple[int, int]:
    """Limits that hold both ends: as the column's name has them, or rounded outwards to tens; those of codes stay."""
    stated = limits(name)
    if stated is not None and stated[0] <= low and high <= stated[1]:
        return stated
    codes = low in (0, 1) and high - low < _MAX_CODES and distinct == high - low + 1
    if codes or high - low < _EXACT_SPAN or (_YEARS[0] <= low and high <= _YEARS[1]):
        return low, high
    first = 0 if 0 <= low <= high // 2 else low // 10 * 10
    return first, high // 10 * 10 + 9


def _are_sparse(values: Any) -> bool:
    """Whether few of the integers in a wide range occur, such as multiples of ten."""
    span = values[-1] - values[0]
    return bool(span > _SPARSE_SPAN and 4 * len(values) < span)


def _is_clock(name: str, values: Any) -> bool:
    """Whether integers are times such as 1745: their names say so, and no two last digits exceed 59."""
    clock = values[0] >= 0 and values[-1] <= _HOURS[-1] and values[-1] >= 1000 and len(values) > 24
    return bool(clock and "time" in words(name) and np.all(values % 100 < 60))


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.6g}"
