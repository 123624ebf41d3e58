"""What comments cite can be opened: sections of docs/math.md, and printed sections of the paper."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
FILES += [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
SECTIONS = {
    *map(str, range(1, 14)),
    *("2.1", "2.2", "2.3", "2.4", "2.5", "3.1", "3.2", "4.1", "4.2", "4.3", "4.4", "5.1", "5.2", "5.3", "5.4"),
    *("6.1", "6.2", "10.1", "11.1", "11.2"),
}
"""The printed sections of the paper."""
UNPRINTED = re.compile(r"MATH §|TRUST,? rule|\b(?:def|thm|eq|prop|prob|sec|alg):[a-z]")
"""Notes that are not in the repository, and LaTeX labels."""


def cited(pattern: str) -> set[tuple[str, str]]:
    """Every match of a pattern, with the file that holds it."""
    texts = {path: re.sub(r"\s+", " ", path.read_text(encoding="utf-8")) for path in FILES if path != Path(__file__)}
    return {(str(path.relative_to(ROOT)), match) for path, text in texts.items() for match in re.findall(pattern, text)}


def test_sections_of_the_mathematics_are_there():
    sections = set(re.findall(r"^## (\d+)\. ", (ROOT / "docs" / "math.md").read_text(encoding="utf-8"), re.M))
    found = cited(r"docs/math\.md, sections? (\d+)")
    assert len(found) > 15
    assert {(path, number) for path, number in found if number not in sections} == set()


def test_sections_of_the_paper_are_printed_ones():
    found = cited(r"paper, section (\d+(?:\.\d+)?)")
    assert len(found) > 10
    assert {(path, number) for path, number in found if number not in SECTIONS} == set()


def test_nothing_is_cited_that_cannot_be_opened():
    assert cited(UNPRINTED.pattern) == set()


def test_files_that_the_documentation_names_are_there():
    places = [ROOT, ROOT / "src" / "hdmm", ROOT / "src" / "hdmm" / "privacy" / "sampling", ROOT / "src"]
    places += [ROOT / "tests" / folder for folder in ("attack", "fuzz")]
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    named = {(page.name, name) for page in pages for name in re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8"))}
    assert len(named) > 20
    assert {(page, name) for page, name in named if not any((place / name).exists() for place in places)} == set()
