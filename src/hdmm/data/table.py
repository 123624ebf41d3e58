"""A table of a database: Postgres by its address, DuckDB and SQLite by their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from hdmm.data.engine import Engine, engine_of, in_process
from hdmm.data.relation import Relation, View, view_of
from hdmm.data.source import Advance, Counts, Source, check_file
from hdmm.data.sqlite import SqliteTable
from hdmm.errors import DataError, FaultError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

_POSTGRES = ("postgresql://", "postgres://")


@final
@dataclass(frozen=True)
class Table(Source):
    """The table of this name in a database, or the view; in another schema than the usual one it is "schema.name".

    The database is the address of a Postgres server, ``postgresql://user@host/database``, or the path of a file of
    DuckDB or SQLite. It is only read; Postgres counts in temporary tables.
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

    def count(
        self,
        schema: Schema,
        tables: Sequence[tuple[str, ...]],
        unit: Unit | None,
        on_progress: Advance | None,
        most: int | None = None,
    ) -> Counts:
        return self._source.count(schema, tables, unit, on_progress, most)


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
    """Whether an address is that of a database that we know."""
    return address.startswith(_POSTGRES)


def database_kind(path: Path) -> str | None:
    """Whether a file is a database of DuckDB or SQLite, by its first bytes."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise FaultError(f"{path}: cannot be read: {error.strerror}") from None
    return "sqlite" if start == b"SQLite format 3\0" else "duckdb" if start[8:12] == b"DUCK" else None


@final
@dataclass(frozen=True)
class _DuckDB(Relation):
    path: Path
    name: str

    @property
    def place(self) -> str:
        return f"{self.path}: {self.name!r}"

    @contextmanager
    def opened(self) -> Iterator[View]:
        with in_process(self.path) as engine:
            yield _view(engine.careful(), self.name)


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
            yield _view(engine_of(backend), self.name)
        finally:
            backend.disconnect()


def _view(engine: Engine, name: str) -> View:
    backend = engine.backend
    schema, _, rest = name.rpartition(".")
    here = name in backend.list_tables()
    there = bool(schema) and schema in backend.list_databases() and rest in backend.list_tables(database=schema)
    if here and there:
        raise DataError(f"{name!r} is a table here, and {rest!r} one in the schema {schema!r}; rename one of them")
    if not here and not there:
        raise DataError(f"there is no table {name!r}; check its name, and write schema.name for one elsewhere")
    return view_of(engine, backend.table(name) if here else backend.table(rest, database=schema))
