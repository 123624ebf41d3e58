"""The memory that Linux grants a container: the least limit of this process's control group and of those around it.

Version 2 of control groups names its limits memory.max and memory.high, version 1 memory.limit_in_bytes; both versions
may be mounted at once. A process beyond memory.high is not killed, but slowed to a crawl: it counts as a limit.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path, PurePosixPath

_GROUPS = Path("/proc/self/cgroup")
"""The control groups of this process."""
_MOUNT = Path("/sys/fs/cgroup")


@cache
def container_memory(groups: Path = _GROUPS, mount: Path = _MOUNT) -> int:
    """The least limit in bytes; sys.maxsize if there is none, or if nothing can be read."""
    limits = [sys.maxsize]
    try:
        lines = groups.read_text().splitlines()
    except (OSError, ValueError):
        lines = []
    for line in [*lines, "0::/", "0:memory:/"]:  # the root always counts: it may be all that a container sees
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for root in (mount, mount / "unified"):
                limits += _limits(root, path, ("memory.max", "memory.high"))
        elif "memory" in controllers.split(","):
            limits += _limits(mount / "memory", path, ("memory.limit_in_bytes",))
    return min(limits)


def _limits(root: Path, path: str, names: tuple[str, ...]) -> list[int]:
    """The limits of a group and of all around it, up to the root of the mount."""
    group = PurePosixPath(path.lstrip("/"))
    if ".." in group.parts or not (root / group).is_dir():  # a path on the host, which is not mounted here
        group = PurePosixPath()
    limits = []
    for folder in (group, *group.parents):
        for name in names:
            try:
                limit = int((root / folder / name).read_text())
            except (OSError, ValueError):  # none, or "max"
                continue
            if limit > 0:
                limits.append(limit)
    return limits
