"""Records of a table as codes, in one query: a column for each attribute, and only the records inside every domain."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from hdmm.data.columns import Direct, Lookup, Value, empty, reading
from hdmm.data.engine import Engine, batches
from hdmm.data.people import key_of
from hdmm.errors import DataError
from hdmm.schema import OUTSIDE, Domain, Schema


def check_types(table: Any, schema: Schema, id: str | None) -> None:
    """Refuse columns whose declared type cannot be read exactly."""
    types = table.schema()
    for column, domain in schema.columns.items():
        reading(column, domain, types[column])
    if id is not None and not (types[id].is_string() or types[id].is_integer()):
        raise DataError(f"column {id!r} holds {types[id]}; people are told apart by text or integers")


def coded(engine: Engine, table: Any, schema: Schema, id: str | None, lookups: ExitStack) -> Any:
    """The query for the codes c0, c1, … of the attributes; with ``id`` also ``key``, which tells people apart.

    The small tables that it refers to are there as long as ``lookups``.
    """
    columns = schema.columns
    raw = {f"r{at}": _carried(engine, table[column]) for at, column in enumerate(columns)}
    people = {} if id is None else {"key": key_of(engine, engine.bounded(table[id].cast("string")))}
    given = records = table.select(raw | people)
    types = {column: given.schema()[f"r{at}"] for at, column in enumerate(columns)}
    digits: dict[str, Value] = {}
    keeps: list[Value] = []
    readings = [reading(column, domain, types[column]) for column, domain in columns.items()]
    for at, (read, domain) in enumerate(zip(readings, columns.values(), strict=True)):
        if isinstance(read, Lookup):
            codes = _asked(read.key(engine, given[f"r{at}"]), domain) if read.table is None else dict(read.table)
            records = _looked_up(engine, records, at, domain, read, codes, lookups)
    for at, (column, domain) in enumerate(columns.items()):
        inside, code = _read(readings[at], records, at)
        digits[column], keep = _filled(domain, empty(types[column], records[f"r{at}"]), inside, code)
        keeps.append(keep)
    attributes = {f"c{at}": _combined(schema[name], name, digits) for at, name in enumerate(schema.names)}
    if id is None:
        return records.filter(keeps).select(attributes)
    return records.filter([*keeps, records.key.notnull()]).select({**attributes, "key": records.key})


_SIGNED = {"uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "decimal(20, 0)"}


def _carried(engine: Engine, column: Value) -> Value:
    """The column without texts that are too long, and in a type that can be compared with signed numbers."""
    type = column.type()
    if type.is_string():
        return engine.bounded(column)
    wider = _SIGNED.get(str(type).removeprefix("!"))  # which says that nothing is missing
    return column if wider is None else column.cast(wider)


def _read(read: Direct | Lookup, records: Any, at: int) -> tuple[Value, Value]:
    """Whether a column holds a declared value, and its code if so."""
    if isinstance(read, Lookup):
        found = records[f"d{at}"]
        return found.notnull(), found
    return read.inside(records[f"r{at}"]), read.code(records[f"r{at}"])


def _filled(domain: Domain, none: Value, inside: Value, code: Value) -> tuple[Value, Value]:
    """The code with the cells for other and missing values, and whether there is one."""
    import ibis

    missing = int(domain.encode([b""])[0])
    if missing == OUTSIDE:
        return code, inside
    other = ibis.literal(domain.declared if domain.other else None, "int64")
    filled = ibis.cases((none, missing), (inside, code.cast("int64")), else_=other)
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
    engine: Engine, records: Any, at: int, domain: Domain, read: Lookup, codes: dict[Any, int], lookups: ExitStack
) -> Any:
    """The records with one more column: the code of a column's key, null where there is none."""
    key, found, code = f"k{at}", f"m{at}", f"d{at}"
    records = records.mutate({key: read.key(engine, records[f"r{at}"])})
    missing = int(domain.encode([b""])[0])
    if read.type == "string":
        if missing != OUTSIDE:
            codes[b""] = missing
        codes = {text.hex().upper(): code for text, code in codes.items()}
    small = str(np.min_scalar_type(-domain.size))
    values = lookups.enter_context(engine.lookup(list(codes), list(codes.values()), {found: read.type, code: small}))
    joined = records.join(values, [(key, found)], how="inner" if missing == OUTSIDE else "left")
    return joined.drop(key, found)


def _asked(key: Value, domain: Domain) -> dict[Any, int]:
    """The codes of the distinct texts of a column, as far as they are of declared values.

    Decimals can be written in any number of ways, and engines read them in theirs. So this is the one place where
    values and not counts leave an engine: they are read here, by the same rules as those of a file.
    """
    codes: dict[Any, int] = {}
    for batch in batches(key.name("key").as_table().distinct()):
        texts = [bytes.fromhex(text or "") for text in batch.column("key").to_pylist()]
        encoded = domain.encode(texts).tolist()
        codes.update((text, code) for text, code in zip(texts, encoded, strict=True) if 0 <= code < domain.declared)
    return codes
