"""The engines that count: DuckDB in this process, and those that hold the records, all through ibis.

The rules for text must be the same everywhere, but engines trim and compare texts in different ways. So texts are
trimmed of exactly our blanks, and compared by the hexadecimal form of their bytes, which no collation changes.
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

_MOST_MEMORY = 2 << 30
"""Most bytes of memory that DuckDB in this process gets by default."""
_LEAST_MEMORY = 256 << 20
"""Fewest bytes of memory that DuckDB in this process gets by default."""
_BATCH_ROWS = 1 << 18
"""Rows that an engine hands over at a time."""
_ARRAY_BITS = 22
"""Up to this many bits of a key DuckDB counts in an array, several times faster than in a hash table."""
_BLANKS = BLANKS.decode()
_ENCODINGS = {"UTF8": "UTF8", "LATIN1": "UTF8", "SQL_ASCII": "SQL_ASCII"}
"""Encodings of databases, and the encoding in which the bytes of each of their texts can be read without failing."""

_YEARS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59")
"""The years that dates of a schema may have."""

Function = Callable[[Any], Any]
"""A function of ibis expressions."""


@final
@dataclass(frozen=True)
class Engine:
    """A connection of ibis, and its engine's functions for which ibis has no common name."""

    backend: Any
    trim: Function
    """A text without our blanks around it."""
    bytes_of: Function
    """The bytes of a text, in hexadecimal with capitals."""
    octets: Function
    """The number of bytes of a text."""
    key: Function
    """The first 128 bits of the SHA-256 of a text, as a value that is ordered like their hexadecimal digits."""
    key_type: str
    """The type of a key, as ibis calls it: of a fixed size."""

    utc: Function
    """A time stamp with a time zone as the date and time in UTC."""

    decoded: Function | None = None
    """A text read from its bytes, null if they are not UTF-8: for engines that may hold such texts."""

    def bounded(self, text: Any) -> Any:
        """The text; if it is too long or not UTF-8, a text that no domain holds."""
        import ibis

        valid = text
        if self.decoded is not None:
            valid = ibis.ifelse(text.notnull() & self.decoded(text).isnull(), NO_VALUE, text)
        return ibis.ifelse(self.octets(text) > LONGEST_TEXT, NO_VALUE, valid)

    def clock(self, stamp: Any) -> Any:
        """A time stamp as a date and a time without a zone: in UTC if it has one."""
        import ibis

        type = stamp.type()
        if type.timezone is not None:
            return self.utc(stamp)
        if self.backend.name != "duckdb" or type.scale not in (0, 3):
            return stamp
        # DuckDB's seconds and milliseconds reach further than its microseconds, and it fails to convert them.
        known = stamp.between(*(ibis.literal(text).cast(type) for text in _YEARS))
        return ibis.cases(
            (known, stamp.cast("timestamp(6)")), (stamp.notnull(), ibis.literal("infinity").cast("timestamp(6)"))
        )

    def careful(self) -> Engine:
        """The same for tables that may hold texts which are not UTF-8: DuckDB admits them, and trims them for ever."""
        if self.backend.name != "duckdb":
            return self
        tried, decode, encode = _builtin("try", str), _builtin("decode", bytes), _builtin("encode", str, to=bytes)
        return replace(self, decoded=lambda text: tried(decode(encode(text))))

    def copied(self, batches: Any) -> Any:
        """A copy of some Arrow batches as a temporary table of DuckDB."""
        self.backend.con.register("batches", batches)
        self.backend.con.execute("CREATE TEMP TABLE records AS SELECT * FROM batches")
        return self.backend.table("records")

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
        """The distinct combinations of some expressions, as arrays by name, and how often each occurs."""
        import ibis

        counted = table.group_by(**keys) if keys else table
        for batch in batches(counted.agg(times=ibis._.count())):
            yield {name: _array(batch, name) for name in keys}, _array(batch, "times")


def batches(table: Any) -> Iterator[Any]:
    """The rows of a table as Arrow batches."""
    yield from table.to_pyarrow_batches(chunk_size=_BATCH_ROWS)


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
        _in_utc,
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
        lambda stamp: stamp,  # no type of Spark names a zone
    )


def _postgres(backend: Any) -> Engine:
    """Texts are compared by bytes that no conversion can fail to give."""
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
        _in_utc,
    )


def _encoding(backend: Any) -> str:
    """The encoding in which bytes of texts are read: UTF-8, or as stored if the database does not know its encoding.

    From other encodings, a single character without a counterpart in UTF-8 would stop the count.
    """
    encoding = backend.con.info.parameter_status("server_encoding")
    if encoding not in _ENCODINGS:
        raise DataError(
            f"the database has the encoding {encoding}, from which not every text can be read; copy the table to one "
            f"with the encoding UTF8, or write it to a file (supported: {', '.join(_ENCODINGS)})"
        )
    return _ENCODINGS[encoding]


_ENGINES: Mapping[str, Callable[[Any], Engine]] = {"duckdb": _duckdb, "postgres": _postgres, "pyspark": _spark}
ENGINES = tuple(_ENGINES)
"""The engines of ibis that count records in place; records of other engines are copied into DuckDB first."""


def _in_utc(stamp: Any) -> Any:
    import ibis.expr.datatypes as dt

    return _builtin("timezone", str, dt.Timestamp("UTC"), to=dt.Timestamp(scale=6))("UTC", stamp)


@cache
def _builtin(name: str, *types: Any, to: Any = str) -> Callable[..., Any]:
    """A built-in function of the engine, with arguments of these types."""
    import ibis

    def unary(value: Any) -> Any: ...

    def binary(value: Any, other: Any) -> Any: ...

    return ibis.udf.scalar.builtin(unary if len(types) == 1 else binary, name=name, signature=(types, to))


@contextmanager
def in_process(database: Path | None = None, memory: int | None = None) -> Iterator[Engine]:
    """DuckDB in this process; a database file, if given, is only read.

    ``memory`` is its limit in bytes: by default a quarter of the memory limit, from 256 MiB to 2 GiB.

    A name is a table or a view of the database, never a file or a variable; a database is a file, never an address.

    What does not fit into memory goes to a private temporary directory. It is removed afterwards, or by the next
    process if this one is killed.
    """
    import ibis

    if memory is None:
        memory = min(_MOST_MEMORY, max(_LEAST_MEMORY, memory_limit() // 4))
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
            backend.con.execute(f"SET perfect_ht_threshold = {_ARRAY_BITS}")
            backend.con.execute("SET preserve_insertion_order = false")
            backend.con.execute("SET enable_progress_bar = false")
            yield engine_of(backend)
        finally:
            backend.disconnect()
