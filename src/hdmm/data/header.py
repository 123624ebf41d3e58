"""Why a needed column is missing, explained without showing a record.

Without a header, the first line of a text file is a record, and a library that reads such a file calls the columns by
a record's values. So names are shown only if they are names: if at least half of the needed columns, and at least two,
are among them, apart from case, blanks, dashes and underscores, and not counting names that are numbers. Otherwise an
explanation depends on the file's name, on the bytes by which kinds of files are recognised, and on which needed names
its first line holds, and on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hdmm.data.lines import header
from hdmm.errors import closest, plain_word
from hdmm.numbers import shown
from hdmm.syntax import either, example

_MAX_SHOWN = 40
"""Names of columns that a message lists."""
_DELIMITERS = {",": ",", ";": ";", "\t": "tab", "|": "|", " ": " "}
"""Characters that may separate fields, and how an option states them."""
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""What bytes that are not UTF-8 are decoded to."""
_NUMBER = re.compile(r"[\s0-9.,+-]*")
_SPREADSHEET = (
    "is a spreadsheet, not text; save the sheet as CSV (UTF-8)",
    "is a spreadsheet, not text; save the sheet as CSV (UTF-8), or give pandas.read_excel(path, dtype=str)",
)
_PACKED = ("is compressed; unpack it first",) * 2
_STATISTICS = (
    "is a file of a statistics program; export it as CSV (UTF-8)",
    "is a file of a statistics program; export it as CSV (UTF-8), or give a DataFrame, for example by "
    "pandas.read_spss, read_stata or read_sas",
)
_RDATA = ("is a file of R; write the data with write.csv(data, file, row.names = FALSE)",) * 2
_PARQUET = ("is a Parquet file; give it a name that ends in .parquet",) * 2
_ARROW = (
    "is an Arrow file; write it as Parquet",
    "is an Arrow file; give the table, for example by pyarrow.feather.read_table(path)",
)
_JSON = (
    "is JSON; write the records as CSV or Parquet, for example with DuckDB: COPY (FROM 'people.json') TO "
    "'people.parquet'",
    "is JSON; write the records as CSV or Parquet, or give a DataFrame, for example by pandas.read_json(path)",
)
_SUFFIXES = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers"), _SPREADSHEET),
    **dict.fromkeys((".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt"), _STATISTICS),
    **dict.fromkeys((".rds", ".rdata", ".rda"), _RDATA),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), _ARROW),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".geojson"), _JSON),
}
_SIGNATURES = (
    (b"PK\x03\x04", _PACKED),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _SPREADSHEET),
    (b"\x1f\x8b\x08", ("is compressed; give it a name that ends in .csv.gz",) * 2),
    (b"\x28\xb5\x2f\xfd", ("is compressed; give it a name that ends in .csv.zst",) * 2),
    (b"\xfd7zXZ\x00", _PACKED),
    (b"7z\xbc\xaf\x27\x1c", _PACKED),
    (b"BZh91AY&SY", _PACKED),
    (b"PAR1", _PARQUET),
    (b"ARROW1\x00\x00", _ARROW),
    (b"$FL2@(#)", _STATISTICS),
    (b"<stata_dta>", _STATISTICS),
)


def found_columns(columns: Sequence[object], needed: Sequence[str]) -> str | None:
    """The columns that were found, and those that may be meant by the missing ones; None if they may be a record.

    Even then a name may be shown that differs from a needed one in case, blanks, dashes and underscores alone.
    """
    names = [column for column in columns if isinstance(column, str)]
    if not is_header(names, needed):
        plain = {plain_word(name): name for name in names}
        alike = [plain[plain_word(name)] for name in needed if name not in names and plain_word(name) in plain]
        listed = ", ".join(map(_name, alike))
        return f"there is {listed} instead. Names must be exactly those of the schema" if alike else None
    more = ", …" if len(columns) > _MAX_SHOWN else ""
    listed = ", ".join(_name(column) for column in columns[:_MAX_SHOWN])
    others = [name for name in names if name not in needed]
    pairs = [(other, name) for name in needed if name not in names and (other := closest(name, others)) is not None]
    meant = "".join(f"; {_name(other)} may be {_name(name)}" for other, name in pairs)
    if any(_NOT_UTF8.search(name) for name in names):
        meant += f"; the first line is not UTF-8: state its encoding, for example {example('encoding', 'latin-1')}"
    return f"its columns are {listed}{more}{meant}. Names must be exactly those of the schema"


def _name(column: object) -> str:
    return shown(_NOT_UTF8.sub("\ufffd", column) if isinstance(column, str) else column)


def is_header(names: Sequence[str], needed: Sequence[str]) -> bool:
    """Whether names are those of columns, and not the values of a record: many of the needed ones are among them.

    One alone may be a value, and a number shows nothing either.
    """
    plain = {plain_word(name) for name in names if not _NUMBER.fullmatch(name)}
    found = sum(plain_word(name) in plain for name in needed)
    return found >= max(2, len(needed) / 2)


def first_line_remedy(path: Path, line: bytes, delimiter: str, needed: Sequence[str], *, checked: bool = False) -> str:
    """Why the first line of a text file names no needed columns, and what to do; a check has more to say itself."""
    kind = _kind(path, line)
    if kind is not None:
        return kind
    if not line:
        return "the file is empty; its first line must name the attributes"
    match other_layout(line, delimiter, needed):
        case "encoding", encoding:
            return f"the file is UTF-16: state {example('encoding', encoding)}"
        case "delimiter", word:
            separator = "tabs" if word == "tab" else repr(word)
            return f"its fields are separated by {separator}: state {example('delimiter', word)}"
    if needed and sum(f'"{name}":'.encode() in line.replace(b" ", b"") for name in needed) * 2 >= len(needed):
        return f"it {either(python=_JSON[1], command=_JSON[0])}"
    if not line.strip():
        return "its first line is empty; the header must be the first line"
    return (
        f"the first line must be a header that names the attributes, separated by {delimiter!r}, exactly as the schema "
        "does. If the file has no header, or lines above it, add or remove lines; the file must be UTF-8 text, or its "
        f"encoding stated ({example('encoding', 'latin-1')}), and so must another separator "
        f"({example('delimiter', ';')})"
        + (
            ""
            if checked
            else f". {either(python='hdmm.check(spec, data)', command='hdmm check SPEC DATA')} shows you more"
        )
    )


def other_layout(line: bytes, delimiter: str, needed: Sequence[str]) -> tuple[str, str] | None:
    """The encoding or the delimiter with which a first line is a header, as an option and its value."""
    for encoding in ("utf-16-le", "utf-16-be"):
        if line.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_header_line(_recoded(line, encoding), delimiter, needed):
            return "encoding", "utf-16"
    for other, word in _DELIMITERS.items():
        if other != delimiter and _is_header_line(line, other, needed):
            return "delimiter", word
    return None


def _kind(path: Path, line: bytes) -> str | None:
    """What kind of file it is instead of text."""
    suffix = path.suffix.lower()
    signed = next((kind for signature, kind in _SIGNATURES if line.startswith(signature)), None)
    kind = _SUFFIXES.get(suffix, signed)
    if kind is None:
        return None
    command, python = kind
    return f"it {either(python=python, command=command)}"


def _is_header_line(line: bytes, delimiter: str, needed: Sequence[str]) -> bool:
    """Whether a line is a header if its fields are separated so; all needed names suffice, even a single one."""
    names = [name.decode(errors="replace") for name in header(line, ord(delimiter))]
    return is_header(names, needed) or (len(names) > 1 and set(needed) <= set(names))


def _recoded(line: bytes, encoding: str) -> bytes:
    return line[: len(line) // 2 * 2].decode(encoding, errors="replace").rstrip("\r\n").encode()
