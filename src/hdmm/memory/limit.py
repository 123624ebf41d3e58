"""How much memory hdmm may use. The limit holds inside a `with` block, and is the same for everything called there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hdmm.errors import InputError, is_integer
from hdmm.memory.container import container_memory
from hdmm.numbers import fraction, shown
from hdmm.syntax import example, given

_MAX_SIZE_TEXT = 100
"""Characters of a size such as "8GB"."""
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

_LEAST_ADVISED = 8
"""Gigabytes that a message proposes at least."""
_MOST_ADVISED = 64
"""More memory is not suggested if more than this many times the limit is needed."""

_LIMIT: ContextVar[int | None] = ContextVar("limit", default=None)


@contextmanager
def memory_allowed(size: str | int | None) -> Iterator[None]:
    """Limit memory inside the `with` block. None keeps the current limit (default: half of RAM)."""
    token = _LIMIT.set(_LIMIT.get() if size is None else memory_size(size))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def memory_limit() -> int:
    """How many bytes may be used: the limit of :func:`memory_allowed`, or half of the memory of this process."""
    limit = _LIMIT.get()
    return physical_memory() // 2 if limit is None else limit


def more_memory(needed: int | None = None) -> str:
    """The end of a list of remedies: ``, or allow more memory (--memory 26GB)``; empty if no machine has that."""
    limit = memory_limit()
    if needed is not None and needed > _MOST_ADVISED * limit:
        return ""
    size = max(_LEAST_ADVISED, -(-2 * limit // 10**9), 0 if needed is None else -(-needed // 10**9))
    return f", or allow more memory ({example('memory', f'{size}GB')})"


def memory_size(value: str | int) -> int:
    """A number of bytes, from text such as "8GB" or "500 MiB"."""
    size = value if is_integer(value) else 0
    if isinstance(value, str) and len(value) <= _MAX_SIZE_TEXT and (parts := _SIZE.fullmatch(value)):
        size = int(fraction(parts[1]) * (1024 if parts[3] else 1000) ** _UNITS[parts[2].lower()])
    if not 0 < size <= sys.maxsize:
        raise InputError(
            f"{given('memory', shown(value))}: expected a size, for example {example('memory', '8GB')} or "
            f"{example('memory', '500MB')}"
        )
    return size


def physical_memory() -> int:
    """The bytes of memory that this process may have: the least of the machine, its container and ``ulimit -v``."""
    return min(_machine_memory(), container_memory(), _process_memory())


def _machine_memory() -> int:
    """The machine's memory; 8 GiB if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _process_memory() -> int:
    try:
        import resource  # missing on Windows
    except ImportError:
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
