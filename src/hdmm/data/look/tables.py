"""Declared types and texts of tables that an engine reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hdmm.data.engine import batches
from hdmm.data.look.column import Column, ColumnType, Piece
from hdmm.data.parquet import Parquet, _ByEngine
from hdmm.data.relation import Relation
from hdmm.data.source import Source
from hdmm.data.table import DatabaseTable, _ByQuery, _DuckDB
from hdmm.errors import NotSupportedError
from hdmm.schema.text import LONGEST_TEXT


def relation_of(source: Source) -> Relation:
    """The table of an engine that a source stands for."""
    held = source._source if isinstance(source, DatabaseTable) else source
    if isinstance(held, Parquet):
        return _ByEngine(held.paths)
    if isinstance(held, _DuckDB):
        return _ByQuery(held.path, held.name)
    if isinstance(held, Relation):
        return held
    raise NotSupportedError(f"data: columns of {type(source).__name__} cannot be looked at; write them to a file")


def table_columns(relation: Relation) -> list[Column]:
    """The columns with their declared types; no record is read."""
    with relation._tried(), relation.opened() as view:
        names = [str(name) for name in view.columns]
        schema = view.table(dict.fromkeys(names), False).schema()
        return [Column(name, _type(schema[name])) for name in names]


def table_texts(relation: Relation) -> Iterator[Piece]:
    """The values of all columns as texts; columns that cannot be read hold none."""
    with relation._tried(), relation.opened() as view:
        names = [str(name) for name in view.columns]
        schema = view.table(dict.fromkeys(names), False).schema()
        readable = [name for name in names if _type(schema[name]) != "unreadable"]
        if not readable:
            return
        table = view.table(dict.fromkeys(readable), True)
        total, done = table.count().to_pyarrow().as_py(), 0
        for batch in batches(table):
            done += batch.num_rows
            empty = ([""], np.zeros(batch.num_rows, np.int32))
            columns = [_texts(batch.column(name)) if name in readable else empty for name in names]
            yield Piece(batch.num_rows, columns, min(done / max(total, 1), 1.0))


def _type(dtype: Any) -> ColumnType:
    if dtype.is_decimal():
        return "integer" if dtype.scale == 0 else "decimal"
    kinds: dict[str, ColumnType] = {
        "is_string": "text",
        "is_boolean": "boolean",
        "is_integer": "integer",
        "is_floating": "float",
        "is_date": "date",
        "is_timestamp": "timestamp",
        "is_time": "time",
    }
    return next((kind for test, kind in kinds.items() if getattr(dtype, test)()), "unreadable")


def _texts(column: Any) -> tuple[list[str], Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    text = pc.fill_null(column.cast(pa.string()), "")
    encoded = text.dictionary_encode()
    found = [str(value)[:LONGEST_TEXT].strip(" \t\r") for value in encoded.dictionary.to_pylist()]
    return found, np.from_dlpack(encoded.indices)
