"""Cells as the paper's tables, for a terminal: in every cell the paper's number, ours below it, and their ratio."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from hdmm.paper.sections.base import Section
from hdmm.paper.sections.cells import Cell, Unit
from hdmm.text import bytes_text

_BLANK = "–"


def tables(section: Section, cells: Sequence[Cell]) -> Iterator[str]:
    """Each table of a section with its heading and footnotes."""
    for heading, group in groupby(cells, key=lambda cell: cell.table):
        yield _table(heading, section, list(group))


def summary(cells: Sequence[Cell]) -> str:
    """How many cells agree, in one sentence."""
    counts = Counter(cell.verdict for cell in cells)
    words = {
        "as printed": "equal to the printed digits",
        "lower": "lower",
        "close": "within the tolerance",
        "exempt": "exempt",
        "ours alone": "not in the paper",
        "not computed": "not computed",
    }
    parts = [f"{counts[verdict]} {text}" for verdict, text in words.items() if counts[verdict]]  # type: ignore[index]
    wrong = counts["disagrees"]
    parts.append(f"{wrong} {'disagrees' if wrong == 1 else 'disagree'}")
    rounded = [cell.rounding for cell in cells if cell.rounding is not None]
    cost = f"; rounding to integers costs at most {max(rounded):.1e}" if rounded else ""
    return f"{len(cells)} cells: {', '.join(parts)}{cost}"


def number(value: float | None, unit: Unit = "", digits: int = 2) -> str:
    """A number as the tables show it."""
    if value is None:
        return _BLANK
    if unit == "bytes":
        return bytes_text(round(value))
    if unit == "seconds":
        return _duration(value)
    return f"{value:,.{digits}f}"


def _duration(seconds: float) -> str:
    """A time to two digits: `35 µs`, `1.2 ms`, `0.12 s`, `310 s`."""
    for unit, share in (("µs", 1e-6), ("ms", 1e-3)):
        if float(f"{seconds:.2g}") < 100 * share:
            return f"{float(f'{seconds / share:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s"


def _table(heading: str, section: Section, cells: Sequence[Cell]) -> str:
    row_names, counterpart = section.row_names, section.counterpart
    columns = list(dict.fromkeys(cell.column for cell in cells))
    notes: dict[str, int] = {}
    alone = all(cell.paper is None for cell in cells)
    lines = [[*row_names, "", *columns]]
    for row, group in groupby(cells, key=lambda cell: cell.row):
        by_column = {cell.column: cell for cell in group}
        shown = [by_column.get(column) for column in columns]
        if alone:
            lines.append([*row, "", *(_BLANK if c is None else _alone(c, notes) for c in shown)])
            continue
        lines.append([*row, counterpart, *(_BLANK if c is None else number(c.paper, c.unit, c.digits) for c in shown)])
        blank = [""] * len(row)
        lines.append([*blank, "hdmm", *(_BLANK if c is None else number(c.ours, c.unit, c.digits) for c in shown)])
        lines.append([*blank, "ratio", *("" if c is None else _ratio(c, notes) for c in shown)])
        if any(c is not None and c.rounding is not None for c in shown):
            costs = ("" if c is None or c.rounding is None else f"{c.rounding:+.0e}" for c in shown)
            lines.append([*blank, "rounded", *costs])
    left = len(row_names) + 1
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join([t.ljust(w) for t, w in zip(line[:left], widths, strict=False)])
        + "".join("  " + t.rjust(w) for t, w in zip(line[left:], widths[left:], strict=True))
        for line in lines
    ]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
    per_row = [rows[0].rstrip(), rule]
    for line, row in zip(lines[1:], rows[1:], strict=True):
        if line[len(row_names)] == counterpart and len(per_row) > 2:
            per_row.append("")
        per_row.append(row.rstrip())
    footnotes = [f"  [{place}] {note}" for note, place in notes.items()]
    return "\n".join([heading, "", *per_row, *([""] if footnotes else []), *footnotes]) + "\n"


def _ratio(cell: Cell, notes: dict[str, int]) -> str:
    """The ratio with a mark if it disagrees, and the number of the footnote that explains the cell."""
    text = "" if cell.ratio is None else f"{cell.ratio:.3f}"
    mark = "" if cell.agrees else "✗"
    note = footnote(cell)
    number = f"[{notes.setdefault(note, len(notes) + 1)}]" if note else ""
    return " ".join(filter(None, (text, mark + number)))


def _alone(cell: Cell, notes: dict[str, int]) -> str:
    """Our number in a table of which the paper has none."""
    note = footnote(cell)
    number_of_note = f" [{notes.setdefault(note, len(notes) + 1)}]" if note else ""
    return number(cell.ours, cell.unit, cell.digits) + number_of_note


def footnote(cell: Cell) -> str:
    """What must be said about a cell, in one sentence; mostly nothing."""
    if cell.verdict == "disagrees":
        return "; ".join(filter(None, (f"disagrees: expected {cell.rule.words}", cell.footnote, cell.note)))
    reason = "" if cell.verdict in ("as printed", "not computed", "ours alone") else cell.rule.reason
    return "; ".join(filter(None, (reason, cell.footnote)))
