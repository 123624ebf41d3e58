"""What to write in place of the mistakes that specs often have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hdmm.errors import plain_word
from hdmm.numbers import shown
from hdmm.spec.reader import Mistake, Place

SECTIONS = "write the sections `schema:`, the columns of the data, and `workload:`, the tables to publish"
PRODUCT = "write the attributes of a table, and what to count on each: product: {sex: identity, age: prefix}"
ENTRY = "write each table after a dash: - {name: by sex, product: {sex: identity}}"
_DOMAINS = (
    "write a list of values, {min: 0, max: 114} for integers, {bins: [0, 10, 20]} for other numbers, {date: "
    "[2020-01-01, 2024-12-31]}, or boolean; see docs/spec.md for all kinds"
)
_GROUPS = ("groupby", "by", "columns", "attributes", "dimensions", "select", "query", "queries")
"""Words by which people ask for a table, without case, blanks, dashes and underscores."""
_RANGE = re.compile(r"\s*([+-]?[0-9]{1,18})\s*(?:-|–|\.\.\.?|to)\s*([+-]?[0-9]{1,18})\s*")
_TYPES = {
    **dict.fromkeys(("int", "integer", "integers", "int64"), "{min: 0, max: 114}, for the integers from 0 to 114"),
    **dict.fromkeys(
        ("float", "double", "decimal", "number", "numeric", "real"),
        "{bins: [0, 10, 20]}, for the intervals from 0 to 10 and from 10 to 20",
    ),
    **dict.fromkeys(("str", "string", "text", "category", "categorical", "enum", "factor"), "[F, M], for these values"),
    **dict.fromkeys(("date", "datetime", "timestamp", "day"), "{date: [2020-01-01, 2024-12-31], by: day}"),
    **dict.fromkeys(("time", "hour"), '{time: ["00:00", "24:00"], by: hour}'),
    **dict.fromkeys(("bool", "logical", "flag", "yesno"), "boolean"),
}


def domain_remedy(data: Any) -> str:
    """What to write in place of something that is no domain."""
    if isinstance(data, str):
        if interval := _RANGE.fullmatch(data):
            return f"{shown(data)} is no list of values; write {{min: {interval[1]}, max: {interval[2]}}} for integers"
        kind = plain_word(data)
        if kind == "boolean":
            return f"unknown word {shown(data)}; did you mean 'boolean'?"
        if kind in _TYPES:
            return f"{shown(data)} does not say which values there are; write {_TYPES[kind]}"
        return f"{shown(data)} does not say which values there are; {_DOMAINS}"
    return f"expected the values that there are; {_DOMAINS}"


def check_entry_keys(entry: Mapping[Any, Any], place: Place, attributes: Iterable[str]) -> None:
    """Refuse an entry of the workload that names attributes, or asks for groups, beside its name."""
    names = set(attributes)
    for key in entry:
        if key in names and key not in ("name", "product", "where", "weight", "marginals", "sql"):
            raise Mistake((*place, key), f"{shown(key)} is an attribute; write product: {{{key}: identity}}")
        if isinstance(key, str) and plain_word(key) in _GROUPS:
            raise Mistake(
                (*place, key),
                f'unknown key {shown(key)}; write product: {{sex: identity}}, or sql: "SELECT sex, COUNT(*) FROM t '
                'GROUP BY sex"',
            )
