"""Where records come from: a source checks its columns, then hands out its records in chunks, as codes."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from hdmm.data.fields import PADDING, distinct
from hdmm.data.lines import LONGEST_LINE, header, records, separators, unquote
from hdmm.errors import DataError, FaultError
from hdmm.schema import Domain, Schema

_LONGEST_ID = 1000  # bytes
_CHUNK = 8 << 20  # bytes; with smaller chunks the threads wait more for each other's Python steps


@final
@dataclass(frozen=True)
class Records:
    """Some records: how many, and their codes for every attribute that was asked for, -1 where outside.

    ``people`` are the identifiers of their people as an Arrow array of texts, null where there is none; ``times`` is
    how often each record counts, once where nothing is said.
    """

    count: int
    codes: Mapping[str, NDArray[np.signedinteger]]
    people: Any = None
    times: NDArray[np.int64] | None = None

    def inside(self) -> Records:
        """The records whose values are all inside their domains, and which are somebody's."""
        masks = [codes >= 0 for codes in self.codes.values() if codes.min(initial=0) < 0]
        if self.people is not None and self.people.null_count:
            masks.append(self.people.is_valid().to_numpy(zero_copy_only=False))
        if not masks:
            return self
        kept = np.flatnonzero(np.all(masks, axis=0))
        people = None if self.people is None else self.people.take(kept)
        times = None if self.times is None else self.times[kept]
        return Records(len(kept), {name: codes[kept] for name, codes in self.codes.items()}, people, times)


@final
@dataclass(frozen=True)
class Chunk:
    """A part of the records, to be decoded in any thread; ``fraction`` is how much of the source ends with it."""

    decode: Callable[[], Records]
    fraction: float


class Source(ABC):
    """Something that holds records of a schema."""

    @abstractmethod
    def columns_check(self, schema: Schema, names: Sequence[str], id: str | None = None) -> None:
        """Refuse a source that does not have each column of the attributes (``Domain.columns``) exactly once.

        ``id`` is one more column, which tells people apart.
        """

    @abstractmethod
    def chunks(self, schema: Schema, names: Sequence[str], id: str | None = None) -> Iterator[Chunk]:
        """All records, with their codes for some of the attributes, and with ``id`` whose they are."""


@final
@dataclass(frozen=True)
class CsvFile(Source):
    """A text file with a header and one record a line, by the rules of :mod:`hdmm.data.lines`.

    The delimiter is a tab where the path ends in ``.tsv`` or ``.tab``, and otherwise a comma, unless it is given.
    """

    path: Path
    delimiter: str
    chunk_size: int

    def __init__(self, path: str | Path, delimiter: str | None = None, *, chunk_size: int = _CHUNK) -> None:
        path = Path(path)
        if delimiter is None:
            delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\n\r':
            raise DataError(f"delimiter={delimiter!r}: expected one ASCII character, no quote, for example ',' or ';'")
        try:
            there = path.exists()
        except OSError as error:
            raise DataError(f"{path}: cannot be a file: {error.strerror}; check the path") from None
        if not there:
            raise DataError(f"{path}: there is no such file; check the path")
        if path.is_dir():
            raise DataError(f"{path}: this is a directory; give the path of one CSV file")
        if not path.is_file():
            raise DataError(f"{path}: this is not a regular file; write the records to a file first")
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "chunk_size", chunk_size)

    def columns_check(self, schema: Schema, names: Sequence[str], id: str | None = None) -> None:
        with self._opened() as file:
            self._layout(file.readline(LONGEST_LINE), schema, names, id)

    def chunks(self, schema: Schema, names: Sequence[str], id: str | None = None) -> Iterator[Chunk]:
        with self._opened() as file:
            layout = self._layout(file.readline(LONGEST_LINE), schema, names, id)
            size = os.fstat(file.fileno()).st_size
            for lines in _blocks(file, self.chunk_size):
                yield Chunk(partial(layout.decode, lines), min(file.tell() / size, 1.0))

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise FaultError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _layout(self, line: bytes, schema: Schema, names: Sequence[str], id: str | None) -> _Layout:
        # Nothing of the file goes into a message: without a header, its first line is a record.
        remedy = (
            f"the first line must be a header that names the attributes, separated by {self.delimiter!r}, exactly as "
            "the schema does; the file must be UTF-8 text, and another separator must be said (--delimiter)"
        )
        columns = header(line, ord(self.delimiter))
        if columns == [b""]:
            raise DataError(f"{self.path}: there is no header; {remedy}")
        owners = {column: name for name in names for column in schema[name].columns(name)}
        if id is not None:
            owners[id] = id
        places = {name: [at for at, column in enumerate(columns) if column == name.encode()] for name in owners}
        missing = ", ".join(_shown(name, owners[name]) for name in places if not places[name])
        if missing:
            raise DataError(f"{self.path}: there is no column for {missing}; {remedy}")
        repeated = ", ".join(_shown(name, owners[name]) for name in places if len(places[name]) > 1)
        if repeated:
            raise DataError(f"{self.path}: there is more than one column for {repeated}; keep one of each name")
        wanted = {name: [places[column][0] for column in schema[name].columns(name)] for name in names}
        person = None if id is None else places[id][0]
        return _Layout(ord(self.delimiter), len(columns), {name: schema[name] for name in names}, wanted, person)


def _shown(column: str, attribute: str) -> str:
    return repr(column) if column == attribute else f"{column!r} (a part of {attribute!r})"


@final
@dataclass(frozen=True)
class _Layout:
    """How the lines of one file are read: the number of fields, the attributes, and the places of their columns."""

    delimiter: int
    width: int
    attributes: Mapping[str, Domain]
    places: Mapping[str, Sequence[int]]
    person: int | None = None
    """The place of the column that tells people apart."""

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
                texts, which = distinct(data, marks[first + place] + 1, marks[first + (place + 1)])
                if quoted:  # otherwise there is only trimming to do, which the domain does itself
                    texts = [unquote(text) for text in texts]
                columns.append(domain.encode(texts).astype(np.min_scalar_type(-domain.size))[which])
            codes[name] = attribute.combine(columns).astype(np.min_scalar_type(-attribute.size), copy=False)
        people = None
        if self.person is not None:
            people = _people(*distinct(data, marks[first + self.person] + 1, marks[first + (self.person + 1)]))
        return Records(len(first), codes, people)


def _people(texts: list[bytes], which: NDArray[np.int32]) -> Any:
    """Identifiers as an Arrow array; null where there is none: blank, too long, or not text."""
    import pyarrow as pa

    found: list[str | None] = []
    for text in texts:
        try:
            found.append(unquote(text).decode() if len(text) <= _LONGEST_ID else None)
        except UnicodeDecodeError:
            found.append(None)
    return pa.array([text or None for text in found], pa.string()).take(pa.array(which))


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Cut the rest of a file into whole lines, about ``size`` bytes at a time, each block after a line break.

    Of a line that is too long to be a record nothing is kept, so that memory is bounded whatever the file holds.
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


def open_source(data: str | Path | Source, delimiter: str | None = None) -> Source:
    """The source that a user means by a path or by a source."""
    if isinstance(data, (str, Path)):
        return CsvFile(data, delimiter)
    if not isinstance(data, Source):
        raise DataError(f"data: {type(data).__name__} is not supported; give the path of a CSV file")
    if delimiter is not None:
        raise DataError(f"delimiter={delimiter!r}: goes with the path of a file; this source has its own")
    return data
