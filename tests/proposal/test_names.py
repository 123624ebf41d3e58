"""Guesses from names and types alone."""

from datetime import date

import pytest

from hdmm.data.look import Column
from hdmm.proposal.attribute import Attribute, LeftOut
from hdmm.proposal.names import guess
from hdmm.proposal.words import is_identifier, is_person

TODAY = date(2025, 6, 1)
OPEN = {"other": True, "missing": True}


@pytest.mark.parametrize(
    ("column", "domain"),
    [
        (Column("age"), {"min": 0, "max": 114}),
        (Column("Age.at.death"), {"min": 0, "max": 114}),
        (Column("age", "float"), {"min": 0, "max": 114, "decimals": True}),
        (Column("sex"), {"values": ["F", "M"]}),
        (Column("month"), {"min": 1, "max": 12}),
        (Column("birth_year"), {"min": 1900, "max": 2025}),
        (Column("is_member"), {"boolean": True}),
        (Column("x", "boolean"), {"boolean": True}),
        (Column("birthDate"), {"date": ["1900-01-01", "2025-12-31"], "by": "year"}),
        (Column("x", "timestamp"), {"date": ["2016-01-01", "2025-12-31"], "by": "month"}),
        (Column("x", "time"), {"time": ["00:00", "24:00"], "by": "hour"}),
    ],
    ids=str,
)
def test_names_and_types_suggest_domains(column, domain):
    proposal = guess(column, TODAY)
    assert isinstance(proposal, Attribute)
    assert proposal.domain == {**domain, **OPEN}


@pytest.mark.parametrize(
    "column",
    [Column("state"), Column("patient_id"), Column("x", "integer"), Column("sex", "integer"), Column("age group")],
    ids=str,
)
def test_other_columns_are_left_out(column):
    assert isinstance(guess(column, TODAY), LeftOut)


@pytest.mark.parametrize("name", ["id", "user_id", "patientId", "SSN", "hh key", "id_2", "respondent"])
def test_identifiers_are_recognised(name):
    assert is_identifier(name)


@pytest.mark.parametrize("name", ["idea", "paid", "sex", "birthday", "customer segment", ""])
def test_other_names_are_not(name):
    assert not is_identifier(name)


@pytest.mark.parametrize(("name", "person"), [("id", True), ("patient_id", True), ("flight_id", False)])
def test_identifiers_of_people_are_told_from_those_of_things(name, person):
    assert is_person(name) is person
