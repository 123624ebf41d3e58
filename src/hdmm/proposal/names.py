"""Domains guessed from a column's name and its declared type, without a look at any record.

Nothing is known about the values, so every guess counts other texts and empty fields in cells of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from hdmm.data.look import Column
from hdmm.proposal.attribute import Attribute, LeftOut, Proposal
from hdmm.proposal.words import is_identifier, words

_OPEN = {"other": True, "missing": True}
_INTEGERS = {
    "age": (0, 114),
    "month": (1, 12),
    "quarter": (1, 4),
    "day": (1, 31),
    "hour": (0, 23),
    "minute": (0, 59),
    "week": (1, 53),
}
_LISTED = {"sex": ["F", "M"], "gender": ["F", "M"]}
_MONEY = {"income", "salary", "wage", "wages", "earnings"}
_MONEY_EDGES = [0, 10000, 20000, 30000, 40000, 50000, 75000, 100000, 150000, 200000, 1000000]
_DATES = {"date", "dob", "birthdate", "birthday", "datetime", "timestamp"}
_BIRTH = {"dob", "birth", "birthdate", "birthday", "born"}
_UNKNOWN = "its name does not say which values it holds"


def limits(name: str) -> tuple[int, int] | None:
    """The least and the largest integer that a column of this name can hold, if the name says it."""
    found = words(name)
    if "age" in found and not {"mean", "group", "range", "band", "class", "category"} & set(found):
        return _INTEGERS["age"]
    return _INTEGERS.get(found[-1]) if found and len(found) <= 2 else None


def is_flag(name: str) -> bool:
    """Whether a column of this name holds true and false."""
    found = words(name)
    return len(found) > 1 and (found[0] in ("is", "has", "had", "was") or found[-1] in ("flag", "yn"))


def guess(column: Column, today: date) -> Proposal:
    """A domain for a column by its name and type alone, or the reason for which there is none."""
    found, last = words(column.name), "".join(words(column.name)[-1:])
    if column.type == "unreadable":
        return LeftOut(column.name, "hdmm cannot read its type; cast it to a text, a number or a date in a view")
    if column.type == "boolean" or is_flag(column.name):
        return _open(column, {"boolean": True}, 2)
    if column.type in ("date", "timestamp") or not _DATES.isdisjoint(found):
        return _date(column, found, today)
    if column.type == "time":
        return _open(column, {"time": ["00:00", "24:00"], "by": "hour"}, 24, ordered=True)
    if is_identifier(column.name):
        return LeftOut(column.name, "its name says that it identifies people or records")
    real = column.type in ("float", "decimal")
    if (ends := limits(column.name)) is not None:
        written = {"decimals": True} if real else {}
        return _open(column, {"min": ends[0], "max": ends[1], **written}, ends[1] - ends[0] + 1, ordered=True)
    if not real:
        if last == "year":
            first = 1900 if "birth" in found else today.year - 10
            return _open(column, {"min": first, "max": today.year}, today.year - first + 1, ordered=True)
        if last in _LISTED and column.type != "integer":
            return _open(column, {"values": _LISTED[last]}, len(_LISTED[last]))
    if not _MONEY.isdisjoint(found):
        return _open(column, {"bins": _MONEY_EDGES}, len(_MONEY_EDGES) - 1, ordered=True)
    if column.type == "integer":
        return LeftOut(column.name, _UNKNOWN, "{min: 0, max: 99, other: true}")
    if real:
        return LeftOut(column.name, _UNKNOWN, "{bins: [0, 10, 20, 50, 100], other: true}")
    return LeftOut(column.name, _UNKNOWN)


def _date(column: Column, found: list[str], today: date) -> Attribute:
    if not _BIRTH.isdisjoint(found):
        ends, by, cells = ["1900-01-01", f"{today.year}-12-31"], "year", today.year - 1899
    else:
        first = today.year - 9
        ends, by, cells = [f"{first}-01-01", f"{today.year}-12-31"], "month", 120
    return _open(column, {"date": ends, "by": by}, cells, ordered=True)


def _open(column: Column, domain: Mapping[str, Any], cells: int, *, ordered: bool = False) -> Attribute:
    note = "Guessed from the name of the column" + ("." if column.type in ("text", "untyped") else " and its type.")
    return Attribute(column.name, {**domain, **_OPEN}, cells + 2, ordered, (note,))
