"""Frictionless Table Schema, by itself or in the resources of a data package (https://specs.frictionlessdata.io)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hdmm.errors import InputError
from hdmm.proposal.attribute import Proposal
from hdmm.proposal.codes.fields import Field, Kind, propose_from_field
from hdmm.proposal.codes.files import number_of, text_of, texts

_KINDS: Mapping[str, Kind] = {
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    "datetime": "date",
    "time": "time",
    "year": "year",
}
_BOOLEANS = {"true", "false", "t", "f", "yes", "no", "1", "0"}


def is_table_schema(data: Any) -> bool:
    """Whether JSON is a Table Schema or a data package."""
    return isinstance(data, dict) and isinstance(data.get("fields", data.get("resources")), list)


def schema_columns(data: Mapping[str, Any], path: str) -> dict[str, Proposal]:
    """The proposals for all fields, by name."""
    if "fields" in data:
        return _fields(data, path)
    found: dict[str, Proposal] = {}
    for resource in data["resources"]:
        schema = resource.get("schema") if isinstance(resource, dict) else None
        if isinstance(schema, str):
            raise InputError(f"--codes {path}: the schema of a resource is in another file; give that file")
        if isinstance(schema, dict) and isinstance(schema.get("fields"), list):
            for name, proposal in _fields(schema, path).items():
                if name in found:
                    raise InputError(
                        f"--codes {path}: two resources have a column {name!r}; give one resource's schema"
                    )
                found[name] = proposal
    return found


def _fields(schema: Mapping[str, Any], path: str) -> dict[str, Proposal]:
    found: dict[str, Proposal] = {}
    for entry in schema["fields"]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise InputError(f'--codes {path}: a field has no "name"; each field is an object with a name')
        if entry["name"] in found:
            raise InputError(f"--codes {path}: the field {entry['name'][:50]!r} stands twice; list each once")
        missing = entry.get("missingValues", schema.get("missingValues", []))
        found[entry["name"]] = propose_from_field(_field(entry, _values(missing)[0], path))
    return found


def _field(entry: Mapping[str, Any], missing: list[str], path: str) -> Field:
    constraints = entry.get("constraints")
    stated: Mapping[str, Any] = constraints if isinstance(constraints, dict) else {}
    kind = _KINDS.get(str(entry.get("type", "string")), "text")
    values, labels = _values(entry.get("categories", stated.get("enum", [])))
    if len(set(values)) != len(values):
        raise InputError(f"--codes {path}: a value of the field {entry['name'][:50]!r} stands twice; list each once")
    aliases: dict[str, list[str]] = {}
    if kind == "boolean" and not values:
        values, aliases = _true_and_false(entry)
    format = entry.get("format")
    days = kind == "date"
    return Field(
        entry["name"],
        kind,
        f"From the table schema {path.rpartition('/')[2]}.",
        values,
        labels,
        aliases,
        text_of(stated.get("minimum")) if days else number_of(stated.get("minimum")),
        text_of(stated.get("maximum")) if days else number_of(stated.get("maximum")),
        format if isinstance(format, str) and "%" in format and format != "%Y-%m-%d" else None,
        missing,
        stated.get("required") is True,
        entry.get("categoriesOrdered") is True,
        _written(entry),
    )


def _values(data: Any) -> tuple[list[str], dict[str, str]]:
    """Values, and the labels of those that are given as {value, label}."""
    values: list[str] = []
    labels: dict[str, str] = {}
    for item in data if isinstance(data, list) else []:
        value = text_of(item.get("value")) if isinstance(item, dict) else text_of(item)
        if value is None:
            continue
        values.append(value)
        label = text_of(item.get("label")) if isinstance(item, dict) else None
        if label is not None:
            labels[value] = label
    return values, labels


def _true_and_false(entry: Mapping[str, Any]) -> tuple[list[str], dict[str, list[str]]]:
    """Listed values if true and false are written in a way of their own."""
    false, true = texts(entry.get("falseValues", [])), texts(entry.get("trueValues", []))
    if not false or not true or {text.lower() for text in false + true} <= _BOOLEANS:
        return [], {}
    return [false[0], true[0]], {group[0]: group[1:] for group in (false, true) if group[1:]}


def _written(entry: Mapping[str, Any]) -> dict[str, str]:
    marks = {"thousands": text_of(entry.get("groupChar")), "point": text_of(entry.get("decimalChar"))}
    return {key: mark for key, mark in marks.items() if mark and not (key == "point" and mark == ".")}
