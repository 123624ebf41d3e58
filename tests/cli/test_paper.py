"""`hdmm paper`: what it lists, prints, writes and returns."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hdmm.paper import sections
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import Cell, Equal


def three(ours: float) -> Mapping[str, Any]:
    """A computation."""
    return {"number": ours}


class Numbers(Section):
    """One number that the paper prints as 3.00."""

    name, title, row_names = "numbers", "Numbers of a test", ("n",)
    ours = 3.0

    def tasks(self) -> list[Task]:
        return [Task("three", three, (self.ours,)), Task("four", three, (4.0,), slow=True)]

    def cells(self, outcomes: Outcomes) -> list[Cell]:
        four = outcomes["four"]["number"] if "four" in outcomes else None
        return [
            Cell(self.name, "Table", ("1",), "H2", outcomes["three"]["number"], 3.0, Equal()),
            Cell(self.name, "Table", ("1",), "HB", four, None, Equal(), footnote="" if four else "left out"),
        ]

    def charts(self, outcomes: Outcomes) -> Mapping[str, Any]:
        import altair as alt

        data = alt.InlineData(values=[{"x": outcomes["three"]["number"]}])
        return {"numbers": alt.Chart(data).mark_point().encode(x="x:Q")}


@pytest.fixture(autouse=True)
def numbers(monkeypatch, tmp_path):
    section = Numbers()
    monkeypatch.setattr(sections, "SECTIONS", {"numbers": section})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return section


def test_the_help_lists_every_section(run, monkeypatch):
    monkeypatch.undo()
    text = " ".join(run("paper", "--help").out.replace("│", " ").split())
    assert [name for name in sections.SECTIONS if not re.search(rf"\b{name}\b", text)] == []
    assert all(option in text for option in ("--out", "--fast", "--jobs", "--no-cache", "--check"))


def test_a_run_in_which_everything_agrees_succeeds(run):
    done = run("paper")
    assert done.code == 0
    assert "ratio  1.000" in done.out
    assert "2 cells: 1 equal to the printed digits, 1 not in the paper, 0 disagree" in done.out


def test_a_number_that_disagrees_is_marked_and_fails_the_run(run, numbers, monkeypatch):
    monkeypatch.setattr(Numbers, "ours", 3.01)
    done = run("paper", "numbers")
    assert done.code == 1
    assert "1.003 ✗[1]" in done.out
    assert "1 disagrees" in done.out


def test_a_fast_run_says_what_it_leaves_out(run):
    done = run("paper", "--fast")
    assert (done.code, "left out" in done.out, "1 not computed" in done.out) == (0, True, True)
    assert "left out" not in run("paper").out
    assert "left out" not in run("paper", "--fast").out  # it is known now


def test_files_are_written_to_a_directory(run, tmp_path: Path):
    assert run("paper", "--out", "results").code == 0
    assert sorted(path.name for path in Path("results").iterdir()) == ["numbers.csv", "numbers.png", "numbers.svg"]
    with open("results/numbers.csv", encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["row"], first["column"], first["paper"], first["hdmm"]) == ("1", "H2", "3.0", "3.0")
    assert (first["verdict"], second["verdict"], second["paper"]) == ("as printed", "ours alone", "")
    assert Path("results/numbers.png").read_bytes().startswith(b"\x89PNG")
    assert run("paper", "--out", "results").code == 0  # written again


def test_without_a_cache_nothing_is_kept(run, tmp_path: Path):
    run("paper", "--no-cache")
    assert not (tmp_path / "caches").exists()
    run("paper")
    assert len(list((tmp_path / "caches" / "hdmm" / "paper").iterdir())) == 2


def test_an_unknown_section_is_named_with_the_nearest(run):
    done = run("paper", "number")
    assert (done.code, "number: no section of the paper" in done.err, "numbers" in done.err) == (2, True, True)


def test_a_place_where_no_files_can_be_is_refused_before_anything_is_computed(run, tmp_path: Path):
    Path("taken").write_text("")
    done = run("paper", "--out", "taken")
    assert (done.code, "taken: cannot be a directory of results" in done.err) == (2, True)
    assert not (tmp_path / "caches").exists()


def test_a_check_and_sections_together_are_refused(run):
    done = run("paper", "numbers", "--check", "one-d")
    assert (done.code, "--check" in done.err) == (2, True)
