"""What is wrong with a text file as a whole: its delimiter, its encoding, its header or the form of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hdmm.data.findings import LineFindings
from hdmm.data.header import first_line_remedy
from hdmm.data.lines import header
from hdmm.errors import closest, plain_word


def header_problems(path: Path, line: bytes, delimiter: str, needed: Sequence[str]) -> Iterator[str]:
    """Why needed columns are not found in a file's first line."""
    names = [name.decode(errors="replace") for name in header(line, ord(delimiter))]
    if any(name in names for name in needed):
        yield from column_problems(names, needed)
    else:
        yield f"no column of the schema is found: {first_line_remedy(path, line, delimiter, needed)}"


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


def _near(name: str, columns: Sequence[str]) -> str | None:
    """The column that a name was meant for: the same but for case, blanks and punctuation, or nearly so."""
    plain = {plain_word(column): column for column in columns}
    return plain.get(plain_word(name)) or closest(name, columns)
