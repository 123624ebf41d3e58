"""The memory of a container, read from made-up trees of control groups of both versions."""

import os
import sys
from pathlib import Path

import pytest

from hdmm.memory.container import container_memory

V1, NONE = "memory/{}memory.limit_in_bytes", sys.maxsize
UNLIMITED_V1 = "9223372036854771712"

CASES = {
    "v2": ("0::/app", {"app/memory.max": "1000"}, 1000),
    "v2, no limit": ("0::/app", {"app/memory.max": "max"}, NONE),
    "v2, nested, the inner one is less": ("0::/a/b", {"a/memory.max": "2000", "a/b/memory.max": "1000"}, 1000),
    "v2, nested, the outer one is less": ("0::/a/b", {"a/memory.max": "500", "a/b/memory.max": "max"}, 500),
    "v2, a limit beside ours": ("0::/a", {"a/memory.max": "1000", "b/memory.max": "10"}, 1000),
    "v2, in its own namespace": ("0::/", {"memory.max": "1000"}, 1000),
    "v2, slowed down before": ("0::/app", {"app/memory.max": "1000", "app/memory.high": "900"}, 900),
    "v2, slowed down only": ("0::/app", {"app/memory.max": "max", "app/memory.high": "900"}, 900),
    "v2, named as the host does": ("0::/docker/x", {"memory.max": "1000"}, 1000),
    "v2, part of the host's name is here": ("0::/a/x", {"memory.max": "1000", "a/memory.max": "10"}, 1000),
    "v2, above its namespace": ("0::/../other", {"memory.max": "1000"}, 1000),
    "v2, a colon in the name": ("0::/a:b", {"a:b/memory.max": "1000"}, 1000),
    "v1": ("4:memory:/app", {V1.format("app/"): "1000"}, 1000),
    "v1, no limit": ("4:memory:/app", {V1.format("app/"): UNLIMITED_V1}, int(UNLIMITED_V1)),
    "v1, nested": ("4:memory:/a/b", {V1.format("a/"): "700", V1.format("a/b/"): UNLIMITED_V1}, 700),
    "v1, several controllers": ("4:cpu,memory:/app", {V1.format("app/"): "1000"}, 1000),
    "v1, named as the host does": ("4:memory:/docker/x", {V1.format(""): "1000"}, 1000),
    "v1, another controller": ("4:cpuset:/app", {V1.format("app/"): "1000"}, NONE),
    "hybrid, limited by v1": ("4:memory:/app\n0::/", {V1.format("app/"): "1000", "unified/cgroup.procs": "1"}, 1000),
    "hybrid, limited by v2": ("4:memory:/\n0::/app", {V1.format(""): UNLIMITED_V1, "unified/app/memory.max": "9"}, 9),
    "nothing": ("0::/", {}, NONE),
    "not listed, yet limited": (None, {"memory.max": "1000"}, 1000),
    "garbage in the list": ("\0\n:::\nmemory\n0::/app", {"app/memory.max": "1000"}, 1000),
    "garbage in a limit": ("0::/a/b", {"a/memory.max": "1000", "a/b/memory.max": "a lot"}, 1000),
    "an empty limit": ("0::/a", {"memory.max": "1000", "a/memory.max": ""}, 1000),
    "a limit of nothing": ("0::/a", {"memory.max": "1000", "a/memory.max": "0"}, 1000),
    "bytes that are no text": ("0::/a", {"memory.max": "1000", "a/memory.max": "\udcff"}, 1000),
}


@pytest.mark.parametrize(("groups", "files", "expected"), CASES.values(), ids=CASES)
def test_the_least_limit_counts(tmp_path: Path, groups: str | None, files: dict[str, str], expected: int) -> None:
    mount = tmp_path / "cgroup"
    for name, text in files.items():
        path = mount / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{text}\n".encode(errors="surrogateescape"))
    if groups is not None:
        (tmp_path / "own").write_text(groups + "\n")
    assert container_memory(tmp_path / "own", mount) == expected


def test_a_limit_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    (mount / "app" / "memory.max").mkdir(parents=True)  # nobody reads a directory, not even root
    (mount / "memory.max").write_text("1000\n")
    (tmp_path / "own").write_text("0::/app\n")
    assert container_memory(tmp_path / "own", mount) == 1000
    assert container_memory(mount, tmp_path / "none") == sys.maxsize


@pytest.mark.skipif(not os.path.exists("/proc/self/cgroup"), reason="not Linux")
def test_this_machine_can_be_asked() -> None:
    assert container_memory() > 1 << 20
