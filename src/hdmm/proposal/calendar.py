"""Domains for dates and for times of a day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from hdmm.proposal.attribute import Attribute, extra_cells
from hdmm.proposal.gaps import gaps
from hdmm.proposal.readings import Days, Minutes
from hdmm.proposal.summary import ColumnSummary

_MAX_CELLS = 400
"""Days, weeks or months up to this many."""
_DAYS_OF_MONTH = 31


def propose_dates(summary: ColumnSummary, reading: Days) -> Attribute:
    """A range of dates, in steps that leave some hundred cells."""
    gap = gaps(summary)
    days = [date.fromordinal(int(value)) for value in summary.values]
    first, last = days[0], days[-1]
    by = _step(days)
    if by == "day":
        first = first.replace(day=1)
        last = (last.replace(day=1) + timedelta(_DAYS_OF_MONTH + 1)).replace(day=1) - timedelta(1)
    else:
        first, last = date(first.year, 1, 1), date(last.year, 12, 31)
    domain: dict[str, Any] = {"date": [str(first), str(last)], "by": by}
    if summary.column.type in ("text", "untyped", "integer") and reading.format is not None:
        domain["format"] = reading.format
    domain |= gap.options
    years = last.year - first.year + 1
    cells = {
        "day": (last - first).days + 1,
        "week": (last - first).days // 7 + 2,
        "month": 12 * years,
        "quarter": 4 * years,
        "year": years,
    }
    proposed = Attribute(summary.column.name, domain, cells[by] + extra_cells(domain), True, gap.notes)
    other = _other_order(summary, reading)
    if other is None:
        return proposed
    return proposed.noted(f"These dates may also be written as {other}: the values fit both. Find out which it is.")


def _other_order(summary: ColumnSummary, reading: Days) -> str | None:
    """The format with day and month exchanged, if it reads all of the texts too."""
    if reading.format is None or not {"%d", "%m"} <= {reading.format[at : at + 2] for at in range(len(reading.format))}:
        return None
    other = Days(reading.format.replace("%d", "%-").replace("%m", "%d").replace("%-", "%m"))
    read = [text for text in summary.counts if reading.value(text) is not None]
    if not reading.format.startswith("%Y") and all(other.value(text) is not None for text in read):
        return other.format
    return None


def propose_times(summary: ColumnSummary, reading: Minutes) -> Attribute:
    """The hours of a day."""
    gap = gaps(summary)
    domain: dict[str, Any] = {"time": ["00:00", "24:00"], "by": "hour"}
    if summary.column.type in ("text", "untyped") and reading.format is not None:
        domain["format"] = reading.format
    domain |= gap.options
    return Attribute(summary.column.name, domain, 24 + extra_cells(domain), True, gap.notes)


def _step(days: list[date]) -> str:
    """The unit in which dates are counted: as they are given, or a coarser one if there would be too many cells."""
    span = (days[-1] - days[0]).days + 1
    if all(day.day == 1 for day in days):
        months = {day.month for day in days}
        given = "year" if months == {1} else "quarter" if months <= {1, 4, 7, 10} else "month"
    elif len(days) > 2 and len({day.weekday() for day in days}) == 1:
        given = "week"
    else:
        given = "day"
    units = {"day": 1.0, "week": 7.0, "month": 30.4, "quarter": 91.3, "year": 365.25}
    coarser = [unit for unit in ("day", "month", "year") if units[unit] >= units[given]]
    return next((unit for unit in [given, *coarser] if span / units[unit] <= _MAX_CELLS), "year")


def same_parts(texts: dict[str, str], reading: Days, part: str) -> bool:
    """Whether the texts of another column are the year, the month or the day of these dates."""
    for text, other in texts.items():
        value = reading.value(text)
        if value is not None and str(getattr(date.fromordinal(int(value)), part)) != other.lstrip("0"):
            return False
    return bool(np.size(list(texts)))
