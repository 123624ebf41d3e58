"""Domains proposed from the values of public data."""

from datetime import date, timedelta

import numpy as np
import pytest

from hdmm.proposal.attribute import Attribute, LeftOut
from hdmm.proposal.by_values import propose_from_values
from tests.proposal.summaries import summarise


def domain(texts, name="x", type="text"):
    proposal = propose_from_values(summarise(texts, name, type))
    assert isinstance(proposal, Attribute), proposal
    return proposal.domain


def reason(texts, name="x", type="text"):
    proposal = propose_from_values(summarise(texts, name, type))
    assert isinstance(proposal, LeftOut), proposal
    return proposal.reason


def numbers(low, high, times=3):
    return [str(number) for number in range(low, high + 1)] * times


def days(first, count, step=1, format="%Y-%m-%d"):
    return [(date.fromisoformat(first) + timedelta(at * step)).strftime(format) for at in range(count)] * 2


def test_few_integers_are_kept_as_they_are():
    assert domain(numbers(3, 9)) == {"min": 3, "max": 9}


def test_limits_of_many_integers_are_rounded_outwards():
    assert domain(numbers(17, 90)) == {"min": 0, "max": 99}


def test_integers_far_from_zero_are_rounded_to_tens():
    assert domain(numbers(-43, 61)) == {"min": -50, "max": 69}


def test_years_are_not_rounded():
    assert domain(numbers(1956, 2013), "year") == {"min": 1956, "max": 2013}


def test_codes_that_all_occur_are_not_rounded():
    assert domain(numbers(0, 41)) == {"min": 0, "max": 41}


@pytest.mark.parametrize(
    ("name", "ends"), [("age", (0, 114)), ("month", (1, 12)), ("hour", (0, 23)), ("dayOfBirth", None), ("agency", None)]
)
def test_the_name_knows_the_limits(name, ends):
    found = domain(numbers(3, 11), name)
    assert (found["min"], found["max"]) == (ends or (3, 11))


def test_a_name_is_wrong_if_the_values_say_otherwise():
    assert domain(numbers(0, 40), "hour")["max"] == 40


def test_integers_with_a_fraction_of_zeros_need_decimals():
    assert domain(["1.0", "2.0", "3"] * 9) == {"min": 1, "max": 3, "decimals": True}


def test_a_column_of_floats_needs_decimals_too():
    assert domain(["1", "2", "3"] * 9, type="float") == {"min": 1, "max": 3, "decimals": True}


def test_zero_and_one_are_integers():
    assert domain(["0", "1"] * 9) == {"min": 0, "max": 1}


@pytest.mark.parametrize("name", ["is_member", "hasChildren", "smoker_flag"])
def test_zero_and_one_in_a_flag_are_boolean(name):
    assert domain(["0", "1"] * 9, name) == {"boolean": True}


def test_many_integers_become_bins():
    assert "bins" in domain(numbers(0, 5000, 1) * 2)


def test_sparse_integers_become_bins():
    assert "bins" in domain([str(10 * at) for at in range(37)] * 9)


def test_clock_times_are_counted_by_the_hour():
    texts = [str(100 * hour + minute) for hour in range(24) for minute in range(0, 60, 5)] * 2
    assert domain(texts, "dep_time")["bins"] == list(range(0, 2500, 100))


def test_the_same_numbers_under_another_name_are_no_clock_times():
    texts = [str(100 * hour + minute) for hour in range(24) for minute in range(0, 60, 5)] * 2
    assert domain(texts, "distance")["bins"] != list(range(0, 2500, 100))


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (["1,200", "31,000", "7"], {"thousands": ","}),
        (["1.200,5", "31.000,1", "7,2"], {"thousands": ".", "point": ","}),
        (["$500", "$1,200", "$80"], {"thousands": ",", "currency": "$"}),
    ],
)
def test_the_way_amounts_are_written_is_stated(texts, options):
    found = domain([*texts, *texts])
    assert {key: found.get(key) for key in ("thousands", "point", "currency") if key in found} == options


@pytest.mark.parametrize("text", ["NA", "N/A", "NULL", "null", "None", "nan", ".", "?", "-"])
def test_texts_for_missing_values_are_listed(text):
    assert domain([*numbers(1, 9), text, ""])["missing"] == [text]


def test_all_of_them_are():
    assert domain([*numbers(1, 9), "NA", "na", "."])["missing"] == [".", "NA", "na"]


def test_minus_nine_among_positive_numbers_is_missing():
    assert domain([*numbers(1, 5), "-9"]) == {"min": 1, "max": 5, "missing": ["-9"]}


def test_minus_eight_beside_minus_nine_is_missing_too():
    assert domain([*numbers(1, 5), "-9", "-8"])["missing"] == ["-8", "-9"]


@pytest.mark.parametrize("others", [["-1"], ["-9", "-3"]])
def test_other_negative_numbers_are_values(others):
    assert "missing" not in domain([*numbers(1, 5), *others])


def test_a_few_mistakes_count_as_other():
    assert domain([*numbers(1, 9, 20), "unclear"]) == {"min": 1, "max": 9, "other": True}


def test_leading_zeros_make_codes():
    assert domain(["001", "003", "010"] * 5) == {"values": ["001", "003", "010"]}


def test_months_may_have_leading_zeros():
    assert domain(["01", "02", "10"] * 5, "month") == {"min": 1, "max": 12}


def test_a_year_of_days_is_counted_by_day():
    assert domain(days("2021-01-03", 300)) == {"date": ["2021-01-01", "2021-10-31"], "by": "day"}


def test_several_years_of_days_are_counted_by_month():
    assert domain(days("2015-05-03", 1500)) == {"date": ["2015-01-01", "2019-12-31"], "by": "month"}


def test_many_decades_are_counted_by_year():
    assert domain(days("1921-05-03", 400, 90))["by"] == "year"


def test_weekly_dates_are_counted_by_week():
    assert domain(days("2021-01-04", 100, 7))["by"] == "week"


@pytest.mark.parametrize(
    ("months", "by"),
    [(range(1, 13), "month"), ([1, 4, 7, 10], "quarter"), ([1], "year")],
    ids=["month", "quarter", "year"],
)
def test_first_days_are_counted_by_what_they_stand_for(months, by):
    assert domain([f"{year}-{month:02}-01" for year in range(2001, 2011) for month in months] * 2)["by"] == by


def test_a_format_other_than_iso_is_stated():
    assert domain(days("2021-01-03", 300, format="%d.%m.%Y"))["format"] == "%d.%m.%Y"


def test_the_type_of_a_column_needs_no_format():
    assert "format" not in domain(days("2021-01-03", 300), type="date")


def test_times_are_counted_by_the_hour():
    assert domain(["08:30", "17:45", "NA"]) == {"time": ["00:00", "24:00"], "by": "hour", "missing": ["NA"]}


def test_unique_texts_identify():
    assert "different" in reason([f"N{at}" for at in range(100)])


@pytest.mark.parametrize("name", ["id", "patient_id", "customerId", "RespondentID", "individual"])
def test_a_name_can_say_that_a_column_identifies(name):
    assert "identifies" in reason(numbers(1, 100), name)


def test_row_numbers_identify():
    assert "different" in reason(numbers(1, 100, 1))


def test_unique_measurements_do_not():
    assert "bins" in domain([f"{at}.{at % 7}5" for at in range(200)])


def test_unique_amounts_do_not():
    assert "bins" in domain([str(int(number)) for number in np.exp(np.linspace(3, 14, 200))])


def test_few_records_say_nothing_about_identity():
    assert domain(["a", "b", "c"]) == {"values": ["a", "b", "c"]}


def test_a_single_value_is_left_out():
    assert "only one value" in reason(["2013"] * 9 + ["NA"])


def test_an_empty_column_is_left_out():
    assert "empty" in reason(["", "NA", "?"])


def test_a_type_that_cannot_be_read_is_left_out():
    assert "type" in reason([""], type="unreadable")
