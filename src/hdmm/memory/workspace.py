"""Large work arrays: in memory, or in a private temporary file if memory is short.

The file is removed from its directory (TMPDIR) as soon as it is open. So nobody else can open it, and it never outlives
the process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from errno import EINVAL, ENOSPC, EOPNOTSUPP
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import FaultError, TooLargeError
from hdmm.memory.limit import memory_limit
from hdmm.text import bytes_text, count_text

DENSE_LIMIT = 1 << 27
"""Most entries of a matrix that is written out: one GiB."""


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
    """Whether a work array of this many bytes goes to a file: if it would take more than half of the memory."""
    return size > limit // 2


def _reserve(file: int, size: int) -> None:
    """Allocate a file on the disk. Writing into a hole of a sparse file would kill the process if the disk is full."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno not in (EOPNOTSUPP, EINVAL):  # these mean that the file system cannot allocate
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
