"""When a number agrees with the paper's, and what the tables and the exit code say about it."""

from dataclasses import replace

import pytest

from hdmm.paper.report.terminal import number, summary, tables
from hdmm.paper.sections import SECTIONS
from hdmm.paper.sections.cells import AtMost, Cell, Equal, Exempt, Rule, Within

CELL = Cell("one-d", "Laplace noise", ("prefix", "64"), "H2", 9.42, 9.42, Equal())


@pytest.mark.parametrize(
    ("rule", "ours", "verdict"),
    [
        (Equal(), 9.4249, "as printed"),
        (Equal(), 9.4151, "as printed"),
        (Equal(), 9.43, "disagrees"),
        (Equal(), 9.41, "disagrees"),
        (Within(0.01), 9.5, "close"),
        (Within(0.01), 9.34, "close"),
        (Within(0.01), 9.53, "disagrees"),
        (Within(0.01), 9.31, "disagrees"),
        (AtMost(), 9.424, "as printed"),
        (AtMost(), 5.0, "lower"),
        (AtMost(), 9.43, "disagrees"),
        (AtMost("its run had failed"), 9.43, "disagrees"),
        (Exempt("a misprint"), 95.0, "exempt"),
        (Exempt("a misprint"), 9.42, "as printed"),
    ],
)
def test_a_rule_accepts_what_it_should_and_nothing_else(rule: Rule, ours: float, verdict: str) -> None:
    cell = replace(CELL, rule=rule, ours=ours)
    assert (cell.verdict, cell.agrees) == (verdict, verdict != "disagrees")


def test_the_printed_digits_decide_how_close_is_equal():
    assert replace(CELL, ours=206_964.4, paper=206_964, digits=0).agrees
    assert not replace(CELL, ours=206_965.0, paper=206_964, digits=0).agrees
    assert not replace(CELL, ours=5.823, paper=5.824, digits=3).agrees


def test_numbers_without_counterpart_are_counted_by_themselves():
    assert replace(CELL, ours=None, footnote="left out").verdict == "not computed"
    assert replace(CELL, paper=None).verdict == "ours alone"
    assert replace(CELL, paper=None).ratio is None


def test_an_exemption_needs_a_reason():
    with pytest.raises(ValueError, match="say why"):
        Exempt("")


def test_the_table_has_the_papers_number_ours_and_the_ratio_in_every_cell():
    cells = [
        replace(CELL, footnote="a remark"),
        replace(CELL, column="HB", ours=10.0),
        replace(CELL, column="LRM", ours=7.0, rule=AtMost("the run had failed"), rounding=2e-5),
        replace(CELL, row=("prefix", "256"), ours=None, paper=13.16, footnote="left out"),
        replace(CELL, row=("prefix", "256"), column="HB", ours=8.97, paper=None),
    ]
    (text,) = tables(SECTIONS["one-d"], cells)
    assert text.splitlines() == [
        "Laplace noise",
        "",
        "workload  domain                  H2          HB        LRM",
        "─" * 59,
        "prefix    64      paper         9.42        9.42       9.42",
        "                  hdmm          9.42       10.00       7.00",
        "                  ratio    1.000 [1]  1.062 ✗[2]  0.743 [3]",
        "                  rounded                            +2e-05",
        "",
        "prefix    256     paper        13.16           –          –",
        "                  hdmm             –        8.97          –",
        "                  ratio          [4]",
        "",
        "  [1] a remark",
        "  [2] disagrees: expected equal to the printed digits",
        "  [3] the run had failed",
        "  [4] left out",
    ]


def test_a_table_that_the_paper_does_not_have_shows_our_numbers_alone():
    cells = [replace(CELL, paper=None, unit="seconds", ours=0.1234), replace(CELL, column="HB", paper=None)]
    (text,) = tables(SECTIONS["one-d"], cells)
    assert "ratio" not in text
    assert "0.12 s" in text


def test_the_summary_counts_every_verdict_and_the_dearest_rounding():
    cells = [CELL, replace(CELL, ours=10.0), replace(CELL, rule=AtMost(), ours=9.0, rounding=3e-5)]
    text = summary(cells)
    assert text.startswith("3 cells: 1 equal to the printed digits, 1 lower, 1 disagrees")
    assert text.endswith("rounding to integers costs at most 3.0e-05")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.46e-5, "35 µs"), (0.00124, "1.2 ms"), (0.0996, "0.1 s"), (0.123, "0.12 s"), (9.96, "10 s"), (307.0, "310 s")],
)
def test_times_have_two_digits_and_a_unit(seconds: float, text: str) -> None:
    assert number(seconds, "seconds") == text
