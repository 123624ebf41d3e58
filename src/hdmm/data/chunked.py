"""Sources whose records hdmm reads itself: chunks of codes, counted here in several threads."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import final

from hdmm.data.findings import Findings
from hdmm.data.inspection import Inspection, RawChunk
from hdmm.data.source import Advance, CountRequest, Counts, Source, unheard
from hdmm.data.tally import Records, Tally
from hdmm.errors import NotSupportedError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

Use = Callable[[Records], None]
"""What is done with some records."""

_MAX_THREADS = 8
"""Each thread holds a few chunks in memory, and more would wait for one another."""


@final
@dataclass(frozen=True)
class Chunk:
    """A part of the records, to be decoded in any thread; ``fraction`` is the share of the source up to its end."""

    decode: Callable[[], Records]
    fraction: float


@final
@dataclass(frozen=True)
class RawRecords:
    """A part of the records as texts; ``fraction`` is the share of the source up to its end."""

    chunk: RawChunk
    fraction: float


class Chunked(Source):
    """A source whose records are read by hdmm itself."""

    @abstractmethod
    def chunks(self, schema: Schema, id: str | None = None) -> Iterator[Chunk]:
        """All records as codes; with ``id``, the name of a column, also the people they belong to."""

    def raw_chunks(self, schema: Schema, id: str | None = None) -> Iterator[RawRecords]:
        """All records as texts, for :meth:`inspect`. Default: refused."""
        raise NotSupportedError("data: this source cannot be looked at")

    @final
    def inspect(self, schema: Schema, unit: Unit, on_progress: Advance = unheard) -> Findings:
        inspection = Inspection(schema, unit)
        for raw in self.raw_chunks(schema, unit.id):
            inspection.add(raw.chunk)
            on_progress(raw.fraction)
        return inspection.findings()

    @final
    def count(self, request: CountRequest) -> Counts:
        schema, unit = request.schema, request.unit
        if unit.id is None:

            def read(tally: Use, most: int | None) -> None:
                if most is None:
                    _each(self.chunks(schema), tally, request.on_progress)
                else:
                    _first(self.chunks(schema), most, tally)

            return _within(request, read)

        from hdmm.data.people import waiting

        with waiting(schema.names, unit.rows) as people:
            _each(self.chunks(schema, unit.id), people.add, request.on_progress)

            def kept(tally: Use, most: int | None) -> None:
                for records in people.kept(most):
                    tally(records)

            return _within(request, kept)


def _within(request: CountRequest, read: Callable[[Use, int | None], None]) -> Counts:
    """The counts of all records; if there are more than the request allows, those of the first ones."""

    def counted(most: int | None) -> Counts:
        tallies = [Tally(table, request.schema) for table in request.tables]

        def tally(records: Records) -> None:
            for table_tally in tallies:
                table_tally.add(records)

        read(tally, most)
        return [table_tally.counts for table_tally in tallies]

    counts = counted(None)
    if request.most is not None and counts and int(counts[0].sum()) > request.most:  # every table counts all records
        counts = counted(request.most)
    return counts


def _first(chunks: Iterator[Chunk], most: int, use: Use) -> None:
    """Pass the first records that are inside the schema's domains to a function, in the order of the source."""
    for chunk in chunks:
        records = chunk.decode().inside().first(most)
        most -= records.count
        use(records)


def _each(chunks: Iterator[Chunk], use: Use, on_progress: Advance) -> None:
    """Pass all records that are inside the schema's domains to a function, in several threads."""

    def run(chunk: Chunk) -> float:
        use(chunk.decode().inside())
        return chunk.fraction

    threads = min(os.cpu_count() or 1, _MAX_THREADS)
    pending: deque[Future[float]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for chunk in chunks:
                pending.append(pool.submit(run, chunk))
                if len(pending) > 2 * threads:
                    on_progress(pending.popleft().result())
            while pending:
                on_progress(pending.popleft().result())
        except BaseException:  # do not wait for chunks that have not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
