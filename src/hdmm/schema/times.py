"""Times of day: cells that are hours or minutes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time
from functools import cached_property
from typing import Literal, final, get_args

import numpy as np

from hdmm.errors import SchemaError, WorkloadError, nearest
from hdmm.numbers import shown
from hdmm.schema.domain import Codes, Missing
from hdmm.schema.levels import Groups, Level
from hdmm.schema.moments import MINUTES, Form, Format, Span, form_of
from hdmm.schema.periods import Periods, level_over
from hdmm.syntax import either, example, given

TimePeriod = Literal["hour", "minute"]

_SIZES: dict[TimePeriod, int] = {"hour": 60, "minute": 1}
"""Minutes of a cell."""
_TIME = r"((?:[01][0-9]|2[0-3]):[0-5][0-9])(?::00)?"
_LITERAL = re.compile(f"{_TIME}(?:[–-]{_TIME})?")
"""A minute, or the label of an hour."""


@final
@dataclass(frozen=True)
class Times(Periods):
    """The hours or minutes of the day from one time up to another. Seconds are ignored.

    >>> Times("08:00", "10:30").labels()
    ['08:00–08:59', '09:00–09:59', '10:00–10:29']

    Arguments:
        first: The first minute: ``"08:00"``, or a ``datetime.time``.
        last: The end, not included; ``"24:00"`` is the end of the day.
        by: The size of the cells: "hour" or "minute".
        format: How times are written in text columns, such as ``"%I:%M %p"``; None for ISO times.
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields; a list of texts, such as ``["NA", "-9"]``, counts these as well.
        levels: Named groups of values; the hours of minutes are a level by themselves.
    """

    first: str
    last: str
    by: TimePeriod = "hour"
    format: str | None = None

    def __init__(
        self,
        first: object,
        last: object,
        *,
        by: TimePeriod = "hour",
        format: str | None = None,
        other: bool = False,
        missing: Missing = False,
        levels: Groups | None = None,
    ) -> None:
        if by not in get_args(TimePeriod):
            raise SchemaError(
                f"{given('by', shown(by))}: expected a size of cells{nearest(str(by), get_args(TimePeriod))}"
            )
        start, end = _argument("first", first), _argument("last", last)
        if start >= end:
            whole = either(python=f"first={first}, last={last}", spec=f"[{first}, {last}]")
            raise SchemaError(f"{whole}: the domain is empty; first must come before last")
        form = form_of(format)
        _check_format(form, by)
        self._set(first=_text(start), last=_text(end), by=by, format=format)
        self._set(_form=form, _limits=(start, end - 1))
        self._set_cells(other, missing)
        self._set_levels(levels, ("hour",) if by == "minute" else ())

    @property
    def declared(self) -> int:
        return int(self.number(np.array(self._limits))[1]) + 1

    def value(self, code: int) -> str:
        low, high = (int(ends[code]) for ends in self.bounds)
        return _text(low) if low == high else f"{_text(low)}–{_text(high)}"

    def ends(self, codes: Codes) -> tuple[list[str], list[str]]:
        lows, highs = (bounds[codes] for bounds in self.bounds)
        return [_text(low) for low in lows.tolist()], [_text(high) for high in highs.tolist()]

    def hint(self, text: str) -> str:
        return f", which holds the times from {self.first} up to {self.last}; {self._example}"

    def records(self) -> list[str | None]:
        written = [self._form.write(0, minute) or _text(minute) for minute in self.bounds[0].tolist()]
        return [*written, *["other"] * self.other, *[None] * self.missing]

    @property
    def minutes(self) -> int:
        """How many minutes a cell has."""
        return _SIZES[self.by]

    @cached_property
    def bounds(self) -> tuple[Codes, Codes]:
        (first, last), size = self._limits, self.minutes
        starts = (first // size + np.arange(self.declared)) * size
        return np.maximum(starts, first), np.minimum(starts + size - 1, last)

    def number(self, places: Codes) -> Codes:
        return places // self.minutes - self._limits[0] // self.minutes

    def part(self, name: str) -> Codes:
        """The field of SQL's ``EXTRACT(name FROM attribute)`` for every declared cell: "hour", or "minute"."""
        known = ("hour",) if self.by == "hour" else ("hour", "minute")
        if name not in known:
            reason = "an hour does not decide it; declare by: minute" if name == "minute" else "it is not known"
            raise WorkloadError(f"{name!r} of a time: {reason}{nearest(name, known)}")
        minutes = self.bounds[0]
        return minutes // 60 if name == "hour" else minutes % 60

    def build_level(self, name: str) -> Level:
        coarse = Times(self.first, self.last, by="hour", other=self.other, missing=self.missing)
        return level_over(coarse, coarse.number(self.bounds[0]))

    def _literal(self, text: str) -> Span | None:
        match = _LITERAL.fullmatch(text)
        if match is None:
            return None
        return _minute(match[1]), _minute(match[2] or match[1])

    def _read(self, text: bytes) -> Span | None:
        return self._form.minutes(text)

    @property
    def _example(self) -> str:
        return "write a time as '08:30'"

    @property
    def _noun(self) -> str:
        return self.by

    @property
    def _unit(self) -> str:
        return "minute"

    def _place(self, place: int) -> str:
        return _text(place)


def _text(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _minute(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:5])


def _argument(name: str, value: object) -> int:
    """The minute of an argument; the end of the day, 24:00, is the last one."""
    text = value.isoformat() if isinstance(value, time) else value.strip() if isinstance(value, str) else ""
    if name == "last" and text == "24:00":
        return MINUTES
    match = re.fullmatch(_TIME, text)
    if match is None:
        end = ", or '24:00'" if name == "last" else ""
        where = either(python=f"{name}=", spec="time: ")
        raise SchemaError(f"{where}{shown(value)}: expected a time of whole minutes, for example '08:30'{end}")
    return _minute(match[1])


def _check_format(form: Form, by: TimePeriod) -> None:
    """Refuse a format that does not decide the cell of a time."""
    if not isinstance(form, Format):
        return
    if not form.has("H", "I"):
        raise SchemaError(f"{given('format', repr(form.text))}: an hour is missing; write for example '%H:%M'")
    if by == "minute" and not form.has("M"):
        raise SchemaError(
            f"{given('format', repr(form.text))}: a minute is missing; write for example '%H:%M', or declare "
            f"{example('by', 'hour')}"
        )
