"""How fast records are counted from a CSV file, beside DuckDB's own CSV reader on the same file in the same run.

The file is clean and DuckDB is given its column types. DuckDB's reader may take a quote across lines and guess where a
record ends; hdmm reads every line by itself, as text. Both count the table sex, age, race with a thread for each
processor; the best of three runs is shown, and the counts must agree.

    python benchmarks/csv_counting.py [--rows 10000000]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from hdmm.data import CsvFile, count
from hdmm.schema import Schema

RACES = ["White", "Black or African American", "Asian", "American Indian", "Pacific Islander", "Other", "Two or more"]
STATES = ["AK", "AL", "AZ", "CA", "CO", "FL", "GA", "IL", "MA", "MI", "NC", "NJ", "NY", "OH", "PA", "TX", "VA", "WA"]
SCHEMA = Schema(sex=["F", "M"], age=range(115), race=RACES)
TYPES = {
    "sex": "VARCHAR",
    "age": "INTEGER",
    "hispanic": "BOOLEAN",
    "race": "VARCHAR",
    "state": "VARCHAR",
    "income": "INTEGER",
}


def write(path: Path, rows: int) -> None:
    """Write people with independent attributes, a million lines at a time."""
    random = np.random.default_rng(0)
    columns = [["F", "M"], range(115), ["false", "true"], RACES, STATES, range(1_000_000)]
    weights = [None, None, [0.8, 0.2], [0.6, 0.13, 0.06, 0.01, 0.01, 0.09, 0.1], None, None]
    ends = [",", ",", ",", ",", ",", "\n"]
    texts = [np.array([f"{value}{end}" for value in column], "S") for column, end in zip(columns, ends, strict=True)]
    with path.open("wb") as file:
        file.write(",".join(TYPES).encode() + b"\n")
        for start in range(0, rows, 1_000_000):
            size = min(rows - start, 1_000_000)
            drawn = [text[random.choice(len(text), size, p=p)] for text, p in zip(texts, weights, strict=True)]
            grid = np.concatenate([text.view(np.uint8).reshape(size, -1) for text in drawn], axis=1)
            file.write(grid[grid != 0].tobytes())


def count_with_hdmm(path: Path) -> NDArray[np.int64]:
    return count(CsvFile(path), SCHEMA, [("sex", "age", "race")])[0]


def count_with_duckdb(path: Path) -> NDArray[np.int64]:
    counts = np.zeros([SCHEMA[name].size for name in ("sex", "age", "race")], np.int64)
    with duckdb.connect(config={"threads": os.cpu_count() or 1}) as database:
        query = "SELECT sex, age, race, count(*) FROM read_csv(?, header = true, delim = ',', columns = ?) GROUP BY ALL"
        for sex, age, race, records in database.execute(query, [str(path), TYPES]).fetchall():
            counts["FM".index(sex), age, RACES.index(race)] = records
    return counts.ravel()


def timed(run: Callable[[Path], NDArray[np.int64]], path: Path) -> tuple[float, NDArray[np.int64]]:
    start = time.perf_counter()
    counts = run(path)
    return time.perf_counter() - start, counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    readers = {"hdmm": count_with_hdmm, "duckdb": count_with_duckdb}
    seconds = dict.fromkeys(readers, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        write(path, rows)
        print(f"{rows:,} records, {path.stat().st_size / 1e6:,.0f} MB; sex, age, race; best of three\n")
        for _ in range(3):
            results = {name: timed(run, path) for name, run in readers.items()}
            seconds = {name: min(seconds[name], taken) for name, (taken, _) in results.items()}
            if not np.array_equal(results["hdmm"][1], results["duckdb"][1]) or results["hdmm"][1].sum() != rows:
                raise SystemExit("the counts differ")
    print(f"{'reader':8}{'seconds':>9}{'million rows/s':>16}{'relative to duckdb':>20}")
    for name, taken in seconds.items():
        print(f"{name:8}{taken:9.2f}{rows / taken / 1e6:16.2f}{seconds['duckdb'] / taken:20.2f}")


if __name__ == "__main__":
    main()
