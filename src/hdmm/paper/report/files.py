"""Results as files: one CSV for each section, and its pictures."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from hdmm.errors import InputError
from hdmm.paper.sections.base import Outcomes, Section
from hdmm.paper.sections.cells import Cell

COLUMNS = ("table", "row", "column", "paper", "hdmm", "ratio", "unit", "rule", "verdict", "rounding", "note")
"""The columns of the CSV files."""


def prepare(directory: Path) -> None:
    """Make the directory, before anything is computed."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be a directory of results: {error.strerror}; choose another") from None


def save(section: Section, outcomes: Outcomes, cells: Sequence[Cell], directory: Path) -> list[Path]:
    """Write the cells and pictures of a section into a directory, over those of an earlier run."""
    paths = [directory / f"{section.name}.csv"]
    with open(paths[0], "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(map(_record, cells))
    for name, chart in section.charts(outcomes).items():
        for suffix, scale in (("png", 2.0), ("svg", 1.0)):
            paths.append(directory / f"{name}.{suffix}")
            chart.save(paths[-1], scale_factor=scale)
    return paths


def _record(cell: Cell) -> list[object]:
    note = "; ".join(filter(None, (cell.rule.reason, cell.footnote, cell.note)))
    row = " ".join(cell.row)
    return [
        cell.table,
        row,
        cell.column,
        cell.paper,
        cell.ours,
        cell.ratio,
        cell.unit,
        cell.rule.words,
        cell.verdict,
        cell.rounding,
        note,
    ]
