"""The rules for text files: a record is one line, taken by itself.

- A file is bytes, cut into lines at ``\\n`` only. The first line is the header; a UTF-8 byte order mark before it is
  ignored.
- A later line that is not empty, once a ``\\r`` at its end is removed, is a record; an empty line holds none.
- Within a line every ``"`` switches between inside and outside quotes, and a delimiter inside quotes does not separate.
  Nothing carries over to the next line, so a quoted field cannot hold a line break.
- A line that does not have as many fields as the header, or is longer than a mebibyte, is not a record and is dropped.
- A field is trimmed of blanks (space, tab, ``\\r``). If it then has a quote at both ends, these two are removed, every
  ``""`` between them becomes ``"``, and what is left is trimmed again. :meth:`Domain.encode` sees the result.

So a broken quote, a stray byte or a missing field changes what its own line counts for, and nothing else. The line
breaks are found without looking at quotes, and the quotes of a line are counted from its own start.

The functions below work on a *block*: whole lines as an array of bytes, with the line break before the first of them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdmm.data.findings import LineFindings
from hdmm.schema.text import BLANKS

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

LONGEST_LINE = 1 << 20
"""Bytes, without the line break. It is public, so that the memory for reading never depends on the records."""

_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def separators(block: Bytes, delimiter: int) -> Positions:
    """The positions of a block's line breaks and separating delimiters: between two of them lies a field."""
    marked = block == _NEWLINE
    marked |= block == delimiter
    quoted = block == _QUOTE
    if not quoted.any():
        return np.flatnonzero(marked)
    marked |= quoted
    marks = np.flatnonzero(marked)
    kinds = block[marks]
    quotes = np.cumsum(kinds == _QUOTE)
    lines = np.flatnonzero(kinds == _NEWLINE)
    before = np.repeat(quotes[lines], np.diff(lines, append=len(marks)))
    outside = (quotes - before) & 1 == 0  # always true of line breaks: a line's quotes are counted from there
    return marks[np.flatnonzero(outside & (kinds != _QUOTE))]


def records(block: Bytes, marks: Positions, width: int) -> Positions:
    """The separators of a block that begin a record of ``width`` fields, as positions in ``marks``."""
    breaks = np.flatnonzero(block[marks] == _NEWLINE)
    begins = breaks[:-1]
    length = np.diff(marks[breaks]) - 1
    fits = (np.diff(breaks) == width) & (length <= LONGEST_LINE)
    if width == 1:
        fits &= (length > 1) | (length == 1) & (block[marks[begins] + 1] != _RETURN)
    return begins[fits]


def line_findings(block: Bytes, marks: Positions, width: int) -> LineFindings:
    """The lines of a block that are no records, by what is wrong with them; empty lines are none."""
    breaks = np.flatnonzero(block[marks] == _NEWLINE)
    length = np.diff(marks[breaks]) - 1
    held = (length > 1) | (length == 1) & (block[marks[breaks[:-1]] + 1] != _RETURN)
    fields = np.diff(breaks)
    long = held & (length > LONGEST_LINE)
    numbers, counts = np.unique(fields[held & ~long & (fields != width)], return_counts=True)
    quotes = np.add.reduceat(np.append(block == _QUOTE, False), marks[breaks[:-1]]) if len(breaks) > 1 else np.zeros(0)
    text = block.tobytes()
    undecodable = 0 if is_utf8(text) else sum(not is_utf8(line) for line in text.split(b"\n"))
    return LineFindings(
        width,
        dict(zip(numbers.tolist(), counts.tolist(), strict=True)),
        int(long.sum()),
        int((held & (quotes % 2 == 1)).sum()),
        undecodable,
    )


def is_utf8(text: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def header(line: bytes, delimiter: int) -> list[bytes]:
    """The names of the columns, from a file's first line."""
    text = b"\n" + line.removeprefix(_BYTE_ORDER_MARK).removesuffix(b"\n") + b"\n"
    marks = separators(np.frombuffer(text, np.uint8), delimiter)
    return [unquote(text[begin + 1 : end]) for begin, end in pairwise(marks)]


def unquote(field: bytes) -> bytes:
    """The text of a field: without the blanks and the quotes around it."""
    text = field.strip(BLANKS)
    if len(text) >= 2 and text.startswith(b'"') and text.endswith(b'"'):
        return text[1:-1].replace(b'""', b'"').strip(BLANKS)
    return text
