"""Sources that hand out their records in chunks, as codes, which are counted here in several threads."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import final

from hdmm.data.source import Advance, CountRequest, Counts, Source
from hdmm.data.tally import Records, Tally
from hdmm.schema import Schema

_THREADS = 8  # each holds a few chunks in memory, and more would wait for one another


@final
@dataclass(frozen=True)
class Chunk:
    """A part of the records, to be decoded in any thread; ``fraction`` is how much of the source ends with it."""

    decode: Callable[[], Records]
    fraction: float


class Chunked(Source):
    """A source whose records are read by hdmm itself."""

    @abstractmethod
    def chunks(self, schema: Schema, id: str | None = None) -> Iterator[Chunk]:
        """All records, as codes, and with ``id`` whose they are."""

    @final
    def count(self, request: CountRequest) -> Counts:
        schema, unit, most = request.schema, request.unit, request.most
        tallies = [Tally(table, schema) for table in request.tables]

        def tally(records: Records) -> None:
            for one in tallies:
                one.add(records)

        if unit.id is None:
            if most is None:
                _each(self.chunks(schema), tally, request.on_progress)
            else:
                for records in _first(self.chunks(schema), most):
                    tally(records)
        else:
            from hdmm.data.people import waiting

            with waiting(schema.names, unit.rows) as people:
                _each(self.chunks(schema, unit.id), people.add, request.on_progress)
                for kept in people.kept(most):
                    tally(kept)
        return [one.counts for one in tallies]


def _first(chunks: Iterator[Chunk], most: int) -> Iterator[Records]:
    """The first records that are inside the schema's domains, in the order of the source."""
    left = most
    for chunk in chunks:
        records = chunk.decode().inside()
        yield records.first(left)
        left -= min(left, records.count)


def _each(chunks: Iterator[Chunk], use: Callable[[Records], None], on_progress: Advance | None) -> None:
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
        try:
            for chunk in chunks:
                pending.append(pool.submit(run, chunk))
                if len(pending) > 2 * threads:
                    report(pending.popleft())
            while pending:
                report(pending.popleft())
        except BaseException:  # what has not begun is not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise
