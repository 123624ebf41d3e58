"""Tables in plain text."""

from hdmm.text import count_text, text_table


def test_numbers_stand_to_the_right_and_text_to_the_left():
    table = text_table(["name", "count"], [["a", 5], ["long name", 1234567.891], [None, 0.00123]])
    assert table.splitlines() == [
        "name              count",
        "─────────  ────────────",
        "a                     5",
        "long name  1,234,567.89",
        "                0.00123",
    ]


def test_a_table_without_rows_has_its_header():
    assert text_table(["a", "b"], []).splitlines() == ["a  b", "─  ─"]


def test_counts_beyond_reading_are_shown_by_their_size():
    assert (count_text(1149540), count_text(10**400), count_text(1024**10)) == ("1,149,540", "1.0e400", "1.2e30")
