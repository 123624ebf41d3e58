"""A look at the columns of an engine's table: it groups and counts their values, which are then read here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hdmm.data.engine import Engine, batches
from hdmm.data.findings import ColumnFindings, PeopleFindings
from hdmm.data.inspection import ColumnInspection
from hdmm.data.source import Advance
from hdmm.data.untyped import text_of
from hdmm.privacy.unit import Unit
from hdmm.schema import Domain, Schema


def inspect_columns(engine: Engine, table: Any, schema: Schema, on_progress: Advance) -> dict[str, ColumnFindings]:
    """For every column the values outside its domain, from its distinct values and how often each occurs."""
    found = {}
    for done, (name, domain) in enumerate(schema.columns.items(), 1):
        inspection = ColumnInspection(domain)
        for texts, times in _distinct(engine, table[name], domain):
            inspection.add(texts, times)
        found[name] = inspection.findings()
        on_progress(done / len(schema.columns))
    return found


def _distinct(engine: Engine, column: Any, domain: Domain) -> Iterator[tuple[list[bytes], np.ndarray]]:
    """The distinct values of a column as texts, some at a time, with the number of records of each."""
    text = column.type().is_string()
    value = engine.bytes_of(engine.trim(engine.bounded(column))) if text else column
    values = value.name("value").as_table()
    for batch in batches(values.group_by("value").aggregate(times=values.count())):
        held = batch.column("value").to_pylist()
        texts = [bytes.fromhex(one or "") if text else _text(one, domain) for one in held]
        yield texts, np.array(batch.column("times").to_pylist(), np.int64)


def _text(value: object, domain: Domain) -> bytes:
    """The text of a typed value, as a text file would hold it; empty if there is none."""
    text = text_of(value, domain)
    return b"" if text is None else text.encode()


def people_in(engine: Engine, table: Any, unit: Unit) -> PeopleFindings:
    """How many people there are, and how many have more records than the unit allows."""
    import ibis

    person = engine.trim(engine.bounded(table[unit.id].cast("string")))
    people = person.nullif("").name("person").as_table()
    each = people.group_by("person").aggregate(records=people.count())
    named = each.filter(each.person.notnull())
    summary = named.aggregate(people=named.count(), exceeding=ibis.ifelse(named.records > unit.rows, 1, 0).sum())
    ((counted, exceeding),) = [tuple(row.values()) for batch in batches(summary) for row in batch.to_pylist()]
    blank = [count for batch in batches(each.filter(each.person.isnull())) for count in batch["records"].to_pylist()]
    return PeopleFindings(int(counted or 0), int(exceeding or 0), int(sum(blank)), 0)
