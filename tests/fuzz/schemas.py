"""Schemas, described independently of hdmm: what the cells are, how text is read, and how they are written down.

The rules are those of docs/data.md and docs/spec.md, written a second time.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from tests.fuzz.spellings import PLAIN, Options

Levels = tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], ...]
"""For each level its groups, and for each group its declared cells."""

_CLOCK = r"([01]\d|2[0-3]):([0-5]\d)(?::[0-5]\d(?:\.\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d(?::?\d\d(?::\d\d)?)?))?"
_FORMS = {
    "": re.compile(rf"(?P<Y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d)(?:[T ]{_CLOCK})?", re.ASCII),
    "%d.%m.%Y": re.compile(r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<Y>\d{4})", re.ASCII),
    "%m/%Y": re.compile(r"(?P<m>\d{1,2})/(?P<Y>\d{4})", re.ASCII),
    "%Y%m%d": re.compile(r"0*(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)", re.ASCII),
}
_TIMES = {
    "": re.compile(rf"(?:\d{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])[T ])?{_CLOCK}", re.ASCII),
    "%H%M": re.compile(r"()(\d{1,4})", re.ASCII),
}
IMPLIED = {
    "day": ("week", "month", "quarter", "year", "weekday"),
    "month": ("quarter", "year"),
    "quarter": ("year",),
    "minute": ("hour",),
}
"""The levels that dates and times have by themselves."""
_TRUTH = {"true": 1, "t": 1, "yes": 1, "1": 1, "false": 0, "f": 0, "no": 0, "0": 0}


@dataclass(frozen=True)
class Attribute:
    """An attribute, a part of a merged one, or a level: declared cells in order, then "other", then "missing"."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    """Listed texts; the least and the largest integer; the edges of bins; or the first and the last date or time."""
    closed: bool = False
    other: bool = False
    missing: bool = False
    levels: Levels = ()
    parts: "tuple[Attribute, ...]" = ()
    by: str = ""
    format: str = ""
    options: Options = PLAIN

    @property
    def declared(self) -> int:
        """How many cells are values."""
        match self.kind:
            case "listed":
                return len(self.values)
            case "integers":
                return int(self.values[1]) - int(self.values[0]) + 1
            case "bins":
                return len(self.values) - 1
            case "boolean":
                return 2
            case "dates" | "times":
                return len(periods(self.kind, self.values, self.by))
        return prod(part.size for part in self.parts)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.declared + self.other + self.missing

    @property
    def flags(self) -> bool:
        """Whether it is merged of plain booleans."""
        return all(part.kind == "boolean" and part.size == 2 for part in self.parts)

    def labels(self) -> list[str]:
        """The text of every cell."""
        extra = ["other"] * self.other + ["missing"] * self.missing
        shown = dict(self.options.labels)
        match self.kind:
            case "listed":
                return [*(shown.get(value, value) for value in self.values), *extra]
            case "integers":
                numbers = map(str, range(int(self.values[0]), int(self.values[1]) + 1))
                return [*(shown.get(number, number) for number in numbers), *extra]
            case "bins":
                ends = [")"] * (self.declared - 1) + ["]" if self.closed else ")"]
                pairs = zip(self.values, self.values[1:], ends, strict=False)
                return [*(f"[{low}, {high}{end}" for low, high, end in pairs), *extra]
            case "boolean":
                return ["False", "True", *extra]
            case "dates" | "times":
                return [*periods(self.kind, self.values, self.by), *extra]
        if self.flags:
            names = [part.name for part in self.parts]
            every = product((False, True), repeat=len(names))
            return ["+".join(n for n, true in zip(names, some, strict=True) if true) or "none" for some in every]
        return [", ".join(labels) for labels in product(*(part.labels() for part in self.parts))]

    def read(self, text: str) -> int | None:
        """The cell of a text; None where it is outside."""
        trimmed = text.strip(" \t\r")
        cell = self._value(trimmed)
        if cell is None and self.missing and self.options.absent(trimmed, self.kind in ("integers", "bins")):
            return self.size - 1
        return self.declared if cell is None and self.other else cell

    def _value(self, text: str) -> int | None:
        match self.kind:
            case "listed":
                return self.options.listed(self.values, text)
            case "integers":
                number = self.options.integer(text)
                cell = -1 if number is None else number - int(self.values[0])
                return cell if 0 <= cell < self.declared else None
            case "boolean":
                return _TRUTH.get(text.lower())
            case "dates":
                return self._date(text)
            case "times":
                return self._time(text)
        decimal, edges = self.options.number(text), [Decimal(edge) for edge in self.values]
        if decimal is None:
            return None
        if self.closed and decimal == edges[-1]:
            return self.declared - 1
        return next((cell for cell in range(self.declared) if edges[cell] <= decimal < edges[cell + 1]), None)

    def _date(self, text: str) -> int | None:
        known = periods(self.kind, self.values, self.by)
        if not self.format and self.by != "day" and text in known:
            return known.index(text)
        padded = text.zfill(8) if self.format == "%Y%m%d" and text.isascii() and text.isdigit() else text
        match = _FORMS[self.format].fullmatch(padded)
        if match is None or (self.format == "%Y%m%d" and len(padded) > 8):
            return None
        parts = match.groupdict()
        first, last = (date.fromisoformat(end) for end in self.values)
        try:
            day = date(int(parts["Y"]), int(parts["m"]), int(parts.get("d", 1)))
        except ValueError:
            return None
        if "d" not in parts and day.isoformat()[:7] == first.isoformat()[:7]:
            day = first
        return known.index(period_of(day, self.by)) if first <= day <= last else None

    def _time(self, text: str) -> int | None:
        match = _TIMES[self.format].fullmatch(text)
        if match is None:
            return None
        hour, minute = divmod(int(match[2]), 100) if self.format else (int(match[1]), int(match[2]))
        cells = enumerate(clock(self.values, self.by))
        return next((at for at, cell in cells if minute < 60 and hour * 60 + minute in cell), None)

    @property
    def columns(self) -> "tuple[Attribute, ...]":
        """The columns of the data that it is read from."""
        return self.parts or (self,)

    def combine(self, cells: Sequence[int | None]) -> int | None:
        """The cell from the cells of the columns."""
        code = 0
        for column, cell in zip(self.columns, cells, strict=True):
            if cell is None:
                return None
            code = code * column.size + cell
        return code


def period_of(day: date, by: str) -> str:
    """The period of a day."""
    year, week, _ = day.isocalendar()
    return {
        "day": day.isoformat(),
        "week": f"{year:04}-W{week:02}",
        "month": day.isoformat()[:7],
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
        "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[day.weekday()],
    }[by]


def days(values: Sequence[str]) -> list[date]:
    """The days from the first to the last."""
    first, last = (date.fromisoformat(end) for end in values)
    return [first + timedelta(number) for number in range((last - first).days + 1)]


def clock(values: Sequence[str], by: str) -> list[range]:
    """The minutes of every cell."""
    first, last = (int(end[:2]) * 60 + int(end[3:]) for end in values)
    size = {"hour": 60, "minute": 1}[by]
    starts = range(first // size * size, last, size)
    return [range(max(start, first), min(start + size, last)) for start in starts]


@lru_cache(maxsize=1000)
def periods(kind: str, values: tuple[str, ...], by: str) -> tuple[str, ...]:
    """The labels of the declared cells of dates or times."""
    if kind == "dates":
        return tuple(dict.fromkeys(period_of(day, by) for day in days(values)))
    written = [(f"{c[0] // 60:02}:{c[0] % 60:02}", f"{c[-1] // 60:02}:{c[-1] % 60:02}") for c in clock(values, by)]
    return tuple(low if low == high else f"{low}–{high}" for low, high in written)


@dataclass(frozen=True)
class View:
    """What a name in a condition means: an attribute, and for each of its cells the cell of a level or a part."""

    attribute: str
    domain: Attribute
    cells: tuple[int, ...]


def views(attributes: Sequence[Attribute]) -> dict[str, View]:
    """Everything that a condition may name."""
    return {view.domain.name: view for attribute in attributes for view in views_of(attribute)}


def views_of(attribute: Attribute) -> Iterator[View]:
    """The attribute itself, its levels, its parts and their levels."""
    yield View(attribute.name, attribute, tuple(range(attribute.size)))
    for level, cells in _coarser(attribute):
        yield View(attribute.name, level, cells)
    sizes = [part.size for part in attribute.parts]
    for place, part in enumerate(attribute.parts):
        digits = [code // prod(sizes[place + 1 :]) % part.size for code in range(attribute.size)]
        yield View(attribute.name, part, tuple(digits))
        for level, cells in _coarser(part):
            yield View(attribute.name, level, tuple(cells[digit] for digit in digits))


def _coarser(domain: Attribute) -> Iterator[tuple[Attribute, tuple[int, ...]]]:
    for name, groups in domain.levels:
        coarse = Attribute(name, "listed", tuple(g for g, _ in groups), other=domain.other, missing=domain.missing)
        cells = {cell: place for place, (_, members) in enumerate(groups) for cell in members}
        extra = range(len(groups), coarse.size)
        yield coarse, tuple(cells[cell] for cell in range(domain.declared)) + tuple(extra)

    yield from _implied(domain)


def _implied(domain: Attribute) -> Iterator[tuple[Attribute, tuple[int, ...]]]:
    """The coarser periods of dates and times, by their long names."""
    own: dict[str, Any] = {"other": domain.other, "missing": domain.missing}
    for by in IMPLIED.get(domain.by, ()):
        name = f"{domain.name} {by}"
        if domain.kind == "times":
            coarse = Attribute(name, "times", domain.values, by=by, **own)
            starts = [cell[0] for cell in clock(domain.values, domain.by)]
            codes = [next(at for at, c in enumerate(clock(domain.values, by)) if m in c) for m in starts]
        else:
            found = {period_of(day, domain.by): period_of(day, by) for day in reversed(days(domain.values))}
            if by == "weekday":
                weekdays = tuple(period_of(date(2024, 1, day), by) for day in range(1, 8))
                coarse = Attribute(name, "listed", weekdays, **own)
            else:
                coarse = Attribute(name, "dates", domain.values, by=by, **own)
            codes = [coarse.labels().index(found[cell]) for cell in periods("dates", domain.values, domain.by)]
        yield coarse, (*codes, *range(coarse.declared, coarse.size))


def schema_data(attributes: Sequence[Attribute]) -> dict[str, Any]:
    """The schema as a spec holds it."""
    return {attribute.name: _data(attribute) for attribute in attributes}


def _data(domain: Attribute) -> Any:
    match domain.kind:
        case "merged":
            return {"merged": schema_data(domain.parts)}
        case "listed":
            data: dict[str, Any] = {"values": list(domain.values)}
        case "integers":
            data = {"min": int(domain.values[0]), "max": int(domain.values[1])}
        case "bins":
            data = {"bins": list(domain.values)} | ({"closed": True} if domain.closed else {})
        case "dates" | "times":
            data = {domain.kind[:-1]: list(domain.values), "by": domain.by}
            data |= {"format": domain.format} if domain.format else {}
        case _:
            data = {"boolean": True}
    data |= {key: True for key in ("other", "missing") if getattr(domain, key)} | domain.options.data()
    if domain.levels:
        data["levels"] = {name: {g: members(domain, cells) for g, cells in groups} for name, groups in domain.levels}
    return data


def members(domain: Attribute, cells: Sequence[int]) -> list[Any]:
    """The members of a group as a user writes them."""
    if domain.kind == "bins":
        return [[domain.values[cell], domain.values[cell + 1]] for cell in cells]
    labels = domain.labels()
    return [[labels[cell], labels[cell]] for cell in cells]


def schema_code(attributes: Sequence[Attribute]) -> str:
    """The schema as Python."""
    return f"hdmm.Schema({{{', '.join(f'{a.name!r}: {_code(a)}' for a in attributes)}}})"


def _code(domain: Attribute) -> str:
    flags = [key for key in ("closed", "other", "missing") if getattr(domain, key)]
    extra = "".join(f", {key}=True" for key in flags if key != "missing" or not domain.options.missing)
    extra += domain.options.code()
    if domain.levels:
        levels = {n: {g: [tuple(m) for m in members(domain, c)] for g, c in groups} for n, groups in domain.levels}
        extra += f", levels={levels!r}"
    match domain.kind:
        case "merged":
            return f"hdmm.Merged({{{', '.join(f'{part.name!r}: {_code(part)}' for part in domain.parts)}}})"
        case "listed":
            return f"hdmm.Listed({list(domain.values)!r}{extra})"
        case "integers":
            return f"hdmm.Integers({', '.join(domain.values)}{extra})"
        case "bins":
            return f"hdmm.Bins({list(domain.values)!r}{extra})"
        case "dates" | "times":
            ends, format = ", ".join(map(repr, domain.values)), f", format={domain.format!r}" if domain.format else ""
            return f"hdmm.{domain.kind.capitalize()}({ends}, by={domain.by!r}{format}{extra})"
    return f"hdmm.Boolean({extra[2:]})"
