"""The records of everybody: a few people with up to five rows each, as texts, some of them outside the schema."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, time
from decimal import Decimal

from tests.attack.oracle import LISTED, Record

COLUMNS = ("who", "sex", "age", "pay", "flag", "day", "at")
MARK = "Zx9Qk"
"""Stands in hostile texts: no message may hold it."""
NEWCOMER = "1999"
"""The identifier of the person who is added: also an integer."""
TWIN = "TEXTCOLLBYfGiJUETHQ4hAcKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak"
"""A text with the MD5 of another one (Marc Stevens, 2024)."""
PEOPLE = ("7", "ana", "José", TWIN, "a,1", "f", "1001", "1002")


def base(typed: bool = False) -> list[dict[str, object]]:
    """Everybody's records; ``typed`` identifiers are integers."""
    draw = random.Random(7)
    people = [str(1000 + at) for at in range(len(PEOPLE))] if typed else list(PEOPLE)
    rows: list[dict[str, object]] = []
    for person in people:
        for _ in range(draw.randint(1, 5)):
            rows.append(
                {
                    "who": person,
                    "sex": draw.choice([*LISTED, "X"]),
                    "age": str(draw.randint(0, 11)),
                    "pay": draw.choice(["-0.5", "0.05", "2.5", "50", "1000"]),
                    "flag": draw.choice(["true", "false"]),
                    "day": draw.choice(["2020-02-26", "2020-02-27", "2020-02-29", "2020-03-02"]),
                    "at": draw.choice(["07:59", "08:00", "09:59", "10:29"]),
                }
            )
    return rows


def ordinary(at: int = 0) -> dict[str, object]:
    """A record that counts, of the person who is added."""
    same = {"who": NEWCOMER, "pay": "2.5", "flag": "true", "day": "2020-02-29", "at": "08:30"}
    return {**same, "sex": LISTED[at % 2], "age": str(at % 10)}


_NUMBERS = {"true": "1", "false": "0", "F": "5", "M": "6", "é": "7", "X": "8", "-0.5": "0"}
"""What stands for ordinary texts in a column of integers."""


def as_type(value: object, type: str) -> object:
    """An ordinary text as a value of a column's type."""
    if value is None or not isinstance(value, str) or type in TEXT:
        return value
    if type in ("int64", "uint64", "int128"):
        return int(_NUMBERS.get(value, value).partition(".")[0])
    if type in MOMENTS:
        return _moment(value, type)
    if type in ("float64", "float32"):
        return float(value)
    return Decimal(value) if type in ("decimal", "numeric") else value == "true" if type == "bool" else value


MOMENTS = ("date", "stamp", "stamp s", "instant", "time")
"""Types of columns that hold dates, times or both."""


def _moment(value: str, type: str) -> date | time:
    clock = time.fromisoformat(value) if ":" in value else time(8, 30)
    day = date(2020, 2, 29) if ":" in value else date.fromisoformat(value)
    if type in ("date", "time"):
        return day if type == "date" else clock
    return datetime.combine(day, clock, UTC if type == "instant" else None)


TEXT = ("text", "object", "category", "char", "any", "view")
"""Types of columns that hold texts as they are."""


def as_types(records: list[dict[str, object]], types: dict[str, str]) -> list[Record]:
    """Ordinary texts as values of the columns' types."""
    return [{name: as_type(value, types.get(name, "text")) for name, value in record.items()} for record in records]
