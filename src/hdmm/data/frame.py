"""Tables in memory, of pandas, polars or Arrow: counted by DuckDB in this process, without a copy if possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from hdmm.data.arrow import readable
from hdmm.data.columns import check_zone
from hdmm.data.engine import in_process
from hdmm.data.relation import Needed, Relation, View
from hdmm.data.untyped import text_of
from hdmm.schema import Domain


@final
@dataclass(frozen=True)
class Frame(Relation):
    """A DataFrame of pandas or polars, or a pyarrow.Table."""

    data: Any

    @contextmanager
    def opened(self) -> Iterator[View]:
        names = list(self.data.column_names if _library(self.data) == "pyarrow" else self.data.columns)
        with in_process() as engine:

            def table(columns: Needed, records: bool) -> Any:
                engine.backend.con.register("records", _arrow(self.data if records else self.data[:0], columns))
                return engine.backend.table("records")

            yield View(engine, names, table)


@final
@dataclass(frozen=True)
class LazyFrame(Relation):
    """A LazyFrame of polars: only the needed columns are computed, once."""

    data: Any

    @contextmanager
    def opened(self) -> Iterator[View]:
        import polars as pl

        schema = self.data.collect_schema()
        with in_process() as engine:

            def table(columns: Needed, records: bool) -> Any:
                if not records:
                    held = _arrow(pl.DataFrame(schema=schema), columns)
                elif columns:
                    held = _arrow(self.data.select(pl.col(list(columns))).collect(engine="streaming"), columns)
                else:
                    held = _unread(self.data.select(pl.len()).collect(engine="streaming").item())
                engine.backend.con.register("records", held)
                return engine.backend.table("records")

            yield View(engine, schema.names(), table)


def _library(data: Any) -> str:
    """The library of a table; its attributes are no guide, because a column may have the name of a method."""
    return type(data).__module__.split(".")[0]


def _arrow(data: Any, columns: Needed) -> Any:
    """Some columns as an Arrow table with their declared types."""
    import pyarrow as pa

    if not columns:
        return _unread(len(data))
    if _library(data) == "pyarrow":
        table = data.select(list(columns))
    elif _library(data) == "polars":
        table = data.select(list(columns)).to_arrow()
    else:
        table = pa.table({name: _pandas(data[name], domain) for name, domain in columns.items()})
    for field in table.schema:
        if pa.types.is_timestamp(field.type):
            check_zone(field.name, field.type.tz)
    return readable(table)


def _unread(rows: int) -> Any:
    """A table of records that are counted, not read."""
    import pyarrow as pa

    return pa.table({"": pa.nulls(rows, pa.int8())})


def _pandas(column: Any, domain: Domain | None) -> Any:
    """A column of pandas: objects, texts and categories are read one by one as texts, other values by their type.

    So no value changes how another is read; the categories of a column are values, too.
    """
    import pyarrow as pa

    if type(column.dtype).__name__ == "CategoricalDtype":
        texts = pa.array([text_of(value, domain) for value in column.cat.categories], pa.string())
        codes = column.cat.codes.to_numpy()
        return texts.take(pa.array(codes, mask=codes < 0))
    if column.dtype != object:
        try:
            return pa.Array.from_pandas(column)
        except UnicodeEncodeError:  # a lone surrogate in a column of texts
            pass
    return pa.array([text_of(value, domain) for value in column], pa.string())
