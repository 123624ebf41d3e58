"""What a record counts for, as docs/data.md says: plain Python, one record at a time, nothing shared with hdmm."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from math import isfinite, isnan

from hdmm.data.people import salt
from tests.fuzz.spellings import Options

Record = Mapping[str, object]
Cell = tuple[int, ...]

LISTED = ("F", "M", "é", "5", "true")
AGES = range(10)
EDGES = tuple(map(Fraction, ("-1", "0", "0.1", "5", "100")))
FIRST, LAST = date(2020, 2, 27), date(2020, 3, 2)
OPENS, CLOSES = time(8), time(10, 30)
SIZES = {"sex": len(LISTED), "age": len(AGES), "pay": len(EDGES) - 1, "flag": 2, "day": 5, "at": 3}
"""The attributes, and how many values each has."""

_BLANKS = b" \t\r"
_NO_VALUE = b"\n"
_DECIMAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_FLAGS = {b"false": 0, b"f": 0, b"no": 0, b"0": 0, b"true": 1, b"t": 1, b"yes": 1, b"1": 1}
_CLOCK = rb"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?"
_ZONE = rb" ?(?:Z|UTC|[+-]\d\d(?::?\d\d(?::\d\d)?)?)"
_MOMENT = re.compile(rb"(\d{4}-\d\d-\d\d)?([T ])?(?:(" + _CLOCK + rb")(?:" + _ZONE + rb")?)?")
_DIGITS = 30  # before the point: more are beyond every edge
_LONGEST_NUMBER, _LONGEST_ID, _LONGEST_TEXT, _LONGEST_LINE = 4096, 1000, 1 << 16, 1 << 20


class Odd(str):
    """A date or a time that only some databases know: beyond all years, or the end of a day."""


class Ticks(int):
    """The number inside a time stamp that is beyond all years."""


def text_of(value: object) -> bytes:
    """The text of a value, trimmed; empty where there is none, a line break where no text says it."""
    if isinstance(value, (Odd, Ticks)):
        return _NO_VALUE
    if isinstance(value, (date, time)):
        return _moment_text(value)
    if isinstance(value, str):
        try:
            value = value.encode()
        except UnicodeEncodeError:
            return _NO_VALUE
    if isinstance(value, bytes):
        return value.strip(_BLANKS) if len(value) <= _LONGEST_TEXT else _NO_VALUE
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return b""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value if value.bit_length() < 2**13 else _NO_VALUE
    if isinstance(value, float):
        if isfinite(value):
            text = f"{Decimal(value):f}"
            return (text if "." in text else f"{text}.0").encode()
        return b"" if isnan(value) else _NO_VALUE
    if isinstance(value, Decimal):
        if value.is_nan():
            return b""
        return f"{value:f}".encode() if value.is_finite() and abs(value.adjusted()) < _LONGEST_NUMBER else _NO_VALUE
    return _NO_VALUE


def _moment_text(value: date | time) -> bytes:
    if type(value).__name__ == "NaTType":
        return b""
    try:
        return value.isoformat().encode()
    except RuntimeError:  # of a broken time zone
        return _NO_VALUE


MISSING = ("NA", "-9", ".")
OPTIONS = {
    "sex": Options(missing=MISSING, ignore_case=True, aliases=(("F", ("woman",)), ("M", ("Straße",)))),
    "age": Options(missing=MISSING, decimals=True, thousands=",", currency="$"),
    "pay": Options(missing=MISSING, thousands=".", point=",", currency="€"),
    "flag": Options(missing=MISSING),
}
"""How values are written if there are cells for other and missing values."""


def cell_of(column: str, value: object, cells: bool) -> int | None:
    """The cell of one value; with ``cells`` there are options, and two last cells for other and for missing values."""
    text = text_of(value)
    if not cells:
        return _declared(column, value, text)
    if column not in OPTIONS:
        plain_cell = _declared(column, value, text)
        return SIZES[column] + (not text) if plain_cell is None else plain_cell
    options, written = OPTIONS[column], _utf8(text)
    is_text = isinstance(value, (str, bytes))
    if column == "sex":
        cell = None if written is None else options.listed(LISTED, written)
    elif column == "flag":
        cell = _declared(column, value, text)
    else:
        plain = _plain(options, written, text) if is_text else text
        cell = _declared(column, value, _whole(plain) if column == "age" else plain)
    if cell is not None:
        return cell
    numeric = column in ("age", "pay")
    if numeric and not is_text:
        return SIZES[column] + (not text or text in (b"-9", b"-9.0") or _exact(text) == -9)
    return SIZES[column] + (written is not None and len(text) <= _LONGEST_NUMBER and options.absent(written, numeric))


def _utf8(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _plain(options: Options, written: str | None, text: bytes) -> bytes:
    """The plain decimal that a text means; the text of nothing if it is no number."""
    number = options.number(written) if written is not None and len(text) <= _LONGEST_NUMBER else None
    if number is None or number.adjusted() >= _LONGEST_NUMBER:
        return _NO_VALUE
    return f"{number:f}".encode() if number.adjusted() > -_LONGEST_NUMBER else b"0.0000001"


def _whole(text: bytes) -> bytes:
    """The integer of a decimal without a fraction."""
    whole, point, fraction = text.partition(b".")
    return whole if point and not fraction.strip(b"0") else text


def _exact(text: bytes) -> Decimal | None:
    return Decimal(text.decode()) if _DECIMAL.fullmatch(text) else None


def _declared(column: str, value: object, text: bytes) -> int | None:
    if column == "sex":
        return next((at for at, listed in enumerate(LISTED) if listed.encode() == text), None)
    if column == "flag":
        return _FLAGS.get(text.lower())
    if column in ("day", "at"):
        return _moment(column, text)
    if isinstance(value, (str, bytes)) and len(text) > _LONGEST_NUMBER:
        return None
    if column == "age":
        if not _INTEGER.fullmatch(text):
            return None
        digits = text.lstrip(b"+-").lstrip(b"0")
        age = int(digits or b"0") * (-1 if text.startswith(b"-") else 1) if len(digits) < 20 else -1
        return AGES.index(age) if age in AGES else None
    number = _number(value, text)
    if number is None or not EDGES[0] <= number < EDGES[-1]:
        return None
    return max(at for at, edge in enumerate(EDGES[:-1]) if edge <= number)


def _moment(column: str, text: bytes) -> int | None:
    match = _MOMENT.fullmatch(text)
    if match is None or bool(match[2]) != bool(match[1] and match[3]):
        return None
    try:
        day = None if match[1] is None else datetime.strptime(match[1].decode(), "%Y-%m-%d").date()
    except ValueError:
        return None
    if column == "day":
        return (day - FIRST).days if day is not None and FIRST <= day <= LAST else None
    if match[3] is None:
        return None
    clock = time(int(match[3][:2]), int(match[3][3:5]))
    return clock.hour - OPENS.hour if OPENS <= clock < CLOSES else None


def _number(value: object, text: bytes) -> Fraction | None:
    if isinstance(value, float):
        return Fraction(value) if isfinite(value) else None
    if not _DECIMAL.fullmatch(text):
        return None
    number = Decimal(text.decode())
    return Fraction(number) if number.adjusted() < _DIGITS else None


def identifier(value: object) -> str | None:
    """Whose record it is; None where it is nobody's."""
    try:
        text = text_of(value).decode()
    except UnicodeDecodeError:
        return None
    return text if 1 <= len(text) <= _LONGEST_ID and text != "\n" else None


def fields(line: bytes, width: int) -> list[bytes] | None:
    """The fields of a line of a text file; None where it is not a record."""
    if len(line) > _LONGEST_LINE or not line.removesuffix(b"\r"):
        return None
    ends, inside = [-1], False
    for at, byte in enumerate(line):
        inside ^= byte == ord('"')
        if byte == ord(",") and not inside:
            ends.append(at)
    parts = [line[start + 1 : end] for start, end in pairwise([*ends, len(line)])]
    return [_unquoted(part) for part in parts] if len(parts) == width else None


def _unquoted(part: bytes) -> bytes:
    if len(part) > _LONGEST_TEXT:
        return _NO_VALUE
    part = part.strip(_BLANKS)
    quoted = len(part) >= 2 and part.startswith(b'"') and part.endswith(b'"')
    return part[1:-1].replace(b'""', b'"').strip(_BLANKS) if quoted else part


def counted(records: Iterable[Record], rows: int | None, cells: bool) -> Counter[Cell]:
    """How many records count in each cell; with ``rows``, at most so many of each person's."""
    placed = []
    for record in records:
        codes = [cell_of(column, record[column], cells) for column in SIZES]
        if None not in codes:
            placed.append((record, tuple(code for code in codes if code is not None)))
    if rows is None:
        return Counter(cell for _, cell in placed)
    people: dict[str, list[Cell]] = defaultdict(list)
    for record, cell in placed:
        person = identifier(record["who"])
        if person is not None:
            people[person].append(cell)
    return Counter(cell for person, those in people.items() for cell in chosen(person, those, rows))


def chosen(person: str, cells: Sequence[Cell], rows: int) -> list[Cell]:
    """Those records of a person that count."""
    key = sha256((salt() + person).encode()).hexdigest()[:32]
    copies: Counter[Cell] = Counter()
    marked = []
    for cell in cells:
        copies[cell] += 1
        mark = sha256(",".join([key, *map(str, cell), str(copies[cell])]).encode()).hexdigest()[:32]
        marked.append((mark, cell, copies[cell]))
    return [cell for _, cell, _ in sorted(marked)[:rows]]


def added_up(cells: Counter[Cell], table: Sequence[str]) -> Counter[Cell]:
    """The counts of a table of some attributes."""
    places = [list(SIZES).index(name) for name in table]
    counts: Counter[Cell] = Counter()
    for cell, times in cells.items():
        counts[tuple(cell[place] for place in places)] += times
    return counts
