"""What is wrong with a text file as a whole: its delimiter, its encoding, its header or the form of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hdmm.data.findings import LineFindings
from hdmm.data.header import first_line_remedy
from hdmm.data.lines import header
from hdmm.errors import closest, plain_word

_MOST_NAMES = 100
"""Names of columns that are listed."""
_LONGEST_NAME = 60
"""Characters of a name that are shown."""


def header_problems(path: Path, line: bytes, delimiter: str, needed: Sequence[str]) -> Iterator[str]:
    """Why needed columns are not found in a file's first line."""
    names = [name.decode(errors="replace") for name in header(line, ord(delimiter))]
    if any(name in names for name in needed):
        yield from column_problems(names, needed)
    else:
        yield f"no column of the schema is found: {first_line_remedy(path, line, delimiter, needed, checked=True)}"
        yield f"the first line holds {_listed(names)}"


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
        yield f"the columns are {_listed(columns)}"


def _listed(names: Sequence[str]) -> str:
    """Names of columns; very long or very many ones are cut."""
    cut = [
        repr(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…") for name in names[:_MOST_NAMES]
    ]
    return ", ".join(cut) + (f" and {len(names) - len(cut)} more" if len(names) > len(cut) else "")


def has_row_names(lines: LineFindings, records: int) -> bool:
    """Whether most lines have one field more than the header, as R writes the names of rows."""
    return lines.widths.get(lines.fields + 1, 0) > records


def line_problems(lines: LineFindings, records: int) -> Iterator[str]:
    """Why lines are no records."""
    if has_row_names(lines, records):
        yield (
            f"{_lines(lines.widths[lines.fields + 1])} one field more than the header, as R writes the names of "
            "rows; write the file with row.names = FALSE, or put a name for them before the others in the first line "
            "(the numbers below are those after that)"
        )
    elif lines.widths:
        common = sorted(lines.widths.items(), key=lambda item: -item[1])[:3]
        listed = ", ".join(f"{_lines(count)} {width}" for width, count in common)
        broken = sum(lines.widths.values())
        yield (
            f"{broken:,} {'line does' if broken == 1 else 'lines do'} not have {lines.fields} fields as the header "
            f"does, and {'is' if broken == 1 else 'are'} not read ({listed}); quote fields that hold the delimiter"
        )
    if lines.unbalanced:
        hold = "line holds" if lines.unbalanced == 1 else "lines hold"
        yield (
            f"{lines.unbalanced:,} {hold} an odd number of quotes: perhaps a quoted field holds line breaks, which "
            "are not read; replace them, or convert the file to Parquet"
        )
    if lines.long:
        are = "line is" if lines.long == 1 else "lines are"
        yield f"{lines.long:,} {are} longer than a mebibyte, and not read"


def _lines(count: int) -> str:
    return f"{count:,} line has" if count == 1 else f"{count:,} lines have"


def _near(name: str, columns: Sequence[str]) -> str | None:
    """The column that a name was meant for: the same but for case, blanks and punctuation, or nearly so."""
    plain = {plain_word(column): column for column in columns}
    return plain.get(plain_word(name)) or closest(name, columns)
