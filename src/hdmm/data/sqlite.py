"""Tables of SQLite, whose columns have no types: each value is read as a text, by its own type.

A BLOB is read as the text of its bytes, numbers as in :mod:`hdmm.data.untyped`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from hdmm.data.chunked import Chunk, Chunked, RawRecords
from hdmm.data.fields import Distinct
from hdmm.data.inspection import RawChunk
from hdmm.data.people import identifier
from hdmm.data.source import check_columns, needed_columns
from hdmm.data.tally import Records
from hdmm.data.untyped import text_of
from hdmm.errors import DataError
from hdmm.schema import Bins, Domain, Integers, Schema
from hdmm.schema.text import LONGEST_TEXT, NO_VALUE

_BATCH_ROWS = 1 << 16
_REAL = ("REAL", "FLOA", "DOUB")
"""Parts of declared types by which SQLite recognises real numbers."""

Value = bytes | int | float | None


@final
@dataclass(frozen=True)
class SqliteTable(Chunked):
    """A table or a view of an SQLite file."""

    path: Path
    name: str

    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        try:
            with self._connected() as connection:
                columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", [self.name]).fetchall()
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: cannot be read ({type(error).__name__}); check the file") from None
        types = {column.decode(): declared.decode(errors="replace").upper() for column, declared in columns}
        if not types:
            raise DataError(f"{self.path}: there is no table {self.name!r}; check its name")
        check_columns(f"{self.path}: {self.name!r}", list(types), schema, id)
        for column in needed_columns(schema, id):
            domain = schema.columns.get(column)
            real = isinstance(domain, Bins) or (isinstance(domain, Integers) and domain.decimals)
            if any(part in types[column] for part in _REAL) and not real:
                raise DataError(
                    f"{self.path}: column {column!r} holds {types[column]}, which can be read as bins, or as integers "
                    "with decimals: true; cast it to INTEGER or TEXT in a view (SQLite's CAST never fails)"
                )

    def chunks(self, schema: Schema, id: str | None = None) -> Iterator[Chunk]:
        wanted = ", ".join(map(_bounded, needed_columns(schema, id))) or "0"
        with self._connected() as connection:
            (total,) = connection.execute(f"SELECT count(*) FROM {_quoted(self.name)}").fetchone()
            cursor = connection.execute(f"SELECT {wanted} FROM {_quoted(self.name)}")
            done = 0
            while rows := cursor.fetchmany(_BATCH_ROWS):
                done += len(rows)
                yield Chunk(partial(_decode, rows, schema, id is not None), min(done / total, 1.0))

    def column_names(self) -> list[str]:
        with self._connected() as connection:
            rows = connection.execute("SELECT name FROM pragma_table_info(?)", [self.name]).fetchall()
        return [name.decode(errors="replace") for (name,) in rows]

    def raw_chunks(self, schema: Schema, id: str | None = None) -> Iterator[RawRecords]:
        wanted = ", ".join(map(_bounded, needed_columns(schema, id))) or "0"
        with self._connected() as connection:
            (total,) = connection.execute(f"SELECT count(*) FROM {_quoted(self.name)}").fetchone()
            cursor = connection.execute(f"SELECT {wanted} FROM {_quoted(self.name)}")
            done = 0
            while rows := cursor.fetchmany(_BATCH_ROWS):
                done += len(rows)
                values = list(zip(*rows, strict=True))
                columns = {
                    name: _distinct(column, schema.columns[name])
                    for name, column in zip(schema.columns, values, strict=False)
                }
                people = None if id is None else _people(values[-1])
                yield RawRecords(RawChunk(len(rows), columns, people), min(done / total, 1.0))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        # As an absolute URI, in which no character of the name has a meaning of its own.
        with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = bytes  # a text that is not UTF-8 is outside every domain, not an error
            yield connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _bounded(name: str) -> str:
    """A column without texts that are too long."""
    column = _quoted(name)
    size = f"CASE WHEN typeof({column}) IN ('text', 'blob') THEN length(CAST({column} AS BLOB)) ELSE 0 END"
    return f"CASE WHEN {size} > {LONGEST_TEXT} THEN char({ord(NO_VALUE)}) ELSE {column} END"


def _decode(rows: Sequence[tuple[Value, ...]], domains: Mapping[str, Domain], owned: bool) -> Records:
    columns = iter(list(zip(*rows, strict=True)))
    codes = {}
    for name, attribute in domains.items():
        parts = [_codes(domain, next(columns)) for domain in attribute.columns(name).values()]
        codes[name] = attribute.combine(parts)
    return Records(len(rows), codes, _people(next(columns)) if owned else None)


def _codes(domain: Domain, values: Sequence[Value]) -> Any:
    texts, which = _distinct(values, domain)
    return domain.encode(texts)[which]


def _distinct(values: Sequence[Value], domain: Domain) -> Distinct:
    texts = [_text(value, domain) for value in values]
    numbers = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    return Distinct(list(numbers), np.fromiter((numbers[text] for text in texts), np.int32, len(texts)))


def _people(values: Sequence[Value]) -> Any:
    import pyarrow as pa

    return pa.array([identifier(_text(value)) for value in values], pa.string())


def _text(value: Value, domain: Domain | None = None) -> bytes:
    """The text of a value, as the domain writes it; empty if there is none."""
    return value if isinstance(value, bytes) else (text_of(value, domain) or "").encode()
