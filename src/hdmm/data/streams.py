"""Records that come as Arrow batches: streams, datasets and relations of DuckDB, copied to DuckDB in this process.

Only the needed columns are copied, once. A stream can be read only once; a dataset or a relation gives a new one for
each release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakSet

from hdmm.data.arrow import readable_batches
from hdmm.data.engine import in_process
from hdmm.data.relation import Needed, Relation, View
from hdmm.errors import DataError, FaultError

_BATCH_ROWS = 1 << 16
"""Rows that a relation hands over at a time."""
_ONCE = "a stream can be read only once; make a new one for every check and every release"
_READ: WeakSet[Any] = WeakSet()
"""Streams that were read: what remains of them looks like no records."""


@final
@dataclass(frozen=True)
class Batches(Relation):
    """Records of a known schema, read by a function from the names of some columns to batches of these."""

    schema: Any
    read: Callable[[Sequence[str]], Any]

    @contextmanager
    def opened(self) -> Iterator[View]:
        import pyarrow as pa

        with in_process() as engine:

            def table(columns: Needed, records: bool) -> Any:
                names = list(columns) or self.schema.names[:1]
                needed = pa.schema([self.schema.field(name) for name in names])
                return engine.copied(readable_batches(iter(self.read(names)) if records else iter(()), needed))

            yield View(engine, self.schema.names, table)


def stream(data: Any) -> Batches:
    """The records of an object that hands out a stream of Arrow, or is one: they are read only once."""
    import pyarrow as pa

    try:
        reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
    except Exception as error:
        raise DataError(
            f"data: {type(data).__name__} cannot be read as a stream of records ({type(error).__name__}); give a table"
        ) from None
    if reader in _READ:
        raise DataError(f"data: {_ONCE}")

    def batches(names: Sequence[str]) -> Iterator[Any]:
        if reader in _READ:
            raise FaultError(f"data: {_ONCE}")
        _READ.add(reader)
        return (batch.select(names) for batch in reader)

    return Batches(reader.schema, batches)


def dataset(data: Any) -> Batches:
    """The records of a pyarrow.dataset."""
    return Batches(data.schema, lambda names: data.scanner(columns=list(names)).to_reader())


def relation(data: Any) -> Batches:
    """The records of a relation of DuckDB, which its own connection computes."""

    def read(names: Sequence[str]) -> Any:
        return _reader(data.project(", ".join(map(_quoted, names))))

    return Batches(_reader(data.limit(0)).schema, read)


def _reader(data: Any) -> Any:
    return (data.to_arrow_reader if hasattr(data, "to_arrow_reader") else data.fetch_arrow_reader)(_BATCH_ROWS)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
