"""Exact counts of records, for several sets of attributes in one pass."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from threading import Lock
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.data.people import people
from hdmm.data.source import Chunk, Records, Source
from hdmm.errors import FaultError, HdmmError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

CAP = 2**40
"""Where a count stops: public, so that exact arithmetic downstream never depends on the number of records."""

_THREADS = 8  # each holds a few chunks in memory, and more would wait for one another


def count(
    source: Source,
    schema: Schema,
    tables: Sequence[tuple[str, ...]],
    *,
    unit: Unit | None = None,
    cap: int = CAP,
    on_progress: Callable[[float], None] | None = None,
) -> list[NDArray[np.int64]]:
    """Count the records in every cell of every table; a table is a tuple of attributes.

    The counts of a table are in row-major order of its attributes as given; the empty table has one cell for all
    records. A record with a value outside the domain of any attribute of the schema is counted in no table, so that all
    tables count the same records. Where the unit names the column that tells people apart, each counts with as many
    records as it allows (:mod:`hdmm.data.people`).
    """
    tallies = [_Tally(table, schema) for table in tables]
    id = None if unit is None else unit.id
    source.columns_check(schema, schema.names, id)

    def tally(records: Records) -> None:
        for one in tallies:
            one.add(records)

    try:
        if unit is None or id is None:
            _each(source, schema, None, tally, on_progress)
        else:
            with people(schema.names, unit.rows) as waiting:
                _each(source, schema, id, waiting.add, on_progress)
                for kept in waiting.kept():
                    tally(kept)
    except HdmmError:
        raise
    except Exception as error:  # its message might tell something about the records: only its kind goes on
        raise FaultError(f"the records could not be counted ({type(error).__name__}); nothing was published") from None
    return [np.minimum(one.counts, cap) for one in tallies]


def _each(
    source: Source,
    schema: Schema,
    id: str | None,
    use: Callable[[Records], None],
    on_progress: Callable[[float], None] | None,
) -> None:
    """Hand over all records that are inside the schema's domains, in several threads."""

    def run(chunk: Chunk) -> float:
        use(chunk.decode().inside())
        return chunk.fraction

    def report(done: Future[float]) -> None:
        fraction = done.result()
        if on_progress is not None:
            on_progress(fraction)

    threads = min(os.cpu_count() or 1, _THREADS)
    pending: deque[Future[float]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for chunk in source.chunks(schema, schema.names, id):
            pending.append(pool.submit(run, chunk))
            if len(pending) > 2 * threads:
                report(pending.popleft())
        while pending:
            report(pending.popleft())


@final
class _Tally:
    """The counts of one table so far; threads may add to it at the same time."""

    def __init__(self, names: tuple[str, ...], schema: Schema) -> None:
        self._names = names
        self._sizes = [schema[name].size for name in names]
        self.counts = np.zeros(prod(self._sizes), np.int64)
        self._lock = Lock()

    def add(self, records: Records) -> None:
        cells = self._cells(records)
        with self._lock:
            np.add.at(self.counts, cells, 1 if records.times is None else records.times)

    def _cells(self, records: Records) -> NDArray[np.int64]:
        """The cell of every record."""
        cells = np.zeros(records.count, np.int64)
        for name, size in zip(self._names, self._sizes, strict=True):
            cells *= size
            cells += records.codes[name]
        return cells
