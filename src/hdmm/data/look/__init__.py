"""Looks at data that is not to be protected: the names and types of columns, and the texts in public records.

Nothing here is used by a release. The structure of a source (:func:`structure`) is public; its texts
(:func:`texts`) may be looked at only if the records are public too.
"""

from __future__ import annotations

from collections.abc import Iterator

from hdmm.data.csv import CsvFile, CsvFiles
from hdmm.data.look.column import Column, ColumnType, Piece
from hdmm.data.look.tables import relation_of, table_columns, table_texts
from hdmm.data.look.text_files import header_delimiter, text_columns, text_texts
from hdmm.data.look.untyped_tables import sqlite_columns, sqlite_texts
from hdmm.data.source import Source
from hdmm.data.sqlite import SqliteTable
from hdmm.data.table import DatabaseTable

__all__ = ["Column", "ColumnType", "Piece", "header_delimiter", "structure", "texts"]


def structure(source: Source) -> list[Column]:
    """The columns of a source, from a header or from declared types; no record is read."""
    files = _text_files(source)
    if files is not None:
        return text_columns(files)
    table = _sqlite(source)
    return sqlite_columns(table) if table is not None else table_columns(relation_of(source))


def texts(source: Source) -> Iterator[Piece]:
    """The texts in all columns of :func:`structure`, a piece of the records at a time."""
    files = _text_files(source)
    if files is not None:
        return text_texts(files)
    table = _sqlite(source)
    return sqlite_texts(table) if table is not None else table_texts(relation_of(source))


def _text_files(source: Source) -> tuple[CsvFile, ...] | None:
    if isinstance(source, CsvFile):
        return (source,)
    return source.files if isinstance(source, CsvFiles) else None


def _sqlite(source: Source) -> SqliteTable | None:
    held = source._source if isinstance(source, DatabaseTable) else source
    return held if isinstance(held, SqliteTable) else None
