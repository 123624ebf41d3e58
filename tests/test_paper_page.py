"""docs/paper.md names what exists, maps everything that the paper numbers, and shows every number that it prints."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from docs.paper import PAGE, blocks, page, written
from hdmm.paper.report.terminal import number
from hdmm.paper.sections import SECTIONS
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import AtMost, Cell, Equal
from hdmm.paper.sections.printed import printed_tables
from hdmm.paper.sections.since import published

ROOT = Path(__file__).parents[1]
TEXT = PAGE.read_text(encoding="utf-8")
NUMBERED = {
    **{f"Definition {n}": 22 for n in range(1, 23)},
    **{f"Theorem {n}": 17 for n in range(1, 18)},
    **{f"Proposition {n}": 8 for n in range(1, 9)},
    **{f"Example {n}": 15 for n in range(1, 16)},
    **{f"Table {n}": 7 for n in range(1, 8)},
    **{f"Figure {n}": 3 for n in range(1, 4)},
    "Problem 1": 1,
    "Algorithm 1 (section 5)": 1,
    "Algorithm 1 (section 10)": 1,
}
"""Everything that the paper numbers."""


def rows() -> list[list[str]]:
    """The rows of the map: what of the paper, its name, code and tests."""
    text = TEXT.partition("## Map")[2].partition("## Since")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [line for line in lines if line[0] != "paper"]


def code() -> set[str]:
    return set(re.findall(r"`(hdmm(?:\.\w+)+)`", TEXT))


def named_tests() -> set[tuple[str, str]]:
    return set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT))


def test_every_function_and_class_that_it_names_is_there():
    assert len(code()) > 40
    for name in code():
        parts = name.split(".")
        for split in range(len(parts), 0, -1):
            try:
                value = import_module(".".join(parts[:split]))
            except ModuleNotFoundError:
                continue
            for part in parts[split:]:
                value = getattr(value, part)
            break


def test_every_test_that_it_names_is_there():
    assert len(named_tests()) > 50
    for path, name in named_tests():
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"


def test_everything_that_the_paper_numbers_is_mapped_once():
    mapped = []
    for row in rows():
        pair = re.fullmatch(r"(Table|Figure)s (\d+) and (\d+)", row[0])
        mapped += [f"{pair[1]} {pair[2]}", f"{pair[1]} {pair[3]}"] if pair else [row[0]]
    assert [item for item in mapped if re.match(r"[A-Z]", item) and item not in NUMBERED] == []
    assert {item for item in NUMBERED if mapped.count(item) != 1} == set()


def test_every_row_of_the_map_names_code_and_a_test():
    for row in rows():
        assert len(row) == 4, row
        assert "`" in row[2] or "](" in row[2], row
        assert "::test_" in row[3], row


def test_every_section_with_tables_has_its_results():
    assert set(blocks(TEXT)) == set(SECTIONS)
    assert [name for name, block in blocks(TEXT).items() if not block.strip()] == []


def test_no_result_disagrees():
    assert "✗" not in TEXT


@pytest.mark.parametrize("key", sorted(printed_tables()))
def test_every_number_of_the_tables_is_shown(key):
    table = printed_tables()[key]
    block = blocks(TEXT)["one-d" if "1d" in key else "multi-d"]
    lines = re.split(re.escape(f"**{table.heading}**"), block)[1].split("\n**")[0].splitlines()
    for case, columns in table.rows:
        (line,) = [line for line in lines if line.startswith(f"| {case[0]} | {case[1]} |")]
        shown = {cell.split(" ")[0] for cell in line.strip("| ").split(" | ")}
        assert {number(value) for value in columns.values() if value is not None} <= shown


@pytest.mark.parametrize("key", sorted(printed_tables()))
def test_every_number_that_the_paper_prints_has_one_beside_it(key):
    """Only what the paper leaves blank too may be a dash."""
    block = blocks(TEXT)["one-d" if "1d" in key else "multi-d"]
    text = re.split(re.escape(f"**{printed_tables()[key].heading}**"), block)[1].split("\n**")[0]
    cells = [cell for line in text.splitlines() if line.startswith("| ") for cell in line.strip("| ").split(" | ")]
    assert [cell for cell in cells if "→ –" in cell and not cell.startswith("– →")] == []


def test_every_published_number_of_others_is_shown():
    block = blocks(TEXT)["since"]
    for kind in ("identity marginals", "prefix marginals"):
        for survey in ("CPS", "Loans", "Adult"):
            for other in published()[kind][survey].values():
                assert f" {number(other, digits=3)} " in block


def test_writing_the_same_results_again_changes_nothing():
    assert page(TEXT, blocks(TEXT)) == TEXT


class _Small(Section):
    name = "since"
    title = "Small"
    row_names = ("workload",)

    def tasks(self) -> list[Task]:
        return []

    def cells(self, outcomes: Outcomes) -> list[Cell]:
        return [
            Cell("since", "Errors", ("ranges",), "lower", 1.0, 2.0, AtMost()),
            Cell("since", "Errors", ("ranges",), "same", 2.004, 2.0, Equal()),
            Cell("since", "Errors", ("ranges",), "worse", 3.0, 2.0, AtMost(), footnote="why"),
            Cell("since", "Errors", ("ranges",), "missing", None, 2.0, AtMost(), footnote="takes long"),
        ]


def test_results_are_written_as_tables():
    assert written(_Small(), {}) == (
        "\n**Errors**\n\n"
        "| workload | lower | same | worse | missing |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| ranges | 2.00 → **1.00** | 2.00 | 2.00 → 3.00 ✗ [1] | 2.00 → – [2] |\n\n"
        "[1] disagrees: expected at most the number beside it; why.\n\n"
        "[2] takes long.\n\n"
    )
    assert blocks(page(TEXT, {"since": written(_Small(), {})}))["since"] == written(_Small(), {})
