"""Temporary directories: private, removed afterwards, and by the next process where theirs was killed."""

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hdmm.files import scratch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="without locks only one's own directory is removed")

HOLDS = """
import os, sys
from pathlib import Path
from hdmm.files import scratch
with scratch.directory(Path(sys.argv[1])) as own:
    (own / "sub").mkdir()
    (own / "sub" / "secret").write_text("x")
    print(own, flush=True)
    {then}
"""


def started(place: Path, then: str = "sys.stdin.read()") -> tuple[subprocess.Popen[str], Path]:
    """A process that has a temporary directory with something in it, and that directory."""
    command = [sys.executable, "-c", HOLDS.format(then=then), str(place)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def killed(place: Path) -> Path:
    """What a process that was killed has left."""
    process, own = started(place)
    process.kill()
    process.communicate()
    return own


def test_only_its_user_can_enter_it_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    with scratch.directory(tmp_path) as own:
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        assert (own.parent, own.name[:6]) == (tmp_path, ".hdmm-")
        (own / "file").write_text("x")
        (own / "link").symlink_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_by_default_it_is_where_tmpdir_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch.directory() as own:
        assert (own.parent, own.name[:5]) == (tmp_path, "hdmm-")


def test_it_is_removed_at_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch.directory(tmp_path):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left = killed(tmp_path)
    assert (left / "sub" / "secret").exists()
    with scratch.directory(tmp_path) as own:
        assert list(tmp_path.iterdir()) == [own]


def test_a_running_process_keeps_its_own(tmp_path: Path) -> None:
    running, own = started(tmp_path)
    with scratch.directory(tmp_path) as mine:  # of this process, in which another thread may sweep
        scratch.sweep(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([own, mine])
        assert (own / "sub" / "secret").exists()
    running.communicate()
    assert running.returncode == 0
    assert list(tmp_path.iterdir()) == []


def left_by_hand(place: Path, name: str = ".hdmm-" + 32 * "a") -> Path:
    folder = place / name
    folder.mkdir()
    (folder / "lock").touch()
    (folder / "file").touch()
    return folder


def test_a_directory_whose_removal_was_cut_short_is_removed(tmp_path: Path) -> None:
    left_by_hand(tmp_path)
    (tmp_path / (".hdmm-" + 32 * "b")).mkdir()  # killed before there was a lock, or after it was gone
    scratch.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_removal_that_is_cut_short_leaves_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_by_hand(tmp_path)
    (left / "sub").mkdir()

    def fail(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(shutil, "rmtree", fail)
    scratch.sweep(tmp_path)
    assert (left / "lock").exists()
    monkeypatch.undo()
    scratch.sweep(tmp_path)
    assert not left.exists()


@pytest.mark.parametrize("name", ["hdmm-release", ".hdmm-" + 31 * "a", "hdmm-" + 32 * "A", "x.hdmm-" + 32 * "a"])
def test_directories_of_other_names_are_not_ours(tmp_path: Path, name: str) -> None:
    other = left_by_hand(tmp_path, name)
    scratch.sweep(tmp_path)
    assert (other / "file").exists()


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    target = left_by_hand(tmp_path, "target")
    (place / ("hdmm-" + 32 * "a")).symlink_to(target)
    scratch.sweep(place)
    assert sorted(path.name for path in target.iterdir()) == ["file", "lock"]


def test_a_directory_of_another_user_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = left_by_hand(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: other.stat().st_uid + 1)
    scratch.sweep(tmp_path)
    assert (other / "file").exists()


def test_a_forked_process_neither_removes_it_nor_keeps_it(tmp_path: Path) -> None:
    """The child lives on when the parent is killed; the directory is nobody's then."""
    fork = "print(os.getpid(), flush=True) if os.fork() == 0 else None; sys.stdin.read()"
    parent, own = started(tmp_path, then=fork)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        scratch.sweep(tmp_path)
        assert own.exists()
        parent.kill()
        parent.wait()
        scratch.sweep(tmp_path)
        assert not own.exists()
        os.kill(child, 0)  # it was alive all the time
    finally:
        os.kill(child, signal.SIGKILL)
        parent.communicate()


def test_a_forked_process_that_leaves_the_block_removes_nothing(tmp_path: Path) -> None:
    then = "pid = os.fork()\n    if pid: os.waitpid(pid, 0); print(own.exists(), flush=True)"
    parent, _ = started(tmp_path, then=then)
    out, _ = parent.communicate()
    assert out == "True\n"
    assert list(tmp_path.iterdir()) == []


STEPS = ["mkdir", "open", "flock"]


@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_sweeps_at_any_step_of_another_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It may take the new directory for a left one: then there is another one, locked and whole."""
    owner = {"mkdir": Path, "open": os, "flock": fcntl}[step]
    real = getattr(owner, step)

    def then_sweep(*arguments: object, **more: object) -> object:
        result = real(*arguments, **more)
        monkeypatch.setattr(owner, step, real)
        scratch.sweep(tmp_path)
        return result

    monkeypatch.setattr(owner, step, then_sweep)
    with scratch.directory(tmp_path) as own:
        scratch.sweep(tmp_path)
        assert list(tmp_path.iterdir()) == [own]
        assert [path.name for path in own.iterdir()] == ["lock"]
    assert list(tmp_path.iterdir()) == []


def test_a_new_directory_that_another_process_removes_just_now_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one has the lock of the new directory at the moment when its maker asks for it."""
    real = fcntl.flock
    others: list[int] = []

    def late(lock: int, how: int) -> None:
        if not others:
            (path,) = tmp_path.iterdir()
            others.append(os.open(path / "lock", os.O_RDWR))
            real(others[0], how)
        real(lock, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with scratch.directory(tmp_path) as own:
        assert len(list(tmp_path.iterdir())) == 2
        os.close(others[0])
        scratch.sweep(tmp_path)
        assert list(tmp_path.iterdir()) == [own]


def test_many_threads_that_sweep_and_make_directories_never_lose_one(tmp_path: Path) -> None:
    for number in range(50):
        left_by_hand(tmp_path, f".hdmm-{number:032x}")
    lost: list[object] = []

    def work() -> None:
        try:
            for _ in range(50):
                with scratch.directory(tmp_path) as own:
                    (own / "file").write_text("x")
                    scratch.sweep(tmp_path)
                    (own / "file").read_text()
        except OSError as error:
            lost.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lost == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with scratch.directory(tmp_path) as own:
        scratch.sweep(tmp_path)
        assert own.exists()
    assert list(tmp_path.iterdir()) == []
