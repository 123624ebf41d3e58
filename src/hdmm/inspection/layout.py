"""What is wrong with a text file as a whole: its delimiter, its encoding, its header or the form of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hdmm.data.findings import LineFindings
from hdmm.data.lines import header
from hdmm.errors import closest

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""What a file in another encoding may begin with."""
_OTHER_FILES = {
    b"PK\x03\x04": "a spreadsheet or an archive; save the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; save the sheet as CSV",
    b"PAR1": "a Parquet file; let its name end in .parquet",
    b"\x1f\x8b": "compressed; let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed; let its name end in .zst",
    b"%PDF": "a PDF document; the records must be in a text file",
    b"{": "perhaps JSON; convert the records to CSV or Parquet",
}


def header_problems(line: bytes, delimiter: str, needed: Sequence[str]) -> Iterator[str]:
    """Why needed columns are not found in a file's first line."""
    for mark, encoding in _MARKS.items():
        if line.startswith(mark):
            yield f"the file is in another encoding; write --encoding {encoding}"
            return
    for mark, kind in _OTHER_FILES.items():
        if line.startswith(mark):
            yield f"the file is {kind}"
            return
    found = {mark: _found(line, mark, needed) for mark in (delimiter, *_DELIMITERS)}
    best = max(found, key=lambda mark: len(found[mark]))
    if len(found[best]) > len(found[delimiter]):
        yield f"the columns are separated by {best!r}; write --delimiter {_DELIMITERS[best]}"
        return
    if not found[delimiter]:
        yield "no column is named as in the schema; the first line must be a header with the names of the columns"
    yield from column_problems(_names(line, delimiter), needed)


def column_problems(columns: Sequence[str], needed: Sequence[str]) -> Iterator[str]:
    """Needed columns that are not there, or twice."""
    absent = [name for name in needed if columns.count(name) == 0]
    for name in absent:
        near = _near(name, columns)
        yield f"there is no column {name!r}" + (f"; {near!r} looks like it: rename one of them" if near else "")
    for name in needed:
        if columns.count(name) > 1:
            yield f"there is more than one column {name!r}; keep one of them"
    if absent:
        yield f"the columns are {', '.join(map(repr, columns))}"


def has_row_names(lines: LineFindings, records: int) -> bool:
    """Whether most lines have one field more than the header, as R writes the names of rows."""
    return lines.widths.get(lines.fields + 1, 0) > records


def line_problems(lines: LineFindings, records: int) -> Iterator[str]:
    """Why lines are no records."""
    if has_row_names(lines, records):
        yield (
            f"{lines.widths[lines.fields + 1]:,} lines have one field more than the header, as R writes the names of "
            "rows; write the file with row.names = FALSE, or put a name for them before the others in the first line "
            "(the numbers below are those after that)"
        )
    elif lines.widths:
        common = sorted(lines.widths.items(), key=lambda item: -item[1])[:3]
        listed = ", ".join(f"{count:,} with {width}" for width, count in common)
        yield (
            f"{sum(lines.widths.values()):,} lines do not have {lines.fields} fields as the header does ({listed}); "
            "quote fields that hold the delimiter"
        )
    if lines.unbalanced:
        yield (
            f"{lines.unbalanced:,} lines hold an odd number of quotes: perhaps a quoted field holds line breaks, which "
            "are not read; replace them, or convert the file to Parquet"
        )
    if lines.long:
        yield f"{lines.long:,} lines are longer than a mebibyte, and are not read"


def _names(line: bytes, delimiter: str) -> list[str]:
    return [name.decode(errors="replace") for name in header(line, ord(delimiter))]


def _found(line: bytes, delimiter: str, needed: Sequence[str]) -> list[str]:
    names = _names(line, delimiter)
    return [name for name in needed if name in names]


def _near(name: str, columns: Sequence[str]) -> str | None:
    """The column that a name was meant for: the same but for case, blanks and punctuation, or nearly so."""
    plain = {_plain(column): column for column in columns}
    return plain.get(_plain(name)) or closest(name, columns)


def _plain(text: str) -> str:
    return "".join(mark for mark in text.casefold() if mark.isalnum())
