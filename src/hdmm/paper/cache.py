"""What was computed before, in a directory of the user: a second run of `hdmm paper` is instant.

An outcome is kept under a digest of what was computed, of the code that computes, and of the versions of numpy, scipy
and Python: after a change of any of them it is computed again. Files are written whole or not at all; a damaged one
counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import final

from hdmm.errors import ArtefactError, FaultError, TooLargeError
from hdmm.files.artefact import encode, read, write
from hdmm.paper.sections.base import Outcome, Task

_KIND = "result"
_NOT_COMPUTING = (
    *("cli", "data", "demo.py", "inspection", "measure.py", "picture.py", "proposal", "releases"),
    *("paper/cache.py", "paper/report", "paper/run.py", "paper/sections"),
)
"""What no computation imports, or what only keeps and shows what was computed."""


def user_directory() -> Path:
    """Where a user's caches are: $XDG_CACHE_HOME/hdmm, or ~/.cache/hdmm."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "hdmm"


@final
class Cache:
    """A directory of outcomes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def recall(self, task: Task) -> Outcome | None:
        """What a task computed before, if a whole file says so."""
        try:
            content = read(_KIND, self._path(task))
        except (ArtefactError, TooLargeError):
            return None
        if not isinstance(content, dict) or content.get("task") != task.text:
            return None
        outcome = content.get("outcome")
        return outcome if isinstance(outcome, dict) else None

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Keep what a task computed; a directory that cannot be written to keeps nothing."""
        path = self._path(task)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, encode(_KIND, {"task": task.text, "outcome": outcome}), overwrite=True)
        except (OSError, FaultError):
            return

    def _path(self, task: Task) -> Path:
        parts = [task.text, code_digest(), platform.python_version(), *map(version, ("numpy", "scipy"))]
        return self._directory / "paper" / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}.json"


@cache
def code_digest() -> str:
    """A digest of the code that computes outcomes, and of nothing that only shows them."""
    root = Path(str(files("hdmm")))
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not any(name == other or name.startswith(f"{other}/") for other in _NOT_COMPUTING):
            digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
