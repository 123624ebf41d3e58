"""Parquet files, counted by DuckDB in this process, out of core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, final

from hdmm.data.arrow import readable_batches
from hdmm.data.engine import Engine, in_process
from hdmm.data.findings import Findings
from hdmm.data.relation import Needed, Relation, View, view_of
from hdmm.data.source import Advance, CountRequest, Counts, Source, unheard
from hdmm.errors import DataError
from hdmm.files import scratch
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema


@final
@dataclass(frozen=True)
class Parquet(Source):
    """One or several Parquet files, whose columns have the same names and types.

    DuckDB reads them itself. If it gives up on a value, such as a text that is not UTF-8, they are read again by Arrow,
    which hands over every other value as it is.
    """

    paths: tuple[Path, ...]

    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        _ByEngine(self.paths).columns_check(schema, id)

    def column_names(self) -> list[str]:
        return _ByEngine(self.paths).column_names()

    def inspect(self, schema: Schema, unit: Unit, on_progress: Advance = unheard) -> Findings:
        import duckdb

        try:
            return _ByEngine(self.paths).inspect(schema, unit, on_progress)
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, DataError):
            return _ByArrow(self.paths).inspect(schema, unit, on_progress)

    def count(self, request: CountRequest) -> Counts:
        import duckdb

        try:
            return _ByEngine(self.paths).count(request)
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            return _ByArrow(self.paths).count(request)


@dataclass(frozen=True)
class _InFiles(Relation):
    """The records of some files."""

    paths: tuple[Path, ...]

    @property
    def place(self) -> str:
        more = len(self.paths) - 1
        return f"{self.paths[0]} and {more} other files" if more else str(self.paths[0])


@final
@dataclass(frozen=True)
class _ByEngine(_InFiles):
    """The files as DuckDB reads them."""

    @contextmanager
    def opened(self) -> Iterator[View]:
        with in_process() as engine, _named(self.paths) as names:
            first = _read(engine, names[:1]).schema()
            for path, name in zip(self.paths[1:], names[1:], strict=True):
                if dict(_read(engine, [name]).schema()) != dict(first):
                    raise DataError(
                        f"{path}: its columns have other names or types than those of {self.paths[0]}; "
                        "write all files with the same ones, or give each to a release of its own"
                    )
            yield view_of(engine, _read(engine, names))


@contextmanager
def _named(paths: Sequence[Path]) -> Iterator[list[str]]:
    """Names for files in which DuckDB sees neither patterns nor columns: links in a directory of our own.

    It would take ``d[1].parquet`` for a pattern that ``d1.parquet`` matches.
    """
    with scratch.directory() as directory:
        names = []
        for number, path in enumerate(paths):
            link = directory / f"{number}.parquet"
            link.symlink_to(path.resolve())
            names.append(escape(str(link)))
        yield names


def _read(engine: Engine, names: Sequence[str]) -> Any:
    """The records of files, each read exactly once."""
    (files,) = engine.backend.con.execute("SELECT count(*) FROM glob(?)", [list(names)]).fetchone()
    if files != len(names):
        raise DataError(f"{len(names)} Parquet files were given, and DuckDB reads {files}; rename the directory TMPDIR")
    return engine.backend.read_parquet(list(names), hive_partitioning=False, union_by_name=False, filename=False)


@final
@dataclass(frozen=True)
class _ByArrow(_InFiles):
    """The files as Arrow reads them, some records at a time."""

    @contextmanager
    def opened(self) -> Iterator[View]:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        files = [ParquetFile(path) for path in self.paths]
        with in_process() as engine:

            def table(columns: Needed, records: bool) -> Any:
                names = list(columns) or files[0].schema_arrow.names[:1]
                needed = pa.schema([files[0].schema_arrow.field(name) for name in names])
                batches = (batch.select(names) for file in files for batch in file.iter_batches(columns=names))
                return engine.copied(readable_batches(batches, needed))

            yield View(engine, files[0].schema_arrow.names, table)
