"""Headers and texts of text files, by the rules of :mod:`hdmm.data.lines`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hdmm.data.csv import CsvFile, _blocks
from hdmm.data.fields import PADDING, distinct
from hdmm.data.lines import LONGEST_LINE, header, records, separators, unquote
from hdmm.data.look.column import Column, Piece
from hdmm.data.text_file import opened
from hdmm.errors import DataError
from hdmm.schema.text import BLANKS

_DELIMITERS = ",;\t|"
_UNDECODABLE = "�"
_LONGEST_SHOWN = 400
"""Characters of a text that are kept: a longer one is free text, whatever follows."""


def text_columns(files: Sequence[CsvFile]) -> list[Column]:
    """The columns that the headers name; all files must have the same ones."""
    first = _names(files[0])
    for file in files[1:]:
        if _names(file) != first:
            raise DataError(f"{file.path}: its header differs from that of {files[0].path}; give files of one kind")
    return [Column(name) for name in first]


def header_delimiter(file: CsvFile) -> str | None:
    """The delimiter that the header seems to have, if it is another one than the file is read with."""
    line = file.first_line()
    counts = {mark: len(header(line, ord(mark))) for mark in {*_DELIMITERS, file.delimiter}}
    best = max(_DELIMITERS, key=lambda mark: counts[mark])
    return best if counts[file.delimiter] == 1 < counts[best] else None


def text_texts(files: Sequence[CsvFile]) -> Iterator[Piece]:
    """The texts of all files, one after the other."""
    sizes = [file.path.stat().st_size for file in files]
    before, total = 0, sum(sizes)
    for csv, size in zip(files, sizes, strict=True):
        with opened(csv.path, csv.encoding, damaged=DataError) as file:
            width = len(header(file.text.readline(LONGEST_LINE), ord(csv.delimiter)))
            for lines in _blocks(file.text, csv.chunk_size):
                at = (before + size * file.fraction()) / max(total, 1)
                yield _piece(lines, ord(csv.delimiter), width, at)
        before += size


def _names(csv: CsvFile) -> list[str]:
    names = csv.column_names()
    if names == [""]:
        raise DataError(f"{csv.path}: there is no header; the first line must name the columns")
    if any(_UNDECODABLE in name for name in names):
        text = csv.encoding or "UTF-8"
        raise DataError(f"{csv.path}: the header is not {text} text; state its encoding, such as --encoding latin-1")
    if sum(not name or _is_number(name) for name in names) * 2 > len(names):
        raise DataError(
            f"{csv.path}: the first line holds mostly numbers, so that it seems to be a record; "
            "write a header with the names of the columns before it"
        )
    return names


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _piece(lines: bytes, delimiter: int, width: int, fraction: float) -> Piece:
    data = lines + PADDING
    block = np.frombuffer(lines, np.uint8)
    marks = separators(block, delimiter)
    first = records(block, marks, width)
    breaks = np.flatnonzero(block[marks] == ord("\n"))
    fields = np.diff(breaks)
    filled = np.diff(marks[breaks]) > 1
    quoted = b'"' in lines
    columns: list[tuple[Sequence[str], Any]] = []
    broken = np.zeros(len(first), bool)
    for place in range(width):
        found, which = distinct(data, marks[first + place] + 1, marks[first + place + 1])
        trimmed = [unquote(text) if quoted else text.strip(BLANKS) for text in found]
        decoded = [text.decode(errors="replace")[:_LONGEST_SHOWN] for text in trimmed]
        bad = np.fromiter((_UNDECODABLE in text for text in decoded), bool, len(decoded))
        if bad.any():
            broken |= bad[which]
        columns.append((decoded, which))
    ragged = filled & (fields != width)
    return Piece(
        len(first),
        columns,
        fraction,
        int(ragged.sum()),
        int((filled & (fields == width + 1)).sum()),
        int(broken.sum()),
    )
