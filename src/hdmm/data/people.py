"""Which of a person's records count, where a person may have more of them than the privacy unit allows.

Of anyone with more than k records inside the schema's domains, k are kept: those whose marks come first. The mark of a
record is a hash of the person's key, the record's codes and the number of the copy among equal records. So the choice
is as good as random, is the same in whatever order the records come and on every engine, and looks at that person's
records alone.

An identifier is replaced by its key as soon as it is read: the first 128 bits of the SHA-256 of its text after a salt.
The salt is drawn anew by every process and never leaves it, so that nobody can make two identifiers with one
key, and what engines write to disk cannot be traced back to identifiers. Among 10⁹ people two have the same key with a
probability of 10⁻²¹; both would then count as one person. A record without an identifier is nobody's, and is not
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
"""Characters of an identifier; a longer one is none."""

DIGITS = 32
"""Hexadecimal digits of a key."""

_drawing = Lock()


def identifier(text: bytes) -> str | None:
    """The identifier that a text is, or None where it is none: blank, too long, or not UTF-8."""
    try:
        found = text.strip(BLANKS).decode()
    except UnicodeDecodeError:
        return None
    return found if 1 <= len(found) <= LONGEST_ID and found != NO_VALUE else None


def salt() -> str:
    """What is hashed before an identifier: the same for all sources of a process, and kept nowhere else."""
    with _drawing:  # threads may ask for it first at the same time
        return _salt()


@cache
def _salt() -> str:
    return random_bytes(16).hex()


def person_key(identifier: str) -> str:
    """The key of an identifier, in hexadecimal digits."""
    return hashlib.sha256((salt() + identifier).encode()).hexdigest()[:DIGITS]


def key_of(engine: Engine, column: Any) -> Any:
    """The key in an engine, from a column of texts that are not too long: null where there is no identifier."""
    import ibis

    text = engine.trim(column)
    held = text.length().between(1, LONGEST_ID) & (text != NO_VALUE)
    return ibis.ifelse(held, engine.key(ibis.literal(salt()) + text), ibis.null(engine.key_type))


def chosen(engine: Engine, coded: Any, codes: Sequence[str], rows: int) -> Any:
    """The codes of the records that count, from a table of ``codes`` and ``key``, which tells people apart."""
    import ibis

    many = coded.group_by("key").agg(records=ibis._.count()).filter(ibis._.records > rows).select(many="key")
    few = coded.anti_join(many, coded.key == many.many).select(*codes)
    several = coded.semi_join(many, coded.key == many.many)
    alike = ["key", *codes]
    # Engines that want an order get one that says nothing: within a group of equal records.
    several = several.mutate(copy=ibis.row_number().over(group_by=alike, order_by="key").cast("int64") + 1)
    text = several.key.cast("string").replace("-", "")  # which some engines write into keys
    for name in (*codes, "copy"):
        text = text + "," + several[name].cast("string")
    marked = several.mutate(mark=engine.key(text))
    place = ibis.row_number().over(group_by="key", order_by=["mark", *codes, "copy"])
    kept = marked.mutate(place=place).filter(ibis._.place < rows).select(*codes)
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
        engine.backend.con.execute(f"CREATE TABLE records (key UUID, {columns})")

    def add(self, records: Records) -> None:
        """Take some records in."""
        import pyarrow as pa

        assert records.people is not None
        codes = [pa.array(records.codes[name].astype(np.int32)) for name in self._names]
        batch = pa.table([_keys(records.people), *codes], names=["key", *self._codes])
        connection = self._engine.backend.con
        with self._lock:
            connection.register("batch", batch)
            connection.execute("INSERT INTO records SELECT * FROM batch")
            connection.unregister("batch")

    def kept(self, most: int | None = None) -> Iterator[Records]:
        """The records that count: each combination of codes that there is, and how many times.

        With ``most`` only this many records, the first in the order of their codes.
        """
        kept = chosen(self._engine, self._engine.backend.table("records"), self._codes, self._rows)
        if most is not None:
            kept = kept.order_by(self._codes).limit(most)
        for codes, times in self._engine.groups(kept, {code: kept[code] for code in self._codes}):
            yield Records(len(times), dict(zip(self._names, codes.values(), strict=True)), times=times)


def _keys(people: Any) -> Any:
    """The keys of identifiers, each distinct one hashed once where it is known which are."""
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
