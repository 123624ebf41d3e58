"""Hostile values as a table: a name, the column, its type and the value; every source that has the type replays it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from tests.attack.oracle import SIZES, Odd, Record, Ticks, identifier
from tests.attack.records import COLUMNS, MARK, as_types, base, ordinary
from tests.attack.replay import UNITS, Case
from tests.attack.sources import NAMES, Place, Source

HEAVY_MEMORY = "1GB"
_HUGE = 70 << 20
_MANY = 300_000


@dataclass(frozen=True)
class Item:
    """A value for one column of the record, or of all records of the person, that is added."""

    name: str
    column: str
    type: str
    value: Any
    sources: tuple[str, ...] = NAMES
    """Sources that replay it, as far as they have the type."""
    loose: bool = False
    """The documentation leaves open what it counts for."""
    heavy: bool = False
    """It takes much memory: replayed with few units, in the full suite only."""
    rows: int = 5
    """Records of the person who is added, where the unit is a person."""

    def in_source(self, source: Source) -> bool:
        """Whether a source can hold it."""
        return source.name in self.sources and self.type in source.types


class Mute:
    """An object that cannot be shown, compared or hashed with profit."""

    def __str__(self) -> str:
        raise ValueError(MARK)

    __repr__ = __str__


_TEXTS: dict[str, str | bytes | None] = {
    "NULL": None,
    "empty": "",
    "blanks": " \t\r ",
    "the word NULL": "NULL",
    "a NUL byte": f"F\0{MARK}",
    "NUL alone": "\0",
    "declared, then NUL": "F\0",
    "a line break": f"{MARK}\nana,F,1,2.5,true,2020-02-29,08:30",
    "a line break after a value": "F\n",
    "a carriage return": f"F\r{MARK}",
    "quotes": f'"{MARK}""',
    "one quote": '"',
    "a backslash": f"\\{MARK}\\",
    "a byte order mark": "\ufeffF",
    "an invisible mark": "F\u200b",
    "a wide blank": "F\u00a0",
    "another composition": "e\u0301",
    "SQL": f"'; DROP TABLE people; -- {MARK}",
    "SQL of a cast": "1::int",
    "a template": "{0} %s $1 ? :x {{MARK}}",
    "a date": "2020-01-31",
    "a truth": "TRUE",
    "a number": "5",
    "digits of another script": "٣",
    "a hexadecimal number": "0x5",
    "an underscore": "1_0",
    "a float": "5.0",
    "nan": "nan",
    "infinity": "-Infinity",
    "a tiny number": "1e-999",
    "a huge number": "1e999",
    "an exponent of four digits": "1e1000",
    "4096 digits": "0" * 4095 + "5",
    "4097 digits": "0" * 4096 + "5",
    "60,000 letters": MARK * 12_000,
    "60,000 digits": "9" * 60_000,
}
_WRITTEN = {
    "a text for missing values": "NA",
    "another case of it": "na",
    "a number for missing values": "-9",
    "the same number": "-09.0",
    "a point": ".",
    "another case": "TRUE",
    "an alias": "WOMAN",
    "two letters for one": "STRASSE",
    "a dotted letter": "İ",
    "a whole decimal": "5.",
    "almost whole": "5." + "0" * 1000 + "1",
    "an amount": "$5",
    "an amount in euros": "4,5 €",
    "an amount, negative": "-$9",
    "two currency signs": f"$5$ {MARK}",
    "thousands": "0,005",
    "thousands of points": "0.004,5",
    "thousands in the wrong place": "0,05",
    "4096 bytes of thousands": "0" + ",000" * 1023 + "",
    "60,000 bytes of thousands": "0" + ",000" * 15_000,
    "20,000 currency signs": "$" * 20_000,
}
"""Texts that mean something by the options of attributes, or nothing although they look like it."""
_BYTES = {
    "a bad byte": MARK.encode() + b"\xff",
    "a declared value, then a bad byte": b"F\xc3",
    "a coded surrogate": b"\xed\xa0\x80",
    "an overlong form": b"\xc0\xaf",
}
_IDENTIFIERS: dict[str, str | None] = {
    "blank": " \t ",
    "empty": "",
    "NULL": None,
    "blanks around": "  1999\t",
    "another case": "ANA",
    "another accent": "Jose",
    "a decomposed accent": "Jose\u0301",
    "a wide blank after": "ana\u00a0",
    "a NUL after": "ana\0",
    "NUL alone": "\0",
    "leading zero": "07",
    "a float": "7.0",
    "part of another's key": "a",
    "1000 letters": MARK * 200,
    "1001 letters": MARK * 200 + "x",
    "1000 letters of two bytes": "é" * 1000,
    "1000 letters of four bytes": "𝔵" * 1000,
    "1001 letters of four bytes": "𝔵" * 1001,
    "a line break": "ana\n",
    "quotes": '"ana"',
    "SQL": "' OR 1=1 --",
    "100,000 letters": MARK * 20_000,
    # Marc Stevens, 2024; the twin is one of everybody's.
    "equal MD5": "TEXTCOLLBYfGiJUETHQ4hEcKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak",
}
_LINES = {
    "an open quote": b'1999,"F,1,2.5,true,2020-02-29,08:30',
    "a closing quote alone": b'1999,F",1,2.5,true,2020-02-29,08:30',
    "too few fields": b"1999,F,1",
    "too many fields": b"1999,F,1,2.5,true,2020-02-29,08:30,,",
    "a carriage return": b"1999,F,1,2.5,true,2020-02-29,08:30\r",
    "only a carriage return": b"\r",
    "empty": b"",
    "bad bytes": b"\xff\xfe\x00\xed\xa0\x80" + MARK.encode(),
    "NUL bytes": b"\0" * 100,
    "the header again": b"who,sex,age,pay,flag,day,at",
    "a byte order mark": b"\xef\xbb\xbf1999,F,1,2.5,true,2020-02-29,08:30",
    "a mebibyte": b"1999,F,1,2.5,true,2020-02-29,08:30".ljust(1 << 20),
    "a mebibyte and a byte": b"1999,F,1,2.5,true,2020-02-29,08:30".ljust((1 << 20) + 1),
    "9 mebibytes, longer than a block": b"1999,F,1,2.5,true,2020-02-29,08:30".ljust(9 << 20),
    "a million commas": b"," * 1_000_000,
    "a million quotes": b'"' * 1_000_000,
}
_FLOATS = {
    "NaN": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "-0.0": -0.0,
    "1e300": 1e300,
    "denormal": 5e-324,
    "-denormal": -5e-324,
    "at an edge": 0.1,
    "NULL": None,
}
_INTEGERS = {"least": -(2**63), "most": 2**63 - 1, "NULL": None, "-1": -1, "10": 10}
_OBJECTS: dict[str, Callable[[], Any]] = {
    "a lone surrogate": lambda: f"{MARK}\ud800",
    "an array": lambda: np.array([1, 2]),
    "an empty array": lambda: np.array([]),
    "an array of one text": lambda: np.array(["F"]),
    "a list": lambda: ["F"],
    "a tuple": lambda: ("F",),
    "a dict": lambda: {"a": MARK},
    "a set": lambda: {MARK},
    "a decimal": lambda: Decimal("2.5"),
    "a decimal of 5000 digits": lambda: Decimal("1." + "1" * 5000),
    "a decimal of exponent 10^6": lambda: Decimal("1e999999"),
    "a signalling NaN": lambda: Decimal("sNaN"),
    "a decimal infinity": lambda: Decimal("-Infinity"),
    "an integer of 5000 digits": lambda: 10**5000,
    "an integer of 2^63": lambda: 2**63,
    "numpy's integer": lambda: int(np.int8(5)),
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "a denormal": lambda: 5e-324,
    "a complex number": lambda: 5 + 0j,
    "bytes": lambda: b"F",
    "a date": lambda: date(2020, 1, 31),
    "truth": lambda: True,
    "a class": lambda: Mute,
    "an object that cannot be shown": Mute,
    "None": lambda: None,
}


_MOMENTS = {
    "a date": "2020-02-29",
    "a date and a time": "2020-02-29T09:00:00.123456789Z",
    "a date and a time in a zone": "2020-02-29 08:00:00+14:00",
    "a day that is not": "2020-02-30",
    "the year 0": "0000-02-29",
    "a year of five digits": "12020-02-29",
    "the end of a day": "2020-02-29 24:00",
    "a leap second": "2020-02-29 08:59:60",
    "a time": "10:29:59",
    "24:00": "24:00",
    "a short date": "2020-2-29",
    "a short time": "8:30",
    "a date, then NUL": "2020-02-29\0",
    "a date, then a line break": "2020-02-29\n",
    "digits of another script": "٢٠٢٠-02-29",
    "infinity": "infinity",
    "today": "today",
    "a month": "2020-02",
    "a week": "2020-W09",
    "a thousand zeros": "0" * 1000 + "2020-02-29",
}
_NAMED_DATES: dict[str, dict[str, Any]] = {
    "date": {"first": date.min, "last": date.max, "NULL": None},
    "stamp": {"first": datetime.min, "last": datetime.max, "NULL": None},
    "instant": {"first": datetime.min.replace(tzinfo=UTC), "NULL": None},
    "time": {"midnight": time(0), "last": time(23, 59, 59, 999999), "NULL": None},
    "stamp s": {"2^62": Ticks(2**62), "-2^62": Ticks(-(2**62)), "10000": Ticks(253402300800), "NULL": None},
}
_DATES_OF_DATABASES = {
    "duckdb": {
        "date": ("infinity", "-infinity", "5881580-07-10", "0044-03-15 (BC)"),
        "stamp": ("infinity", "-infinity", "294247-01-10 04:00:54", "0044-03-15 (BC) 08:30:00"),
        "instant": ("infinity", "-infinity", "10000-01-01 08:30:00+00"),
        "time": ("24:00:00",),
    },
    "postgres": {
        "date": ("infinity", "-infinity", "5874897-12-31", "0044-03-15 BC"),
        "stamp": ("infinity", "-infinity", "294276-12-31 08:30:00", "4713-01-01 08:30:00 BC"),
        "instant": ("infinity", "-infinity", "294276-12-31 08:30:00+00"),
        "time": ("24:00:00",),
    },
}


class _BrokenZone(tzinfo):
    def utcoffset(self, when: datetime | None) -> Any:
        raise RuntimeError(MARK)

    dst = tzname = utcoffset


def _moments() -> Iterator[Item]:
    """Dates and times, as texts and typed."""
    for name, text in _MOMENTS.items():
        for column in ("day", "at"):
            yield Item(name, column, "text", text)
            yield Item(name, column, "object", text)
    for type, values in _NAMED_DATES.items():
        for column in ("day", "at"):
            if (column, type) not in (("day", "time"), ("at", "date")):
                yield from (Item(name, column, type, value) for name, value in values.items())
                for source, odd in _DATES_OF_DATABASES.items():
                    yield from (Item(text, column, type, Odd(text), (source,)) for text in odd.get(type, ()))
    objects = {
        "a date": date(2020, 2, 29),
        "a date and a time": datetime(2020, 2, 29, 8, 30),
        "a time": time(9),
        "a broken zone": datetime(2020, 2, 29, 8, 30, tzinfo=_BrokenZone()),
    }
    for name, value in objects.items():
        for column in ("day", "at", "who"):
            yield Item(f"{name} of Python", column, "object", value)


_IN_SQLITE = ("NaN", "infinity", "a denormal", "bytes", "None")


def items() -> list[Item]:
    """All of them."""
    attributes = list(SIZES)
    made = [Item("ordinary", column, "text", ordinary()[column]) for column in COLUMNS]
    made += [
        Item("ordinary", column, type, as_types([ordinary()], {column: type})[0][column])
        for column, type in _TYPED
        if type != "char"
    ]
    for at, (name, text) in enumerate([*_TEXTS.items(), *_BYTES.items()]):
        for column in dict.fromkeys(("sex", attributes[at % len(attributes)])):
            made.append(Item(name, column, "text", text, loose=isinstance(text, bytes)))
    made += [Item(name, column, "text", text) for name, text in _WRITTEN.items() for column in attributes]
    for name, text in [*_TEXTS.items(), *_WRITTEN.items()]:
        if text is not None and len(text) < 100:
            made.append(Item(name, "sex", "category", text, ("parquet", "polars", "arrow", "pandas", "stream")))
            made.append(Item(name, "sex", "view", text, ("parquet", "arrow", "dataset")))
    made += [Item(name, "sex", "category", text, ("arrow", "parquet"), loose=True) for name, text in _BYTES.items()]
    made += [Item(name, "who", "text", text) for name, text in _IDENTIFIERS.items()]
    made += [Item(name, "who", "text", text, loose=True) for name, text in _BYTES.items()]
    made += [Item(name, "who", "category", text, ("arrow", "pandas")) for name, text in _IDENTIFIERS.items() if text]
    made += [Item(name, "who", "char", text, loose=True) for name, text in _IDENTIFIERS.items()]
    made += [Item(name, "line", "line", line) for name, line in _LINES.items()]
    made += [Item(name, "pay", type, value) for name, value in _FLOATS.items() for type in ("float64", "any")]
    made += [Item(name, "age", type, value) for name, value in _FLOATS.items() for type in ("float64", "any", "object")]
    for name, real in {"whole": 5.0, "a half": 0.5, "missing": -9.0, "2^62": 2.0**62}.items():
        made += [Item(name, "age", type, real) for type in ("float64", "float32", "any", "object")]
        made.append(Item(name, "pay", "object", real))
    singles = {name: value for name, value in _FLOATS.items() if name not in ("1e300", "at an edge")}
    made += [Item(name, "pay", "float32", value and float(np.float32(value))) for name, value in singles.items()]
    for name, value in _INTEGERS.items():
        made += [Item(name, column, "int64", value) for column in ("who", "age", "pay", "sex", "flag")]
        made += [Item(name, column, "any", value) for column in ("who", "age", "pay", "sex", "flag")]
    for column in ("age", "pay", "sex", "flag", "who"):
        made.append(Item("2^64 - 1", column, "uint64", 2**64 - 1))
        made.append(Item("2^63", column, "uint64", 2**63))
        made.append(Item("2^127 - 1", column, "int128", 2**127 - 1))
        made.append(Item("-2^127 + 1", column, "int128", -(2**127) + 1))
    digits = Decimal("9" * 28 + "." + "9" * 10)
    for name, number in {"most": digits, "least": digits.copy_negate(), "tiny": Decimal("1e-10"), "NULL": None}.items():
        made.append(Item(name, "pay", "decimal", number))
    made += [
        Item("whole", "age", "numeric", Decimal("5.000")),
        Item("a half", "age", "numeric", Decimal("0.5")),
        Item("missing", "age", "numeric", Decimal("-9.0")),
        Item("Infinity", "age", "numeric", Decimal("Infinity")),
        Item("100,000 digits", "age", "numeric", Decimal("9" * 100_000)),
        Item("1000 digits", "pay", "numeric", Decimal("0." + "0" * 500 + "1" * 500)),
        Item("100,000 digits", "pay", "numeric", Decimal("9" * 100_000)),
        Item("16,000 decimals", "pay", "numeric", Decimal("0." + "9" * 16_000)),
        Item("NaN", "pay", "numeric", Decimal("NaN"), loose=True),
        Item("Infinity", "pay", "numeric", Decimal("Infinity")),
        Item("-Infinity", "pay", "numeric", Decimal("-Infinity")),
        Item("NULL", "pay", "numeric", None),
        Item("NULL", "flag", "bool", None),
        Item("true", "sex", "bool", True, ("pandas", "parquet")),
    ]
    for at, (name, make) in enumerate(_OBJECTS.items()):
        for column in dict.fromkeys(("sex", attributes[at % len(attributes)], "who")):
            made.append(Item(name, column, "object", make()))
            if name in _IN_SQLITE:
                made.append(Item(name, column, "any", make(), ("sqlite",)))
        made.append(Item(name, "sex", "category", make(), ("pandas",)))
        made.append(Item(name, "who", "category", make(), ("pandas",)))
    made.append(Item("a lone surrogate", "sex", "python text", f"{MARK}\ud800"))
    made.append(Item("a lone surrogate", "who", "python text", f"{MARK}\udfff"))
    made += [Item(name, "sex", "any", text, ("sqlite",)) for name, text in _BYTES.items()]
    made += [Item(name, "who", "any", text, ("sqlite",)) for name, text in _BYTES.items()]
    return [*made, *_moments()]


_TYPED = [
    ("age", "int64"),
    ("age", "uint64"),
    ("age", "int128"),
    ("age", "object"),
    ("sex", "object"),
    ("sex", "category"),
    ("who", "category"),
    ("who", "object"),
    ("who", "int64"),
    ("pay", "float64"),
    ("pay", "float32"),
    ("pay", "decimal"),
    ("pay", "numeric"),
    ("flag", "bool"),
    ("day", "date"),
    ("day", "stamp"),
    ("day", "instant"),
    ("at", "time"),
    ("at", "stamp"),
]


def heavy_items() -> list[Item]:
    """Values that take much memory."""
    wide = ("csv", "parquet", "pandas", "polars", "arrow", "duckdb", "sqlite", "postgres")
    made = [Item("70 MB of text", column, "text", None, wide, heavy=True) for column in ("sex", "age", "who")]
    made.append(Item("70 MB of text", "sex", "object", None, wide, heavy=True))
    made.append(Item("70 MB of text", "sex", "category", None, ("pandas", "arrow"), heavy=True))
    long = "x" * 895 + MARK
    made.append(Item("300,000 rows of one person", "who", "text", long, wide, heavy=True, rows=_MANY))
    made.append(Item("300,000 rows of nobody", "who", "text", None, wide, heavy=True, rows=_MANY))
    return made


def cases(source: Source, chosen: list[Item], every_unit: bool = True) -> Iterator[tuple[Case, object]]:
    """The neighbours of each item; where not ``every_unit``, one unit each, in turn. The key is that of the first."""
    for item in filter(lambda item: item.in_source(source), chosen):
        units = list(UNITS)
        turn = crc32(f"{item.name} {item.column} {item.type}".encode())
        if item.heavy:
            units = ["2 rows per id"] if item.column == "who" else ["1 row"]
        elif not every_unit:
            units = [units[turn % len(units)] if item.column != "who" else units[(2, 4)[turn % 2]]]
        for at, unit in enumerate(units):
            yield neighbours(source, item, unit, bool((turn + at) % 2))


def neighbours(source: Source, item: Item, unit: str, cells: bool) -> tuple[Case, object]:
    """Two neighbours that differ by an item, and what identifies the first of them."""
    if item.heavy and item.name.startswith("70 MB"):
        item = replace(item, value=MARK + "x" * _HUGE)
    types = {} if item.column == "line" else {item.column: item.type}
    everybody = as_types(base(typed=item.column == "who" and item.type in ("int64", "uint64", "int128")), types)
    if item.column == "who" and item.type in ("object", "category") and source.name == "pandas":
        stranger = {**ordinary(), "who": 1999 + 0j}  # an identifier of no kind, as theirs may be
        everybody = [*as_types([{**stranger, "age": str(age)} for age in range(4)], {}), *everybody]
    hostile = _hostile(item, types)
    privacy = UNITS[unit]
    if privacy.id is None:
        after = [hostile, *as_types([ordinary(2)], types), hostile][: privacy.rows]
        before = everybody[-1:] if privacy.neighbours == "replace-one" else []
        others = everybody[: len(everybody) - len(before)]
    else:
        person = item.value if item.column == "who" else ordinary()["who"]
        if item.rows == _MANY:
            after = [{**ordinary(2), "who": person}] * _MANY
        elif item.column == "line":  # whose it is, only the line says
            after = [hostile]
        else:
            rows = [hostile, *as_types([ordinary(at) for at in range(2, 1 + item.rows)], types)]
            after = [{**row, "who": person} if item.column == "who" else row for row in rows]
        last = everybody[-1]["who"]
        before = [row for row in everybody if row["who"] == last] if privacy.neighbours == "replace-one" else []
        others = everybody[: len(everybody) - len(before)]
    at = (0, len(others) // 2, len(others))[crc32(item.name.encode()) % 3]
    shown = (item.value,) if isinstance(item.value, str) and len(item.value) >= 6 else ()
    full = item.name in ("ordinary", "NULL") or item.heavy
    case = Case(
        source=source.name,
        unit=unit,
        item=f"{item.name} in {item.column} ({item.type})",
        hold=partial(_hold, source, types),
        others=others,
        before=before,
        after=after,
        cells=cells,
        at=len(others) if before else at,
        loose=item.loose,
        full=full,
        memory=HEAVY_MEMORY if item.heavy else None,
        values=shown,
    )
    typed = everybody[0]["who"] == 1000
    return case, None if item.heavy else (source.name, unit, cells, tuple(types.items()), typed, full)


def _hostile(item: Item, types: dict[str, str]) -> Record:
    record = as_types([ordinary()], types)[0]
    return {**record, "line": item.value} if item.column == "line" else {**record, item.column: item.value}


def _hold(source: Source, types: dict[str, str], records: Any, folder: Any) -> Any:
    return source.hold(records, types, Place(folder))


def check_table() -> None:
    """Everybody's identifiers differ from those of the items: otherwise the data sets are no neighbours."""
    theirs = {identifier(row["who"]) for row in base()}
    assert theirs.isdisjoint(identifier(item.value) for item in items() if item.column == "who")
