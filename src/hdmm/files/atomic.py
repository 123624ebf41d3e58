"""Regular files, read and written: other kinds are refused, nothing is overwritten, and new files are durable."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EINVAL, EISDIR, ENXIO
from pathlib import Path
from typing import BinaryIO, final

from hdmm.errors import ArtefactError

# Else a pipe that nobody writes to would block, and a terminal would become the controlling one.
_FLAGS = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
    _FLAGS |= getattr(os, _flag, 0)
_IRREGULAR = "it is not a regular file but a pipe, a socket or a device"


@final
class OversizedError(Exception):
    """A file has more bytes than may be read; ``size`` says how many."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


@contextmanager
def open_regular(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file for reading, with its size; anything else is an OSError, never waited for and never read.

    The open file itself is checked, so that nothing can take its place in between.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == ENXIO:  # a socket
            raise OSError(EINVAL, _IRREGULAR) from None
        raise
    except ValueError:  # a NUL byte
        raise OSError(EINVAL, "no file can have this name") from None
    try:
        status = os.fstat(descriptor)
        check_regular(status)
    except OSError:
        os.close(descriptor)
        raise
    with open(descriptor, "rb") as file:
        yield file, status.st_size


def check_regular(status: os.stat_result) -> None:
    """Raise an OSError for anything but a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(EINVAL, _IRREGULAR)


def read_regular(path: Path, most: int) -> bytes:
    """Read a regular file of at most ``most`` bytes, and no more than it has when it is opened."""
    with open_regular(path) as (file, size):
        if size > most:
            raise OversizedError(size)
        return file.read(size)


def check_new(path: Path) -> None:
    """Refuse a path that exists already or has no parent directory."""
    try:
        taken = path.exists() or path.is_symlink()
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be written: {error.strerror}; choose another name") from None
    if taken:
        raise already_there(path)
    if not path.absolute().parent.is_dir():
        raise ArtefactError(f"{path}: its parent directory does not exist; create it first")


def already_there(path: Path) -> ArtefactError:
    """The error for a path that is taken."""
    return ArtefactError(f"{path}: exists already and is never overwritten; choose another name")


def sync_directory(path: Path) -> None:
    """Make new names in a directory durable, if the system can sync a directory."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
