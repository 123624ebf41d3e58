"""Looks at public records, once and from beginning to end: a summary of every column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.data import Source
from hdmm.data.look import Column, texts
from hdmm.errors import DataError
from hdmm.proposal.dependence import Dependences
from hdmm.proposal.summary import Collector, ColumnSummary

_RAGGED = 0.01
"""A larger share of lines with another number of fields than the header is mentioned in the spec."""
_NAMES = 0.5
"""If a larger share of the names of columns are values of theirs, the names are a record."""


@final
@dataclass(frozen=True)
class Look:
    """What public records hold."""

    records: int
    summaries: Sequence[ColumnSummary]
    dependences: Dependences
    warnings: Sequence[str]


def look(source: Source, columns: Sequence[Column], on_progress: Callable[[float], None]) -> Look:
    """Read all records in bounded memory."""
    collectors = [Collector(column) for column in columns]
    dependences = Dependences(len(columns))
    records = ragged = longer = undecodable = 0
    for piece in texts(source):
        records += piece.records
        ragged, longer = ragged + piece.ragged, longer + piece.longer
        undecodable += piece.undecodable
        for collector, (found, which) in zip(collectors, piece.columns, strict=True):
            collector.add(found, np.bincount(which, minlength=len(found)).tolist())
        dependences.add(piece)
        on_progress(piece.fraction)
    if not records:
        raise DataError(_empty(ragged, longer))
    summaries = [collector.summary() for collector in collectors]
    alike = [summary.column.name for summary in summaries if _is_value(summary)]
    if len(alike) >= 2 and len(alike) > _NAMES * len(summaries):
        raise DataError(
            f"data: {len(alike)} of the {len(summaries)} names of columns are values of these columns, such as "
            f"{', '.join(map(repr, alike[:3]))}, so that the first line seems to be a record; write a header with the "
            "names of the columns before it"
        )
    warnings = []
    if undecodable:
        warnings.append(
            f"{undecodable:,} records hold bytes that are no text in the encoding that the file is read in; state the "
            "right one (--encoding latin-1)"
        )
    if ragged > _RAGGED * records:
        warnings.append(
            f"{ragged:,} lines have another number of fields than the header and will not be counted; check the "
            "delimiter, and flatten fields with line breaks"
        )
    return Look(records, summaries, dependences, warnings)


def _is_value(summary: ColumnSummary) -> bool:
    """Whether the name of a column is one of its values, or is read as they are: as a number, a date or a time."""
    name = summary.column.name
    return name in summary.counts or (summary.reading is not None and summary.reading.value(name) is not None)


def _empty(ragged: int, longer: int) -> str:
    if ragged and longer == ragged:
        return (
            "data: every line has one field more than the header, as R writes row names; give the first column a name "
            "in the header, or write the file without row names (write.csv(x, row.names = FALSE))"
        )
    if ragged:
        return "data: no line has as many fields as the header; check the delimiter (--delimiter)"
    return "data: there are no records to look at; leave out --public, or give a file with records"
