"""Columns and texts of SQLite, whose values have types of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hdmm.data.look.column import Column, ColumnType, Piece
from hdmm.data.sqlite import _BATCH_ROWS, _REAL, SqliteTable, Value, _bounded, _quoted
from hdmm.errors import DataError


def sqlite_columns(table: SqliteTable) -> list[Column]:
    """The columns with their declared types; no record is read."""
    try:
        with table._connected() as connection:
            rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", [table.name]).fetchall()
    except sqlite3.Error as error:
        raise DataError(f"{table.path}: cannot be read ({type(error).__name__}); check the file") from None
    if not rows:
        raise DataError(f"{table.path}: there is no table {table.name!r}; check its name")
    return [Column(name.decode(errors="replace"), _type(type.decode(errors="replace").upper())) for name, type in rows]


def sqlite_texts(table: SqliteTable) -> Iterator[Piece]:
    """The values of all columns as texts."""
    names = [column.name for column in sqlite_columns(table)]
    wanted = ", ".join(map(_bounded, names))
    with table._connected() as connection:
        (total,) = connection.execute(f"SELECT count(*) FROM {_quoted(table.name)}").fetchone()
        cursor = connection.execute(f"SELECT {wanted} FROM {_quoted(table.name)}")
        done = 0
        while rows := cursor.fetchmany(_BATCH_ROWS):
            done += len(rows)
            yield Piece(len(rows), [_numbered(values) for values in zip(*rows, strict=True)], min(done / total, 1.0))


def _type(declared: str) -> ColumnType:
    return "float" if any(part in declared for part in _REAL) else "untyped"


def _numbered(values: Sequence[Value]) -> tuple[list[str], NDArray[np.int64]]:
    texts = [_text(value) for value in values]
    numbers = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), np.fromiter((numbers[text] for text in texts), np.int64, len(texts))


def _text(value: Value) -> str:
    """The text of a value; a real number as Python prints it, which is shorter than its exact decimal."""
    if value is None:
        return ""
    return value.decode(errors="replace").strip(" \t\r") if isinstance(value, bytes) else str(value)
