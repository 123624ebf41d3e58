"""How fast records in Parquet are counted, beside hand-written DuckDB for the same tables in the same run.

Ten marginals of three attributes each, over eight attributes of 2 to 100 values. The hand-written queries group by raw
columns, one query a table. hdmm also checks that every value of every record is inside its domain; it encodes the
records once, into one integer each, and asks for tables together where they have few combinations. The counts must
agree. Both run twice, in turns, and the quicker run counts. The goal is at most 1.5 times the time, within 4 GB. With
--spark a local Spark counts the same tables, and must find the same counts.

    python benchmarks/pushdown.py [--records 100000000] [--spark]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from pathlib import Path
from time import perf_counter

import duckdb
import numpy as np
from numpy.typing import NDArray

import hdmm
from hdmm.data import count, open_source

STATES = [f"S{number:02}" for number in range(50)]
EDGES = [0, 1000, 2500, 5000, 7500, 10_000, 12_000, 14_000, 20_000]
SCHEMA = hdmm.Schema(
    sex=["F", "M"],
    age=range(100),
    state=STATES,
    race=range(7),
    hispanic=[False, True],
    education=range(20),
    occupation=range(10),
    income=hdmm.Bins(EDGES),
)
TABLES: list[tuple[str, ...]] = [
    ("sex", "age", "race"),
    ("sex", "age", "state"),
    ("race", "hispanic", "education"),
    ("education", "occupation", "income"),
    ("sex", "age", "education"),
    ("state", "race", "occupation"),
    ("age", "hispanic", "occupation"),
    ("sex", "state", "education"),
    ("sex", "race", "income"),
    ("age", "race", "education"),
]
RATIO, BYTES = 1.5, 4e9
RUNS = 2
"""The first finds files that are not yet cached, and memory that a virtual machine has to be given."""


def write(path: Path, records: int) -> None:
    """Write people with independent attributes, from the digits of a hash."""
    states = ", ".join(f"'{state}'" for state in STATES)
    query = f"""
        SELECT
            if(h % 2 = 0, 'F', 'M') AS sex,
            (h // 2 % 100)::SMALLINT AS age,
            [{states}][1 + (h // 200 % 50)::INTEGER] AS state,
            (h // 10_000 % 7)::TINYINT AS race,
            h // 70_000 % 2 = 0 AS hispanic,
            (h // 140_000 % 20)::INTEGER AS education,
            (h // 2_800_000 % 10)::INTEGER AS occupation,
            (h // 28_000_000 % 100_000) / 7.0 AS income
        FROM (SELECT hash(range) // 8 AS h FROM range({records}))
    """
    with duckdb.connect() as database:
        database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def count_by_hand(path: Path) -> list[NDArray[np.int64]]:
    bins = " ".join(f"WHEN income < {edge} THEN {place}" for place, edge in enumerate(EDGES[1:]))
    raw = {name: name for name in SCHEMA} | {"income": f"CASE {bins} END"}
    labels = {"sex": ["F", "M"], "state": STATES}
    counts = []
    with duckdb.connect() as database:
        for table in TABLES:
            columns = ", ".join(raw[name] for name in table)
            found = database.execute(f"SELECT {columns}, count(*) FROM '{path}' GROUP BY ALL").fetchall()
            cells = np.zeros([SCHEMA[name].size for name in table], np.int64)
            for *values, times in found:
                place = [labels[n].index(v) if n in labels else int(v) for n, v in zip(table, values, strict=True)]
                cells[tuple(place)] = times
            counts.append(cells.ravel())
    return counts


def count_by_spark(path: Path, expected: list[NDArray[np.int64]]) -> float:
    """The seconds in which hdmm counts the tables in a local Spark; the program ends where the counts are others."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", "3g")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": str(path.parent / "warehouse"),
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        source = open_source(session.read.parquet(str(path)))
        source.columns_check(SCHEMA)
        start = perf_counter()
        found = count(source, SCHEMA, TABLES)
        seconds = perf_counter() - start
    finally:
        session.stop()
    if not agree(found, expected):
        raise SystemExit("Spark's counts differ")
    return seconds


def agree(ours: list[NDArray[np.int64]], theirs: list[NDArray[np.int64]]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--spark", action="store_true", help="also count in a local Spark (needs Java and pyspark)")
    given = parser.parse_args()
    records = given.records
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write(path, records)
        print(f"{records:,} records, {path.stat().st_size / 1e6:,.0f} MB of Parquet; ten tables of three attributes\n")
        source = open_source(path)
        source.columns_check(SCHEMA)  # imports, which are not counting
        before, peak = memory(), 0
        seconds = by_hand = np.inf
        for _ in range(RUNS):
            start = perf_counter()
            source.columns_check(SCHEMA)
            ours = count(source, SCHEMA, TABLES)
            seconds = min(seconds, perf_counter() - start)
            peak = peak or memory()  # later it is also that of what was written by hand
            start = perf_counter()
            theirs = count_by_hand(path)
            by_hand = min(by_hand, perf_counter() - start)
        if not agree(ours, theirs) or ours[0].sum() != records:
            raise SystemExit("the counts differ")
        by_spark = count_by_spark(path, ours) if given.spark else None
    print(f"by hand  {by_hand:7.1f} s")
    print(f"hdmm     {seconds:7.1f} s  {seconds / by_hand:.2f} times as long (goal {RATIO})")
    if by_spark is not None:
        print(f"Spark    {by_spark:7.1f} s, the same counts")
    print(f"memory   {peak / 1e9:7.2f} GB (goal {BYTES / 1e9:.0f}), of which {before / 1e9:.2f} GB before counting")
    if seconds > RATIO * by_hand or peak > BYTES:
        raise SystemExit("a goal is not reached")


def memory() -> int:
    """The most bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
