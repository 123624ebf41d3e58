"""Tables in memory, of pandas, polars or Arrow: counted by DuckDB in this process, without a copy where it can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from hdmm.data.engine import in_process
from hdmm.data.relation import Relation, View
from hdmm.data.values import text_of


@final
@dataclass(frozen=True)
class Frame(Relation):
    """A DataFrame of pandas or polars, or a pyarrow.Table."""

    data: Any

    @property
    def place(self) -> str:
        return "data"

    @contextmanager
    def opened(self) -> Iterator[View]:
        names = list(self.data.column_names if _library(self.data) == "pyarrow" else self.data.columns)
        with in_process() as engine:

            def table(columns: Sequence[str], records: bool) -> Any:
                engine.backend.con.register("records", _arrow(self.data if records else self.data[:0], columns))
                return engine.backend.table("records")

            yield View(engine, names, table)


def _library(data: Any) -> str:
    """Whose table it is: columns may have any name, also that of a method."""
    return type(data).__module__.split(".")[0]


def _arrow(data: Any, columns: Sequence[str]) -> Any:
    """Some columns as an Arrow table, whose types are those that were declared."""
    import pyarrow as pa

    if _library(data) == "pyarrow":
        found = data.select(list(columns))
    elif _library(data) == "polars":
        found = data.select(list(columns)).to_arrow()
    else:
        found = pa.table({name: _pandas(data[name]) for name in columns})
    for at, field in enumerate(found.schema):
        if pa.types.is_dictionary(field.type):
            found = found.set_column(at, field.name, found.column(at).cast(field.type.value_type))
    return found


def _pandas(column: Any) -> Any:
    """A column of pandas; where it holds objects of any kind, each by itself as a text."""
    import pyarrow as pa

    if column.dtype == object:
        return pa.array([text_of(value) for value in column], pa.string())
    return pa.Array.from_pandas(column)
