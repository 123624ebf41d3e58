"""What a check proposes for one column: the remedy that reads most records, and never a value for another."""

import pytest

import hdmm
from hdmm.data.findings import ColumnFindings
from hdmm.inspection.advice import Advice, advise
from hdmm.schema import Bins, Boolean, Dates, Integers, Listed


def advised(domain, *texts, other=()) -> Advice:
    """The advice on texts, each of which one record has, and on texts in the cell "other"."""
    counts = [tuple((text.encode(), 1) for text in some) for some in (texts, other)]
    return advise(domain, ColumnFindings(len(texts), len(texts), counts[0], 0, len(other), counts[1]))


def changes(advice: Advice):
    return [remedy.change for remedy in (*advice.remedies, *advice.regained)]


DATES = Dates("2021-01-01", "2022-12-31")
FORMATS = [
    (["01/02/2021", "13/02/2021"], "%d/%m/%Y"),
    (["01/02/2021", "02/13/2021"], "%m/%d/%Y"),
    (["2/1/21", "13/2/21"], "%d/%m/%y"),
    (["1-2-2021", "13-2-2021"], "%d-%m-%Y"),
]


@pytest.mark.parametrize(("texts", "form"), FORMATS)
def test_the_format_that_reads_most_dates_is_proposed(texts, form):
    assert changes(advised(DATES, *texts)) == [{"format": form}]


def test_a_format_that_is_one_of_several_says_so():
    advice = advised(DATES, "01/02/2021", "03/04/2021")
    assert changes(advice) == [{"format": "%m/%d/%Y"}]
    assert "or as %d/%m/%Y, which reads as many: find out which it is" in advice.remedies[0].reason


NUMBERS = [
    (Bins([0, 10, 5000]), ["1.250,5", "2,5"], {"thousands": ".", "point": ","}),
    (Bins([0, 10, 5000]), ["1,250", "$9", "$ 1,000.5"], {"thousands": ",", "currency": "$"}),
    (Bins([0, 10, 5000]), ["2,5"], {"point": ","}),
    (Bins([0, 10, 5000]), ["1 250,5", "2,5"], {"thousands": " ", "point": ","}),
    (Integers(0, 5000), ["1.250", "12 €"], {"thousands": ".", "currency": "€"}),
    (Integers(0, 5000), ["45.0", "1,200.0"], {"thousands": ",", "decimals": True}),
    (Integers(0, 5000), ["45,0"], {"decimals": True, "point": ","}),
    (Integers(0, 5000), ["45.0"], {"decimals": True}),
]


@pytest.mark.parametrize(("domain", "texts", "change"), NUMBERS)
def test_one_way_to_write_numbers_reads_all_of_them(domain, texts, change):
    advice = advised(domain, *texts)
    assert changes(advice) == [change]
    assert not advice.left


ALIASES = [
    (["<=50K", ">50K"], ["<=50K.", ">50K."], {"<=50K": ["<=50K."], ">50K": [">50K."]}),
    (["Zürich", "Genève"], ["Zurich", "Geneve"], {"Zürich": ["Zurich"], "Genève": ["Geneve"]}),
    (["Female", "Male"], ["Femal", "Feamle"], {"Female": ["Femal", "Feamle"]}),
    (["25-44", "45-64"], ["25 - 44", "45 – 64"], {"25-44": ["25 - 44"], "45-64": ["45 – 64"]}),
    (["A+", "A-"], ["A +", "A -"], {"A+": ["A +"], "A-": ["A -"]}),
]


@pytest.mark.parametrize(("values", "texts", "aliases"), ALIASES)
def test_another_spelling_of_a_single_value_is_proposed_as_its_alias(values, texts, aliases):
    assert changes(advised(Listed(values), *texts)) == [{"aliases": aliases}]


NO_ALIASES = [
    (["North", "South"], "West"),
    (["North", "South"], "Outh East"),
    (["10001", "10002"], "10003"),
    (["grade 1", "grade 2"], "grade 3"),
    (["<25", "25-44"], "<= 25"),
    (["A+", "A-"], "A"),
    (["cat", "car"], "cab"),
    (["Martin", "Marten"], "Martan"),
]


@pytest.mark.parametrize(("values", "text"), NO_ALIASES)
def test_a_value_of_its_own_is_not_proposed_as_an_alias(values, text):
    assert changes(advised(Listed(values), text)) == [{"other": True}]


def test_values_that_count_as_other_although_they_are_declared_are_named():
    advice = advised(Listed(["Female", "Male"], other=True), other=["male", "NA", "Femal", "unknown"])
    assert changes(advice) == [{"missing": ["NA"]}, {"ignore_case": True}, {"aliases": {"Female": ["Femal"]}}]
    assert advice.declaration["other"] is True
    schema = hdmm.Schema(sex=advice.declaration["values"])
    assert schema["sex"].size == 2


def test_values_that_are_other_ones_are_left_alone():
    assert advised(Listed(["CA", "NY"], other=True), other=["TX", "FL"]).regained == ()


def test_of_several_words_for_true_and_false_the_most_frequent_pair_is_proposed():
    change = {"values": ["nein", "ja"], "boolean": None, "ignore_case": True}
    assert changes(advised(Boolean(), "Ja", "nein", "n")) == [change, {"other": True}]


def test_a_remedy_that_would_lose_more_than_it_gains_is_not_proposed():
    iso = ((b"2021-03-01", 9), (b"2021-03-02", 9))
    findings = ColumnFindings(5, 1, ((b"03/15/2021", 5),), inside_texts=iso)
    assert changes(advise(DATES, findings)) == [{"other": True}]


def test_a_remedy_that_loses_something_says_what():
    findings = ColumnFindings(5, 1, ((b"03/15/2021", 5),), inside_texts=((b"2021-03-01", 2),))
    (remedy,) = advise(DATES, findings).remedies
    assert remedy.change == {"format": "%m/%d/%Y"}
    assert "read no longer, or as other values: '2021-03-01'" in remedy.reason


def test_a_decimal_comma_is_not_proposed_if_points_are_read():
    findings = ColumnFindings(1, 1, ((b"1,5", 1),), inside_texts=((b"2.5", 7), (b"3", 7)))
    assert changes(advise(Bins([0, 10, 5000]), findings)) == [{"other": True}]
