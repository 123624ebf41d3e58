"""A table of a database: Postgres by its address, DuckDB and SQLite by their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final
from uuid import uuid4

from hdmm.data.engine import Engine, engine_of, in_process
from hdmm.data.findings import Findings
from hdmm.data.relation import Needed, Relation, View, view_of
from hdmm.data.source import Advance, CountRequest, Counts, Source, check_file, unheard
from hdmm.data.sqlite import SqliteTable
from hdmm.errors import DataError, FaultError
from hdmm.memory.limit import memory_limit
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

_POSTGRES = ("postgresql://", "postgres://")
_MAX_STEP_ROWS = 1 << 16
"""Most rows of a DuckDB table that are copied in one step."""


@final
@dataclass(frozen=True)
class DatabaseTable(Source):
    """A table or view of a database, by its name; write "schema.name" if it is not in the default schema.

    The database is the address of a Postgres server, ``postgresql://user@host/database``, or the path of a file of
    DuckDB or SQLite. It is only read; Postgres counts in temporary tables.

    Arguments:
        database: The address of a Postgres server, or the path of a DuckDB or SQLite file.
        name: The table or view, as "name" or "schema.name".
    """

    database: str = field(repr=False)  # an address may hold a password
    name: str
    _source: Source = field(init=False, repr=False, compare=False)

    def __init__(self, database: str | Path, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise DataError(f"name={name!r}: expected the name of a table")
        object.__setattr__(self, "database", str(database))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_source", _opened(str(database), name))

    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        self._source.columns_check(schema, id)

    def count(self, request: CountRequest) -> Counts:
        return self._source.count(request)

    def column_names(self) -> list[str]:
        return self._source.column_names()

    def inspect(self, schema: Schema, unit: Unit, on_progress: Advance = unheard) -> Findings:
        return self._source.inspect(schema, unit, on_progress)


def _opened(database: str, name: str) -> Source:
    if is_server(database):
        return _Postgres(database, name)
    scheme, address, _ = database.partition("://")
    if address:
        raise DataError(f"{scheme}://…: expected postgresql://…, or the path of a DuckDB or SQLite file")
    path = Path(database)
    check_file(path)
    kind = database_kind(path)
    if kind is None:
        raise DataError(
            f"{path}: is no file of DuckDB or SQLite; give the path of one, or an address such as postgresql://host/db"
        )
    return SqliteTable(path, name) if kind == "sqlite" else _DuckDB(path, name)


def is_server(address: str) -> bool:
    """Whether a text is the address of a database server that hdmm can read."""
    return address.startswith(_POSTGRES)


def database_kind(path: Path) -> str | None:
    """The kind of a database file, "duckdb" or "sqlite", by its first bytes; None if it is neither."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise FaultError(f"{path}: cannot be read: {error.strerror}") from None
    return "sqlite" if start == b"SQLite format 3\0" else "duckdb" if start[8:12] == b"DUCK" else None


@final
@dataclass(frozen=True)
class _DuckDB(Source):
    """A table of DuckDB. If long texts in a part of it fill the memory, it is read again, a few rows at a time."""

    path: Path
    name: str

    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        _ByQuery(self.path, self.name).columns_check(schema, id)

    def column_names(self) -> list[str]:
        return _ByQuery(self.path, self.name).column_names()

    def inspect(self, schema: Schema, unit: Unit, on_progress: Advance = unheard) -> Findings:
        return _ByQuery(self.path, self.name).inspect(schema, unit, on_progress)

    def count(self, request: CountRequest) -> Counts:
        import duckdb

        try:
            return _ByQuery(self.path, self.name).count(request)
        except duckdb.OutOfMemoryException:
            return _ByRows(self.path, self.name).count(request)


@dataclass(frozen=True)
class _InDuckDB(Relation):
    """A table in a file of DuckDB."""

    path: Path
    name: str

    @property
    def place(self) -> str:
        return f"{self.path}: {self.name!r}"


@final
@dataclass(frozen=True)
class _ByQuery(_InDuckDB):
    """The table as DuckDB reads it: 2,048 rows at a time, with all their texts."""

    @contextmanager
    def opened(self) -> Iterator[View]:
        with in_process(self.path) as engine:
            yield view_of(engine.careful(), _table(engine, self.name))


@final
@dataclass(frozen=True)
class _ByRows(_InDuckDB):
    """A copy of the table without its long texts, made in steps that fit into memory. Views cannot be copied so."""

    @contextmanager
    def opened(self) -> Iterator[View]:
        with in_process(self.path, memory_limit()) as plain:
            engine = plain.careful()
            source = _table(engine, self.name)

            def table(columns: Needed, records: bool) -> Any:
                selected = {name: source[name] for name in columns}
                texts = {name: engine.bounded(text) for name, text in selected.items() if text.type().is_string()}
                return _copied(engine, source, selected | texts or {"row": source.rowid()})

            yield View(engine, source.columns, table)


def _copied(engine: Engine, source: Any, columns: Mapping[str, Any]) -> Any:
    """A copy of some columns of a table, made in steps of as many rows as memory allows."""
    import duckdb

    name = f"hdmm_{uuid4().hex}"
    copy = engine.backend.create_table(name, source.select(columns).limit(0), temp=True)
    row, end = 0, source.rowid().max().to_pyarrow().as_py() + 1
    step = _MAX_STEP_ROWS
    while row < end:
        rows = source.filter(source.rowid() >= row, source.rowid() < row + step)
        try:
            engine.backend.insert(name, rows.select(columns))
        except duckdb.OutOfMemoryException:
            if step == 1:
                raise
            step //= 2
        else:
            row += step
            step = min(2 * step, _MAX_STEP_ROWS)
    return copy


@final
@dataclass(frozen=True)
class _Postgres(Relation):
    address: str = field(repr=False)
    name: str

    @property
    def place(self) -> str:
        return f"table {self.name!r}"

    @contextmanager
    def opened(self) -> Iterator[View]:
        import ibis

        try:
            backend = ibis.connect(self.address)
        except ImportError:
            raise DataError("Postgres needs more packages: pip install 'hdmm[postgres]'") from None
        try:
            engine = engine_of(backend)
            yield view_of(engine, _table(engine, self.name))
        finally:
            backend.disconnect()


def _table(engine: Engine, name: str) -> Any:
    """The table of this name; refuse a name that fits two tables."""
    backend = engine.backend
    schema, _, rest = name.rpartition(".")
    plain = name in backend.list_tables()
    qualified = bool(schema) and schema in backend.list_databases() and rest in backend.list_tables(database=schema)
    if plain and qualified:
        raise DataError(f"{name!r} is a table here, and {rest!r} one in the schema {schema!r}; rename one of them")
    if not plain and not qualified:
        raise DataError(f"there is no table {name!r}; check its name, and write schema.name if it is in another schema")
    return backend.table(name) if plain else backend.table(rest, database=schema)
