"""A proposal from what a file of metadata states about a column, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, final

from hdmm.proposal.attribute import Attribute, LeftOut, Proposal, extra_cells
from hdmm.proposal.edges import even_edges

Kind = Literal["text", "integer", "number", "boolean", "date", "time", "year"]
_MAX_INTEGERS = 1000
_MONTHS, _DAYS = 400, 400


@final
@dataclass(frozen=True)
class Field:
    """What is stated about a column."""

    name: str
    kind: Kind
    note: str
    values: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, list[str]] = field(default_factory=dict)
    low: float | str | None = None
    high: float | str | None = None
    format: str | None = None
    missing: Sequence[str] = ()
    required: bool = False
    ordered: bool = False
    written: Mapping[str, str] = field(default_factory=dict)
    """How numbers are written: thousands, point."""


def propose_from_field(stated: Field) -> Proposal:
    """The attribute that a column's metadata describes, or what is missing to make it one."""
    domain, cells, ordered = _domain(stated)
    if not domain:
        return LeftOut(stated.name, _REASONS[stated.kind], _EXAMPLES[stated.kind])
    texts = [text for text in stated.missing if text]
    if texts:
        domain["missing"] = texts
    elif not stated.required:
        domain["missing"] = True
    return Attribute(stated.name, domain, cells + extra_cells(domain), ordered, (stated.note,))


def _domain(stated: Field) -> tuple[dict[str, Any], int, bool]:
    if stated.values:
        texts = {"values": [value for value in stated.values if value not in stated.missing]}
        shown = {value: label for value, label in stated.labels.items() if label and label != value}
        extra = {"labels": shown} if shown else {}
        aliases = {"aliases": dict(stated.aliases)} if stated.aliases else {}
        return {**texts, **aliases, **extra}, len(texts["values"]), stated.ordered
    match stated.kind:
        case "boolean":
            return {"boolean": True}, 2, False
        case "time":
            return {"time": ["00:00", "24:00"], "by": "hour", **_format(stated)}, 24, True
        case "date":
            return _dates(stated)
    low, high = stated.low, stated.high
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)) or low >= high:
        return {}, 0, False
    if stated.kind in ("integer", "year") and high - low < _MAX_INTEGERS:
        return {"min": int(low), "max": int(high), **stated.written}, int(high) - int(low) + 1, True
    edges = even_edges(low, high)
    closed = {"closed": True} if edges.closed else {}
    return {"bins": list(edges), **closed, **stated.written}, len(edges) - 1, True


def _dates(stated: Field) -> tuple[dict[str, Any], int, bool]:
    try:
        first, last = date.fromisoformat(str(stated.low)[:10]), date.fromisoformat(str(stated.high)[:10])
    except ValueError:
        return {}, 0, False
    if first > last:
        return {}, 0, False
    days, months = (last - first).days + 1, 12 * (last.year - first.year + 1)
    by, cells = ("day", days) if days <= _DAYS else ("month", months) if months <= _MONTHS else ("year", months // 12)
    return {"date": [str(first), str(last)], "by": by, **_format(stated)}, cells, True


def _format(stated: Field) -> dict[str, str]:
    return {} if stated.format is None else {"format": stated.format}


_REASONS: dict[Kind, str] = {
    "text": "its metadata lists no values",
    "integer": "its metadata states no minimum and maximum",
    "number": "its metadata states no minimum and maximum",
    "year": "its metadata states no minimum and maximum",
    "date": "its metadata states no first and last date",
    "time": "",
    "boolean": "",
}
_EXAMPLES: dict[Kind, str] = {
    "text": "{values: [a, b], other: true}",
    "integer": "{min: 0, max: 99, other: true}",
    "number": "{bins: [0, 10, 20, 50, 100], other: true}",
    "year": "{min: 2000, max: 2030, other: true}",
    "date": "{date: [2020-01-01, 2029-12-31], by: month, other: true}",
    "time": "",
    "boolean": "",
}
