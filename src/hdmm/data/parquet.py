"""Parquet files, counted by DuckDB in this process, out of core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from hdmm.data.engine import in_process
from hdmm.data.relation import Relation, View, view_of
from hdmm.errors import DataError


@final
@dataclass(frozen=True)
class Parquet(Relation):
    """One or several Parquet files, whose columns have the same names and types."""

    paths: tuple[Path, ...]

    @property
    def place(self) -> str:
        return str(self.paths[0]) if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} other files"

    @contextmanager
    def opened(self) -> Iterator[View]:
        with in_process() as engine:
            first = engine.backend.read_parquet(self.paths[0]).schema()
            for path in self.paths[1:]:
                if dict(engine.backend.read_parquet(path).schema()) != dict(first):
                    raise DataError(
                        f"{path}: its columns have other names or types than those of {self.paths[0]}; "
                        "write all files with the same ones, or give each to a release of its own"
                    )
            table = engine.backend.read_parquet([str(path) for path in self.paths])
            yield view_of(engine, table)
