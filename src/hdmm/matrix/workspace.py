"""Large work arrays: in memory, or in a private temporary file where memory is short.

The file is removed from its directory (TMPDIR) as soon as it is open: nobody else can open it, and whatever happens to
the process, nothing of it stays.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from errno import EINVAL, ENOSPC, EOPNOTSUPP
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import FaultError, TooLargeError
from hdmm.matrix.container import container_memory
from hdmm.texttable import bytes_text, count_text

DENSE_LIMIT = 1 << 27
"""The most entries of a matrix that is written out: one GiB."""

_LIMIT: ContextVar[int | None] = ContextVar("limit", default=None)


def physical_memory() -> int:
    """The memory that this process may have in bytes; 8 GiB where it cannot be asked.

    It is the machine's, or less where a container or a limit of the process (``ulimit -v``) says so.
    """
    return min(_machine_memory(), container_memory(), _process_memory())


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _process_memory() -> int:
    try:
        import resource  # which Windows lacks
    except ImportError:
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def memory_limit() -> int:
    """How many bytes may be used: half of the machine's memory, or what :func:`limited` says."""
    said = _LIMIT.get()
    return physical_memory() // 2 if said is None else said


@contextmanager
def limited(limit: int | None) -> Iterator[None]:
    """Within it, so many bytes of memory may be used; None leaves it as it is."""
    token = _LIMIT.set(_LIMIT.get() if limit is None else limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def check_written(rows: int, columns: int) -> None:
    """Refuse to write out a matrix of more than DENSE_LIMIT entries."""
    if rows * columns > DENSE_LIMIT:
        raise TooLargeError(
            f"{count_text(rows)} queries over {count_text(columns)} cells are too many to write out: at most "
            f"{count_text(DENSE_LIMIT)} entries fit; declare bins or a coarser domain"
        )


def check_answers(count: int) -> None:
    """Refuse a vector of more answers than memory holds."""
    if 8 * count > memory_limit():
        raise TooLargeError(
            f"a product has {count_text(count)} answers; about {count_text(memory_limit() // 8)} fit: ask for fewer "
            "values or ranges, or declare bins or a coarser domain"
        )


def on_disk(size: int, limit: int) -> bool:
    """Whether a work array of so many bytes is in a file: where it would take more than half of the memory."""
    return size > limit // 2


def _reserve(file: int, size: int) -> None:
    """Make a file so large, its room on the disk included: to write into a hole of a full disk kills the process."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno not in (EOPNOTSUPP, EINVAL):  # which say that the file system cannot
                raise
    os.ftruncate(file, size)


def empty(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array whose elements are not set."""
    needed = size * dtype.itemsize
    if not on_disk(needed, memory_limit()):
        return np.empty(size, dtype)
    try:
        with tempfile.TemporaryFile(prefix="hdmm-") as file:
            if shutil.disk_usage(tempfile.gettempdir()).free < needed:
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            _reserve(file.fileno(), needed)
            return np.memmap(file, dtype, "r+", shape=(size,)).view(np.ndarray)
    except OSError as error:
        raise FaultError(
            f"{tempfile.gettempdir()}: a work file of {bytes_text(needed)} cannot be written: {error.strerror}; set "
            "TMPDIR to a directory with more room, or allow more memory"
        ) from None
