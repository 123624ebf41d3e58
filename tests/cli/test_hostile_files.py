"""Hostile files and arguments are refused: by an error that is the user's, in little memory, and without waiting."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hdmm import baselines, select
from tests import hostile

MOST_MEGABYTES = 300
"""Beside the program itself; today's worst is about two thirds of it."""


slow = pytest.mark.slow


@pytest.mark.parametrize("every", [pytest.param(1, marks=slow), 8])
def test_what_is_hostile_is_refused_in_little_memory(tmp_path: Path, every: int) -> None:
    """Each case is in a process that may use 20 seconds of a processor, so that none hangs."""
    command = [sys.executable, "-m", "tests.hostile", str(tmp_path), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    found: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(list(hostile.CASES)[::every])
    assert [line for line in found if line["code"] != 2] == []
    assert [line for line in found if len(line["message"]) > 2500] == [], "a message is one that a person can read"
    assert [line for line in found if line["megabytes"] > MOST_MEGABYTES] == []


COMMANDS = {
    "a weight in a spec": ("spec.yaml", "schema: {a: [x]}\nworkload: [{name: q, weight: 1e300000000}]\n", "plan"),
    "a spec of many values": ("spec.yaml", "schema: {a: [" + "1," * 2_000_000 + "]}", "plan"),
    "a plan of many objects": ("x.plan", hostile.signed("plan", b"[" + b"{}," * 5_000_000 + b"0]"), "show"),
    "a manifest of many objects": (
        "out/release.json",
        hostile.signed("release", b"[" + b"{}," * 5_000_000 + b"0]"),
        "answer",
    ),
}
ARGUMENTS = {
    "plan": ["plan", "spec.yaml"],
    "show": ["show", "x.plan", "--epsilon", "1"],
    "answer": ["answer", "out", "SELECT COUNT(*) FROM t"],
    "ledger": ["ledger", "show", "budget.db"],
}


def hdmm(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hdmm", *arguments]
    hangs = 600  # seconds, after which a command that needs a few is taken to hang
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=hangs, check=False)


@slow
@pytest.mark.parametrize(("file", "content", "command"), COMMANDS.values(), ids=COMMANDS)
def test_a_hostile_file_is_a_mistake_on_the_command_line(
    tmp_path: Path, file: str, content: str | bytes, command: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = hdmm(tmp_path, *ARGUMENTS[command])
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr[-2000:]


@pytest.mark.parametrize(
    ("file", "command"),
    [
        pytest.param("spec.yaml", "plan", marks=slow),
        ("x.plan", "show"),
        pytest.param("out/release.json", "answer", marks=slow),
        pytest.param("budget.db", "ledger", marks=slow),
    ],
)
def test_a_pipe_is_a_mistake_on_the_command_line(tmp_path: Path, file: str, command: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / file)
    done = hdmm(tmp_path, *ARGUMENTS[command])
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr[-2000:]


@slow
@pytest.mark.parametrize(
    "arguments",
    [["show", "x.plan", "--epsilon", "1e999999999"], ["show", "x.plan", "--epsilon", "1", "--memory", "1e99999GB"]],
)
def test_a_hostile_argument_is_a_mistake_on_the_command_line(tmp_path: Path, arguments: list[str]) -> None:
    select(hostile.SMALL, operators=[baselines.Identity()]).save(tmp_path / "x.plan")
    assert hdmm(tmp_path, *arguments).returncode == 2
