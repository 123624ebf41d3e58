"""New files: never over another one, and durable."""

from __future__ import annotations

import os
from pathlib import Path

from hdmm.errors import ArtefactError


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
