"""One file of a release: its size and checksum, computed while it is written and compared when it is read."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, final

from hdmm.errors import ArtefactError
from hdmm.files.artefact import LARGEST
from hdmm.files.atomic import open_regular
from hdmm.files.model import Model

HEADER = 128
"""Bytes of an npy file before its numbers."""
_PIECE = 1 << 20
"""Bytes in memory while a file is only checked."""


@final
class Stored(Model):
    """A file, as the manifest describes it."""

    path: str
    bytes: int
    sha256: str


@final
class Hashed(io.BufferedIOBase):
    """A file that is only written to, with the size and the checksum of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        """Always true: the file is write-only."""
        return True

    def write(self, data: Any) -> int:
        """Write and hash some bytes."""
        self._file.write(data)
        self._hash.update(data)
        written = memoryview(data).nbytes
        self.size += written
        return written

    def tell(self) -> int:
        """The number of bytes written."""
        return self.size

    @property
    def sha256(self) -> str:
        """The checksum of everything written."""
        return self._hash.hexdigest()


def put(directory: Path, name: str, write: Callable[[Hashed], object]) -> Stored:
    """Write a new file; it is not durable yet."""
    with open(directory / name, "xb") as file:
        hashed = Hashed(file)
        write(hashed)
    return Stored(path=name, bytes=hashed.size, sha256=hashed.sha256)


def sync_file(path: Path) -> None:
    """Make a file durable."""
    with open(path, "rb+") as file:  # some systems sync only files that are open for writing
        os.fsync(file.fileno())


def get(directory: Path, stored: Stored, most: int = LARGEST) -> bytes:
    """The content of a file, checked; one that is too large is not read."""
    check_size(directory, stored, most)
    return b"".join(_pieces(directory, stored, max(stored.bytes, 1)))


def check(directory: Path, stored: Stored) -> None:
    """Refuse a file that has changed since it was written, however large it is."""
    for _ in _pieces(directory, stored, _PIECE):
        pass


def check_size(directory: Path, stored: Stored, most: int) -> None:
    """Refuse a file whose stated size is larger than its content can be."""
    if stored.bytes > most:
        raise ArtefactError(f"{directory}: names a file of {stored.bytes} bytes; at most {most} are expected")


def locate(directory: Path, stored: Stored) -> Path:
    """The path of a file; refuse one outside the directory."""
    parts = PurePosixPath(stored.path).parts
    if not parts or not stored.path.isprintable() or parts[0] == "/" or ".." in parts:
        raise ArtefactError(f"{directory}: names a file outside itself")
    return directory.joinpath(*parts)


def _pieces(directory: Path, stored: Stored, size: int) -> Iterator[bytes]:
    """The content of a file in pieces of a size; after the last one its checksum is compared."""
    path = locate(directory, stored)
    checksum = hashlib.sha256()
    try:
        with open_regular(path) as (file, remaining):
            if remaining != stored.bytes:
                raise ArtefactError(f"{path}: is damaged or cut short")
            while remaining and (piece := file.read(min(size, remaining))):
                remaining -= len(piece)
                checksum.update(piece)
                yield piece
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be read: {error.strerror}") from None
    if checksum.hexdigest() != stored.sha256:
        raise ArtefactError(f"{path}: is damaged: its checksum does not match")
