"""The report of a check, as text: first what the spec says, then, for the custodian alone, what the records hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any, final

from hdmm.data.findings import ColumnFindings, Findings
from hdmm.inspection.advice import Advice, Texts
from hdmm.spec.spec import Spec
from hdmm.spec.yaml import dump_yaml
from hdmm.text import count_text, text_table

PRIVATE = (
    "PRIVATE: exact numbers and values of records, not differentially private. Do not publish or pass on this report.\n"
    "How values are written may follow from it. Which values, bins and questions you declare should not: choices that\n"
    "you make by looking at the records are outside the guarantee (docs/privacy.md)."
)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Texts that are the same without quotes."""
_SHOWN_TEXTS = 5
"""Values that are shown for each remedy."""
_LONGEST = 40
"""Characters of a value that are shown."""
_MOST_PRODUCTS = 40
"""Products that are listed."""


@final
@dataclass(frozen=True)
class CheckReport:
    """What a check found: about the spec, and with data about the records. As text it is the whole report.

    Arguments:
        spec: The spec.
        source: The name of the data, if data was checked.
        findings: Counts and values of the records: private.
        advice: What to write, for every column with values outside its domain.
        problems: What is wrong with the source as a whole: its columns, delimiter, encoding or lines.
    """

    spec: Spec
    source: str | None = None
    findings: Findings | None = None
    advice: dict[str, Advice] | None = None
    problems: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether every record is used, as far as it was checked."""
        found = self.findings
        return not self.problems and (found is None or found.used == found.records)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _about(self.spec)
        if self.source is None:
            return
        yield from ("", PRIVATE, "")
        if self.findings is None:
            yield f"{self.source}: no record was read"
        else:
            yield from _records(self.source, self.findings, self.spec.unit.rows)
        for problem in self.problems:
            yield f"- {problem}"
        if self.findings is not None:
            yield from _columns(self.spec, self.findings, self.advice or {})
        if self.clean:
            yield "\nevery record is used" if self.advice else "nothing to mend: every record is used"


def _about(spec: Spec) -> Iterator[str]:
    """The attributes and products of a spec, with their sizes."""
    schema, workload = spec.schema, spec.workload
    encoded = workload.encoded
    yield f"{len(schema.names)} attributes, {count_text(schema.cells)} cells together:"
    names = [schema.names[axis] for axis in encoded.axes]
    rows = [
        [name, type(schema[name]).__name__.lower(), schema[name].size, "" if name in names else "no question uses it"]
        for name in schema.names
    ]
    yield text_table(["attribute", "kind", "cells", ""], rows)
    yield ""
    asked = f"{len(workload.products)} products, {count_text(encoded.query_count)} questions"
    yield f"{asked}; {spec.noise} noise, {spec.unit}:"
    listed = encoded.products[:_MOST_PRODUCTS]
    tables = [
        [product.name, " × ".join(schema.names[axis] for axis in product.axes) or "all records", product.queries]
        for product in listed
    ]
    yield text_table(["product", "depends on", "questions"], tables)
    if len(encoded.products) > len(listed):
        yield f"… and {count_text(len(encoded.products) - len(listed))} more"


def _records(source: str, found: Findings, rows: int) -> Iterator[str]:
    dropped = found.records - found.used
    yield f"{source}: {found.records:,} records; {found.used:,} are used, {dropped:,} dropped"
    people = found.people
    if people is not None:
        yield f"{people.people:,} people; {people.exceeding:,} of them have more than {rows:,} records"
        if people.unidentified:
            yield f"- {people.unidentified:,} records name nobody"
        if people.uncounted:
            yield (
                f"- {people.uncounted:,} records are not counted for these reasons; raise privacy.unit.rows if more "
                "records of a person should count"
            )


def _columns(spec: Spec, found: Findings, advice: dict[str, Advice]) -> Iterator[str]:
    rows = [
        [name, column.outside, column.distinct, column.missing or None, column.other or None]
        for name, column in found.columns.items()
    ]
    yield ""
    yield text_table(["column", "outside", "distinct", "missing", "other"], rows)
    for name, column in found.columns.items():
        if column.outside:
            yield from _column(name, column, advice[name])
        if name in advice and advice[name].regained:
            yield from _others(name, column, advice[name])
    declared = {
        name: one.declaration
        for name, one in advice.items()
        if (one.remedies or one.regained) and name in spec.schema.names
    }
    if declared:
        yield from ("", "what to write into the schema, if these remedies are right:", "")
        for name, declaration in declared.items():
            yield f"  {_written(name)}: {_written(declaration)}"


def _column(name: str, column: ColumnFindings, advice: Advice) -> Iterator[str]:
    """The values of a column that are outside, by what could be done about them."""
    yield ""
    yield f"{name}: {column.outside:,} {_values(column.outside)} outside the domain"
    for remedy in advice.remedies:
        yield f"- {_shown(remedy.texts)}: {remedy.reason}; write {_flow(remedy.change)}"
    if advice.left:
        yield f"- {_shown(advice.left)}: in no declared value; widen the domain, or write other: true"
    if not advice.remedies and not advice.left:
        yield "- text in another encoding, see above"
    looked_at = sum(count for _, count in column.texts)
    if column.outside > looked_at:
        more = column.distinct - len(column.texts)
        yield f"- {column.outside - looked_at:,} more, of {more:,} other values"


def _others(name: str, column: ColumnFindings, advice: Advice) -> Iterator[str]:
    """Values that count as other, and perhaps should not."""
    yield ""
    yield f"{name}: {column.other:,} {_values(column.other)} in the cell other"
    for remedy in advice.regained:
        yield f"- {_shown(remedy.texts)}: {remedy.reason}; write {_flow(remedy.change)}"


def _values(count: int) -> str:
    return "value is" if count == 1 else "values are"


def _shown(texts: Texts) -> str:
    """Some values with their numbers, safe for a terminal."""
    shown = [f"{_printable(text)} ({count:,})" for text, count in texts[:_SHOWN_TEXTS]]
    more = len(texts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _printable(text: bytes) -> str:
    if not text:
        return "an empty field"
    decoded = text.decode(errors="backslashreplace")
    clipped = decoded if len(decoded) <= _LONGEST else decoded[: _LONGEST - 1] + "…"
    return "'" + "".join(mark if mark.isprintable() else f"\\x{ord(mark):02x}" for mark in clipped) + "'"


def _flow(data: dict[str, Any]) -> str:
    """Keys of a declaration as YAML on one line, without braces."""
    return _written(data).removeprefix("{").removesuffix("}")


def _written(data: Any) -> str:
    """Plain data as YAML on one line."""
    stream = StringIO()
    dump_yaml(_plain(data), stream, flow=True)
    return stream.getvalue().removesuffix("\n").removesuffix("\n...")


def _plain(data: Any) -> Any:
    """The data without keys that are taken away, and with numbers that need no quotes."""
    match data:
        case dict():
            return {key: _plain(value) for key, value in data.items() if value is not None}
        case list():
            return [_plain(value) for value in data]
        case str() if _INTEGER.fullmatch(data):
            return int(data)
    return data
