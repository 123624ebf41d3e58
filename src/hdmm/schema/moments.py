"""Dates and times of day as text: in ISO form or in a declared format, whatever the machine's locale and time zone are.

A text stands for a span of days and a span of minutes of the day, each with both ends included: ``2021-03-01 08:30``
for one day and one minute, ``2021-03`` in the format ``%Y-%m`` for 31 days. Days are counted from 1970-01-01, minutes
from midnight. Seconds and time zones are checked and then ignored: a date is the date that is written.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date
from typing import TypeAlias, final

from hdmm.errors import SchemaError
from hdmm.numbers import shown
from hdmm.syntax import given

Span: TypeAlias = tuple[int, int]
"""First and last day, or first and last minute."""
Moment: TypeAlias = tuple[Span | None, Span | None]
"""The days and the minutes of a text, as far as it holds them."""

EPOCH = date(1970, 1, 1).toordinal()
MINUTES = 24 * 60
"""Minutes of a day."""

_LONGEST = 200
"""Bytes of a text; a longer one is neither a date nor a time."""
_LONGEST_FORMAT = 100
"""Characters of a format."""
_ZONE = r" ?(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2}(?::[0-9]{2})?)?)"
_CLOCK = rf"(?P<H>[01][0-9]|2[0-3]):(?P<M>[0-5][0-9])(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?:{_ZONE})?"
_DAY = r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
_ISO_DATE = re.compile(rf"{_DAY}(?:[T ]{_CLOCK})?".encode())
_ISO_TIME = re.compile(rf"(?:{_DAY}[T ])?{_CLOCK}".encode())

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIRST_SHORT_YEAR = 1969
"""Years of two digits are those of the hundred years from this one on, as in Python and POSIX."""

_NUMBERS = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "0[1-9]|1[0-2]",
    "d": "0[1-9]|[12][0-9]|3[01]",
    "j": "00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6]",
    "H": "[01][0-9]|2[0-3]",
    "I": "0[1-9]|1[0-2]",
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
}
"""The directives that are written as numbers, with all their digits."""
_SHORT = {
    "m": "1[0-2]|0?[1-9]",
    "d": "[12][0-9]|3[01]|0?[1-9]",
    "j": "[12][0-9]{2}|3[0-5][0-9]|36[0-6]|0?[1-9][0-9]|0?0?[1-9]",
    "H": "1[0-9]|2[0-3]|0?[0-9]",
    "I": "1[0-2]|0?[1-9]",
    "M": "[1-5][0-9]|0?[0-9]",
    "S": "[1-5][0-9]|0?[0-9]",
}
"""The same with or without leading zeros."""
_WORDS = {
    "b": "|".join(name[:3] for name in MONTHS),
    "B": "|".join(MONTHS),
    "a": "|".join(name[:3] for name in WEEKDAYS),
    "A": "|".join(WEEKDAYS),
    "p": "AM|PM",
    "Z": "[A-Z]{1,5}",
    "z": "Z|[+-][0-9]{2}:?[0-9]{2}",
    "f": "[0-9]{1,9}",
}
"""The other directives; words in any case."""
_DIRECTIVES = (*_NUMBERS, *_WORDS, "%")
_CONFLICTS = (
    ("Y", "y"),
    ("m", "b"),
    ("m", "B"),
    ("b", "B"),
    ("j", "m"),
    ("j", "b"),
    ("j", "B"),
    ("j", "d"),
    ("H", "I"),
)
"""Pairs of directives that say the same thing."""


class Form(ABC):
    """How texts of records are read as dates or times, and written."""

    @abstractmethod
    def days(self, text: bytes) -> Span | None:
        """The days that a text stands for; None if it is no date."""

    @abstractmethod
    def minutes(self, text: bytes) -> Span | None:
        """The minutes of the day that a text stands for; None if it is no time."""

    @abstractmethod
    def write(self, day: int, minute: int) -> str | None:
        """A text that stands for a day and a minute; None for the usual text."""


@final
@dataclass(frozen=True)
class Iso(Form):
    """``2021-03-01``, ``08:30``, or both with a ``T`` or a blank between them, perhaps with seconds and a time zone."""

    def days(self, text: bytes) -> Span | None:
        match = _ISO_DATE.fullmatch(text)
        return None if match is None else _iso_day(match)

    def minutes(self, text: bytes) -> Span | None:
        match = _ISO_TIME.fullmatch(text)
        if match is None or (match["Y"] is not None and _iso_day(match) is None):
            return None
        minute = int(match["H"]) * 60 + int(match["M"])
        return minute, minute

    def write(self, day: int, minute: int) -> str | None:
        return None


@final
@dataclass(frozen=True)
class Format(Form):
    """A format with directives such as ``%d.%m.%Y``; docs/data.md says what each of them reads."""

    text: str
    _parts: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Directives as one letter after ``%``, and the texts between them."""
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _digits: int | None = field(init=False, repr=False, compare=False)
    """The number of digits, if the format consists of numbers without anything between them."""

    def __post_init__(self) -> None:
        parts = _split(self.text)
        numeric = all(part[:1] == "%" and part[1] in _NUMBERS for part in parts)
        fields = {
            "_parts": parts,
            "_pattern": _pattern(parts),
            "_digits": len(_filled(parts, 0, 0)) if numeric else None,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def numeric(self) -> bool:
        """Whether texts in this format are numbers, such as 20210301."""
        return self._digits is not None

    @property
    def years(self) -> tuple[int, int]:
        """The first and the last year that the format can write."""
        return (_FIRST_SHORT_YEAR, _FIRST_SHORT_YEAR + 99) if self.has("y") else (1, 9999)

    def has(self, *directives: str) -> bool:
        """Whether the format holds one of some directives."""
        return any(f"%{directive}" in self._parts for directive in directives)

    def days(self, text: bytes) -> Span | None:
        moment = self._read(text)
        return None if moment is None else moment[0]

    def minutes(self, text: bytes) -> Span | None:
        moment = self._read(text)
        return None if moment is None else moment[1]

    def write(self, day: int, minute: int) -> str | None:
        return _filled(self._parts, day, minute)

    def _read(self, text: bytes) -> Moment | None:
        if len(text) > _LONGEST:
            return None
        try:
            written = text.decode()
        except UnicodeDecodeError:
            return None
        if self._digits is not None and written.isascii() and written.isdigit():
            written = written.zfill(self._digits)
        match = self._pattern.fullmatch(written)
        if match is None:
            return None
        values = {name: value.lower() for name, value in match.groupdict().items()}
        try:
            return _days(values), _minutes(values)
        except ValueError:  # there is no such date
            return None


def _iso_day(match: re.Match[bytes]) -> Span | None:
    try:
        day = _day(int(match["Y"]), int(match["m"]), int(match["d"]))
    except ValueError:  # there is no such date
        return None
    return day, day


def form_of(format: object) -> Form:
    """The form that a user declares; None stands for ISO."""
    if format is None:
        return Iso()
    if not isinstance(format, str) or not 0 < len(format) <= _LONGEST_FORMAT:
        raise SchemaError(f"{given('format', shown(format))}: expected a text such as '%d.%m.%Y'")
    return Format(format)


def _split(text: str) -> tuple[str, ...]:
    """The directives of a format and the texts between them; refuse what is not known or contradicts itself."""
    if text != text.strip() or not text.isprintable():
        raise SchemaError(
            f"{given('format', repr(text))}: it stays on one line and has no blanks around it; fields are trimmed"
        )
    parts = tuple(re.findall(r"%.?|[^%]+", text, re.DOTALL))
    seen = [part[1:] for part in parts if part[0] == "%"]
    for directive in seen:
        if directive not in _DIRECTIVES:
            known = " ".join(f"%{known}" for known in _DIRECTIVES)
            raise SchemaError(f"{given('format', repr(text))}: '%{directive}' is not a directive; known: {known}")
        if directive != "%" and seen.count(directive) > 1:
            raise SchemaError(f"{given('format', repr(text))}: '%{directive}' stands twice; write it once")
    for one, other in _CONFLICTS:
        if one in seen and other in seen:
            raise SchemaError(
                f"{given('format', repr(text))}: '%{one}' and '%{other}' exclude each other; write one of them"
            )
    if ("I" in seen) != ("p" in seen):
        raise SchemaError(f"{given('format', repr(text))}: '%I' and '%p' (AM or PM) go together; write both, or '%H'")
    return parts


def _pattern(parts: tuple[str, ...]) -> re.Pattern[str]:
    """The regular expression of a format. Of numbers that follow each other directly, each has all its digits."""
    pieces = []
    before = ""
    for part, after in zip(parts, (*parts[1:], ""), strict=True):
        letter = part[1:] if part[0] == "%" and part != "%%" else ""
        if not letter:
            literal = "%" if part == "%%" else part
            pieces.append("".join("[ \t]+" if piece.isspace() else re.escape(piece) for piece in _runs(literal)))
        elif letter in _NUMBERS:
            beside = any(near[:1] == "%" and near[1:] in (*_NUMBERS, "f") for near in (before, after))
            pieces.append(f"(?P<{letter}>{(_NUMBERS if beside else _NUMBERS | _SHORT)[letter]})")
        else:
            pieces.append(f"(?P<{letter}>(?i:{_WORDS[letter]}))")
        before = part
    return re.compile("".join(pieces), re.ASCII)


def _runs(literal: str) -> list[str]:
    return re.findall(r"\s+|\S+", literal)


def _days(values: dict[str, str]) -> Span | None:
    """The days of the parts of a date; None if there is no year. An impossible date raises ValueError."""
    if "Y" in values:
        year = int(values["Y"])
    elif "y" in values:
        century, offset = divmod(_FIRST_SHORT_YEAR, 100)
        year = (century + (int(values["y"]) < offset)) * 100 + int(values["y"])
    else:
        return None
    if "j" in values:
        day = _day(year, 1, 1) + int(values["j"]) - 1
        if day > _day(year, 12, 31):
            raise ValueError
        return day, day
    month = _month(values)
    if month is None:
        return _day(year, 1, 1), _day(year, 12, 31)
    if "d" in values:
        day = _day(year, month, int(values["d"]))
        return day, day
    return _day(year, month, 1), _day(year, month, monthrange(year, month)[1])


def _month(values: dict[str, str]) -> int | None:
    if "m" in values:
        return int(values["m"])
    name = values.get("b", values.get("B"))
    return None if name is None else 1 + [month[:3].lower() for month in MONTHS].index(name[:3])


def _minutes(values: dict[str, str]) -> Span | None:
    if "H" in values:
        hour = int(values["H"])
    elif "I" in values:
        hour = int(values["I"]) % 12 + 12 * (values["p"] == "pm")
    else:
        return None
    if "M" not in values:
        return hour * 60, hour * 60 + 59
    minute = hour * 60 + int(values["M"])
    return minute, minute


def _day(year: int, month: int, day: int) -> int:
    return date(year, month, day).toordinal() - EPOCH


def _filled(parts: tuple[str, ...], day: int, minute: int) -> str:
    """A day and a minute in a format."""
    when = date.fromordinal(day + EPOCH)
    hour = minute // 60
    month, weekday = MONTHS[when.month - 1], WEEKDAYS[when.weekday()]
    values = {
        "Y": f"{when.year:04}",
        "y": f"{when.year % 100:02}",
        "m": f"{when.month:02}",
        "d": f"{when.day:02}",
        "j": f"{when.timetuple().tm_yday:03}",
        "b": month[:3],
        "B": month,
        "a": weekday[:3],
        "A": weekday,
        "H": f"{hour:02}",
        "I": f"{(hour - 1) % 12 + 1:02}",
        "p": "AM" if hour < 12 else "PM",
        "M": f"{minute % 60:02}",
        "S": "00",
        "f": "000000",
        "z": "+0000",
        "Z": "UTC",
        "%": "%",
    }
    return "".join(values[part[1:]] if part[0] == "%" else part for part in parts)
