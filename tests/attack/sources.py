"""The same records in every source: each function writes them and returns what a user gives as data."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from hdmm.data import CsvFile, DatabaseTable
from tests.attack.oracle import Record
from tests.attack.records import COLUMNS
from tests.servers import postgres_server, spark_session

Types = Mapping[str, str]


class CannotHold(Exception):
    """A source has no way to hold these values."""


@dataclass(frozen=True)
class Place:
    """Where records are written, and under which names."""

    folder: Path
    file: str = "people"
    table: str = "people"
    names: Mapping[str, str] = field(default_factory=dict)
    """Columns that are called something else."""

    def path(self, ending: str) -> Path:
        """The path of the file; some names cannot be one."""
        return self.folder / f"{self.file}{ending}"

    def columns(self, records: Sequence[Record]) -> dict[str, list[Any]]:
        """The values of each column."""
        return {self.names.get(name, name): [record[name] for record in records] for name in COLUMNS}


Hold = Callable[[Sequence[Record], Types, Place], Any]


@dataclass(frozen=True)
class Source:
    """A kind of source, the types that its columns may have, and how records are written to it."""

    name: str
    types: frozenset[str]
    hold: Hold
    server: bool = False


def line_of(record: Record) -> bytes:
    """A record as a line of a text file: every field in quotes, or the line that it brings along."""
    line = record.get("line")
    if isinstance(line, bytes):
        return line
    return b",".join(b'"' + _bytes(record[name]).replace(b'"', b'""') + b'"' for name in COLUMNS)


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        value = value.encode()
    if value is None:
        return b""
    if not isinstance(value, bytes) or b"\n" in value:
        raise CannotHold
    return value


def write_csv(records: Sequence[Record], path: Path, names: Mapping[str, str] | None = None) -> str:
    """A text file with a header."""
    header = ",".join('"' + (names or {}).get(name, name).replace('"', '""') + '"' for name in COLUMNS)
    path.write_bytes(b"\n".join([header.encode(), *map(line_of, records)]) + b"\n")
    return str(path)


def _csv(records: Sequence[Record], types: Types, place: Place) -> Any:
    return write_csv(records, place.path(".csv"), place.names)


def _csvs(records: Sequence[Record], types: Types, place: Place) -> Any:
    half = len(records) // 2
    parts = (records[:half], records[half:])
    return [write_csv(part, place.path(f"-{at}.csv"), place.names) for at, part in enumerate(parts)]


def _packed(codec: str, ending: str) -> Hold:
    def hold(records: Sequence[Record], types: Types, place: Place) -> Any:
        plain = Path(write_csv(records, place.path(".csv"), place.names))
        path = place.path(ending)
        with pa.output_stream(path, compression=codec) as file:
            file.write(plain.read_bytes())
        return str(path)

    return hold


def _encoded(encoding: str) -> Hold:
    def hold(records: Sequence[Record], types: Types, place: Place) -> Any:
        path = Path(write_csv(records, place.path(".csv"), place.names))
        path.write_bytes(path.read_bytes().decode().encode(encoding))
        return CsvFile(path, encoding=encoding)

    return hold


class _Stream:
    """Hands out an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.to_reader(max_chunksize=5).__arrow_c_stream__(requested_schema)


def _stream(records: Sequence[Record], types: Types, place: Place) -> Any:
    return _Stream(arrow_table(records, types, place))


def _dataset(records: Sequence[Record], types: Types, place: Place) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(arrow_table(records, types, place))


def _lazy(records: Sequence[Record], types: Types, place: Place) -> Any:
    return _polars(records, types, place).lazy()


def _relation(records: Sequence[Record], types: Types, place: Place) -> Any:
    write_duckdb(records, types, place, place.path(".duckdb"), quoted(place.table))
    return duckdb.connect(str(place.path(".duckdb"))).table(quoted(place.table))


_ARROW = {
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float64": pa.float64(),
    "float32": pa.float32(),
    "decimal": pa.decimal128(38, 10),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "stamp": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
    "time": pa.time64("us"),
}


def arrow_array(values: Sequence[Any], type: str) -> pa.Array:
    """A column of Arrow; texts are raw bytes that nobody checks."""
    if type == "stamp s":
        seconds = [int(v.replace(tzinfo=UTC).timestamp()) if isinstance(v, datetime) else v for v in values]
        return pa.array(seconds, pa.int64()).view(pa.timestamp("s"))
    if type in _ARROW:
        return pa.array(values, _ARROW[type])
    if any(not isinstance(value, (str, bytes, NoneType)) for value in values):
        raise CannotHold
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    long = pa.array(raw, pa.large_binary())
    text = pa.Array.from_buffers(pa.large_string(), len(long), long.buffers())
    if type == "view":
        return text
    short = pa.array(raw, pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(short), short.buffers())
    return text.dictionary_encode() if type == "category" else text


def arrow_table(records: Sequence[Record], types: Types, place: Place) -> pa.Table:
    """An Arrow table."""
    shown = {place.names.get(name, name): types.get(name, "text") for name in COLUMNS}
    columns = place.columns(records)
    return pa.table([arrow_array(columns[name], type) for name, type in shown.items()], names=list(shown))


def _parquet(records: Sequence[Record], types: Types, place: Place) -> Any:
    pq.write_table(arrow_table(records, types, place), place.path(".parquet"))
    return str(place.path(".parquet"))


def _parquets(records: Sequence[Record], types: Types, place: Place) -> Any:
    half = len(records) // 2
    paths = [place.path(f"-{at}.parquet") for at in range(2)]
    for path, part in zip(paths, (records[:half], records[half:]), strict=True):
        pq.write_table(arrow_table(part, types, place), path)
    return [str(path) for path in paths]


def _pandas(records: Sequence[Record], types: Types, place: Place) -> Any:
    import pandas as pd

    def column(values: list[Any], type: str) -> Any:
        if type == "object":
            return pd.Series(values, dtype=object)
        if type == "category":
            return pd.Series(pd.Categorical(values))
        if type == "python text":
            return pd.Series(values, dtype=pd.StringDtype("python"))
        if type == "text" and not any(isinstance(value, bytes) for value in values):
            return pd.Series(values, dtype="str")
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow_array(values, type)])))

    columns = place.columns(records)
    shown = {place.names.get(name, name): types.get(name, "text") for name in COLUMNS}
    return pd.DataFrame({name: column(columns[name], type) for name, type in shown.items()})


def _polars(records: Sequence[Record], types: Types, place: Place) -> Any:
    import polars as pl

    if any(isinstance(value, bytes) for record in records for value in record.values()):
        raise CannotHold  # polars trusts texts, and may crash by itself
    return pl.from_arrow(arrow_table(records, types, place))


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


_DUCKDB = {
    "int128": "HUGEINT",
    "uint64": "UBIGINT",
    "decimal": "DECIMAL(38, 10)",
    "date": "DATE",
    "stamp": "TIMESTAMP",
    "instant": "TIMESTAMPTZ",
    "time": "TIME",
}


def write_duckdb(records: Sequence[Record], types: Types, place: Place, path: Path, name: str) -> None:
    """A table in a file of DuckDB; ``name`` is SQL."""
    plain = {column: "text" if type in _DUCKDB else type for column, type in types.items()}
    table = arrow_table([_as_text(record, types) for record in records], plain, place)
    casts = [
        f"CAST({quoted(place.names.get(column, column))} AS {_DUCKDB[types[column]]}) AS "
        f"{quoted(place.names.get(column, column))}"
        if types.get(column) in _DUCKDB
        else quoted(place.names.get(column, column))
        for column in COLUMNS
    ]
    with duckdb.connect(str(path)) as connection:
        connection.register("hdmm_given", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(casts)} FROM hdmm_given")


def _as_text(record: Record, types: Types) -> Record:
    """Values that Arrow does not know, as texts that DuckDB casts."""
    return {
        name: str(value) if types.get(name) in _DUCKDB and value is not None else value
        for name, value in record.items()
    }


def _duckdb(records: Sequence[Record], types: Types, place: Place) -> Any:
    write_duckdb(records, types, place, place.path(".duckdb"), quoted(place.table))
    return DatabaseTable(place.path(".duckdb"), place.table)


def write_sqlite(records: Sequence[Record], types: Types, place: Place, path: Path, name: str) -> None:
    """A table in a file of SQLite, whose columns have no types; ``name`` is SQL."""
    columns = ", ".join(quoted(place.names.get(column, column)) for column in COLUMNS)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        for record in records:
            marks = [
                "CAST(? AS TEXT)" if isinstance(record[column], bytes) and types.get(column) != "any" else "?"
                for column in COLUMNS
            ]
            values = [record[column] for column in COLUMNS]
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join(marks)})", values)
    connection.close()


def _sqlite(records: Sequence[Record], types: Types, place: Place) -> Any:
    write_sqlite(records, types, place, place.path(".sqlite"), quoted(place.table))
    return DatabaseTable(place.path(".sqlite"), place.table)


_POSTGRES = {
    "text": "text",
    "char": "char(900)",
    "int64": "bigint",
    "float64": "double precision",
    "float32": "real",
    "decimal": "numeric(38, 10)",
    "numeric": "numeric",
    "bool": "boolean",
    "date": "date",
    "stamp": "timestamp",
    "instant": "timestamptz",
    "time": "time",
}


def _postgres(address: str) -> Hold:
    def hold(records: Sequence[Record], types: Types, place: Place) -> Any:
        import psycopg

        if any(isinstance(value, bytes) for record in records for value in record.values()):
            raise CannotHold
        columns = ", ".join(
            f"{quoted(place.names.get(column, column))} {_POSTGRES[types.get(column, 'text')]}" for column in COLUMNS
        )
        name = quoted(place.table)
        with psycopg.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {name}".encode())
            cursor.execute(f"CREATE TABLE {name} ({columns})".encode())
            with cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for record in records:
                    copy.write_row([record[column] for column in COLUMNS])
        return DatabaseTable(address, place.table)

    return hold


_SPARK = {
    "text": "string",
    "int64": "bigint",
    "float64": "double",
    "float32": "float",
    "decimal": "decimal(38, 10)",
    "bool": "boolean",
    "date": "date",
    "stamp": "timestamp_ntz",
}


def _spark(session: Any) -> Hold:
    def hold(records: Sequence[Record], types: Types, place: Place) -> Any:
        if any(isinstance(value, bytes) for record in records for value in record.values()):
            raise CannotHold
        names = [place.names.get(column, column).replace("`", "``") for column in COLUMNS]
        kinds = [_SPARK[types.get(column, "text")] for column in COLUMNS]
        described = ", ".join(f"`{name}` {kind}" for name, kind in zip(names, kinds, strict=True))
        return session.createDataFrame([tuple(record[column] for column in COLUMNS) for record in records], described)

    return hold


_NUMBERS = {"int64", "float64", "float32", "decimal", "bool", "date", "stamp", "stamp s", "instant", "time"}
_COLUMNAR = frozenset({"text", "view", "category", "uint64", *_NUMBERS})
FILES = {
    "csv": Source("csv", frozenset({"text", "line"}), _csv),
    "csv files": Source("csv files", frozenset({"text", "line"}), _csvs),
    "csv.gz": Source("csv.gz", frozenset({"text", "line"}), _packed("gzip", ".csv.gz")),
    "csv.zst": Source("csv.zst", frozenset({"text", "line"}), _packed("zstd", ".csv.zst")),
    "csv utf-16": Source("csv utf-16", frozenset({"text", "line"}), _encoded("utf-16")),
    "csv gb18030": Source("csv gb18030", frozenset({"text", "line"}), _encoded("gb18030")),
    "parquet": Source("parquet", _COLUMNAR, _parquet),
    "parquet files": Source("parquet files", _COLUMNAR, _parquets),
    "pandas": Source("pandas", frozenset({"object", "python text", *_COLUMNAR}), _pandas),
    "polars": Source("polars", _COLUMNAR, _polars),
    "lazy": Source("lazy", _COLUMNAR, _lazy),
    "arrow": Source("arrow", _COLUMNAR, arrow_table),
    "stream": Source("stream", _COLUMNAR, _stream),
    "dataset": Source("dataset", _COLUMNAR, _dataset),
    "relation": Source("relation", frozenset({"text", "int128", "uint64", *_NUMBERS}), _relation),
    "duckdb": Source("duckdb", frozenset({"text", "int128", "uint64", *_NUMBERS}), _duckdb),
    "sqlite": Source("sqlite", frozenset({"text", "any"}), _sqlite),
}
"""The sources that need no server."""
SERVERS = ("postgres", "spark")
NAMES = (*FILES, *SERVERS)


@contextmanager
def opened(name: str) -> Iterator[Source]:
    """A source; a server runs as long as this context."""
    if name in FILES:
        yield FILES[name]
        return
    with ExitStack() as stack:
        if name == "postgres":
            address = stack.enter_context(postgres_server())
            yield Source(name, frozenset(_POSTGRES), _postgres(address), server=True)
        else:
            session = stack.enter_context(spark_session())
            yield Source(name, frozenset(_SPARK), _spark(session), server=True)
