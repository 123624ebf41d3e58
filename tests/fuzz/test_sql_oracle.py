"""A fixed part of the comparison of SQL with DuckDB; `make fuzz` runs much more."""

import pytest

from tests.fuzz.sql_campaign import FAULTS, caught
from tests.fuzz.sql_oracle import campaign


@pytest.mark.parametrize("first", [10_000, 20_000, 30_000])
def test_statements_count_what_duckdb_counts(first: int):
    tally = campaign(range(first, first + 10))
    assert not tally.differences, "\n".join(map(str, tally.differences))
    assert tally.compared > 150


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_in_sql_is_found(name: str):
    assert caught(name)
