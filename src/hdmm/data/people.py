"""Which of a person's records count, where a person may have more of them than the privacy unit allows.

Of anyone with more than k records inside the schema's domains, k are kept: those whose keys come first. The key of a
record is the MD5 of the person's identifier, the record's codes and the number of the copy among equal records, so that
the choice is as good as random, is the same in whatever order the records come, and looks at that person's records
alone. Collisions do no harm: they, too, concern one person. People are told apart by the exact text of the identifier;
a record without one is nobody's, and is not counted.

The records wait in DuckDB, in memory and beyond that in a private temporary directory, which is removed afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, final

import numpy as np

from hdmm.data.source import Records

_MEMORY = "2GiB"
_BATCH = 1 << 18


@final
class People:
    """The records so far; threads may add to them at the same time."""

    def __init__(self, connection: Any, names: Sequence[str], rows: int) -> None:
        self._connection = connection
        self._names = tuple(names)
        self._rows = rows
        self._lock = Lock()
        self._columns = ", ".join(f"c{at}" for at in range(len(self._names)))
        columns = ", ".join(f"c{at} INTEGER" for at in range(len(self._names)))
        connection.execute(f"CREATE TABLE records (person VARCHAR, {columns})")

    def add(self, records: Records) -> None:
        """Take some records in."""
        import pyarrow as pa

        assert records.people is not None
        codes = [pa.array(records.codes[name].astype(np.int32)) for name in self._names]
        batch = pa.table([records.people, *codes], names=["person", *(f"c{at}" for at in range(len(codes)))])
        with self._lock:
            self._connection.register("batch", batch)
            self._connection.execute("INSERT INTO records SELECT * FROM batch")
            self._connection.unregister("batch")

    def kept(self) -> Iterator[Records]:
        """The records that count: each combination of codes that there is, and how many times."""
        reader = self._connection.execute(_kept(self._columns, self._rows)).to_arrow_reader(_BATCH)
        for batch in reader:
            *codes, times = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
            yield Records(batch.num_rows, dict(zip(self._names, codes, strict=True)), times=times)


def _kept(columns: str, rows: int) -> str:
    """The query for what is kept: whole people where they have few records, else the first of them by their keys."""
    key = f"md5(concat_ws(',', person, {columns}, copy))"
    return f"""
        WITH many AS (SELECT person FROM records GROUP BY person HAVING count(*) > {rows}),
        copies AS (
            SELECT *, row_number() OVER (PARTITION BY person, {columns}) AS copy
            FROM records WHERE person IN (SELECT person FROM many)
        ),
        chosen AS (
            SELECT {columns} FROM copies
            QUALIFY row_number() OVER (PARTITION BY person ORDER BY {key}, {columns}, copy) <= {rows}
        ),
        kept AS (
            SELECT {columns} FROM records WHERE person NOT IN (SELECT person FROM many)
            UNION ALL SELECT {columns} FROM chosen
        )
        SELECT {columns}, count(*) AS times FROM kept GROUP BY ALL
    """


@contextmanager
def people(names: Sequence[str], rows: int) -> Iterator[People]:
    """A place for the records while it is decided which of them count."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="hdmm-") as directory, duckdb.connect(":memory:") as connection:
        connection.execute("SET temp_directory = ?", [directory])
        connection.execute("SET memory_limit = ?", [_MEMORY])
        yield People(connection, names, rows)
