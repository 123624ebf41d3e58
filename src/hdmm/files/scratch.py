"""Private temporary directories: removed after use or, if the process is killed, by the next one.

The process that uses a directory holds a lock on a file in it. The kernel releases the lock when the process ends,
however it ends. So a directory whose lock is free belongs to nobody, and is removed. Without such locks (Windows, some
network file systems), a process removes only its own directories.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EAGAIN
from pathlib import Path
from uuid import uuid4

if sys.platform != "win32":
    import fcntl

_NAME = re.compile(r"\.?hdmm-[0-9a-f]{32}")
_LOCK = "lock"
_MAX_TRIES = 100
"""How often a new directory may be lost to a process that sweeps just before it is locked."""

_held: set[int] = set()
"""The descriptors of the locks of this process."""


@contextmanager
def directory(beside: Path | None = None) -> Iterator[Path]:
    """A new directory that only this user can enter: hidden beside an output, or by default in TMPDIR.

    Directories left there by dead processes are removed first.
    """
    parent = Path(tempfile.gettempdir()) if beside is None else beside
    sweep(parent)
    path, lock = _locked(parent, "hdmm-" if beside is None else ".hdmm-")
    owner = os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == owner:  # a forked process may leave the block, too
            if sys.platform == "win32":  # an open file cannot be removed there
                _release(lock)
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):  # the next process removes whatever stays
                    _remove(path)
                _release(lock)


def sweep(parent: Path) -> None:
    """Remove what dead processes of this user have left in a directory."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        for name in os.listdir(parent):
            if _NAME.fullmatch(name):
                with suppress(OSError):  # another process may sweep at the same time
                    _sweep(parent / name)


def _locked(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new directory, and the descriptor of its lock."""
    for _ in range(_MAX_TRIES):
        path = parent / f"{prefix}{uuid4().hex}"
        path.mkdir(0o700)
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:  # swept, as it was not locked yet
            continue
        _held.add(lock)
        if _take(lock) and (path / _LOCK).exists():  # else it was swept before it was locked
            return path, lock
        _release(lock)
    raise OSError(EAGAIN, os.strerror(EAGAIN))


def _take(lock: int) -> bool:
    """Take a new lock; False if a sweeping process has it."""
    if sys.platform != "win32":
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: nobody else can take one there, so nobody sweeps
            pass
    return True


def _release(lock: int) -> None:
    _held.discard(lock)
    os.close(lock)


if sys.platform != "win32":

    def _sweep(path: Path) -> None:
        """Remove a directory if nobody holds its lock."""
        if path.lstat().st_uid != os.geteuid():
            return
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            # Not locked yet, or its process was killed then. If that process is alive, it makes another directory.
            path.rmdir()
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)
        finally:
            os.close(lock)

    def _remove(path: Path) -> None:
        """Remove a directory, its lock last: if this is cut short, what is left is still locked or empty."""
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(folder).st_uid != os.geteuid():
                return
            for name in os.listdir(folder):
                if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    shutil.rmtree(name, dir_fd=folder)
                elif name != _LOCK:
                    os.unlink(name, dir_fd=folder)
            os.unlink(_LOCK, dir_fd=folder)
            path.rmdir()
        finally:
            os.close(folder)

    def _forget() -> None:
        """Close the parent's locks in a forked process, which would otherwise hold them after the parent is gone."""
        for lock in list(_held):
            _release(lock)

    os.register_at_fork(after_in_child=_forget)
