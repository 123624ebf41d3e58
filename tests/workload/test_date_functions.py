"""EXTRACT, YEAR, DATE_TRUNC and the like, compared with DuckDB on every day."""

from datetime import date, timedelta

import duckdb
import numpy as np
import pytest

import hdmm
from hdmm.errors import WorkloadError
from hdmm.workload.conditions import holds

FIRST, LAST = date(2019, 12, 20), date(2021, 2, 10)
DAYS = [FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1)]
CAME = hdmm.Dates(FIRST, LAST, missing=True)
CONDITIONS = [
    "YEAR(came) = 2020",
    "EXTRACT(YEAR FROM came) <> 2020",
    "MONTH(came) IN (1, 2, 12)",
    "QUARTER(came) = 1 OR DAY(came) > 28",
    "EXTRACT(dow FROM came) BETWEEN 1 AND 5",
    "EXTRACT(isodow FROM came) = 7",
    "EXTRACT(doy FROM came) <= 40",
    "NOT EXTRACT(week FROM came) = 53",
    "YEAR(came) * 100 + MONTH(came) >= 202011",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_fields_of_dates_are_those_of_duckdb(condition):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (came DATE)")
        connection.executemany("INSERT INTO t VALUES (?)", [[day] for day in [*DAYS, None]])
        found = {row[0] for row in connection.execute(f"SELECT came FROM t WHERE {condition}").fetchall()}
    mask = holds(condition, "came", CAME)
    assert {day for day, kept in zip([*DAYS, None], mask.tolist(), strict=True) if kept} == found
    assert 0 < len(found) < len(DAYS)


def test_a_truncated_date_is_its_level_and_a_table_groups_by_it():
    schema = hdmm.Schema(came=CAME, at=hdmm.Times("08:00", "12:00", by="minute"))
    query = "SELECT DATE_TRUNC('month', came), HOUR(at), COUNT(*) FROM t GROUP BY 1, 2"
    asked = hdmm.Workload(schema).add_sql("q", query)
    level = hdmm.Workload(schema).add_sql("q", "SELECT month, hour, COUNT(*) FROM t GROUP BY 1, 2")
    tables = [workload.encoded.of(workload.encoded.products[0]).dense() for workload in (asked, level)]
    np.testing.assert_array_equal(tables[0], tables[1])


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("YEAR(size) = 2020", "is for attributes of dates and times"),
        ("EXTRACT(month FROM came) = 2", "declare by: day"),
        ("DATE_TRUNC('month', came) = '2020-01'", "a year has no month"),
    ],
)
def test_what_cells_do_not_decide_is_refused(condition, message):
    schema = hdmm.Schema(came=hdmm.Dates("2019", "2021", by="year"), size=range(3))
    with pytest.raises(WorkloadError, match=message):
        hdmm.Workload(schema).add("q", where=condition)
