"""Every engine that records may be in: `hold` puts an Arrow table into one, and returns what a user gives as data."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdmm.data import DatabaseTable
from tests.servers import Absent, postgres_server, spark_session

ENGINES = [
    *("parquet", "arrow", "pandas", "polars", "lazy", "stream", "dataset", "relation"),
    *("duckdb", "ibis", "other ibis", "sqlite", "postgres", "spark"),
]

Hold = Callable[[pa.Table], Any]


@contextmanager
def present(server: AbstractContextManager[Any]) -> Iterator[Any]:
    """A server that runs for these tests, or a reason to skip them."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(server)
        except Absent as absent:
            pytest.skip(str(absent))
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server of Postgres."""
    with present(postgres_server()) as address:
        yield address


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of Spark."""
    with present(spark_session()) as session:
        yield session


@pytest.fixture
def hold(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Hold:
    """Put a table into the engine that a test is about."""
    if engine == "postgres":
        address = request.getfixturevalue("postgres")
        return lambda table: _postgres(table, address)
    if engine == "spark":
        session = request.getfixturevalue("spark")
        return lambda table: _spark(table, session)
    if engine in ("parquet", "duckdb", "sqlite"):
        write = {"parquet": _parquet, "duckdb": _duckdb, "sqlite": _sqlite}[engine]
        return lambda table: write(table, tmp_path)
    plain: dict[str, Hold] = {
        "arrow": lambda table: table,
        "pandas": _pandas,
        "polars": _polars,
        "lazy": lambda table: _polars(table).lazy(),
        "stream": _Exported,
        "dataset": _dataset,
        "relation": lambda table: duckdb.connect().from_arrow(table),
        "ibis": _ibis,
        "other ibis": _other,
    }
    return plain[engine]


class _Exported:
    """An object that hands out Arrow streams, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.to_reader(max_chunksize=7).__arrow_c_stream__(requested_schema)


def _dataset(table: pa.Table) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(table)


def _parquet(table: pa.Table, folder: Path) -> str:
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "a-1.parquet")
    pq.write_table(table.slice(half), folder / "a-2.parquet")
    return str(folder / "a-*.parquet")


def _pandas(table: pa.Table) -> Any:
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.int16(): pd.Int16Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame = table.to_pandas(types_mapper=nullable.get)
    for at, name in enumerate(frame.columns):
        if at % 2 and pa.types.is_string(table.schema.field(name).type):
            frame[name] = frame[name].astype(object)
    return frame


def _polars(table: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(table)


def _ibis(table: pa.Table) -> Any:
    import ibis

    return ibis.memtable(table)


def _other(table: pa.Table) -> Any:
    import ibis
    import polars as pl

    return ibis.polars.connect({"records": pl.from_arrow(table)}).table("records")


def _duckdb(table: pa.Table, folder: Path) -> DatabaseTable:
    path = folder / f"{uuid4().hex}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.people AS SELECT * FROM given")
    return DatabaseTable(path, "other.people")


def _sqlite(table: pa.Table, folder: Path) -> DatabaseTable:
    names = ", ".join(f'"{name}"' for name in table.column_names)
    marks = ", ".join("?" * table.num_columns)
    texts = (Decimal, date, time)  # SQLite has no types for these
    rows = [[str(value) if isinstance(value, texts) else value for value in row.values()] for row in table.to_pylist()]
    path = folder / f"{uuid4().hex}.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE people ({names})")
        connection.executemany(f"INSERT INTO people VALUES ({marks})", rows)
    connection.close()
    return DatabaseTable(path, "people")


def _sql_types(table: pa.Table, names: dict[str, str]) -> list[str]:
    kinds = [str(field.type).partition("(")[0] for field in table.schema]
    return [
        names[kind] + (f"({field.type.precision}, {field.type.scale})" if kind == "decimal128" else "")
        for kind, field in zip(kinds, table.schema, strict=True)
    ]


def _postgres(table: pa.Table, address: str) -> DatabaseTable:
    import psycopg

    names = {"string": "text", "int64": "bigint", "int16": "smallint", "bool": "boolean", "decimal128": "numeric"}
    names |= {"double": "double precision", "float": "real", "date32[day]": "date", "timestamp[us]": "timestamp"}
    types = _sql_types(table, {**names, "timestamp[us, tz=UTC]": "timestamptz", "time64[us]": "time"})
    name = f"people_{uuid4().hex}"
    columns = ", ".join(f'"{column}" {type}' for column, type in zip(table.column_names, types, strict=True))
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join(["%s"] * table.num_columns)
        cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(row.values()) for row in table.to_pylist()])
    return DatabaseTable(address, name)


def _spark(table: pa.Table, session: Any) -> Any:
    names = {"string": "string", "int64": "bigint", "int16": "smallint", "bool": "boolean", "decimal128": "decimal"}
    names |= {"double": "double", "float": "float", "date32[day]": "date", "timestamp[us]": "timestamp_ntz"}
    types = _sql_types(table, names)
    schema = ", ".join(f"`{column}` {type}" for column, type in zip(table.column_names, types, strict=True))
    return session.createDataFrame([tuple(row.values()) for row in table.to_pylist()], schema)
