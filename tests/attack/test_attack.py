"""A fixed part of the attack: these neighbours cannot be told apart, and planted faults are found.

`make attack` replays many more, in every source.
"""

import pytest

from tests.attack.campaign import alone
from tests.attack.faults import caught
from tests.attack.items import check_table, items, neighbours
from tests.attack.names import name_cases
from tests.attack.replay import violations
from tests.attack.sources import FILES

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the engines' own packages
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
VALUES = {
    "csv": ["an open quote in line (line)", "bad bytes in line (line)", "another case in who (text)"],
    "csv files": ["too many fields in line (line)"],
    "csv.gz": ["an open quote in line (line)", "two currency signs in pay (text)"],
    "csv.zst": ["a text for missing values in sex (text)"],
    "csv utf-16": ["an alias in sex (text)", "thousands in age (text)"],
    "csv gb18030": ["two letters for one in sex (text)"],
    "parquet": ["a bad byte in sex (text)", "equal MD5 in who (text)"],
    "parquet files": ["1001 letters in who (text)"],
    "pandas": ["a dict in sex (object)", "a tuple in sex (category)", "a lone surrogate in sex (python text)"],
    "polars": ["a NUL byte in sex (text)"],
    "lazy": ["a number for missing values in sex (text)"],
    "stream": ["a declared value, then a bad byte in sex (text)", "missing in age (float64)"],
    "dataset": ["a half in age (float32)"],
    "relation": ["2^127 - 1 in age (int128)", "1e300 in age (float64)"],
    "arrow": ["a declared value, then a bad byte in who (text)", "NaN in pay (float64)"],
    "duckdb": ["2^127 - 1 in age (int128)"],
    "sqlite": ["a bad byte in who (any)", "SQL in who (text)"],
}
NAMES = {
    "parquet": ["file 'd[1]'", "folder 'sex=F'", "columns 'filename', 'key'", "no column filename"],
    "parquet files": ["a hard link"],
    "csv": ["file 'd[1]'"],
    "csv files": ["a hard link"],
    "duckdb": ["table 'people.csv'", "no column rowid"],
    "sqlite": ["file 'a?mode=memory'", "no column rowid"],
}
UNITS = ["1 row", "2 rows per id", "replace 1 row", "3 rows", "replace 2 rows per id"]
LISTED = [
    (source, item, "2 rows per id" if " in who " in item else "1 row") for source, all in VALUES.items() for item in all
]
LISTED += [("csv", "ordinary in sex (text)", unit) for unit in UNITS]


@pytest.mark.parametrize(("source", "item", "unit"), LISTED)
def test_nobody_can_tell_whether_the_value_is_there(source: str, item: str, unit: str):
    chosen = next(
        one for one in items() if f"{one.name} in {one.column} ({one.type})" == item and one.in_source(FILES[source])
    )
    case = neighbours(FILES[source], chosen, unit, cells=True)[0]
    assert not (alone(case) if isinstance(chosen.value, bytes) and chosen.loose else "; ".join(violations(case)))


@pytest.mark.parametrize(("source", "item"), [(source, item) for source, all in NAMES.items() for item in all])
def test_a_name_means_these_records_and_no_others(source: str, item: str):
    case = next(case for case, _ in name_cases(FILES[source]) if case.item == item)
    assert not violations(case)


@pytest.mark.parametrize("name", ["a person counts one row too many", "a pattern is expanded twice"])
def test_a_planted_fault_is_found(name: str):
    assert caught(name)


def test_the_people_of_the_table_are_nobody_else():
    check_table()
