"""How the texts of a column can be read as numbers: as amounts, as days of a calendar or as times of a day."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import final

_MISSING = frozenset(
    {
        *("na", "n/a", "n.a.", "#n/a", "<na>", "nan", "nat", "null", "(null)", "#null!", "\\n", "missing"),
        *(".", "..", "?", "-", "--", "–", "—"),
    }
)
"""Texts that stand for a missing value, in lower case."""
_CURRENCIES = "$€£¥₹"
_ENOUGH = 0.95
"""Share of the records that a reading must read; the rest are mistakes."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_ZONE = r" ?(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)"
_CLOCK = rf"(?P<H>[01][0-9]|2[0-3]):(?P<M>[0-5][0-9])(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?:{_ZONE})?"
_ISO_DATE = re.compile(rf"(?P<Y>[0-9]{{4}})-(?P<m>[0-9]{{2}})-(?P<d>[0-9]{{2}})(?:[T ]{_CLOCK})?")
_ISO_TIME = re.compile(_CLOCK)
_DATES = (
    None,
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %I:%M:%S %p",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %b %Y",
    "%b %d %Y",
    "%b %d, %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%d. %B %Y",
    "%Y-%m",
    "%m/%Y",
    "%b %Y",
    "%B %Y",
)
"""Formats of dates, the first for ISO, which a spec need not state."""
_TIMES = (None, "%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
_FIELDS = {
    "Y": "(?P<Y>[0-9]{4})",
    "y": "(?P<y>[0-9]{2})",
    "m": "(?P<m>[0-9]{1,2})",
    "d": "(?P<d>[0-9]{1,2})",
    "b": f"(?P<b>{'|'.join(_MONTHS)})",
    "B": f"(?P<B>{'|'.join(_FULL_MONTHS)})",
    "H": "(?P<H>[0-9]{1,2})",
    "I": "(?P<I>[0-9]{1,2})",
    "M": "(?P<M>[0-9]{2})",
    "S": "(?P<S>[0-9]{2})",
    "p": "(?P<p>am|pm)",
}


class Reading(ABC):
    """Reads texts as numbers."""

    @abstractmethod
    def value(self, text: str) -> float | None:
        """The number that a text stands for, or None."""


@final
@dataclass(frozen=True)
class Amounts(Reading):
    """Decimals, with separators between thousands, another decimal point and a currency if these are stated."""

    thousands: str | None = None
    point: str = "."
    currency: str | None = None
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        point = re.escape(self.point)
        whole = "[0-9]+"
        if self.thousands is not None:
            whole = f"(?:[0-9]{{1,3}}(?:{re.escape(self.thousands)}[0-9]{{3}})+|[0-9]+)"
        number = f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?"
        object.__setattr__(self, "_pattern", re.compile(f"[+-]?{number}"))

    def value(self, text: str) -> float | None:
        if self.currency is not None:
            text = text.replace(self.currency, "", 1).strip()
        if not self._pattern.fullmatch(text):
            return None
        if self.thousands is not None:
            text = text.replace(self.thousands, "")
        number = float(text.replace(self.point, "."))
        return number if abs(number) < 1e300 else None

    @property
    def options(self) -> dict[str, str]:
        """The keys by which a spec states this way of writing."""
        stated = {"thousands": self.thousands, "point": None if self.point == "." else self.point}
        return {key: mark for key, mark in {**stated, "currency": self.currency}.items() if mark is not None}


@final
@dataclass(frozen=True)
class Days(Reading):
    """Dates in a format of `strptime`, or in ISO form with or without a time, read as the number of their day."""

    format: str | None

    def value(self, text: str) -> float | None:
        match = (_ISO_DATE if self.format is None else _pattern(self.format)).fullmatch(text)
        if match is None:
            return None
        parts = match.groupdict()
        year = int(parts["Y"]) if "Y" in parts else _century(int(parts["y"]))
        month = parts.get("m") or parts.get("b") or parts.get("B") or ""
        return _day(year, month.lower(), int(parts.get("d", 1)))


@final
@dataclass(frozen=True)
class Minutes(Reading):
    """Times of a day in a format of `strptime`, or in ISO form, read as minutes since midnight."""

    format: str | None

    def value(self, text: str) -> float | None:
        match = (_ISO_TIME if self.format is None else _pattern(self.format)).fullmatch(text)
        if match is None:
            return None
        parts = match.groupdict()
        hour, minute = int(parts.get("H") or parts.get("I") or 0), int(parts["M"])
        if "I" in parts:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if parts["p"].lower() == "pm" else 0)
        return 60.0 * hour + minute if hour < 24 and minute < 60 else None


def is_missing(text: str) -> bool:
    """Whether a text stands for a missing value; ``none`` may be a value, ``None`` is Python's."""
    return text == "None" or text.lower() in _MISSING


def choose_reading(counts: Mapping[str, int]) -> Reading | None:
    """The reading that reads nearly all texts that are not missing, or None if they are just texts."""
    present = {text: count for text, count in counts.items() if text and not is_missing(text)}
    if not present:
        return None
    amounts = _best([Amounts(*style) for style in _styles(present)], present)
    compact = Days("%Y%m%d")
    if amounts is not None and all(len(text) == 8 and _recent(compact.value(text)) for text in present):
        return compact
    if amounts is not None:
        return amounts
    return _best([Days(format) for format in _DATES], present) or _best([Minutes(format) for format in _TIMES], present)


def _best(
    readings: list[Reading] | list[Amounts] | list[Days] | list[Minutes], counts: Mapping[str, int]
) -> Reading | None:
    """The first of the readings that read most records, if that is nearly all."""
    total = sum(counts.values())
    sample = dict(list(counts.items())[:50])
    best, most = None, 0
    for reading in readings:
        if not any(reading.value(text) is not None for text in sample):
            continue
        unread = [text for text in counts if reading.value(text) is None]
        read = total - sum(counts[text] for text in unread)
        if read > most and read >= _ENOUGH * total and len(unread) <= max(3, len(counts) // 10):
            best, most = reading, read
    return best


def _styles(counts: Mapping[str, int]) -> list[tuple[str | None, str, str | None]]:
    """Ways of writing amounts: thousands, point, currency."""
    marks = {mark for mark in _CURRENCIES if any(mark in text for text in counts)}
    styles = [(None, "."), (",", "."), (None, ","), (".", ","), (" ", "."), (" ", ","), ("'", ".")]
    return [(*style, currency) for currency in [None, *sorted(marks)] for style in styles]


@lru_cache(256)
def _pattern(format: str) -> re.Pattern[str]:
    parts = re.split("%(.)", format)
    text = "".join(_FIELDS[part] if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return re.compile(text, re.IGNORECASE)


@lru_cache(1 << 16)
def _day(year: int, month: str, day: int) -> float | None:
    try:
        number = int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1
        return float(date(year, number, day).toordinal())
    except ValueError:
        return None


def _century(year: int) -> int:
    return 2000 + year if year < 69 else 1900 + year


def _recent(day: float | None) -> bool:
    return day is not None and 1900 <= date.fromordinal(int(day)).year < 2100
