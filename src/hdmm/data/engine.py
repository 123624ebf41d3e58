"""The engines that count: DuckDB in this process, and those that hold the records, all through ibis.

Rules of text must be the same everywhere, and what an engine calls trimming or equality is not. So texts are trimmed of
exactly our blanks, and compared by the hexadecimal form of their bytes, which no collation changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, final
from uuid import uuid4

import numpy as np

from hdmm import scratch
from hdmm.data.stoppable import Stoppable
from hdmm.matrix.workspace import memory_limit
from hdmm.schema.text import BLANKS

_MOST, _LEAST = 2 << 30, 256 << 20
"""Bytes of memory of DuckDB in this process: a quarter of what may be used, within these."""
_BATCH = 1 << 18
_PERFECT = 22  # bits of a key up to which DuckDB counts in an array, several times faster than in a hash table

Make = Callable[[Any], Any]


@final
@dataclass(frozen=True)
class Engine:
    """A connection of ibis, and what its engine calls the functions that ibis has no common name for."""

    backend: Any
    trim: Make
    """A text without our blanks around it."""
    bytes_of: Make
    """The bytes of a text, in hexadecimal with capitals."""
    md5: Make
    """The MD5 of a text, in hexadecimal."""

    @contextmanager
    def lookup(self, keys: Sequence[Any], codes: Sequence[int], types: Mapping[str, str]) -> Iterator[Any]:
        """A small table of keys and codes in the engine, with the names and types of the two columns."""
        name = f"hdmm_{uuid4().hex}"
        if self.backend.name == "pyspark":
            kinds = {"string": "string", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}
            described = ", ".join(f"{column} {kinds[type]}" for column, type in types.items())
            session = self.backend._session
            session.createDataFrame(list(zip(keys, codes, strict=True)), described).createTempView(name)
            try:
                yield self.backend.table(name)
            finally:
                session.catalog.dropTempView(name)
            return
        import pyarrow as pa

        arrays = [pa.array(values, type) for values, type in zip((keys, codes), types.values(), strict=True)]
        table = self.backend.create_table(name, pa.table(arrays, list(types)), temp=True)
        try:
            yield table
        finally:
            self.backend.drop_table(name)

    def groups(self, table: Any, keys: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
        """Every combination of some expressions that there is, as arrays by name, and how many times."""
        import ibis

        counted = table.group_by(**keys) if keys else table
        for batch in batches(counted.agg(times=ibis._.count())):
            yield {name: _array(batch, name) for name in keys}, _array(batch, "times")


def batches(table: Any) -> Iterator[Any]:
    """The rows of a table as Arrow batches."""
    yield from table.to_pyarrow_batches(chunk_size=_BATCH)


def _array(batch: Any, column: str) -> Any:
    return batch.column(column).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


ENGINES = ("duckdb", "postgres", "pyspark")
"""The engines of ibis that count where the records are; records of others are copied into DuckDB first."""


def engine_of(backend: Any) -> Engine:
    """The functions of a backend that is one of :data:`ENGINES`."""
    blanks = BLANKS.decode()
    trim = _builtin("trim" if backend.name == "duckdb" else "btrim", 2)
    encode, md5 = _builtin("hex", 1), _builtin("md5", 1)
    if backend.name != "postgres":
        return Engine(backend, lambda text: trim(text, blanks), encode, md5)
    upper, convert, written = _builtin("upper", 1), _builtin("convert_to", 2), _builtin("encode", 2)
    return Engine(
        backend,
        lambda text: trim(text, blanks),
        lambda text: upper(written(convert(text, "UTF8"), "hex")),
        lambda text: md5(convert(text, "UTF8")),  # whatever encoding the database has
    )


@cache
def _builtin(name: str, arguments: int) -> Callable[..., Any]:
    """A function of the engine, from texts to a text."""
    import ibis

    def one(text: str) -> str: ...  # type: ignore[empty-body]

    def two(text: str, other: str) -> str: ...  # type: ignore[empty-body]

    made: Callable[..., Any] = ibis.udf.scalar.builtin(
        one if arguments == 1 else two, name=name, signature=((str,) * arguments, str)
    )
    return made


@contextmanager
def in_process(database: str | None = None) -> Iterator[Engine]:
    """DuckDB in this process, with or without a database file, which is only read.

    What does not fit into memory goes to a private temporary directory, which is removed afterwards; after kill -9, by
    the next process.
    """
    import ibis

    memory = min(_MOST, max(_LEAST, memory_limit() // 4))

    with scratch.directory() as directory:
        settings: dict[str, Any] = {"temp_directory": str(directory), "memory_limit": f"{memory >> 20}MiB"}
        settings["autoinstall_known_extensions"] = False
        if database is None:
            backend = ibis.duckdb.connect(**settings)
        else:
            backend = ibis.duckdb.connect(database, read_only=True, **settings)
        backend.con = Stoppable(backend.con)
        try:
            backend.con.execute(f"SET perfect_ht_threshold = {_PERFECT}")
            backend.con.execute("SET preserve_insertion_order = false")
            yield engine_of(backend)
        finally:
            backend.disconnect()
