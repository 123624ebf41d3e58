"""Which of a person's records count, if the person has more of them than the privacy unit allows.

Of a person with more than k records inside the schema's domains, k are kept: those whose marks come first. The mark of
a record is a hash of the person's key, the record's codes and the number of the copy among equal records. So the choice
is as good as random, is the same in whatever order the records come and on every engine, and depends on that person's
records alone.

An identifier is replaced by its key as soon as it is read: the first 128 bits of the SHA-256 of its text after a salt.
The salt is drawn anew by every process and never leaves it, so that nobody can construct two identifiers with the same
key, and what engines write to disk cannot be traced back to identifiers. Among 10⁹ people two have the same key with a
probability of 10⁻²¹; both would then count as one person. A record without an identifier belongs to nobody, and is not
counted.

Records that hdmm reads itself wait in DuckDB, in memory and beyond that in a private temporary directory, which is
removed afterwards; those in a database are chosen there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hdmm.data.tally import Records
from hdmm.privacy.sampling.stream import random_bytes
from hdmm.schema.text import BLANKS, NO_VALUE

if TYPE_CHECKING:
    from hdmm.data.engine import Engine

LONGEST_ID = 1000
"""Most characters of an identifier; a longer text is none."""

DIGITS = 32
"""Hexadecimal digits of a key."""

EVERYBODY = "c0"
"""The column of codes if there are no attributes: all records are in the one cell 0."""

_drawing = Lock()


def identifier(text: bytes) -> str | None:
    """A text as an identifier; None if it is blank, too long, or not UTF-8."""
    try:
        name = text.strip(BLANKS).decode()
    except UnicodeDecodeError:
        return None
    return name if 1 <= len(name) <= LONGEST_ID and name != NO_VALUE else None


def salt() -> str:
    """The text that is hashed before an identifier: the same for all sources of a process, and kept nowhere else."""
    with _drawing:  # several threads may be the first to ask for it
        return _salt()


@cache
def _salt() -> str:
    return random_bytes(16).hex()


def person_key(identifier: str) -> str:
    """The key of an identifier, in hexadecimal digits."""
    return hashlib.sha256((salt() + identifier).encode()).hexdigest()[:DIGITS]


def key_of(engine: Engine, column: Any) -> Any:
    """The key in an engine, from a column of texts that are not too long: null if there is no identifier."""
    import ibis

    text = engine.trim(column)
    held = text.length().between(1, LONGEST_ID) & (text != NO_VALUE)
    return ibis.ifelse(held, engine.key(ibis.literal(salt()) + text), ibis.null(engine.key_type))


def chosen(engine: Engine, coded: Any, codes: Sequence[str], rows: int) -> Any:
    """The codes of the records that count, from a table of ``codes`` and ``key``, which identifies people."""
    import ibis

    crowded = coded.group_by("key").agg(records=ibis._.count()).filter(ibis._.records > rows).select(crowded="key")
    within = coded.anti_join(crowded, coded.key == crowded.crowded).select(*codes)
    beyond = coded.semi_join(crowded, coded.key == crowded.crowded)
    # Engines that demand an order get one without effect: that of equal records by their common key.
    copy = ibis.row_number().over(group_by=["key", *codes], order_by="key").cast("int64") + 1
    beyond = beyond.mutate(copy=copy)
    text = beyond.key.cast("string").replace("-", "")  # some engines write hyphens into keys
    for name in (*codes, "copy"):
        text = text + "," + beyond[name].cast("string")
    marked = beyond.mutate(mark=engine.key(text))
    place = ibis.row_number().over(group_by="key", order_by=["mark", *codes, "copy"])
    return within.union(marked.mutate(place=place).filter(ibis._.place < rows).select(*codes))


@final
class Waiting:
    """Records that wait until all have been read; threads may add to them at the same time."""

    def __init__(self, engine: Engine, names: Sequence[str], rows: int) -> None:
        self._engine = engine
        self._names = tuple(names)
        self._codes = [f"c{at}" for at in range(len(self._names))] or [EVERYBODY]
        self._rows = rows
        self._lock = Lock()
        columns = ", ".join(f"{code} INTEGER" for code in self._codes)
        engine.backend.con.execute(f"CREATE TABLE records (key UUID, {columns})")

    def add(self, records: Records) -> None:
        """Add some records."""
        import pyarrow as pa

        assert records.people is not None
        codes = [pa.array(records.codes[name].astype(np.int32)) for name in self._names]
        codes = codes or [pa.array(np.zeros(records.count, np.int32))]
        batch = pa.table([_keys(records.people), *codes], names=["key", *self._codes])
        connection = self._engine.backend.con
        with self._lock:
            connection.register("batch", batch)
            connection.execute("INSERT INTO records SELECT * FROM batch")
            connection.unregister("batch")

    def kept(self, most: int | None = None) -> Iterator[Records]:
        """The records that count: the combinations of codes, and how often each occurs.

        With ``most`` only this many records count, the first in the order of their codes.
        """
        kept = chosen(self._engine, self._engine.backend.table("records"), self._codes, self._rows)
        if most is not None:
            kept = kept.order_by(self._codes).limit(most)
        for codes, times in self._engine.groups(kept, {code: kept[code] for code in self._codes}):
            yield Records(len(times), dict(zip(self._names, codes.values(), strict=False)), times=times)


def _keys(people: Any) -> Any:
    """The keys of identifiers; in a dictionary, each distinct identifier is hashed once."""
    import pyarrow as pa

    if pa.types.is_dictionary(people.type):
        return _keys(people.dictionary).take(people.indices)
    return pa.array([person_key(text) for text in people.to_pylist()], pa.string())


@contextmanager
def waiting(names: Sequence[str], rows: int) -> Iterator[Waiting]:
    """A place for the records while it is decided which of them count."""
    from hdmm.data.engine import in_process

    with in_process() as engine:
        yield Waiting(engine, names, rows)
