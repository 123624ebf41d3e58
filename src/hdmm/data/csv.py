"""Text files with a header and one record per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from hdmm.data.chunked import Chunk, Chunked, RawRecords
from hdmm.data.encodings import read_encoding
from hdmm.data.fields import PADDING, Distinct, distinct
from hdmm.data.header import first_line_remedy
from hdmm.data.inspection import RawChunk
from hdmm.data.lines import LONGEST_LINE, Positions, header, line_findings, records, separators, unquote
from hdmm.data.people import identifier
from hdmm.data.source import check_columns, check_file, needed_columns
from hdmm.data.tally import Records
from hdmm.data.text_file import check_archive, opened, plain_suffix
from hdmm.errors import DataError
from hdmm.schema import Domain, Schema
from hdmm.schema.text import LONGEST_TEXT, NO_VALUE
from hdmm.syntax import example, given

Part = TypeVar("Part", Chunk, RawRecords)

_NOTHING = NO_VALUE.encode()
_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
"""Words for delimiters that are hard to write on a command line."""
_CHUNK_BYTES = 8 << 20
"""Size of a chunk: with smaller ones, threads wait more for each other's Python steps."""


@final
@dataclass(frozen=True)
class CsvFile(Chunked):
    """A text file with a header and one record per line, by the rules of :mod:`hdmm.data.lines`.

    By default the delimiter is a tab if the path ends in ``.tsv`` or ``.tab``, and otherwise a comma; the encoding is
    UTF-8. A file whose name ends in ``.gz`` or ``.zst`` is unpacked while it is read.
    """

    path: Path
    delimiter: str
    encoding: str | None
    """The encoding if it is not UTF-8, as Python calls it."""
    chunk_size: int
    row_names: bool
    """Whether every record has one field more than the header, before the others: for `hdmm.check` only."""

    def __init__(
        self,
        path: str | Path,
        delimiter: str | None = None,
        encoding: str | None = None,
        *,
        chunk_size: int = _CHUNK_BYTES,
        row_names: bool = False,
    ) -> None:
        path = Path(path)
        if delimiter is None:
            delimiter = "\t" if plain_suffix(path) in (".tsv", ".tab") else ","
        delimiter = _DELIMITERS.get(delimiter.lower(), delimiter)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\n\r':
            raise DataError(
                f"{given('delimiter', repr(delimiter))}: expected one ASCII character, no quote, for example "
                f"{example('delimiter', ';')}, or the word tab"
            )
        check_file(path)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "encoding", None if encoding is None else read_encoding(encoding))
        object.__setattr__(self, "chunk_size", chunk_size)
        object.__setattr__(self, "row_names", row_names)

    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        with opened(self.path, self.encoding, damaged=DataError) as file:
            self._layout(file.text.readline(LONGEST_LINE), schema, id)
        check_archive(self.path)

    def chunks(self, schema: Schema, id: str | None = None) -> Iterator[Chunk]:
        with opened(self.path, self.encoding) as file:
            layout = self._layout(file.text.readline(LONGEST_LINE), schema, id)
            for lines in _blocks(file.text, self.chunk_size):
                yield Chunk(partial(layout.decode, lines), file.fraction())

    def column_names(self) -> list[str]:
        return [name.decode(errors="replace") for name in header(self.first_line(), ord(self.delimiter))]

    def first_line(self) -> bytes:
        """The first line in UTF-8: for `hdmm.check`, which shows it to the custodian."""
        with opened(self.path, self.encoding, damaged=DataError) as file:
            return file.text.readline(LONGEST_LINE)

    def raw_chunks(self, schema: Schema, id: str | None = None) -> Iterator[RawRecords]:
        with opened(self.path, self.encoding, damaged=DataError) as file:
            layout = self._layout(file.text.readline(LONGEST_LINE), schema, id)
            for lines in _blocks(file.text, self.chunk_size):
                yield RawRecords(layout.raw(lines), file.fraction())

    def _layout(self, line: bytes, schema: Schema, id: str | None) -> _Layout:
        columns = [column.decode(errors="surrogateescape") for column in header(line, ord(self.delimiter))]
        remedy = partial(first_line_remedy, self.path, line, self.delimiter, list(needed_columns(schema, id)))
        if columns == [""]:
            raise DataError(f"{self.path}: there is no header; {remedy()}")
        check_columns(str(self.path), columns, schema, id, remedy)
        if self.row_names:
            columns = ["", *columns]
        places = {name: [columns.index(column) for column in schema[name].columns(name)] for name in schema}
        person = None if id is None else columns.index(id)
        return _Layout(ord(self.delimiter), len(columns), schema, places, person)


@final
@dataclass(frozen=True)
class CsvFiles(Chunked):
    """Several text files, one after the other; each has its own header."""

    files: tuple[CsvFile, ...]

    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        for file in self.files:
            file.columns_check(schema, id)

    def chunks(self, schema: Schema, id: str | None = None) -> Iterator[Chunk]:
        for at, chunk in self._each(lambda file: file.chunks(schema, id)):
            yield Chunk(chunk.decode, at)

    def column_names(self) -> list[str]:
        return self.files[0].column_names()

    def raw_chunks(self, schema: Schema, id: str | None = None) -> Iterator[RawRecords]:
        for at, raw in self._each(lambda file: file.raw_chunks(schema, id)):
            yield RawRecords(raw.chunk, at)

    def _each(self, parts: Callable[[CsvFile], Iterator[Part]]) -> Iterator[tuple[float, Part]]:
        """The parts of all files, each with the share of all bytes up to its end."""
        sizes = [file.path.stat().st_size for file in self.files]
        before, total = 0, sum(sizes)
        for file, size in zip(self.files, sizes, strict=True):
            for part in parts(file):
                yield (before + size * part.fraction) / total, part
            before += size


@final
@dataclass(frozen=True)
class _Layout:
    """How the lines of one file are read: the number of fields, the attributes, and the places of their columns."""

    delimiter: int
    width: int
    attributes: Mapping[str, Domain]
    places: Mapping[str, Sequence[int]]
    person: int | None = None
    """The place of the column that identifies people."""

    def decode(self, lines: bytes) -> Records:
        data = lines + PADDING
        block = np.frombuffer(lines, np.uint8)
        marks = separators(block, self.delimiter)
        first = records(block, marks, self.width)
        quoted = b'"' in lines
        codes = {}
        for name, attribute in self.attributes.items():
            columns = []
            for place, domain in zip(self.places[name], attribute.columns(name).values(), strict=True):
                texts, which = _texts(data, marks, first + place)
                if quoted:  # otherwise texts need only trimming, which the domain does
                    texts = [unquote(text) for text in texts]
                columns.append(domain.encode(texts).astype(np.min_scalar_type(-domain.size))[which])
            codes[name] = attribute.combine(columns).astype(np.min_scalar_type(-attribute.size), copy=False)
        people = None if self.person is None else _people(*_texts(data, marks, first + self.person))
        return Records(len(first), codes, people)

    def raw(self, lines: bytes) -> RawChunk:
        """The records as texts, and what the other lines are."""
        data = lines + PADDING
        block = np.frombuffer(lines, np.uint8)
        marks = separators(block, self.delimiter)
        first = records(block, marks, self.width)
        columns = {}
        for name, attribute in self.attributes.items():
            for place, column in zip(self.places[name], attribute.columns(name), strict=True):
                texts, which = _texts(data, marks, first + place)
                columns[column] = Distinct([unquote(text) for text in texts], which)
        people = None if self.person is None else _people(*_texts(data, marks, first + self.person))
        return RawChunk(len(first), columns, people, line_findings(block, marks, self.width))


def _texts(data: bytes, marks: Positions, places: Positions) -> Distinct:
    """The distinct texts of the fields after these separators; a text that is too long becomes one without a value."""
    texts, which = distinct(data, marks[places] + 1, marks[places + 1])
    return Distinct([text if len(text) <= LONGEST_TEXT else _NOTHING for text in texts], which)


def _people(texts: list[bytes], which: NDArray[np.int32]) -> Any:
    """The identifier of every record as an Arrow dictionary; null if the record has none."""
    import pyarrow as pa

    people = [identifier(unquote(text)) for text in texts]
    blank = np.array([person is None for person in people], bool)
    return pa.DictionaryArray.from_arrays(pa.array(which, mask=blank[which]), [person or "" for person in people])


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Cut the rest of a file into whole lines, about ``size`` bytes at a time, each block after a line break.

    A line that is too long to be a record is skipped, so that memory is bounded whatever the file holds.
    """
    held = b""
    skipping = False
    while part := file.read(size):
        if skipping:
            start = part.find(b"\n") + 1
            if not start:
                continue
            part, skipping = part[start:], False
        cut = part.rfind(b"\n") + 1
        if cut:
            yield b"\n" + held + part[:cut]
            held = b""
        held += part[cut:]
        if len(held) > LONGEST_LINE:
            held, skipping = b"", True
    yield b"\n" + held + b"\n"
