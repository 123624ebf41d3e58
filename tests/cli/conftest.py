"""A directory with a spec, records and a plan, and the command line to run there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hdmm import cli
from tests.cli.workplace import GOOD, HEADER, SPEC, Done

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a spec and a data file, in which commands run."""
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "people.csv").write_bytes(HEADER + b"\n".join(GOOD) + b"\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run `hdmm` with some arguments, in this process."""

    def command(*arguments: str) -> Done:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["hdmm", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        return Done(left.value.code or 0, COLOURS.sub("", out), COLOURS.sub("", err))

    return command


@pytest.fixture(scope="session")
def plan_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The plan for the spec, made once."""
    directory = tmp_path_factory.mktemp("planned")
    (directory / "spec.yaml").write_text(SPEC, encoding="utf-8")
    command = [sys.executable, "-m", "hdmm", "plan", "spec.yaml"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return (directory / "spec.plan").read_bytes()


@pytest.fixture
def planned(workplace: Path, plan_bytes: bytes) -> Path:
    """A plan beside the spec."""
    (workplace / "spec.plan").write_bytes(plan_bytes)
    return workplace / "spec.plan"
