"""Dates and times: their cells, labels, texts, levels, conditions and ranges, against Python's own calendar."""

import pickle
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
import pytest

from hdmm.errors import SchemaError, WorkloadError
from hdmm.schema import OUTSIDE, Dates, Domain, Integers, Listed, Merged, Schema, Times
from hdmm.workload import AllRange, Identity, Level, Prefix, Ranges, Values, Where, Width, Workload
from tests.data.test_dates import label

BY = ("day", "week", "month", "quarter", "year")
EVERY_BY = pytest.mark.parametrize("by", BY)
RANGES = {
    "around new year": (date(2019, 12, 18), date(2021, 1, 12)),
    "a week of two years": (date(2020, 12, 28), date(2021, 1, 3)),
    "a leap day": (date(2020, 2, 29), date(2020, 2, 29)),
    "no leap year": (date(1900, 2, 27), date(1900, 3, 2)),
    "before 1970": (date(1899, 11, 15), date(1904, 2, 2)),
    "the first days": (date(1, 1, 1), date(1, 5, 20)),
    "the last days": (date(9998, 11, 30), date(9999, 12, 31)),
}
EVERY_RANGE = pytest.mark.parametrize("name", RANGES)
CELLS: dict[str, Any] = {"other": True, "missing": True}


def days_of(first: date, last: date) -> list[date]:
    return [first + timedelta(days) for days in range((last - first).days + 1)]


@EVERY_BY
@EVERY_RANGE
def test_the_cells_are_the_periods_that_meet_the_range(by: Any, name: str) -> None:
    first, last = RANGES[name]
    assert Dates(first, last, by=by).labels() == list(dict.fromkeys(label(day, by) for day in days_of(first, last)))


@EVERY_BY
@EVERY_RANGE
def test_a_date_is_in_the_cell_of_its_period(by: Any, name: str) -> None:
    first, last = RANGES[name]
    domain = Dates(first, last, by=by)
    labels = domain.labels()
    codes = domain.encode([str(day).encode() for day in days_of(first, last)])
    assert [labels[code] for code in codes.tolist()] == [label(day, by) for day in days_of(first, last)]


@EVERY_BY
def test_a_day_before_the_range_is_outside_even_if_its_period_meets_the_range(by: Any) -> None:
    domain = Dates("2020-02-12", "2020-11-10", by=by)
    assert domain.encode([b"2020-02-11", b"2020-11-11"]).tolist() == [OUTSIDE, OUTSIDE]
    assert domain.encode([b"2020-02-12", b"2020-11-10"]).tolist() == [0, domain.size - 1]


def test_other_and_missing_dates_have_cells_after_all_others() -> None:
    domain = Dates("2020", "2021", by="year", **CELLS)
    assert domain.encode([b"2021-05-05", b"1999-01-01", b" ", b"x"]).tolist() == [1, 2, 3, 2]
    assert domain.labels() == ["2020", "2021", "other", "missing"]


READ = [
    "2021-03-01",
    " 2021-03-01\t",
    "2021-03-01T10:00",
    "2021-03-01T10:00:00",
    "2021-03-01 10:00:00",
    "2021-03-01 23:59:59.999999",
    "2021-03-01 23:59:59.123456789",
    "2021-03-01T00:00:00Z",
    "2021-03-01 00:00:00 UTC",
    "2021-03-01T23:00:00-11:00",
    "2021-03-01 00:30:00+14",
    "2021-03-01 00:30:00 +0530",
    "2021-03-01 00:30:00+00:53:28",
]
NOT_READ = [
    *("2021-02-29", "2021-02-30", "2021-13-01", "2021-00-10", "2021-01-00", "0000-01-01", "2021-04-31"),
    *("2021-3-1", "21-03-01", "20210301", "+2021-03-01", "-2021-03-01", "02021-03-01", "2021/03/01", "01.03.2021"),
    *(
        "2021-03-01T",
        "2021-03-01  10:00",
        "2021-03-01T24:00:00",
        "2021-03-01T23:60",
        "2021-03-01T23:59:60",
    ),
    *("2021-03-01T10", "2021-03-01t10:00", "2021-03-01 10:00:00,5", "2021-03-01 10:00:00.", "2021-03-01 10:00:00+1"),
    *("2021-03-01 10:00:00 CET", "2021-03", "2021", "2021-W09", "2021-W09-1", "2021-060", "２０２１-03-01", "infinity"),
    *("NaT", "2021-03-01\0", "2021-03-01\n", "2021-03-01Z", "10000-01-01", "2021‑03‑01", "today", "1e3"),
]


@pytest.mark.parametrize("text", READ)
def test_an_iso_text_is_read_as_the_date_that_it_says(text: str) -> None:
    assert Dates("2021-02-27", "2021-03-04").encode([text.encode()]).tolist() == [2]


@pytest.mark.parametrize("text", NOT_READ)
def test_a_text_that_is_nearly_a_date_is_outside(text: str) -> None:
    assert Dates("0001-01-01", "9999-12-31").encode([text.encode()]).tolist() == [OUTSIDE]


def test_bytes_that_are_no_text_are_outside() -> None:
    for format in (None, "%d.%m.%Y"):
        domain = Dates("2020", "2021", by="month", format=format)
        assert domain.encode([b"\xff\xfe", b"2020-01\xff"]).tolist() == [OUTSIDE, OUTSIDE]


LABELS = {"week": "2021-W09", "month": "2021-03", "quarter": "2021-Q1", "year": "2021"}


@pytest.mark.parametrize("by", LABELS)
def test_a_period_may_be_written_in_place_of_a_date(by: Any) -> None:
    domain = Dates("2021-03-02", "2023-01-01", by=by)
    others = [text.encode() for size, text in LABELS.items() if size != by]
    assert domain.encode([LABELS[by].encode()]).tolist() == [0]
    assert domain.encode(others).tolist() == [OUTSIDE] * 3


@pytest.mark.parametrize("text", ["2021-W00", "2021-W53", "2021-W9", "2021-w09"])
def test_a_week_that_does_not_exist_is_outside(text: str) -> None:
    assert Dates("2020-01-01", "2023-01-01", by="week").encode([text.encode()]).tolist() == [OUTSIDE]


FORMATS = [
    ("%d.%m.%Y", "01.03.2021"),
    ("%d.%m.%Y", "1.3.2021"),
    ("%m/%d/%Y", "3/01/2021"),
    ("%m/%d/%y", "03/01/21"),
    ("%d %b %Y", "01 mar 2021"),
    ("%d %b %Y", "1  MAR\t2021"),
    ("%B %d, %Y", "March 1, 2021"),
    ("%a, %d %b %Y %H:%M:%S %z", "Mon, 01 Mar 2021 10:11:12 +0100"),
    ("%A %d %B %Y", "Friday 01 March 2021"),
    ("%Y-%j", "2021-060"),
    ("%Y-%j", "2021-60"),
    ("%Y%m%d", "20210301"),
    ("%d%m%Y", "1032021"),
    ("%y%m%d", "210301"),
    ("%Y%m%dT%H%M%S", "20210301T101112"),
    ("%d.%m.%Y %I:%M %p", "01.03.2021 12:30 am"),
    ("%Y-%m-%d %H:%M:%S.%f", "2021-03-01 10:11:12.5"),
    ("%Y-%m-%d %H:%M %Z", "2021-03-01 10:11 CEST"),
    ("%%%Y|%m|%d%%", "%2021|03|01%"),
    ("Tag %d.%m.%Y (ä)", "Tag 01.03.2021 (ä)"),
]


@pytest.mark.parametrize(("format", "text"), FORMATS)
def test_a_date_is_read_in_the_declared_format(format: str, text: str) -> None:
    domain = Dates("2021-02-27", "2021-03-04", format=format)
    assert domain.encode([text.encode()]).tolist() == [2]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("%d.%m.%Y", "2021-03-01"),
        ("%d.%m.%Y", "30.02.2021"),
        ("%d.%m.%Y", "01.13.2021"),
        ("%d.%m.%Y", "01.03.21"),
        ("%d.%m.%Y", "001.03.2021"),
        ("%d.%m.%Y", "01.03.2021x"),
        ("%d %b %Y", "01 März 2021"),
        ("%d %b %Y", "01 March 2021"),
        ("%d %B %Y", "01 Mar 2021"),
        ("%Y-%j", "2021-366"),
        ("%Y-%j", "2021-000"),
        ("%Y%m%d", "2021031"),
        ("%Y%m%d", "202103011"),
        ("%d%m/%Y", "103/2021"),
        ("%H:%M %d.%m.%Y", "24:00 01.03.2021"),
        ("%I:%M %p %d.%m.%Y", "13:00 PM 01.03.2021"),
        ("%d.%m.%Y", "٠١.03.2021"),
        ("%d.%m.%Y", "0" * 1000 + "1.03.2021"),
    ],
)
def test_a_text_in_another_format_is_outside(format: str, text: str) -> None:
    assert Dates("2000-01-01", "2067-12-31", format=format).encode([text.encode()]).tolist() == [OUTSIDE]


@pytest.mark.parametrize(("text", "year"), [("69", 1969), ("99", 1999), ("00", 2000), ("68", 2068)])
def test_years_of_two_digits_are_those_from_1969_to_2068(text: str, year: int) -> None:
    domain = Dates("1969", "2068", by="year", format="%y")
    assert domain.labels()[int(domain.encode([text.encode()])[0])] == str(year)


def test_a_format_without_a_day_stands_for_the_whole_month() -> None:
    domain = Dates("2021-03-15", "2021-12-31", by="quarter", format="%m/%Y")
    assert domain.encode([b"03/2021", b"02/2021", b"12/2021"]).tolist() == [0, OUTSIDE, 3]


def test_a_year_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(SchemaError, match="first=<an integer of 16610 bits>: expected a date"):
        Dates(10**5000, "2022")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("2021-01-02", "2021-01-01"), {}, "first=2021-01-02, last=2021-01-01: the domain is empty"),
        (("2021-02-30", "2021-03-01"), {}, "first='2021-02-30': expected a date of the years 0001 to 9999"),
        (("2021-01-01", "x"), {}, "last='x': expected a date"),
        ((None, "2021"), {}, "first=None: expected a date"),
        ((datetime(2021, 1, 1), "2022"), {}, "first=datetime.datetime.* expected a date"),
        ((True, "2022"), {}, "first=True: expected a date"),
        ((20.5, "2022"), {}, "first=20.5: expected a date"),
        (("2021", "2022"), {"by": "fortnight"}, "by='fortnight': expected a size of cells; known: 'day', 'week'"),
        (("2021", "2022"), {"by": "months"}, "by='months': expected a size of cells; did you mean 'month'"),
        (("2021", "2022"), {"by": 7}, "by=7: expected a size of cells"),
        (("2021", "2022"), {"format": "%d.%m"}, "format='%d.%m': a year is missing; write for example"),
        (("2021", "2022"), {"format": "%Y"}, "format='%Y': a month is missing"),
        (("2021", "2022"), {"format": "%Y %d", "by": "year"}, "a month is missing"),
        (("2021", "2022"), {"format": "%m/%Y"}, 'a day is missing; .* or declare by="month"'),
        (("2021", "2022"), {"format": "%d.%m.%Q"}, "'%Q' is not a directive; known: %Y"),
        (("2021", "2022"), {"format": "%d.%m.%Y%"}, "'%' is not a directive"),
        (("2021", "2022"), {"format": "%-d.%m.%Y"}, "'%-' is not a directive"),
        (("2021", "2022"), {"format": "%d.%m.%Y %d"}, "'%d' stands twice"),
        (("2021", "2022"), {"format": "%d.%m.%Y %y"}, "'%Y' and '%y' exclude each other"),
        (("2021", "2022"), {"format": "%j.%m.%Y"}, "'%j' and '%m' exclude each other"),
        (("2021", "2022"), {"format": "%d.%m.%Y %I:%M"}, r"'%I' and '%p' \(AM or PM\) go together"),
        (("2021", "2022"), {"format": " %d.%m.%Y"}, "no blanks around it"),
        (("2021", "2022"), {"format": "%d\n%m.%Y"}, "stays on one line"),
        (("2021", "2022"), {"format": ""}, "format='': expected a text such as"),
        (("2021", "2022"), {"format": 5}, "format=5: expected a text such as"),
        (("1968", "2022"), {"format": "%d.%m.%y"}, "'%y' stands for the years 1969 to 2068"),
    ],
    ids=str,
)
def test_dates_that_make_no_sense_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Dates(*arguments, **options)


def test_the_ends_may_be_dates_or_periods() -> None:
    same = Dates(date(2020, 1, 1), date(2021, 12, 31))
    assert same == Dates("2020", 2021) == Dates("2020-01", "2021-12") == Dates("2020-Q1", "2021-Q4")


def test_equal_dates_hash_alike_and_survive_a_pickle() -> None:
    one = Dates(
        "2020", "2021", by="month", levels={"half": {"a": [("2020-01", "2020-06")], "b": [("2020-07", "2021-12")]}}
    )
    copy = pickle.loads(pickle.dumps(one))
    assert (copy, hash(copy)) == (one, hash(one))
    assert copy.levels["year"] == one.levels["year"]
    assert one != Dates("2020", "2021", by="month")


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@EVERY_BY
@pytest.mark.parametrize("operator", COMPARE)
def test_a_comparison_with_a_day_is_decided_or_cuts_through_a_period(by: Any, operator: Any) -> None:
    first, last = date(2020, 11, 20), date(2021, 2, 9)
    domain = Dates(first, last, by=by)
    for literal in days_of(first, last):
        truth: dict[str, set[bool]] = {}
        for day in days_of(first, last):
            truth.setdefault(label(day, by), set()).add(COMPARE[operator](day, literal))
        if any(len(values) == 2 for values in truth.values()):
            with pytest.raises(
                WorkloadError, match=f"'{operator} {literal}' cuts through the {by} .* first or last day"
            ):
                domain.compare(operator, str(literal))
        else:
            assert domain.compare(operator, str(literal)).tolist() == [values.pop() for values in truth.values()]


@pytest.mark.parametrize("literal", ["2020-12", "2020-Q4", "2021", "2021-W01", "2020-W53", "2020"])
@pytest.mark.parametrize("operator", COMPARE)
def test_a_comparison_with_a_period_takes_all_of_its_days(literal: str, operator: Any) -> None:
    first, last = date(2020, 11, 20), date(2021, 2, 9)
    size = "week" if "W" in literal else {4: "year", 7: "month"}[len(literal)] if "Q" not in literal else "quarter"
    expect = [COMPARE[operator](label(day, size), literal) for day in days_of(first, last)]
    assert Dates(first, last).compare(operator, literal).tolist() == expect


@pytest.mark.parametrize("literal", ["2021-02-30", "x", "01.03.2021", "2021-03-01 00:00:00", "20210301", "5", ""])
def test_a_literal_of_another_form_is_refused_with_the_form(literal: str) -> None:
    with pytest.raises(
        WorkloadError, match="is not a value that this attribute is compared with; write a date as '2021-03-01'"
    ):
        Dates("2020", "2021").compare(">=", literal)


@pytest.mark.parametrize(
    ("operator", "literal"), [("=", "2022-01-01"), ("<>", "2019-12-31"), (">", "2022-01-02"), ("<", "2018")]
)
def test_a_literal_outside_the_range_is_refused_with_the_range(operator: Any, literal: str) -> None:
    with pytest.raises(WorkloadError, match="outside the domain, which holds the dates 2020-01-01 to 2021-12-31"):
        Dates("2020", "2021").compare(operator, literal)


@pytest.mark.parametrize(
    ("operator", "literal", "truth"),
    [
        ("<", "2022-01-01", True),
        (">", "2019-12-31", True),
        (">=", "2019", True),
        ("<=", "2022-01", True),
        (">=", "2022-01", False),
    ],
)
def test_a_literal_beside_the_range_may_say_everything(operator: Any, literal: str, truth: bool) -> None:
    assert Dates("2020", "2021").compare(operator, literal).tolist() == [truth] * 731


@pytest.mark.parametrize(
    ("low", "high", "codes"),
    [
        ("2021-01-01", "2021-03-31", (12, 14)),
        ("2021-01", "2021-03", (12, 14)),
        ("2021-Q1", "2021-03", (12, 14)),
        ("2020", "2021", (0, 23)),
    ],
)
def test_a_range_reaches_from_the_first_to_the_last_day_of_its_ends(
    low: str, high: str, codes: tuple[int, int]
) -> None:
    assert Dates("2020", "2021", by="month").span(low, high) == codes


def test_a_range_may_begin_with_a_period_that_the_domain_cuts() -> None:
    assert Dates("2020-03-15", "2021-05-02", by="month").span("2020-03", "2021-05") == (0, 14)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ("2021-01-02", "2021-03", "range end 2021-01-02 cuts through the month 2021-01; write its first or last day"),
        ("2021-01", "2021-03-30", "range end 2021-03-30 cuts through the month 2021-03"),
        ("2019", "2021", "range end '2019' is outside the domain, which holds the dates"),
        ("2021-03", "2021-01", "is empty: its low end must come before its high end"),
        ("2021-03", "spring", "'spring' is not a value that this attribute is compared with"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(low: str, high: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        Dates("2020", "2021", by="month").span(low, high)


def test_a_value_is_named_by_its_label_or_by_a_date() -> None:
    assert Dates("2020", "2021", by="month").code("2020-03") == 2
    assert Dates("2020", "2021").code(date(2020, 3, 1)) == 60
    with pytest.raises(
        WorkloadError, match=r"'2020-03-01' is not in the domain, which holds .* or a month as '2021-03'"
    ):
        Dates("2020", "2021", by="month").code("2020-03-01")


def labels(domain: Domain, predicates: Any) -> list[Any]:
    return predicates.labels("x", domain)


def test_labels_of_ranges_and_prefixes_read_well() -> None:
    days, months = Dates("2021-03-01", "2021-03-03"), Dates("2021", "2021", by="month")
    hours, minutes = Times("08:00", "10:30"), Times("08:00", "08:03", by="minute")
    assert labels(days, Prefix()) == ["<= 2021-03-01", "<= 2021-03-02", "<= 2021-03-03"]
    assert labels(days, AllRange())[:3] == ["2021-03-01", "2021-03-01..2021-03-02", "2021-03-01..2021-03-03"]
    assert labels(months, Ranges([("2021-01-01", "2021-03-31")])) == ["2021-01..2021-03"]
    assert labels(months, Width(3))[0] == "2021-01..2021-03"
    assert labels(months, Values(["2021-03"])) == ["2021-03"]
    assert labels(hours, Prefix()) == ["<= 08:59", "<= 09:59", "<= 10:29"]
    assert labels(hours, Ranges([("08:00", "09:59"), ("08:00", "08:59")])) == ["08:00..09:59", "08:00–08:59"]
    assert labels(minutes, Prefix() | Width(2)) == ["<= 08:00", "<= 08:01", "<= 08:02", "08:00..08:01", "08:01..08:02"]


@EVERY_BY
@EVERY_RANGE
def test_the_levels_that_come_by_themselves_are_the_coarser_periods(by: Any, name: str) -> None:
    first, last = RANGES[name]
    domain = Dates(first, last, by=by, **CELLS)
    expect = {"day": [*BY[1:], "weekday"], "month": ["quarter", "year"], "quarter": ["year"]}.get(by, [])
    assert list(domain.levels) == list(domain.implied) == expect
    starts = {label(day, by): day for day in reversed(days_of(first, last))}
    for level in set(expect) - {"weekday"}:
        names = domain.levels[level].domain.labels()
        groups = [names[code] for code in domain.levels[level].codes.tolist()]
        assert groups == [*(label(starts[cell], level) for cell in domain.labels()[:-2]), "other", "missing"]


def test_the_weekdays_of_days_are_a_level() -> None:
    first, last = RANGES["around new year"]
    level = Dates(first, last, **CELLS).levels["weekday"]
    names = level.domain.labels()
    assert [names[code] for code in level.codes.tolist()] == [
        *(day.strftime("%A") for day in days_of(first, last)),
        *("other", "missing"),
    ]
    assert names[:2] == ["Monday", "Tuesday"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("year", lambda day: day.year),
        ("quarter", lambda day: (day.month + 2) // 3),
        ("month", lambda day: day.month),
        ("day", lambda day: day.day),
        ("doy", lambda day: day.timetuple().tm_yday),
        ("dow", lambda day: day.isoweekday() % 7),
        ("isodow", lambda day: day.isoweekday()),
        ("week", lambda day: day.isocalendar()[1]),
        ("isoyear", lambda day: day.isocalendar()[0]),
    ],
)
@EVERY_RANGE
def test_the_parts_of_a_day_are_those_of_the_calendar(part: str, value: Callable[[date], int], name: str) -> None:
    first, last = RANGES[name]
    assert Dates(first, last).part(part).tolist() == [value(day) for day in days_of(first, last)]


@pytest.mark.parametrize(("by", "part"), [("week", "month"), ("month", "day"), ("year", "quarter"), ("month", "week")])
def test_a_part_that_a_period_does_not_decide_is_refused(by: Any, part: str) -> None:
    with pytest.raises(WorkloadError, match=f"'{part}' of a date: a {by} does not decide it; declare by: day"):
        Dates("2020", "2021", by=by).part(part)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(WorkloadError, match="'century' of a date: it is not known; known: 'year'"):
        Dates("2020", "2021").part("century")
    with pytest.raises(WorkloadError, match="'minute' of a time: an hour does not decide it"):
        Times("00:00", "24:00").part("minute")


def test_the_parts_of_a_minute_are_its_hour_and_its_minute() -> None:
    domain = Times("08:58", "09:02", by="minute")
    assert domain.part("hour").tolist() == [8, 8, 9, 9]
    assert domain.part("minute").tolist() == [58, 59, 0, 1]


def test_levels_may_be_declared_beside_those_that_come_by_themselves() -> None:
    waves = {"wave": {"first": [("2020-03", "2020-06-15")], "later": ["2020-06-16", ("2020-06-17", "2020-07")]}}
    domain = Dates("2020-03-01", "2020-07-31", levels=waves)
    assert list(domain.levels) == ["wave", "week", "month", "quarter", "year", "weekday"]
    assert np.bincount(domain.levels["wave"].codes).tolist() == [107, 46]


def test_a_declared_level_takes_the_place_of_one_that_comes_by_itself() -> None:
    domain = Dates("2020", "2021", by="year", levels={"year": {"both": ["2020", "2021"]}})
    assert (domain.levels["year"].domain.labels(), domain.implied) == (["both"], ())
    months = Dates("2020", "2020", by="month", levels={"year": {"all": [("2020-01", "2020-12")]}})
    assert (months.levels["year"].domain.labels(), months.implied) == (["all"], ("quarter",))


STAY = Schema(
    came=Dates("2020", "2021"), left=Dates("2020", "2021", by="month"), at=Times("08:00", "10:00", by="minute")
)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("came month", ("came", "month")),
        ("left year", ("left", "year")),
        ("Left Year", ("left", "year")),
        ("month", ("came", "month")),
        ("weekday", ("came", "weekday")),
        ("hour", ("at", "hour")),
        ("at hour", ("at", "hour")),
    ],
)
def test_a_level_has_a_long_name_and_a_short_one_if_no_other_attribute_has_it(name: str, place: Any) -> None:
    assert STAY.resolve(name) == place
    assert STAY.resolve(STAY.level_name(*place)) == place


def test_a_short_name_that_two_attributes_have_is_refused_with_the_long_ones() -> None:
    with pytest.raises(
        WorkloadError, match="'Year' is a level of 'came' and of 'left'; write 'came year' or 'left year'"
    ):
        STAY.resolve("Year")


def test_what_is_declared_has_the_name_before_what_comes_by_itself() -> None:
    groups = {"year": {"low": [0], "high": [1]}}
    schema = Schema(came=Dates("2020", "2021"), month=range(12), n=Integers(0, 1, levels=groups))
    assert [schema.resolve(name) for name in ("month", "year", "came month", "came year")] == [
        *(("month", None), ("n", "year"), ("came", "month"), ("came", "year"))
    ]


def test_dates_may_be_parts_of_a_merged_attribute() -> None:
    both = Merged(came=Dates("2020-12", "2021-01", by="month"), left=Dates("2020-12", "2021-01", by="month"))
    schema = Schema(stay=both)
    assert both.labels() == ["2020-12, 2020-12", "2020-12, 2021-01", "2021-01, 2020-12", "2021-01, 2021-01"]
    assert schema.resolve("left year") == ("stay", "left year")
    assert schema["stay"].levels["left year"].codes.tolist() == [0, 1, 0, 1]
    assert both.find("2021-01, 2020-12") == 2


def counts_of(schema: Schema, product: Any) -> list[list[int]]:
    """The rows of a product as matrices over one attribute."""
    (name,) = product.predicates
    return product.predicates[name].matrix(name, schema[name]).dense().tolist()


def test_levels_are_asked_for_by_either_name_in_sql_and_in_python() -> None:
    schema = Schema(came=Dates("2020-12-30", "2021-01-02"), left=Dates("2020-12-30", "2021-01-02"))
    rows = [[1, 1, 0, 0], [0, 0, 1, 1]]
    sql = Workload(schema).add_sql("q", 'SELECT "came year", COUNT(*) FROM t GROUP BY "came year"').products[0]
    assert counts_of(schema, sql) == rows
    for name in ("year", "came year"):
        assert counts_of(schema, Workload(schema).add("q", came=Level(name)).products[0]) == rows
        where = Where(f"\"{name}\" = 2021 AND came < '2021-01-02'")
        assert counts_of(schema, Workload(schema).add("q", came=where).products[0]) == [[0, 0, 1, 0]]
    across = Workload(schema).add("q", where="\"came year\" = '2021' OR \"left weekday\" = 'Friday'")
    assert len(across.products) == 1


def test_a_level_of_another_attribute_is_refused() -> None:
    with pytest.raises(WorkloadError, match="'came' has no level 'left year'"):
        Workload(STAY).add("q", came=Level("left year")).encoded  # noqa: B018


def test_times_read_to_the_minute() -> None:
    domain = Times("08:30", "10:15")
    texts = [
        b"08:30",
        b"08:29",
        b"09:59:59.999",
        b"10:14",
        b"10:15",
        b"2021-03-01T09:00:00Z",
        b"2021-03-01 09:00+05:30",
    ]
    assert domain.encode(texts).tolist() == [0, OUTSIDE, 1, 2, OUTSIDE, 1, 1]
    assert domain.labels() == ["08:30–08:59", "09:00–09:59", "10:00–10:14"]


@pytest.mark.parametrize(
    "text",
    [
        "24:00",
        "8:30",
        "08:60",
        "08:30:60",
        "0830",
        "08",
        "2021-02-30 08:30",
        "2021-03-01",
        "08:30 AM",
        "٠٨:30",
        "-08:30",
    ],
)
def test_a_text_that_is_nearly_a_time_is_outside(text: str) -> None:
    assert Times("00:00", "24:00").encode([text.encode()]).tolist() == [OUTSIDE]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("%H:%M", "8:30"),
        ("%H%M", "830"),
        ("%H%M", "0830"),
        ("%I:%M %p", "8:30 am"),
        ("%d.%m.%Y %H:%M", "01.03.2021 08:30"),
        ("%H Uhr %M", "8 Uhr 30"),
    ],
)
def test_a_time_is_read_in_the_declared_format(format: str, text: str) -> None:
    assert Times("08:00", "09:00", by="minute", format=format).encode([text.encode()]).tolist() == [30]


@pytest.mark.parametrize(("text", "hour"), [("12:05 AM", 0), ("12:05 pm", 12), ("01:05 AM", 1), ("11:05 Pm", 23)])
def test_twelve_hours_are_read_with_am_and_pm(text: str, hour: int) -> None:
    assert Times("00:00", "24:00", format="%I:%M %p").encode([text.encode()]).tolist() == [hour]


def test_a_number_without_leading_zeros_is_a_time_of_digits() -> None:
    domain = Times("00:00", "24:00", by="minute", format="%H%M")
    assert domain.encode([b"5", b"59", b"60", b"517", b"2359", b"2400", b"0", b"00517"]).tolist() == [
        *(5, 59, OUTSIDE, 317, 1439, OUTSIDE, 0, OUTSIDE)
    ]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("10:00", "08:00"), {}, "first=10:00, last=08:00: the domain is empty; first must come before last"),
        (("08:00", "08:00"), {}, "the domain is empty"),
        (("24:00", "24:00"), {}, "first='24:00': expected a time of whole minutes"),
        (("08:00:30", "09:00"), {}, "first='08:00:30': expected a time of whole minutes"),
        (("8", "09:00"), {}, "first='8': expected a time"),
        ((8, "09:00"), {}, "first=8: expected a time"),
        (("08:00", "25:00"), {}, "last='25:00': expected a time of whole minutes, for example '08:30', or '24:00'"),
        (("08:00", "09:00"), {"by": "second"}, "by='second': expected a size of cells"),
        (("08:00", "09:00"), {"format": "%M"}, "format='%M': an hour is missing"),
        (("08:00", "09:00"), {"by": "minute", "format": "%H"}, 'a minute is missing; .* or declare by="hour"'),
    ],
    ids=str,
)
def test_times_that_make_no_sense_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Times(*arguments, **options)


def test_the_ends_of_times_may_be_times_of_python() -> None:
    assert Times(time(8), time(9, 30)) == Times("08:00", "09:30")


def test_times_are_compared_to_the_minute() -> None:
    hours, minutes = Times("08:00", "11:00"), Times("08:00", "08:04", by="minute")
    assert hours.compare(">=", "09:00").tolist() == hours.compare(">", "08:59").tolist() == [False, True, True]
    assert hours.compare("<=", "09:59").tolist() == hours.compare("<", "10:00:00").tolist() == [True, True, False]
    assert (
        hours.compare("=", "09:00–09:59").tolist() == hours.compare("=", "09:00-09:59").tolist() == [False, True, False]
    )
    assert minutes.compare("=", "08:02").tolist() == [False, False, True, False]
    with pytest.raises(
        WorkloadError, match="cuts through the hour 09:00–09:59; write its first or last minute, 09:00 or 09:59"
    ):
        hours.compare("<=", "09:30")
    with pytest.raises(WorkloadError, match=r"'9 am' is not a value .* write a time as '08:30'"):
        hours.compare("<=", "9 am")


def test_the_hours_of_minutes_are_a_level() -> None:
    domain = Times("08:58", "10:01", by="minute", missing=True)
    level = domain.levels["hour"]
    assert level.domain.labels() == ["08:58–08:59", "09:00–09:59", "10:00", "missing"]
    assert np.bincount(level.codes).tolist() == [2, 60, 1, 1]


def test_a_century_of_days_is_one_vector_and_its_levels_come_on_request() -> None:
    domain = Dates("1925-01-01", "2024-12-31")
    assert (domain.size, domain.labels()[-1]) == (36525, "2024-12-31")
    assert domain.levels["month"].domain.size == 1200


def test_every_day_that_python_knows_may_be_a_cell() -> None:
    domain = Dates(date.min, date.max)
    assert domain.size == date.max.toordinal()
    assert domain.encode([b"0001-01-01", b"9999-12-31"]).tolist() == [0, domain.size - 1]


@pytest.mark.parametrize("format", [None, "%d.%m.%Y", "%d %b %Y %I:%M %p", "%Y-%j", "%A, %d. %B %Y %z", "%y%m%d"])
@EVERY_BY
def test_made_up_records_are_read_back(format: str | None, by: Any) -> None:
    domain = Dates("2019-12-18", "2021-01-12", by=by, format=format, **CELLS)
    texts = [(text or "").encode() for text in domain.records()]
    assert domain.encode(texts).tolist() == list(range(domain.size))


@pytest.mark.parametrize("format", [None, "%I.%M %p", "%H%M", "%d.%m.%Y %H:%M:%S"])
@pytest.mark.parametrize("by", ["hour", "minute"])
def test_made_up_times_are_read_back(format: str | None, by: Any) -> None:
    domain = Times("08:30", "13:15", by=by, format=format, **CELLS)
    texts = [(text or "").encode() for text in domain.records()]
    assert domain.encode(texts).tolist() == list(range(domain.size))


def test_dates_and_listed_values_go_together_in_identity() -> None:
    schema = Schema(came=Dates("2020", "2020", by="quarter"), sex=Listed(["F", "M"]))
    assert Identity().labels("came", schema["came"]) == ["2020-Q1", "2020-Q2", "2020-Q3", "2020-Q4"]
