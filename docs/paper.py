"""Write the tables of docs/paper.md again, from what `hdmm paper` computes or has in its cache: ``make paper-page``."""

import re
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from hdmm.paper.cache import Cache, user_directory
from hdmm.paper.report.terminal import footnote, number
from hdmm.paper.run import run
from hdmm.paper.sections import SECTIONS
from hdmm.paper.sections.base import Outcomes, Section
from hdmm.paper.sections.cells import Cell

PAGE = Path(__file__).parent / "paper.md"
_BLOCK = re.compile(r"(?s)<!-- results of hdmm paper ([\w-]+) -->\n(.*?)<!-- end of results -->\n")


def blocks(text: str) -> dict[str, str]:
    """The results on a page, by the names of their sections."""
    return dict(_BLOCK.findall(text))


def page(text: str, results: dict[str, str]) -> str:
    """The same page with other results; sections without results keep theirs."""

    def block(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- results of hdmm paper {name} -->\n{results.get(name, match[2])}<!-- end of results -->\n"

    return _BLOCK.sub(block, text)


def written(section: Section, outcomes: Outcomes) -> str:
    """The tables of a section as Markdown: in every cell what is printed and what was computed."""
    parts = [
        _table(heading, section, list(group))
        for heading, group in groupby(section.cells(outcomes), key=lambda cell: cell.table)
    ]
    remarks = (remark.strip() for remark in section.remarks(outcomes))
    parts += [f"```\n{remark}\n```" if "\n" in remark else remark for remark in remarks]
    return "".join(f"\n{part}\n" for part in parts) + "\n"


def _table(heading: str, section: Section, cells: Sequence[Cell]) -> str:
    columns = list(dict.fromkeys(cell.column for cell in cells))
    notes: dict[str, int] = {}
    lines = [[*section.row_names, *columns], ["---"] * len(section.row_names) + ["---:"] * len(columns)]
    for row, group in groupby(cells, key=lambda cell: cell.row):
        by_column = {cell.column: cell for cell in group}
        shown = (by_column.get(column) for column in columns)
        lines.append([*row, *("" if cell is None else _numbers(cell, notes) for cell in shown)])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    explained = "".join(f"\n\n[{place}] {note}." for note, place in notes.items())
    return f"**{heading}**\n\n{table}{explained}"


def _numbers(cell: Cell, notes: dict[str, int]) -> str:
    """`printed → computed`, bold if it is lower; a single number if both agree to the printed digits."""
    ours, other = (number(value, cell.unit, cell.digits) for value in (cell.ours, cell.paper))
    match cell.verdict:
        case "as printed":
            text = other
        case "lower":
            text = f"{other} → **{ours}**"
        case "ours alone":
            text = ours
        case "disagrees":
            text = f"{other} → {ours} ✗"
        case _:
            text = f"{other} → {ours}"
    note = footnote(cell)
    return f"{text} [{notes.setdefault(note, len(notes) + 1)}]" if note else text


def main(arguments: Sequence[str]) -> None:
    """Write the results of the named sections, or of all on the page.

    --fast leaves out what takes long, as the command does; --cached computes nothing.
    """
    options = {argument for argument in arguments if argument.startswith("--")}
    text = PAGE.read_text(encoding="utf-8")
    cache = Cache(user_directory())
    results: dict[str, str] = {}
    for name in [argument for argument in arguments if argument not in options] or blocks(text):
        section = SECTIONS[name]
        if "--cached" in options:
            recalled = {task.name: cache.recall(task) for task in section.tasks()}
            outcomes: Outcomes = {task: outcome for task, outcome in recalled.items() if outcome is not None}
        else:
            outcomes = run(section, cache, fast="--fast" in options)
        results[name] = written(section, outcomes)
        PAGE.write_text(page(text, results), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
