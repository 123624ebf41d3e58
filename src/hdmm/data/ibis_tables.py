"""Tables of ibis and DataFrames of Spark: counted by the engine that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final
from uuid import uuid4

from hdmm.data.engine import ENGINES, engine_of, in_process
from hdmm.data.relation import Needed, Relation, View, view_of
from hdmm.errors import DataError


@final
@dataclass(frozen=True)
class Expression(Relation):
    """A table of ibis. If its engine is not one of ours, the needed columns are copied into DuckDB first."""

    table: Any

    @contextmanager
    def opened(self) -> Iterator[View]:
        import ibis

        backend = self.table.get_backend()
        if backend.name == "sqlite":
            raise DataError("data: SQLite's columns have no types; give hdmm.DatabaseTable(path, name) instead")
        if backend.name in ENGINES:
            yield view_of(engine_of(backend).careful(), self.table)
            return
        with in_process() as engine:

            def copied(columns: Needed, records: bool) -> Any:
                needed = self.table.select(*columns) if columns else self.table.select(row=ibis.literal(0, "int8"))
                return engine.copied((needed if records else needed.limit(0)).to_pyarrow_batches())

            yield View(engine, self.table.columns, copied)


@final
@dataclass(frozen=True)
class SparkFrame(Relation):
    """A DataFrame of Spark."""

    frame: Any

    @contextmanager
    def opened(self) -> Iterator[View]:
        import ibis

        try:
            backend = ibis.pyspark.connect(self.frame.sparkSession)
        except ImportError:
            raise DataError("Spark needs more packages: pip install 'hdmm[spark]'") from None
        name = f"hdmm_{uuid4().hex}"
        self.frame.createTempView(name)
        try:
            yield view_of(engine_of(backend), backend.table(name))
        finally:
            self.frame.sparkSession.catalog.dropTempView(name)
