"""Headers and texts of text files, by the rules of :mod:`hdmm.data.lines`."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from hdmm.data.csv import CsvFile, _blocks
from hdmm.data.fields import PADDING, distinct
from hdmm.data.lines import LONGEST_LINE, header, records, separators, unquote
from hdmm.data.look.column import Column, Piece
from hdmm.errors import DataError, FaultError
from hdmm.schema.text import BLANKS

_DELIMITERS = ",;\t|"
_UNDECODABLE = "�"
_LONGEST_SHOWN = 400
"""Characters of a text that are kept: a longer one is free text, whatever follows."""


def text_columns(files: Sequence[CsvFile], encoding: str | None) -> list[Column]:
    """The columns that the headers name; all files must have the same ones."""
    first = _names(files[0], encoding)
    for file in files[1:]:
        if _names(file, encoding) != first:
            raise DataError(f"{file.path}: its header differs from that of {files[0].path}; give files of one kind")
    return [Column(name) for name in first]


def header_delimiter(path: Path, encoding: str | None) -> str | None:
    """The delimiter of a file whose header has none by default, if its header has another one."""
    with _opened(path, encoding) as (file, _):
        line = file.readline(LONGEST_LINE)
    counts = {mark: len(header(line, ord(mark))) for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda mark: counts[mark])
    usual = "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    return best if counts[usual] == 1 < counts[best] else None


def text_texts(files: Sequence[CsvFile], encoding: str | None) -> Iterator[Piece]:
    """The texts of all files, one after the other."""
    sizes = [file.path.stat().st_size for file in files]
    before, total = 0, sum(sizes)
    for csv, size in zip(files, sizes, strict=True):
        with _opened(csv.path, encoding) as (file, raw):
            width = len(header(file.readline(LONGEST_LINE), ord(csv.delimiter)))
            for lines in _blocks(file, csv.chunk_size):  # type: ignore[arg-type]
                yield _piece(lines, ord(csv.delimiter), width, min((before + raw.tell()) / max(total, 1), 1.0))
        before += size


def _names(csv: CsvFile, encoding: str | None) -> list[str]:
    with _opened(csv.path, encoding) as (file, _):
        line = file.readline(LONGEST_LINE)
    names = [name.decode(errors="replace") for name in header(line, ord(csv.delimiter))]
    if names == [""]:
        raise DataError(f"{csv.path}: there is no header; the first line must name the columns")
    if any(_UNDECODABLE in name for name in names):
        raise DataError(f"{csv.path}: the header is not UTF-8 text; state its encoding, such as --encoding latin-1")
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


@contextmanager
def _opened(path: Path, encoding: str | None) -> Iterator[tuple[_Reader, BinaryIO]]:
    """A file as UTF-8 without its compression, and the file itself, whose position shows how much is read."""
    try:
        with path.open("rb") as raw:
            yield _Reader(_uncompressed(path, raw), encoding), raw
    except (OSError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "its compressed bytes are damaged"
        raise FaultError(f"{path}: cannot be read: {reason}") from None


def _uncompressed(path: Path, raw: BinaryIO) -> Any:
    match path.suffix.lower():
        case ".gz":
            return gzip.GzipFile(fileobj=raw)
        case ".zst":
            import pyarrow as pa

            return pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
    return raw


@final
class _Reader:
    """Bytes of a file, decoded from its encoding and encoded as UTF-8."""

    def __init__(self, file: Any, encoding: str | None) -> None:
        self._file = file
        self._held = b""
        self._decoder = None if encoding is None else codecs.getincrementaldecoder(encoding)(errors="replace")

    def read(self, size: int) -> bytes:
        """About ``size`` bytes; none at the end."""
        held, self._held = self._held, b""
        return held or self._more(size)

    def readline(self, most: int) -> bytes:
        """The next line, or its first ``most`` bytes."""
        line = b""
        while b"\n" not in line and len(line) < most and (more := self.read(1 << 16)):
            line += more
        cut = line.find(b"\n") + 1 or len(line)
        self._held = line[cut:] + self._held
        return line[:cut]

    def _more(self, size: int) -> bytes:
        piece: bytes = self._file.read(size)
        if self._decoder is None or not piece:
            return piece
        return self._decoder.decode(piece).encode() or self._more(size)
