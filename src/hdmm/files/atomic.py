"""Files: read only if they are regular ones; new ones never over another, and durable."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EINVAL, EISDIR, ENXIO
from pathlib import Path
from typing import BinaryIO, final

from hdmm.errors import ArtefactError

# A pipe that nobody writes to would block, and a terminal would become ours.
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
    """Open a regular file to read, and tell its size; anything else is an OSError, and is neither waited for nor read.

    What is asked is the open file itself, so that nothing can take its place in between.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == ENXIO:  # what opening a socket gives
            raise OSError(EINVAL, _IRREGULAR) from None
        raise
    except ValueError:  # a NUL byte
        raise OSError(EINVAL, "its name is not one that a file can have") from None
    try:
        status = os.fstat(descriptor)
        check_regular(status)
    except OSError:
        os.close(descriptor)
        raise
    with open(descriptor, "rb") as file:
        yield file, status.st_size


def check_regular(status: os.stat_result) -> None:
    """Refuse what is not a regular file, as an OSError."""
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
        there = path.exists() or path.is_symlink()
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be written: {error.strerror}; choose another name") from None
    if there:
        raise already_there(path)
    if not path.absolute().parent.is_dir():
        raise ArtefactError(f"{path}: its parent directory does not exist; create it first")


def already_there(path: Path) -> ArtefactError:
    """The error for a path that another file has."""
    return ArtefactError(f"{path}: exists already and is never overwritten; choose another name")


def sync_directory(path: Path) -> None:
    """Make new names in a directory durable, where the system lets a directory be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
