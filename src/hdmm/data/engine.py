"""The engines that count: DuckDB in this process, and those that hold the records, all through ibis.

Rules of text must be the same everywhere, and what an engine calls trimming or equality is not. So texts are trimmed of
exactly our blanks, and compared by the hexadecimal form of their bytes, which no collation changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, final
from uuid import uuid4

import numpy as np

from hdmm.data.people import DIGITS
from hdmm.data.stoppable import Stoppable
from hdmm.errors import DataError
from hdmm.files import scratch
from hdmm.memory.limit import memory_limit
from hdmm.schema.text import BLANKS, LONGEST_TEXT, NO_VALUE

_MOST, _LEAST = 2 << 30, 256 << 20
"""Bytes of memory that DuckDB in this process is usually given."""
_BATCH = 1 << 18
_PERFECT = 22  # bits of a key up to which DuckDB counts in an array, several times faster than in a hash table
_BLANKS = BLANKS.decode()
_ENCODINGS = {"UTF8": "UTF8", "LATIN1": "UTF8", "SQL_ASCII": "SQL_ASCII"}
"""The encodings of databases whose every text has bytes in the encoding beside them."""

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
    octets: Make
    """How many bytes a text has."""
    key: Make
    """The first 128 bits of the SHA-256 of a text, as a value that is ordered like their hexadecimal digits."""
    key_type: str
    """The type of a key, as ibis calls it: of a fixed size."""

    decoded: Make | None = None
    """A text read from its bytes, null where they are not UTF-8: for engines that may hold such texts."""

    def bounded(self, text: Any) -> Any:
        """The text, or one that no domain holds where it is too long to be carried on, or not one at all."""
        import ibis

        found = text
        if self.decoded is not None:
            found = ibis.ifelse(text.notnull() & self.decoded(text).isnull(), NO_VALUE, text)
        return ibis.ifelse(self.octets(text) > LONGEST_TEXT, NO_VALUE, found)

    def careful(self) -> Engine:
        """The same for tables that may hold texts which are not UTF-8: DuckDB lets them in, and trims them for ever."""
        if self.backend.name != "duckdb":
            return self
        tried, decode, encode = _builtin("try", str), _builtin("decode", bytes), _builtin("encode", str, to=bytes)
        return replace(self, decoded=lambda text: tried(decode(encode(text))))

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


def engine_of(backend: Any) -> Engine:
    """The functions of a backend that is one of :data:`ENGINES`."""
    return _ENGINES[backend.name](backend)


def _duckdb(backend: Any) -> Engine:
    trim, sha256 = _builtin("trim", str, str), _builtin("sha256", str)
    return Engine(
        backend,
        lambda text: trim(text, _BLANKS),
        _builtin("hex", str),
        _builtin("strlen", str, to=int),
        lambda text: sha256(text).left(DIGITS).cast("uuid"),
        "uuid",
    )


def _spark(backend: Any) -> Engine:
    trim, sha2 = _builtin("btrim", str, str), _builtin("sha2", str, int)
    return Engine(
        backend,
        lambda text: trim(text, _BLANKS),
        _builtin("hex", str),
        _builtin("octet_length", str, to=int),
        lambda text: sha2(text, 256).left(DIGITS),
        "string",
    )


def _postgres(backend: Any) -> Engine:
    """Texts are compared by their bytes as they are stored, which no conversion can fail for."""
    encoding = _encoding(backend)
    trim, convert = _builtin("btrim", str, str), _builtin("convert_to", str, str, to=bytes)
    upper, written, sha256 = _builtin("upper", str), _builtin("encode", bytes, str), _builtin("sha256", bytes, to=bytes)
    return Engine(
        backend,
        lambda text: trim(text, _BLANKS),
        lambda text: upper(written(convert(text, encoding), "hex")),
        _builtin("octet_length", str, to=int),
        lambda text: written(sha256(convert(text, encoding)), "hex").left(DIGITS).cast("uuid"),
        "uuid",
    )


def _encoding(backend: Any) -> str:
    """How the bytes of texts are asked for: in UTF-8, or where the database does not know its encoding, as they are.

    From other encodings a single character without a counterpart in UTF-8 would stop the count.
    """
    found = backend.con.info.parameter_status("server_encoding")
    if found not in _ENCODINGS:
        raise DataError(
            f"the database has the encoding {found}, from which not every text can be read; copy the table to one with "
            f"the encoding UTF8, or write it to a file (supported: {', '.join(_ENCODINGS)})"
        )
    return _ENCODINGS[found]


_ENGINES: Mapping[str, Callable[[Any], Engine]] = {"duckdb": _duckdb, "postgres": _postgres, "pyspark": _spark}
ENGINES = tuple(_ENGINES)
"""The engines of ibis that count where the records are; records of others are copied into DuckDB first."""


@cache
def _builtin(name: str, *given: type, to: type = str) -> Callable[..., Any]:
    """A function of the engine, of these types."""
    import ibis

    def one(value: Any) -> Any: ...

    def two(value: Any, other: Any) -> Any: ...

    made: Callable[..., Any] = ibis.udf.scalar.builtin(
        one if len(given) == 1 else two, name=name, signature=(given, to)
    )
    return made


@contextmanager
def in_process(database: Path | None = None, memory: int | None = None) -> Iterator[Engine]:
    """DuckDB in this process, with or without a database file, which is only read.

    ``memory`` is its limit in bytes, by default a quarter of what may be used, within limits.

    A name is a table or a view of the database, never a file or a variable; a database is a file, never an address.

    What does not fit into memory goes to a private temporary directory, which is removed afterwards; after kill -9, by
    the next process.
    """
    import ibis

    if memory is None:
        memory = min(_MOST, max(_LEAST, memory_limit() // 4))
    with scratch.directory() as directory:
        settings: dict[str, Any] = {"temp_directory": str(directory), "memory_limit": f"{memory >> 20}MiB"}
        settings["autoinstall_known_extensions"] = False
        if database is None:
            backend = ibis.duckdb.connect(**settings)
        else:
            backend = ibis.duckdb.connect(str(database.resolve()), read_only=True, **settings)
        backend.con = Stoppable(backend.con)
        try:
            backend.con.execute("SET python_enable_replacements = false")
            backend.con.execute(f"SET perfect_ht_threshold = {_PERFECT}")
            backend.con.execute("SET preserve_insertion_order = false")
            backend.con.execute("SET enable_progress_bar = false")
            yield engine_of(backend)
        finally:
            backend.disconnect()
