"""Dates: cells that are days, ISO weeks, months, quarters or years."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Literal, final, get_args

import numpy as np

from hdmm.errors import SchemaError, WorkloadError, nearest
from hdmm.numbers import shown
from hdmm.schema.domain import Codes, Missing
from hdmm.schema.kinds import Listed
from hdmm.schema.levels import Groups, Level
from hdmm.schema.moments import EPOCH, WEEKDAYS, Form, Format, Span, form_of
from hdmm.schema.periods import Periods, level_over
from hdmm.syntax import either, example, given

DatePeriod = Literal["day", "week", "month", "quarter", "year"]

_IMPLIED: dict[str, tuple[str, ...]] = {
    "day": ("week", "month", "quarter", "year", "weekday"),
    "week": (),  # a week may lie in two months and in two years
    "month": ("quarter", "year"),
    "quarter": ("year",),
    "year": (),
}
"""The levels that come by themselves, for each size of the cells."""
_PARTS: dict[str, tuple[str, ...]] = {
    "day": ("year", "isoyear", "quarter", "month", "week", "day", "doy", "dow", "isodow"),
    "week": ("isoyear", "week"),
    "month": ("year", "quarter", "month"),
    "quarter": ("year", "quarter"),
    "year": ("year",),
}
"""The fields of SQL's EXTRACT that are the same for all days of a cell."""
_LITERAL = re.compile(
    r"(?P<Y>[0-9]{4})(?:-(?:(?P<m>[0-9]{2})(?:-(?P<d>[0-9]{2}))?|Q(?P<Q>[1-4])|W(?P<W>[0-9]{2})))?", re.ASCII
)
"""A day, a month, a quarter, an ISO week or a year."""


@final
@dataclass(frozen=True)
class Dates(Periods):
    """The days, ISO weeks, months, quarters or years from one date to another.

    >>> Dates("2021-12-30", "2022-01-04", by="week").labels()
    ['2021-W52', '2022-W01']

    Days outside the range are outside the domain, also those of the first and of the last period.

    Arguments:
        first: The first date: ``"2020-01-01"``, a ``datetime.date``, or a month or a year, such as ``"2020-01"``.
        last: The last date, included.
        by: The size of the cells: "day", "week" (Monday to Sunday), "month", "quarter" or "year".
        format: How dates are written in text columns, such as ``"%d.%m.%Y"``; None for ISO dates.
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields; a list of texts, such as ``["NA", "-9"]``, counts these as well.
        levels: Named groups of values, beside the coarser periods that are levels by themselves.
    """

    first: date
    last: date
    by: DatePeriod = "day"
    format: str | None = None

    def __init__(
        self,
        first: object,
        last: object,
        *,
        by: DatePeriod = "day",
        format: str | None = None,
        other: bool = False,
        missing: Missing = False,
        levels: Groups | None = None,
    ) -> None:
        if by not in get_args(DatePeriod):
            raise SchemaError(
                f"{given('by', shown(by))}: expected a size of cells{nearest(str(by), get_args(DatePeriod))}"
            )
        start, end = _argument("first", first)[0], _argument("last", last)[1]
        if start > end:
            whole = either(python=f"first={first}, last={last}", spec=f"[{first}, {last}]")
            raise SchemaError(f"{whole}: the domain is empty; first must not come after last")
        form = form_of(format)
        _check_format(form, by, start, end)
        self._set(first=_date(start), last=_date(end), by=by, format=format)
        self._set(_form=form, _limits=(start, end))
        self._set_cells(other, missing)
        self._set_levels(levels, _IMPLIED[by])

    @property
    def declared(self) -> int:
        first, last = _number(self.by, np.array(self._limits))
        return int(last - first) + 1

    def value(self, code: int) -> str:
        number = self._first_number + code
        match self.by:
            case "day":
                return _date(number).isoformat()
            case "week":
                year, week, _ = _date(7 * number - 3).isocalendar()
                return f"{year:04}-W{week:02}"
            case "month":
                return f"{1970 + number // 12:04}-{number % 12 + 1:02}"
            case "quarter":
                return f"{1970 + number // 4:04}-Q{number % 4 + 1}"
        return f"{1970 + number:04}"

    def hint(self, text: str) -> str:
        return f", which holds the dates {self.first} to {self.last}; {self._example}"

    def records(self) -> list[str | None]:
        lows, _ = self.bounds
        written = [self._form.write(day, 0) or self.value(code) for code, day in enumerate(lows.tolist())]
        return [*written, *["other"] * self.other, *[None] * self.missing]

    @cached_property
    def bounds(self) -> tuple[Codes, Codes]:
        first, last = self._limits
        starts = _start(self.by, self._first_number + np.arange(self.declared + 1))
        return np.maximum(starts[:-1], first), np.minimum(starts[1:] - 1, last)

    def number(self, places: Codes) -> Codes:
        return _number(self.by, places) - self._first_number

    def part(self, name: str) -> Codes:
        """The field of SQL's ``EXTRACT(name FROM attribute)`` for every declared cell.

        >>> Dates("2020", "2021", by="quarter").part("quarter").tolist()
        [1, 2, 3, 4, 1, 2, 3, 4]
        """
        if name not in _PARTS[self.by]:
            known = _PARTS["day"]
            reason = f"a {self.by} does not decide it; declare by: day" if name in known else "it is not known"
            raise WorkloadError(f"{name!r} of a date: {reason}{nearest(name, _PARTS[self.by])}")
        days = self.bounds[0]
        months = _number("month", days)
        match name:
            case "year":
                return 1970 + months // 12
            case "quarter":
                return months % 12 // 3 + 1
            case "month":
                return months % 12 + 1
            case "day":
                return days - _start("month", months) + 1
            case "doy":
                return days - _start("year", months // 12) + 1
            case "dow":
                return (days + 4) % 7
            case "isodow":
                return (days + 3) % 7 + 1
        thursdays = _start("week", _number("week", days)) + 3  # a week belongs to the year of its Thursday
        years = _number("year", thursdays)
        return 1970 + years if name == "isoyear" else (thursdays - _start("year", years)) // 7 + 1

    def build_level(self, name: str) -> Level:
        if name == "weekday":
            names = Listed(WEEKDAYS, other=self.other, missing=self.missing)
            return level_over(names, self.part("isodow") - 1)
        (by,) = (by for by in get_args(DatePeriod) if by == name)
        coarse = Dates(self.first, self.last, by=by, other=self.other, missing=self.missing)
        return level_over(coarse, coarse.number(self.bounds[0]))

    @cached_property
    def _first_number(self) -> int:
        return int(_number(self.by, np.array(self._limits[:1]))[0])

    def _literal(self, text: str) -> Span | None:
        return _span(text)

    def _read(self, text: bytes) -> Span | None:
        days = self._form.days(text)
        if days is None and self.by != "day" and self.format is None:
            return self._label(text)
        return days

    def _label(self, text: bytes) -> Span | None:
        """The days of a text that is the label of a period."""
        try:
            days = _span(text.decode("ascii"))
        except UnicodeDecodeError:
            return None
        if days is None:
            return None
        low, high = _number(self.by, np.array(days))
        return (
            days
            if low == high and _start(self.by, np.array([low, low + 1])).tolist() == [days[0], days[1] + 1]
            else None
        )

    @property
    def _example(self) -> str:
        return (
            f"write a date as '2021-03-01'{'' if self.by == 'day' else f', or a {self.by} as {_EXAMPLES[self.by]!r}'}"
        )

    @property
    def _noun(self) -> str:
        return self.by

    @property
    def _unit(self) -> str:
        return "day"

    def _place(self, place: int) -> str:
        return _date(place).isoformat()


_EXAMPLES = {"week": "2021-W09", "month": "2021-03", "quarter": "2021-Q1", "year": "2021"}


def _date(day: int) -> date:
    return date.fromordinal(day + EPOCH)


def _number(by: DatePeriod, days: Codes) -> Codes:
    """The periods of days, counted from the one that holds 1970-01-01."""
    match by:
        case "day":
            return days
        case "week":  # 1970-01-01 was a Thursday
            return (days + 3) // 7
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months // {"month": 1, "quarter": 3, "year": 12}[by]


def _start(by: DatePeriod, numbers: Codes) -> Codes:
    """The first days of periods."""
    match by:
        case "day":
            return numbers
        case "week":
            return 7 * numbers - 3
    months = (numbers * {"month": 1, "quarter": 3, "year": 12}[by]).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64)


def _span(text: str) -> Span | None:
    """The days of a text that is a day, a month, a quarter, a week or a year."""
    match = _LITERAL.fullmatch(text)
    if match is None:
        return None
    year = int(match["Y"])
    try:
        if match["W"] is not None:
            start = date.fromisocalendar(year, int(match["W"]), 1).toordinal() - EPOCH
            return start, start + 6
        if match["d"] is not None:
            start = date(year, int(match["m"]), int(match["d"])).toordinal() - EPOCH
            return start, start
        first, last = 1, 12
        if match["m"] is not None:
            first = last = int(match["m"])
        elif match["Q"] is not None:
            first, last = int(match["Q"]) * 3 - 2, int(match["Q"]) * 3
        end = date(year, last, monthrange(year, last)[1])
        return date(year, first, 1).toordinal() - EPOCH, end.toordinal() - EPOCH
    except ValueError:  # there is no such day, month or week
        return None


def _argument(name: str, value: object) -> Span:
    """The days of an argument: a date, or a text or a number that stands for a period."""
    span = None
    if isinstance(value, date) and not isinstance(value, datetime):
        span = _span(value.isoformat())
    elif isinstance(value, (str, int)) and not isinstance(value, bool):
        span = _span(shown(value) if isinstance(value, int) else value.strip())
    if span is None:
        where = either(python=f"{name}=", spec="date: ")
        raise SchemaError(f"{where}{shown(value)}: expected a date of the years 0001 to 9999, for example '2020-01-31'")
    return span


def _check_format(form: Form, by: DatePeriod, first: int, last: int) -> None:
    """Refuse a format that does not decide the cell of a date."""
    if not isinstance(form, Format):
        return
    text = form.text
    if not form.has("Y", "y"):
        raise SchemaError(f"{given('format', repr(text))}: a year is missing; write for example '%d.%m.%Y'")
    has_month = form.has("m", "b", "B", "j")
    if (form.has("d") or by != "year") and not has_month:
        raise SchemaError(
            f"{given('format', repr(text))}: a month is missing; write for example '%m/%Y', or declare "
            f"{example('by', 'year')}"
        )
    if by in ("day", "week") and not form.has("d", "j"):
        raise SchemaError(
            f"{given('format', repr(text))}: a day is missing; write for example '%d.%m.%Y', or declare "
            f"{example('by', 'month')}"
        )
    low, high = form.years
    if _date(first).year < low or _date(last).year > high:
        raise SchemaError(
            f"{given('format', repr(text))}: '%y' stands for the years {low} to {high}; write '%Y', or a shorter range"
        )
