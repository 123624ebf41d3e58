"""The query that encodes a table's records: a column of codes for each attribute, only records inside every domain."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from hdmm.data.columns import Lookup, Value, absent, empty, is_unknown_time, reading
from hdmm.data.engine import Engine, batches
from hdmm.data.people import EVERYBODY, key_of
from hdmm.errors import DataError
from hdmm.schema import OUTSIDE, Domain, Schema


def check_types(table: Any, schema: Schema, id: str | None) -> None:
    """Refuse columns whose declared type cannot be read exactly."""
    types = table.schema()
    for column, domain in schema.columns.items():
        reading(column, domain, types[column])
    if id is not None and not (types[id].is_string() or types[id].is_integer()):
        raise DataError(f"column {id!r} holds {types[id]}; people are identified by text or integers")


def coded(engine: Engine, table: Any, schema: Schema, id: str | None, lookups: ExitStack) -> Any:
    """The query for the codes c0, c1, … of the attributes; with ``id`` also ``key``, which identifies people.

    It refers to small tables that exist until ``lookups`` is closed. Without attributes, all codes are 0.
    """
    import ibis

    columns = schema.columns
    raw = {f"r{number}": _carried(engine, table[column]) for number, column in enumerate(columns)}
    people = {} if id is None else {"key": key_of(engine, engine.bounded(table[id].cast("string")))}
    selected = records = table.select(raw | people or {EVERYBODY: ibis.literal(0)})
    types = {column: selected.schema()[f"r{number}"] for number, column in enumerate(columns)}
    rules = [reading(column, domain, types[column]) for column, domain in columns.items()]
    for number, (rule, domain) in enumerate(zip(rules, columns.values(), strict=True)):
        if isinstance(rule, Lookup):
            key = rule.key(engine, selected[f"r{number}"])
            codes = _text_codes(key, domain) if rule.table is None else dict(rule.table)
            records = _looked_up(engine, records, number, domain, rule, codes, lookups)
    digits: dict[str, Value] = {}
    keeps: list[Value] = []
    for number, (column, domain) in enumerate(columns.items()):
        inside, code = rules[number].read(records, number)
        value = records[f"r{number}"]
        blank = empty(types[column], value), absent(domain, types[column], value)
        digits[column], keep = _filled(domain, blank, inside, code)
        keeps.append(keep)
    attributes = {f"c{number}": _combined(schema[name], name, digits) for number, name in enumerate(schema.names)}
    attributes = attributes or {EVERYBODY: ibis.literal(0, "int8")}
    if id is None:
        return records.filter(keeps or [ibis.literal(True)]).select(attributes)
    return records.filter([*keeps, records.key.notnull()]).select({**attributes, "key": records.key})


_SIGNED = {"uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "decimal(20, 0)"}


def _carried(engine: Engine, column: Value) -> Value:
    """The column without texts that are too long and without time zones, its numbers in a signed type."""
    type = column.type()
    if type.is_string():
        return engine.bounded(column)
    if type.is_timestamp():
        return engine.clock(column)
    if is_unknown_time(type):
        return column.cast("time")
    wider = _SIGNED.get(str(type).removeprefix("!"))  # the mark of a column without NULL
    return column if wider is None else column.cast(wider)


def _filled(domain: Domain, blank: tuple[Value, Value], inside: Value, code: Value) -> tuple[Value, Value]:
    """The code, with the cells for other and missing values, and whether there is a code at all.

    ``blank`` says whether there is no value, and whether a value that is not a declared one stands for that.
    """
    import ibis

    missing = int(domain.encode([b""])[0])
    if missing == OUTSIDE:
        return code, inside
    other = ibis.literal(domain.declared if domain.other else None, "int64")
    filled = ibis.cases((blank[0], missing), (inside, code.cast("int64")), (blank[1], missing), else_=other)
    return filled, ibis.literal(True) if domain.other else filled.notnull()


def _combined(domain: Domain, name: str, digits: Mapping[str, Value]) -> Value:
    """The code of an attribute from those of its columns, in the smallest type that holds it."""
    columns = domain.columns(name)
    (first, *others) = columns
    code = digits[first]
    for column in others:
        code = code.cast("int64") * columns[column].size + digits[column]
    return code.cast(str(np.min_scalar_type(-domain.size)))


def _looked_up(
    engine: Engine, records: Any, number: int, domain: Domain, rule: Lookup, codes: dict[Any, int], lookups: ExitStack
) -> Any:
    """The records with one more column: the code of a column's key, null if the table does not hold the key."""
    key, match, code = f"k{number}", f"m{number}", f"d{number}"
    records = records.mutate({key: rule.key(engine, records[f"r{number}"])})
    missing = int(domain.encode([b""])[0])
    if rule.type == "string":
        if missing != OUTSIDE:
            codes[b""] = missing
            codes |= {text.encode(): missing for text in domain.missing_texts}
        codes = {text.hex().upper(): code for text, code in codes.items()}
    small = str(np.min_scalar_type(-domain.size))
    values = lookups.enter_context(engine.lookup(list(codes), list(codes.values()), {match: rule.type, code: small}))
    joined = records.join(values, [(key, match)], how="inner" if missing == OUTSIDE else "left")
    return joined.drop(key, match)


def _text_codes(key: Value, domain: Domain) -> dict[Any, int]:
    """The codes of a column's distinct texts that are declared values, or stand for missing ones.

    A decimal can be written in many ways, and every engine reads them differently. So this is the one place where
    values, not counts, leave an engine: they are read here, by the rules for text files.
    """
    codes: dict[Any, int] = {}
    for batch in batches(key.name("key").as_table().distinct()):
        texts = [bytes.fromhex(text or "") for text in batch.column("key").to_pylist()]
        encoded = domain.encode(texts).tolist()
        unlisted = (OUTSIDE, domain.declared) if domain.other else (OUTSIDE,)
        codes.update((text, code) for text, code in zip(texts, encoded, strict=True) if code not in unlisted)
    return codes
