"""Columns that determine others."""

import pytest

from hdmm.proposal.attribute import Attribute, LeftOut
from hdmm.proposal.by_values import propose_from_values
from hdmm.proposal.hierarchy import put_together
from tests.proposal.summaries import follow, summarise

STATES = {"Alameda": "CA", "Marin": "CA", "Napa": "CA", "Kings": "NY", "Queens": "NY", "Bronx": "NY"}
COUNTIES = [*STATES] * 10


def together(columns, pieces=1):
    summaries = [summarise(texts, name) for name, texts in columns.items()]
    proposals = [propose_from_values(summary) for summary in summaries]
    return dict(zip(columns, put_together(proposals, summaries, follow(*columns.values(), pieces=pieces)), strict=True))


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_column_that_another_determines_is_a_level(pieces):
    found = together({"county": COUNTIES, "state": [STATES[county] for county in COUNTIES]}, pieces)
    levels = {"CA": ["Alameda", "Marin", "Napa"], "NY": ["Bronx", "Kings", "Queens"]}
    assert (found["county"].domain["levels"], isinstance(found["state"], LeftOut)) == ({"state": levels}, True)


@pytest.mark.parametrize("pieces", [1, 7])
def test_one_exception_makes_it_an_attribute(pieces):
    states = [STATES[county] for county in COUNTIES]
    found = together({"county": COUNTIES, "state": [*states[:-1], "CA"]}, pieces)
    assert (isinstance(found["state"], Attribute), "levels" in found["county"].domain) == (True, False)


def test_a_column_that_is_hardly_coarser_is_an_attribute():
    wards = {"a": "x", "b": "x", "c": "y", "d": "z"}
    found = together({"ward": [*wards] * 10, "seat": [*wards.values()] * 10})
    assert (isinstance(found["seat"], Attribute), "levels" in found["ward"].domain) == (True, False)


def test_a_chain_of_levels_belongs_to_the_finest():
    counties = [f"c{at:02}" for at in range(24)] * 10
    states = [f"s{int(county[1:]) // 3}" for county in counties]
    regions = ["west" if int(state[1:]) < 4 else "east" for state in states]
    found = together({"region": regions, "county": counties, "state": states})
    assert list(found["county"].domain["levels"]) == ["state", "region"]


def test_two_columns_that_say_the_same_become_one_in_the_order_of_the_numbers():
    levels = {"none": "1", "school": "2", "degree": "3", "doctorate": "4"}
    texts = [*levels] * 10
    found = together({"education": texts, "education-num": [levels[text] for text in texts]})
    assert found["education"].domain["values"] == [*levels]
    assert isinstance(found["education-num"], LeftOut)


def test_few_records_do_not_show_a_dependence():
    found = together({"county": [*STATES] * 2, "state": [*STATES.values()] * 2})
    assert "levels" not in found["county"].domain


def test_parts_of_a_date_are_left_out():
    dates = [f"2021-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 28)] * 6
    found = together({"admitted": dates, "month": [str(int(text[5:7])) for text in dates]})
    assert "month of admitted" in found["month"].reason


def test_other_numbers_that_are_called_month_stay():
    dates = [f"2021-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 28)] * 6
    found = together({"admitted": dates, "month": [str(int(text[5:7]) % 12 + 1) for text in dates]})
    assert isinstance(found["month"], Attribute)
