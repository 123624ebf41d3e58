"""Dates and times count the same wherever they are, as texts and in typed columns; odd ones affect only themselves."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdmm.data import DatabaseTable, count, open_source
from hdmm.errors import DataError
from hdmm.schema import Dates, Listed, Schema, Times
from hdmm.schema.dates import DatePeriod
from tests.data.conftest import ENGINES, Hold

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the engines' own packages
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
every_engine = pytest.mark.parametrize("engine", ENGINES)
BY: tuple[DatePeriod, ...] = ("day", "week", "month", "quarter", "year")
FIRST, LAST = date(2019, 12, 18), date(2021, 1, 12)
DAYS = [
    *(FIRST + timedelta(days) for days in range(-20, (LAST - FIRST).days + 21)),
    *(date(1, 1, 1), date(1, 12, 31), date(9999, 12, 31), date(1900, 2, 28), date(2000, 2, 29)),
]
STAMPS = [
    *(datetime.combine(day, time(at % 24, (at * 7) % 60, at % 60)) for at, day in enumerate(DAYS)),
    datetime(2020, 2, 29, 23, 59, 59, 999999),
    datetime(2020, 3, 1),
    None,
]


def label(day: date, by: str) -> str:
    """The period of a day."""
    year, week, _ = day.isocalendar()
    return {
        "day": day.isoformat(),
        "week": f"{year:04}-W{week:02}",
        "month": day.isoformat()[:7],
        "quarter": f"{day.isoformat()[:4]}-Q{(day.month + 2) // 3}",
        "year": day.isoformat()[:4],
    }[by]


def dates_schema(**cells: Any) -> Schema:
    """The same column is read once for each size of the cells."""
    return Schema({by: Dates(FIRST, LAST, by=by, **cells) for by in BY})


def counted(data: Any, schema: Schema) -> dict[str, dict[str, int]]:
    """How often each label of each attribute counts, without zeros."""
    tables = count(open_source(data), schema, [(name,) for name in schema])
    return {
        name: {str(label): times for label, times in zip(schema[name].labels(), table.tolist(), strict=True) if times}
        for name, table in zip(schema, tables, strict=True)
    }


def expected(days: Sequence[date | None]) -> dict[str, dict[str, int]]:
    """The counts of days, with cells for other and missing values."""
    return {
        by: dict(Counter("missing" if d is None else label(d, by) if FIRST <= d <= LAST else "other" for d in days))
        for by in BY
    }


def columns(values: Sequence[Any], type: Any) -> pa.Table:
    return pa.table({by: pa.array(values, type) for by in BY})


@every_engine
def test_a_column_of_dates_counts_by_value(engine: str, hold: Hold) -> None:
    table = columns([*DAYS, None], pa.date32())
    assert counted(hold(table), dates_schema(other=True, missing=True)) == expected([*DAYS, None])


@every_engine
def test_a_column_of_time_stamps_counts_by_its_dates(engine: str, hold: Hold) -> None:
    table = columns(STAMPS, pa.timestamp("us"))
    days = [stamp and stamp.date() for stamp in STAMPS]
    assert counted(hold(table), dates_schema(other=True, missing=True)) == expected(days)


@every_engine
def test_texts_of_dates_count_by_value(engine: str, hold: Hold) -> None:
    table = columns([*map(str, DAYS), None], pa.string())
    assert counted(hold(table), dates_schema(other=True, missing=True)) == expected([*DAYS, None])


@every_engine
def test_without_cells_for_them_other_dates_are_dropped(engine: str, hold: Hold) -> None:
    inside = expected([day for day in DAYS if FIRST <= day <= LAST])
    assert counted(hold(columns([*DAYS, None], pa.date32())), dates_schema()) == inside


@every_engine
def test_an_instant_counts_by_its_date_in_utc(engine: str, hold: Hold) -> None:
    if engine == "spark":
        pytest.skip("no type of Spark names a zone")
    stamps = [stamp and stamp.replace(tzinfo=UTC) for stamp in STAMPS]
    days = [stamp and stamp.date() for stamp in STAMPS]
    data = hold(columns(stamps, pa.timestamp("us", "UTC")))
    assert counted(data, dates_schema(other=True, missing=True)) == expected(days)


MINUTES = [
    *(
        time(hour, minute, second, micro)
        for hour in range(24)
        for minute, second, micro in ((0, 0, 0), (29, 59, 999999))
    ),
    *(time(7, 29, 59), time(7, 30), time(22, 14), time(22, 15), None),
]
CLOCK = {
    "hour": lambda t: (
        "07:30–07:59" if t.hour == 7 else "22:00–22:14" if t.hour == 22 else f"{t.hour:02}:00–{t.hour:02}:59"
    ),
    "minute": lambda t: f"{t.hour:02}:{t.minute:02}",
}


def times_schema(**cells: Any) -> Schema:
    return Schema({by: Times("07:30", "22:15", by=by, **cells) for by in ("hour", "minute")})


def expected_times(times: Sequence[time | None]) -> dict[str, dict[str, int]]:
    def cell(by: str, t: time | None) -> str:
        return "missing" if t is None else CLOCK[by](t) if time(7, 30) <= t < time(22, 15) else "other"

    return {by: dict(Counter(cell(by, t) for t in times)) for by in ("hour", "minute")}


@every_engine
def test_a_column_of_times_counts_by_value(engine: str, hold: Hold) -> None:
    if engine == "spark":
        pytest.skip("Spark has no times")
    table = pa.table({by: pa.array(MINUTES, pa.time64("us")) for by in CLOCK})
    assert counted(hold(table), times_schema(other=True, missing=True)) == expected_times(MINUTES)


@every_engine
def test_a_column_of_time_stamps_counts_by_its_times_of_day(engine: str, hold: Hold) -> None:
    table = pa.table({by: pa.array(STAMPS, pa.timestamp("us")) for by in CLOCK})
    times = [None if stamp is None else stamp.time() for stamp in STAMPS]
    assert counted(hold(table), times_schema(other=True, missing=True)) == expected_times(times)


@every_engine
def test_integers_count_by_their_digits_in_a_format_of_digits(engine: str, hold: Hold) -> None:
    numbers = [20200229, 20200230, 2020022, -20200229, 0, 2**62, None, 20191218, 20191217]
    schema = Schema(when=Dates(FIRST, LAST, by="month", format="%Y%m%d", other=True, missing=True))
    data = hold(pa.table({"when": pa.array(numbers, pa.int64())}))
    assert counted(data, schema) == {"when": {"2019-12": 1, "2020-02": 1, "other": 6, "missing": 1}}


@pytest.mark.parametrize("engine", ["parquet", "arrow", "polars", "duckdb", "postgres"])
@pytest.mark.parametrize(
    ("type", "value", "domain"),
    [
        (pa.int64(), 20200101, Dates("2020", "2021")),
        (pa.float64(), 2020.0, Dates("2020", "2021", by="year")),
        (pa.time64("us"), time(8), Dates("2020", "2021")),
        (pa.date32(), date(2020, 1, 1), Times("00:00", "24:00")),
        (pa.bool_(), True, Times("00:00", "24:00")),
    ],
    ids=str,
)
def test_a_type_that_is_no_date_or_time_is_refused(
    engine: str, type: pa.DataType, value: Any, domain: Any, hold: Hold
) -> None:
    data = hold(pa.table({"x": pa.array([value], type)}))
    with pytest.raises(
        DataError, match=r"column 'x' holds .*, which cannot be read exactly as .* cast it to a (date|time)"
    ):
        open_source(data).columns_check(Schema(x=domain))


HUGE = (2**63 - 1, -(2**63) + 1, 2**62, -(2**62))
"""Numbers of seconds, milliseconds or microseconds that are beyond all years."""
UNITS = {"s": (1, HUGE), "ms": (10**3, HUGE), "us": (10**6, HUGE), "ns": (10**9, HUGE[:1])}
HELD = [
    (engine, unit, zone)
    for engine in ("arrow", "pandas", "polars", "parquet", "duckdb")
    for unit in UNITS
    for zone in (None, "UTC")
    if (engine, unit) != ("parquet", "s")
    and (engine, unit, zone) not in (("duckdb", "s", "UTC"), ("duckdb", "ms", "UTC"))
]


@pytest.mark.parametrize(("engine", "unit", "zone"), HELD)
def test_a_time_stamp_beyond_all_years_counts_as_another_value(
    engine: str, unit: str, zone: str | None, tmp_path: Path
) -> None:
    factor, huge = UNITS[unit]
    good = int(datetime(2020, 2, 29, 8, 30, tzinfo=UTC).timestamp()) * factor
    column = pa.array([good, *huge, None], pa.int64()).view(pa.timestamp(unit, zone))
    data = stored(pa.table({"day": column, "month": column, "minute": column}), engine, tmp_path)
    cells: dict[str, Any] = {"other": True, "missing": True}
    schema = Schema(
        day=Dates(FIRST, LAST, **cells),
        month=Dates(FIRST, LAST, by="month", **cells),
        minute=Times("08:00", "09:00", by="minute", **cells),
    )
    rest = {"other": len(huge), "missing": 1}
    assert counted(data, schema) == {
        "day": {"2020-02-29": 1, **rest},
        "month": {"2020-02": 1, **rest},
        "minute": {"08:30": 1, **rest},
    }


@pytest.mark.parametrize("engine", ["arrow", "pandas"])
def test_a_date_in_milliseconds_beyond_all_years_counts_as_another_value(engine: str, tmp_path: Path) -> None:
    wrapped = (18321 + 2**32) * 86_400_000  # in 32 bits this would be a day of the domain
    column = pa.array([18321 * 86_400_000, *HUGE, wrapped, None], pa.int64()).view(pa.date64())
    data = stored(pa.table({"day": column}), engine, tmp_path)
    schema = Schema(day=Dates(FIRST, LAST, other=True, missing=True))
    assert counted(data, schema) == {"day": {"2020-02-29": 1, "other": 5, "missing": 1}}


def stored(table: pa.Table, engine: str, folder: Path) -> Any:
    """A table of odd values, stored without a look at them."""
    if engine == "parquet":
        pq.write_table(table, folder / "a.parquet", version="2.6")
        return str(folder / "a.parquet")
    if engine == "pandas":
        import pandas as pd

        return pd.DataFrame(
            {name: pd.Series(pd.arrays.ArrowExtensionArray(table[name])) for name in table.column_names}
        )
    if engine == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if engine == "duckdb":
        with duckdb.connect(str(folder / "a.duckdb")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
        return DatabaseTable(folder / "a.duckdb", "people")
    return table


@pytest.mark.parametrize("type", ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"])
def test_infinite_dates_of_duckdb_count_as_other_values(type: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        values = ", ".join(f"(CAST('{text}' AS {type}))" for text in ("2020-02-29", "infinity", "-infinity"))
        connection.execute(
            f"CREATE TABLE people AS SELECT c AS day, c AS week, c AS month FROM (VALUES {values}, (NULL)) t(c)"
        )
    schema = Schema({by: Dates(FIRST, LAST, by=by, other=True, missing=True) for by in BY[:3]})
    labels = {by: label(date(2020, 2, 29), by) for by in schema}
    expect = {by: {labels[by]: 1, "other": 2, "missing": 1} for by in schema}
    assert counted(DatabaseTable(tmp_path / "a.duckdb", "people"), schema) == expect


def test_odd_dates_of_duckdb_count_as_other_values(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT c AS day FROM (VALUES (DATE '2020-02-29'), (DATE '5881580-07-10'), "
            "(DATE '0044-03-15 (BC)'), (DATE '5877642-06-25 (BC)')) t(c)"
        )
    schema = Schema(day=Dates(FIRST, LAST, other=True))
    assert counted(DatabaseTable(tmp_path / "a.duckdb", "people"), schema) == {"day": {"2020-02-29": 1, "other": 3}}


@pytest.mark.parametrize("type", ["TIME", "TIMETZ", "TIME_NS"])
def test_the_end_of_the_day_in_duckdb_is_in_no_hour(type: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT c AS at FROM (VALUES (CAST('23:59:59' AS {type})), "
            f"(CAST('24:00:00' AS {type})), (NULL)) t(c)"
        )
    schema = Schema(at=Times("00:00", "24:00", other=True, missing=True))
    data = DatabaseTable(tmp_path / "a.duckdb", "people")
    assert counted(data, schema) == {"at": {"23:00–23:59": 1, "other": 1, "missing": 1}}


def postgres_table(address: str, type: str, texts: Sequence[str]) -> DatabaseTable:
    import psycopg

    name = f"odd_{abs(hash((type, tuple(texts))))}"
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name}".encode())
        cursor.execute(f"CREATE TABLE {name} (x {type}, y {type})".encode())
        for text in texts:
            cursor.execute(f"INSERT INTO {name} VALUES ('{text}', '{text}')".encode())
        cursor.execute(f"INSERT INTO {name} VALUES (NULL, NULL)".encode())
    return DatabaseTable(address, name)


ODD = {
    "date": ["infinity", "-infinity", "5874897-12-31", "0044-03-15 BC", "10000-01-01"],
    "timestamp": ["infinity", "-infinity", "294276-12-31 23:59:59", "4713-01-01 BC", "10000-01-01"],
    "timestamptz": ["infinity", "-infinity", "294276-12-31 23:59:59+00", "4713-01-01 BC", "10000-01-01 00:00+00"],
}


@pytest.mark.parametrize("type", ODD)
@pytest.mark.parametrize("by", BY)
def test_odd_dates_of_postgres_count_as_other_values(postgres: str, type: str, by: DatePeriod) -> None:
    data = postgres_table(postgres, type, ["2020-02-29", *ODD[type]])
    schema = Schema(x=Dates("0001-01-01", "9999-12-31", by=by, other=True, missing=True))
    assert counted(data, schema) == {"x": {label(date(2020, 2, 29), by): 1, "other": len(ODD[type]), "missing": 1}}


@pytest.mark.parametrize("type", ["timestamp", "timestamptz"])
def test_times_of_odd_dates_of_postgres_count_as_other_values(postgres: str, type: str) -> None:
    data = postgres_table(postgres, type, ["2020-02-29 08:30+00", *ODD[type]])
    schema = Schema(x=Times("00:00", "24:00", by="minute", other=True, missing=True))
    assert counted(data, schema) == {"x": {"08:30": 1, "other": len(ODD[type]), "missing": 1}}


@pytest.mark.parametrize("type", ["time", "timetz"])
def test_the_end_of_the_day_in_postgres_is_in_no_hour(postgres: str, type: str) -> None:
    data = postgres_table(postgres, type, ["23:59:59", "24:00:00"])
    schema = Schema(x=Times("00:00", "24:00", other=True, missing=True))
    assert counted(data, schema) == {"x": {"23:00–23:59": 1, "other": 1, "missing": 1}}


INSTANT = datetime(2020, 2, 29, 23, 30, tzinfo=UTC)


def test_the_time_zone_of_a_session_of_postgres_does_not_matter(postgres: str) -> None:
    address = f"{postgres}?options=-c%20TimeZone%3DPacific/Kiritimati"
    data = postgres_table(address, "timestamptz", [str(INSTANT)])
    schema = Schema(x=Dates(FIRST, LAST), y=Times("23:00", "24:00"))
    assert counted(data, schema) == {"x": {"2020-02-29": 1}, "y": {"23:00–23:59": 1}}


def test_the_time_zone_of_a_connection_of_duckdb_does_not_matter() -> None:
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.execute("SET TimeZone = 'Pacific/Kiritimati'")
    backend.con.execute(f"CREATE TABLE people AS SELECT TIMESTAMPTZ '{INSTANT}' AS x, TIMESTAMPTZ '{INSTANT}' AS y")
    schema = Schema(x=Dates(FIRST, LAST), y=Times("23:00", "24:00"))
    assert counted(backend.table("people"), schema) == {"x": {"2020-02-29": 1}, "y": {"23:00–23:59": 1}}


@pytest.mark.parametrize("engine", ["arrow", "pandas", "polars", "ibis"])
def test_a_column_in_another_time_zone_is_refused(engine: str, hold: Hold) -> None:
    table = pa.table({"x": pa.array([INSTANT], pa.timestamp("us", "Europe/Berlin"))})
    with pytest.raises(DataError, match="column 'x' has the time zone Europe/Berlin; convert it"):
        open_source(hold(table)).columns_check(Schema(x=Dates(FIRST, LAST)))


def test_a_time_zone_that_a_parquet_file_mentions_does_not_matter(tmp_path: Path) -> None:
    """The instants are the same, and a release must not stop after it was charged because Arrow reads the file."""
    table = pa.table({"x": pa.array([INSTANT], pa.timestamp("us", "Pacific/Kiritimati")), "bad": b_text(b"\xff")})
    pq.write_table(table, tmp_path / "a.parquet")
    schema = Schema(x=Dates(FIRST, LAST), bad=Listed(["a"], other=True))
    assert counted(str(tmp_path / "a.parquet"), schema)["x"] == {"2020-02-29": 1}


def b_text(text: bytes) -> pa.Array:
    """A column with a text that nobody checks."""
    data = pa.array([text], pa.binary())
    return pa.Array.from_buffers(pa.string(), 1, data.buffers())


class Broken(tzinfo):
    """A time zone that fails."""

    def utcoffset(self, when: datetime | None) -> Any:
        raise RuntimeError("broken")

    dst = tzname = utcoffset


def test_objects_of_pandas_count_by_their_own_dates() -> None:
    import pandas as pd

    berlin = timezone(timedelta(hours=1))
    values = [
        *(date(2020, 2, 29), datetime(2020, 2, 29, 23, 59), pd.Timestamp("2020-02-29 10:00:00.123456789")),
        *(datetime(2020, 2, 29, 0, 30, tzinfo=berlin), np.datetime64("2020-02-29"), "2020-02-29"),
        *(pd.NaT, None, math.nan, np.datetime64("NaT")),
        *(datetime(2020, 2, 29, tzinfo=Broken()), np.datetime64("20000-01-01"), 20200229, b"2020-02-29", time(8)),
    ]
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    schema = Schema(x=Dates(FIRST, LAST, other=True, missing=True))
    assert counted(frame, schema) == {"x": {"2020-02-29": 6, "other": 5, "missing": 4}}


def test_objects_of_pandas_count_by_their_own_times() -> None:
    import pandas as pd

    values = [time(8, 30, 59), datetime(2020, 2, 29, 8, 30), "08:30", None, time(9), date(2020, 2, 29)]
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    schema = Schema(x=Times("08:00", "09:00", by="minute", other=True, missing=True))
    assert counted(frame, schema) == {"x": {"08:30": 3, "other": 2, "missing": 1}}


def test_columns_of_pandas_may_hold_no_time() -> None:
    import pandas as pd

    frame = pd.DataFrame({"x": pd.to_datetime(["2020-02-29 10:00", None])})
    schema = Schema(x=Dates(FIRST, LAST, other=True, missing=True))
    assert counted(frame, schema) == {"x": {"2020-02-29": 1, "missing": 1}}


def test_sqlite_holds_dates_as_texts_and_nothing_else(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE people (x DATE)")
        values = ["2020-02-29", "2020-02-29 10:00:00", b"2020-02-29", 2458908, 2458908.5, None, "2020-02-30"]
        connection.executemany("INSERT INTO people VALUES (?)", [(value,) for value in values])
    schema = Schema(x=Dates(FIRST, LAST, other=True, missing=True))
    expect = {"x": {"2020-02-29": 3, "other": 3, "missing": 1}}
    assert counted(DatabaseTable(tmp_path / "a.sqlite", "people"), schema) == expect
