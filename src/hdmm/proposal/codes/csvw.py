"""Metadata of "CSV on the Web" (https://www.w3.org/TR/tabular-metadata/)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hdmm.errors import InputError
from hdmm.proposal.attribute import Proposal
from hdmm.proposal.codes.fields import Field, Kind, propose_from_field
from hdmm.proposal.codes.files import number_of, text_of, texts

_INTEGERS = {
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
    "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
}  # fmt: skip
_NUMBERS = {"number", "decimal", "double", "float"}
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(_NUMBERS, "number"),
    "boolean": "boolean",
    "date": "date",
    "datetime": "date",
    "dateTime": "date",
    "dateTimeStamp": "date",
    "time": "time",
    "gYear": "year",
}
_PATTERNS = {"yyyy": "%Y", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PATTERN = re.compile("yyyy|MM|M|dd|d|HH|mm|ss")


def is_csvw(data: Any) -> bool:
    """Whether JSON is metadata of a table or of a group of tables."""
    return isinstance(data, dict) and (
        isinstance(data.get("tableSchema"), dict)
        or isinstance(data.get("tables"), list)
        or (isinstance(data.get("columns"), list) and "fields" not in data)
    )


def csvw_columns(data: Mapping[str, Any], path: str, columns: Sequence[str]) -> dict[str, Proposal]:
    """The proposals for all columns, by the title or name that the data has."""
    tables = data.get("tables", [data])
    found: dict[str, Proposal] = {}
    for table in tables:
        schema = table.get("tableSchema", table) if isinstance(table, dict) else None
        if isinstance(schema, str):
            raise InputError(f"--codes {path}: the schema of a table is in another file; give that file")
        listed = schema.get("columns") if isinstance(schema, dict) else None
        for entry in listed if isinstance(listed, list) else []:
            if not isinstance(entry, dict) or entry.get("virtual") is True:
                continue
            inherited = {**_inherited(data), **_inherited(table), **_inherited(schema), **_inherited(entry)}
            name = _name(entry, columns)
            if not name:
                raise InputError(f"--codes {path}: a column has neither a name nor a title; give it one")
            if name in found:
                raise InputError(f"--codes {path}: the column {name[:50]!r} stands twice; list each once")
            found[name] = propose_from_field(_field(name, entry, inherited, path))
    return found


def _inherited(data: Any) -> dict[str, Any]:
    return {key: data[key] for key in ("null", "datatype") if key in data}


def _name(entry: Mapping[str, Any], columns: Sequence[str]) -> str:
    """The title that is a column of the data, else the first title, else the name."""
    titles = entry.get("titles", [])
    if isinstance(titles, dict):
        titles = [title for group in titles.values() for title in texts(group)]
    names = [*texts(titles), *texts(entry.get("name", []))]
    return next((name for name in names if name in columns), names[0] if names else "")


def _field(name: str, entry: Mapping[str, Any], inherited: Mapping[str, Any], path: str) -> Field:
    datatype = inherited.get("datatype", "string")
    details: Mapping[str, Any] = datatype if isinstance(datatype, dict) else {"base": datatype}
    kind = _KINDS.get(str(details.get("base", "string")), "text")
    low = details.get("minimum", details.get("minInclusive"))
    high = details.get("maximum", details.get("maxInclusive"))
    format = details.get("format")
    values: list[str] = []
    if kind == "boolean" and isinstance(format, str) and "|" in format and format.lower() not in ("true|false", "1|0"):
        true, _, false = format.partition("|")
        values = [false, true]
    numbers = format if isinstance(format, dict) else {}
    marks = {"thousands": text_of(numbers.get("groupChar")), "point": text_of(numbers.get("decimalChar"))}
    return Field(
        name,
        kind,
        f"From the CSVW metadata {path.rpartition('/')[2]}.",
        values,
        low=text_of(low) if kind == "date" else number_of(low),
        high=text_of(high) if kind == "date" else number_of(high),
        format=_strptime(format) if kind in ("date", "time") and isinstance(format, str) else None,
        missing=texts(inherited.get("null", [])),
        required=entry.get("required") is True,
        written={key: mark for key, mark in marks.items() if mark and not (key == "point" and mark == ".")},
    )


def _strptime(pattern: str) -> str | None:
    """The format of `strptime` for a pattern such as dd/MM/yyyy; None if it is the usual one."""
    format = _PATTERN.sub(lambda match: _PATTERNS[match.group()], pattern)
    return None if format in ("%Y-%m-%d", "%H:%M", "%H:%M:%S") else format
