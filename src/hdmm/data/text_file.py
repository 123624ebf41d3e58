"""Text files as streams of UTF-8, whatever their encoding, and whether they are compressed or not."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast, final

from hdmm.data.encodings import decoded
from hdmm.errors import DataError, FaultError, HdmmError

_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_BLOCK_BYTES = 1 << 20


@final
@dataclass(frozen=True)
class TextFile:
    """An open file: its text, and the share of the file that was read so far."""

    text: BinaryIO
    fraction: Callable[[], float]


def compression(path: Path) -> str | None:
    """How a file is compressed, by the end of its name."""
    return _SUFFIXES.get(path.suffix.lower())


def plain_suffix(path: Path) -> str:
    """The end of a file's name before that of its compression, in small letters."""
    return Path(path.stem if compression(path) else path.name).suffix.lower()


@contextmanager
def opened(path: Path, encoding: str | None, *, damaged: type[HdmmError] = FaultError) -> Iterator[TextFile]:
    """A file's text; ``encoding`` is None if it is UTF-8, ``damaged`` the error for a file that cannot be unpacked."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise FaultError(f"{path}: cannot be read: {error.strerror}") from None
    with raw:
        size = max(os.fstat(raw.fileno()).st_size, 1)
        unpacked = _unpacked(raw, compression(path))
        text = unpacked if encoding is None else decoded(unpacked, encoding)
        try:
            yield TextFile(text, lambda: min(raw.tell() / size, 1.0))
        except (OSError, EOFError, zlib.error) as error:
            if compression(path) is None:
                raise FaultError(f"{path}: cannot be read: {getattr(error, 'strerror', None)}") from None
            raise damaged(
                f"{path}: cannot be unpacked ({type(error).__name__}): it is cut off, damaged, or not what its name "
                "says; make it anew, or give it unpacked"
            ) from None


def check_archive(path: Path) -> None:
    """Refuse a compressed file that cannot be unpacked to its end: it is unpacked once, and what it holds forgotten."""
    if compression(path) is None:
        return
    with opened(path, None, damaged=DataError) as file:
        while file.text.read(_BLOCK_BYTES):
            pass


def _unpacked(raw: BinaryIO, kind: str | None) -> BinaryIO:
    if kind == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if kind == "zstd":
        import pyarrow as pa

        return cast(BinaryIO, io.BufferedReader(pa.CompressedInputStream(raw, "zstd"), _BLOCK_BYTES))
    return raw
