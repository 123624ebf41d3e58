"""Outcomes are computed once, whatever happens to the files that keep them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hdmm.paper import cache as caching
from hdmm.paper.cache import Cache, user_directory
from hdmm.paper.run import run
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import Cell

CALLS: list[int] = []


def square(n: int) -> Mapping[str, Any]:
    """A cheap computation that can be counted."""
    CALLS.append(n)
    return {"square": float(n * n)}


class Squares(Section):
    """A section of three computations, one of them slow and one timed."""

    name = "squares"
    title = "Squares"
    row_names = ("n",)

    def tasks(self) -> list[Task]:
        return [Task("2", square, (2,)), Task("3", square, (3,), slow=True), Task("4", square, (4,), timed=True)]

    def cells(self, outcomes: Outcomes) -> list[Cell]:
        return []


@pytest.fixture(autouse=True)
def nothing_called():
    CALLS.clear()


def files(directory: Path) -> list[Path]:
    return sorted((directory / "paper").iterdir())


def test_a_second_run_computes_nothing(tmp_path):
    first = run(Squares(), Cache(tmp_path))
    assert CALLS == [2, 3, 4]
    assert run(Squares(), Cache(tmp_path)) == first
    assert CALLS == [2, 3, 4]


def test_without_a_cache_everything_is_computed_again():
    run(Squares())
    run(Squares())
    assert CALLS == [2, 3, 4, 2, 3, 4]


def test_a_fast_run_leaves_out_what_is_slow_unless_it_is_known(tmp_path):
    assert list(run(Squares(), Cache(tmp_path), fast=True)) == ["2", "4"]
    run(Squares(), Cache(tmp_path))
    assert sorted(run(Squares(), Cache(tmp_path), fast=True)) == ["2", "3", "4"]
    assert CALLS == [2, 4, 3]


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "foreign", "directory"])
def test_a_damaged_file_is_ignored_and_replaced(tmp_path, damage):
    cache, task = Cache(tmp_path), Task("2", square, (2,))
    cache.keep(task, {"square": 4.0})
    (path,) = files(tmp_path)
    content = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(content[:-9])
        case "changed":
            path.write_bytes(content.replace(b"4.0", b"9.0"))
        case "emptied":
            path.write_bytes(b"")
        case "foreign":
            path.write_bytes(b"\x89PNG")
        case "directory":
            path.unlink()
            path.mkdir()
    assert cache.recall(task) is None
    assert run(Squares(), cache)["2"] == {"square": 4.0}
    assert (cache.recall(task) is None) == (damage == "directory")


def test_a_file_under_the_name_of_another_task_is_not_believed(tmp_path):
    cache, two, three = Cache(tmp_path), Task("2", square, (2,)), Task("3", square, (3,))
    cache.keep(two, {"square": 4.0})
    (path,) = files(tmp_path)
    cache.keep(three, {"square": 9.0})
    (other,) = [name for name in files(tmp_path) if name != path]
    path.replace(other)
    assert cache.recall(three) is None


def test_other_arguments_are_another_result(tmp_path):
    cache, task = Cache(tmp_path), Task("2", square, (2,))
    cache.keep(task, {"square": 4.0})
    assert cache.recall(replace(task, name="a new name, the same computation")) == {"square": 4.0}
    assert cache.recall(replace(task, arguments=(3,))) is None


def test_a_change_of_the_code_or_of_numpy_makes_results_old(tmp_path, monkeypatch):
    cache, task = Cache(tmp_path), Task("2", square, (2,))
    cache.keep(task, {"square": 4.0})
    with monkeypatch.context() as patched:
        patched.setattr(caching, "code_digest", lambda: "another")
        assert cache.recall(task) is None
    monkeypatch.setattr(caching, "version", lambda package: "99")
    assert cache.recall(task) is None


def test_the_digest_covers_the_code_that_computes_and_not_what_shows_it(tmp_path, monkeypatch):
    for name, text in (("errors.py", "1"), ("paper/sections/cells.py", "1"), ("cli/plan.py", "1")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(caching, "files", lambda package: tmp_path)
    digest = caching.code_digest.__wrapped__
    before = digest()
    (tmp_path / "paper/sections/cells.py").write_text("2")
    (tmp_path / "cli/plan.py").write_text("2")
    assert digest() == before
    (tmp_path / "errors.py").write_text("2")
    assert digest() != before


def test_a_directory_that_cannot_be_written_to_keeps_nothing(tmp_path):
    (tmp_path / "paper").write_text("in the way")
    assert run(Squares(), Cache(tmp_path))["2"] == {"square": 4.0}


def test_two_processes_at_once_leave_whole_files(tmp_path):
    """Both write the same results again and again, and read them meanwhile."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hdmm.paper.cache import Cache\n"
        "from hdmm.paper.sections.base import Task\n"
        "cache, task = Cache(Path(sys.argv[1])), Task('all', sum, ((1, 2),))\n"
        "content = {'numbers': list(range(20_000))}\n"
        "cache.keep(task, content)\n"
        "for _ in range(30):\n"
        "    cache.keep(task, content)\n"
        "    assert cache.recall(task) == content\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in both] == [("", 0), ("", 0)]
    assert len(files(tmp_path)) == 1


def test_the_cache_is_where_the_user_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_directory() == tmp_path / "hdmm"
    for nowhere in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", nowhere)
        monkeypatch.setenv("HOME", os.fspath(tmp_path))
        assert user_directory() == tmp_path / ".cache" / "hdmm"


def test_progress_begins_with_what_is_known_and_ends_at_all(tmp_path):
    cache = Cache(tmp_path)
    cache.keep(Task("2", square, (2,)), {"square": 4.0})
    seen: list[float] = []
    run(Squares(), cache, on_progress=seen.append)
    assert seen == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]


def test_processes_compute_the_same(tmp_path):
    from hdmm.paper.sections.strategies import Strategies

    class Hierarchies(Section):
        """Two computations that other processes can import."""

        name, title, row_names = "hierarchies", "Hierarchies", ("n",)

        def tasks(self) -> list[Task]:
            (task,) = [task for task in Strategies().tasks() if task.name == "hierarchy"]
            return [task, replace(task, name="again")]

        def cells(self, outcomes: Outcomes) -> list[Cell]:
            return []

    outcomes = run(Hierarchies(), jobs=2)
    assert outcomes["hierarchy"] == outcomes["again"] == run(Hierarchies())["hierarchy"]
