"""Listed values and their spellings."""

import pytest

from hdmm.proposal.attribute import LeftOut
from hdmm.proposal.listed import in_order, is_boolean, propose_listed, spellings
from tests.proposal.summaries import summarise


def listed(texts):
    return propose_listed(summarise(texts))


def test_few_values_are_listed_in_order():
    assert listed(["b", "a", "b"]).domain == {"values": ["a", "b"]}


def test_case_is_ignored_if_values_occur_in_both():
    assert listed(["Male", "Male", "male", "Female"]).domain == {"values": ["Female", "Male"], "ignore_case": True}


def test_other_spellings_are_aliases():
    texts = ["New York", "New York", "New_York", "New  York", "Texas"]
    assert listed(texts).domain["aliases"] == {"New York": ["New  York", "New_York"]}


def test_a_full_stop_at_the_end_is_another_spelling():
    assert listed(["<=50K", "<=50K", "<=50K.", ">50K"]).domain["aliases"] == {"<=50K": ["<=50K."]}


@pytest.mark.parametrize("texts", [["A+", "A", "A-"], ["<=50K", ">50K"], ["1-2", "12"], ["a b", "ab"], ["1.5", "15"]])
def test_different_values_stay_different(texts):
    assert set(spellings(dict.fromkeys(texts, 5)).counts) == set(texts)


def test_letters_of_both_cases_are_codes_if_both_are_frequent():
    assert set(spellings({"a": 50, "A": 40}).counts) == {"a", "A"}


def test_a_rare_letter_in_the_other_case_is_a_slip():
    assert set(spellings({"M": 50, "m": 2}).counts) == {"M"}


def test_initials_of_sexes_are_aliases():
    found = spellings({"Male": 40, "Female": 40, "M": 3, "F": 2})
    assert (set(found.counts), found.aliases) == ({"Male", "Female"}, {"Male": ["M"], "Female": ["F"]})


def test_initials_among_other_values_are_values():
    assert "M" in spellings({"Male": 40, "M": 3, "Monday": 2}).counts


def test_missing_texts_and_empty_fields_are_counted_together():
    assert listed(["a", "b", "NA", ""]).domain == {"values": ["a", "b"], "missing": ["NA"]}


def test_empty_fields_alone_need_no_texts():
    assert listed(["a", "b", ""]).domain == {"values": ["a", "b"], "missing": True}


def test_na_among_country_codes_is_namibia():
    codes = [a + b for a in "ABCDEFG" for b in "NOPQRS"] + ["NA"]
    assert "NA" in listed(codes).domain["values"]


def test_of_many_values_the_frequent_ones_are_listed():
    texts = [f"v{at}" for at in range(500) for _ in range(1 if at >= 60 else 100)]
    domain = listed(texts).domain
    assert (len(domain["values"]), domain["other"]) == (50, True)


def test_many_values_without_frequent_ones_are_left_out():
    assert isinstance(listed([f"v{at}" for at in range(1000)] * 3), LeftOut)


def test_free_text_is_left_out():
    assert isinstance(listed(["a remark that is quite long " * 2, "another remark that is long " * 2] * 3), LeftOut)


def test_a_value_that_is_called_like_an_extra_cell_goes_there():
    texts = [f"v{at}" for at in range(500) for _ in range(1 if at >= 60 else 100)] + ["other"] * 500
    assert "other" not in listed(texts).domain["values"]


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        (["Fri", "Mon", "Wed"], ["Mon", "Wed", "Fri"]),
        (["March", "January", "June"], ["January", "March", "June"]),
        (["high", "low", "medium"], ["low", "medium", "high"]),
        (["65+", "18-24", "Under 18", "25-64"], ["Under 18", "18-24", "25-64", "65+"]),
        (["ward 10", "ward 9", "ward 1"], ["ward 1", "ward 9", "ward 10"]),
        (["b", "a"], ["a", "b"]),
    ],
)
def test_values_are_in_the_order_that_people_know(values, ordered):
    assert in_order(values)[1] == ordered


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["true", "false"], True),
        (["Yes", "no", "NO", ""], True),
        (["t", "f", "NA"], True),
        (["true", "0", "1"], True),
        (["0", "1"], False),
        (["y", "n"], False),
        (["true"], False),
        (["yes", "no", "maybe"], False),
    ],
)
def test_true_and_false_are_recognised(texts, expected):
    assert is_boolean(summarise(texts)) is expected
