"""How texts are read as numbers."""

from datetime import date

import pytest

from hdmm.proposal.readings import Amounts, Days, Minutes, choose_reading


def counts(*texts: str) -> dict[str, int]:
    return dict.fromkeys(texts, 1)


@pytest.mark.parametrize(
    ("texts", "reading"),
    [
        (["1", "-2", "3.5"], Amounts()),
        (["1,234", "17", "2,000,000.50"], Amounts(thousands=",")),
        (["12,5", "3,25", "7"], Amounts(point=",")),
        (["1.234,50", "12,5"], Amounts(thousands=".", point=",")),
        (["$500", "$1,200"], Amounts(thousands=",", currency="$")),
        (["1 200 €", "30 €"], Amounts(thousands=" ", currency="€")),
        (["1'200", "30"], Amounts(thousands="'")),
        (["2020-02-29", "2021-01-01"], Days(None)),
        (["2020-02-29T10:00:00Z", "2021-01-01 08:30"], Days(None)),
        (["2020-2-29", "2021-1-1"], Days("%Y-%m-%d")),
        (["29.02.2020", "01.01.2021"], Days("%d.%m.%Y")),
        (["02/29/2020", "01/12/2021"], Days("%m/%d/%Y")),
        (["29/02/2020", "01/12/2021"], Days("%d/%m/%Y")),
        (["20200229", "20210101"], Days("%Y%m%d")),
        (["Jan 1 2000", "feb 28 2001"], Days("%b %d %Y")),
        (["2020-02", "2020-11"], Days("%Y-%m")),
        (["08:30", "23:59:10"], Minutes(None)),
        (["8:30", "23:59"], Minutes("%H:%M")),
        (["8:30 am", "11:59 PM"], Minutes("%I:%M %p")),
        (["red", "green"], None),
        (["1", "a", "b", "c", "d"], None),
        (["NA"], None),
    ],
)
def test_the_way_of_writing_is_recognised(texts, reading):
    assert choose_reading(counts(*texts)) == reading


def test_missing_words_do_not_matter():
    assert choose_reading({"NA": 900, "?": 5, "1": 2, "2": 3}) == Amounts()


def test_a_few_mistakes_do_not_matter():
    assert choose_reading({"1": 60, "2": 39, "two": 1}) == Amounts()


def test_too_many_mistakes_do():
    assert choose_reading({"1": 60, "2": 30, "two": 10}) is None


def test_numbers_of_eight_digits_are_dates_only_if_all_are():
    assert choose_reading(counts("20200229", "20211301")) == Amounts()


@pytest.mark.parametrize(
    ("reading", "text", "value"),
    [
        (Amounts(thousands=","), "1,234", 1234),
        (Amounts(thousands=","), "1,23", None),
        (Amounts(point=","), "1,5", 1.5),
        (Amounts(currency="$"), "-$5", -5),
        (Amounts(), "nan", None),
        (Amounts(), "1e3", 1000),
        (Amounts(), "٣", None),
        (Days(None), "2020-02-30", None),
        (Days("%d/%m/%y"), "01/02/68", date(2068, 2, 1).toordinal()),
        (Days("%d/%m/%y"), "01/02/69", date(1969, 2, 1).toordinal()),
        (Days("%B %Y"), "March 2021", date(2021, 3, 1).toordinal()),
        (Minutes("%I:%M %p"), "12:05 am", 5),
        (Minutes("%I:%M %p"), "12:05 pm", 725),
        (Minutes("%I:%M %p"), "13:05 pm", None),
        (Minutes("%H:%M"), "24:00", None),
    ],
)
def test_a_text_is_read_as_it_is_written(reading, text, value):
    assert reading.value(text) == value
