"""Which of a person's records count, where a person may have more of them than the privacy unit allows.

Of anyone with more than k records inside the schema's domains, k are kept: those whose keys come first. The key of a
record is the MD5 of the person's identifier, the record's codes and the number of the copy among equal records, so that
the choice is as good as random, is the same in whatever order the records come and on every engine, and looks at that
person's records alone. Collisions do no harm: they, too, concern one person. People are told apart by the exact text of
the identifier; a record without one is nobody's, and is not counted.

Records that hdmm reads itself wait in DuckDB, in memory and beyond that in a private temporary directory, which is
removed afterwards; those in a database are chosen there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hdmm.data.tally import Records
from hdmm.schema.text import BLANKS

if TYPE_CHECKING:
    from hdmm.data.engine import Engine

LONGEST_ID = 1000
"""Characters of an identifier; beyond that it is none, so that what a record takes in memory is bounded."""


def identifier(text: bytes) -> str | None:
    """The identifier that a text is, or None where it is none: blank, too long, or not UTF-8."""
    try:
        found = text.strip(BLANKS).decode()
    except UnicodeDecodeError:
        return None
    return found if 1 <= len(found) <= LONGEST_ID else None


def chosen(engine: Engine, coded: Any, codes: Sequence[str], rows: int) -> Any:
    """The codes of the records that count, from a table of ``codes``, ``person`` (a text) and ``key`` (its bytes).

    People are told apart by ``key``: what an engine takes for equal texts may depend on its collation.
    """
    import ibis

    many = coded.group_by("key").agg(records=ibis._.count()).filter(ibis._.records > rows).select(many="key")
    few = coded.anti_join(many, coded.key == many.many).select(*codes)
    several = coded.semi_join(many, coded.key == many.many)
    alike = ["key", *codes]
    # Engines that want an order get one that says nothing: within a group of equal records.
    several = several.mutate(copy=ibis.row_number().over(group_by=alike, order_by="key").cast("int64") + 1)
    text = several.person
    for name in (*codes, "copy"):
        text = text + "," + several[name].cast("string")
    keyed = several.mutate(mark=engine.md5(text))
    place = ibis.row_number().over(group_by="key", order_by=["mark", *codes, "copy"])
    kept = keyed.mutate(place=place).filter(ibis._.place < rows).select(*codes)
    return few.union(kept)


@final
class Waiting:
    """The records so far; threads may add to them at the same time."""

    def __init__(self, engine: Engine, names: Sequence[str], rows: int) -> None:
        self._engine = engine
        self._names = tuple(names)
        self._codes = [f"c{at}" for at in range(len(self._names))]
        self._rows = rows
        self._lock = Lock()
        columns = ", ".join(f"{code} INTEGER" for code in self._codes)
        engine.backend.con.execute(f"CREATE TABLE records (person VARCHAR, {columns})")

    def add(self, records: Records) -> None:
        """Take some records in."""
        import pyarrow as pa

        assert records.people is not None
        codes = [pa.array(records.codes[name].astype(np.int32)) for name in self._names]
        batch = pa.table([records.people, *codes], names=["person", *self._codes])
        connection = self._engine.backend.con
        with self._lock:
            connection.register("batch", batch)
            connection.execute("INSERT INTO records SELECT * FROM batch")
            connection.unregister("batch")

    def kept(self) -> Iterator[Records]:
        """The records that count: each combination of codes that there is, and how many times."""
        records = self._engine.backend.table("records")
        records = records.mutate(key=self._engine.bytes_of(records.person))
        kept = chosen(self._engine, records, self._codes, self._rows)
        for codes, times in self._engine.groups(kept, {code: kept[code] for code in self._codes}):
            yield Records(len(times), dict(zip(self._names, codes.values(), strict=True)), times=times)


@contextmanager
def waiting(names: Sequence[str], rows: int) -> Iterator[Waiting]:
    """A place for the records while it is decided which of them count."""
    from hdmm.data.engine import in_process

    with in_process() as engine:
        yield Waiting(engine, names, rows)
