"""What a release that is ended by a signal leaves on the disk, at each of its steps, and what the next one removes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hdmm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are ended in another way on this system")

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(5))
WORKLOAD = hdmm.Workload(SCHEMA).add("by sex", sex=hdmm.Identity()).add("by age", age=hdmm.Prefix())
PEOPLE = 20_000
MARK = "Quxo"
"""How every identifier begins."""

SCRIPT = """
import os, signal, sys, threading, time
import hdmm.cli
from hdmm.releases import publish
from hdmm.releases import file
from hdmm.data import chunked, engine, stoppable
from hdmm.privacy.ledger import chain, ledger

path, when, name = sys.argv[1].split("."), sys.argv[2], sys.argv[3]
if path[0] == "chunked" and name != "wait":
    assert engine._MOST_MEMORY >= engine._LEAST_MEMORY  # there are such names
    engine._MOST_MEMORY = engine._LEAST_MEMORY = 4 << 20  # so that few records are enough to be written to the disk
modules = (chain, chunked, file, ledger, publish, stoppable)
owner = {module.__name__.split(".")[-1]: module for module in modules}[path[0]]
for step in path[1:-1]:
    owner = getattr(owner, step)
real = getattr(owner, path[-1])

def reached(*arguments, **named):
    setattr(owner, path[-1], real)
    if when == "after":
        result = real(*arguments, **named)
    if when == "busy":  # once the step has used the processor for a while, so that it is in the midst of it
        def later(since=time.process_time()):
            while time.process_time() < since + 1:
                time.sleep(0.01)
            os.kill(os.getpid(), getattr(signal, name))
        threading.Thread(target=later, daemon=True).start()
    elif name == "wait":
        print("reached", flush=True)
        sys.stdin.read()
    else:
        os.kill(os.getpid(), getattr(signal, name))
    return result if when == "after" else real(*arguments, **named)

setattr(owner, path[-1], reached)
sys.argv = ["hdmm", *sys.argv[4:]]
hdmm.cli.main()
"""

ARGUMENTS = ["release", "people.plan", "people.csv", "--epsilon", "0.5", "--ledger", "budget.db", "-o", "out"]
GIVEN = {"people.plan", "people.csv", "budget.db", "tmp"}


@pytest.fixture(scope="module")
def plan() -> hdmm.Plan:
    return hdmm.select(WORKLOAD, unit=hdmm.Unit(2, id="patient"), operators=[hdmm.baselines.Identity()])


@pytest.fixture
def place(tmp_path: Path, plan: hdmm.Plan) -> Path:
    """Three records of every person, of which two count."""
    lines = [f"{MARK}{row % PEOPLE:036d},{'FM'[row % 2]},{row % 5}\n" for row in range(3 * PEOPLE)]
    (tmp_path / "people.csv").write_text("patient,sex,age\n" + "".join(lines))
    plan.save(tmp_path / "people.plan")
    hdmm.Ledger.create(tmp_path / "budget.db", hdmm.Budget("1"), plan.unit)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def begun(place: Path, step: str, when: str, name: str, arguments: list[str] = ARGUMENTS) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, step, when, name, *arguments]
    pipe = subprocess.PIPE
    environment = {**os.environ, "TMPDIR": str(place / "tmp"), "COLUMNS": "200"}
    return subprocess.Popen(command, cwd=place, text=True, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def ended(place: Path, step: str, when: str, name: str, arguments: list[str] = ARGUMENTS) -> tuple[int, str]:
    """The exit code and the messages of a release that gets a signal right before a step, after it, or within it."""
    process = begun(place, step, when, name, arguments)
    try:
        _, errors = process.communicate(timeout=1800)  # half an hour: it hangs
    finally:
        process.kill()
    return process.returncode, errors


def left(place: Path) -> tuple[list[Path], list[Path]]:
    """What is in TMPDIR, and what is beside the output and was not given."""
    beside = [path for path in place.iterdir() if path.name not in GIVEN and path.name != "out"]
    return list((place / "tmp").iterdir()), beside


def spent(place: Path) -> float:
    return float(hdmm.Ledger.open(place / "budget.db").spent().epsilon or 0)


STEPS = {
    "nothing is charged": ("chain.commit", "before"),
    "charged": ("chain.commit", "after"),
    "before it measures": ("publish.measure", "before"),
    "no record is read": ("chunked._each", "before"),
    "all records are read": ("chunked._each", "after"),
    "all is measured": ("publish.measure", "after"),
    "a file is to be written": ("file.put", "before"),
    "a file is written": ("file.put", "after"),
    "before it is there": ("file.os.rename", "before"),
    "once it is there": ("file.os.rename", "after"),
    "before it is published": ("ledger.Ledger.publish", "before"),
    "once it is published": ("ledger.Ledger.publish", "after"),
}


FEW = ("no record is read", "a file is written")
"""Steps within `make test`; `make attack` tries all."""
every_step = pytest.mark.parametrize(
    ("step", "when"),
    [pytest.param(*hook, id=name, marks=() if name in FEW else pytest.mark.slow) for name, hook in STEPS.items()],
)


@every_step
def test_kill_9_leaves_one_directory_at_most_and_the_next_start_removes_it(place: Path, step: str, when: str) -> None:
    code, _ = ended(place, step, when, "SIGKILL")
    assert code == -signal.SIGKILL
    temporary, beside = left(place)
    ours = [path for path in beside if path.name != "budget.db-journal"]  # SQLite's, which the next start rolls back
    assert len(temporary) == (step == "chunked._each")
    assert len(ours) == step.startswith("file")
    for path in (*temporary, *ours):
        assert path.stat().st_mode & 0o077 == 0
    ended(place, "publish.measure", "after", "SIGKILL")  # refused, done, or killed again: all the same
    assert left(place) == ([], [])


@every_step
def test_sigterm_leaves_nothing_and_tells_what_was_charged_and_written(place: Path, step: str, when: str) -> None:
    code, errors = ended(place, step, when, "SIGTERM")
    assert code == 128 + signal.SIGTERM
    assert left(place) == ([], [])
    assert errors.endswith("terminated; anything that is not on disk was not published\n")
    charged = (step, when) != ("chain.commit", "before")
    written = (step, when) == ("file.os.rename", "after") or step == "ledger.Ledger.publish"
    published = (step, when) == ("ledger.Ledger.publish", "after")
    assert spent(place) == 0.5 * charged
    assert (place / "out").exists() == written
    assert ("stays charged" in errors) == (charged and not written)
    assert ("out is written and ε = 0.5 charged; the same command" in errors) == (written and not published)
    assert ("out is written, and ε = 0.5 spent" in errors) == published


@pytest.fixture(params=["SIG_DFL"])
def hangup(request: pytest.FixtureRequest) -> Iterator[None]:
    """How processes that are started react to SIGHUP: as usual, even if the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, getattr(signal, request.param))
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
@pytest.mark.usefixtures("hangup")
def test_sighup_leaves_nothing(place: Path) -> None:
    code, errors = ended(place, "chunked._each", "after", "SIGHUP")
    assert (code, errors.splitlines()[-1]) == (129, "hung up; anything that is not on disk was not published")
    assert left(place) == ([], [])


@pytest.mark.slow
def test_records_that_wait_on_the_disk_are_gone_after_the_next_start(place: Path) -> None:
    """The one thing with identifiers that kill -9 leaves, for nobody else to read, until the next start."""
    ended(place, "chunked._each", "after", "SIGKILL")
    (directory,) = (place / "tmp").iterdir()
    assert sum(path.stat().st_size for path in directory.iterdir()) > 0
    assert [path.name for path in directory.iterdir()] != ["lock"]  # records were spilled, or this tests nothing
    ended(place, "publish.measure", "before", "SIGKILL")
    files = [path for path in place.rglob("*") if path.is_file() and path.name != "people.csv"]
    assert [path for path in files if MARK.encode() in path.read_bytes()] == []
    assert left(place) == ([], [])


def test_a_running_release_keeps_its_own(place: Path) -> None:
    """Another one is killed, and a third removes what that one left, while the first has all records on the disk."""
    running = begun(place, "chunked._each", "after", "wait")
    assert running.stdout is not None
    assert running.stdout.readline() == "reached\n"
    ((own,), _) = left(place)
    before = sorted(path.name for path in own.iterdir())
    ended(place, "file.os.rename", "before", "SIGKILL", [*ARGUMENTS[:-1], "other"])
    ended(place, "chunked._each", "after", "SIGKILL", [*ARGUMENTS[:-1], "third"])
    assert left(place)[0] == [own]
    assert sorted(path.name for path in own.iterdir()) == before
    _, errors = running.communicate()
    assert (running.returncode, errors) == (0, "")
    assert hdmm.Release.load(place / "out").budget == hdmm.Budget("0.5")


def endless(place: Path) -> Path:
    """A database with a view that takes hours to count, and a plan for it that leaves people out."""
    import duckdb

    with duckdb.connect(place / "endless.duckdb") as connection:
        rows = "range(1000000) one, range(1000000) two"
        sex = "CASE hash(one.range, two.range) % 2 WHEN 0 THEN 'F' ELSE 'M' END"
        connection.execute(f"CREATE VIEW people AS SELECT {sex} AS sex, (two.range % 5)::INT AS age FROM {rows}")
    hdmm.select(WORKLOAD, operators=[hdmm.baselines.Identity()]).save(place / "rows.plan")
    return place / "endless.duckdb"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_query_of_duckdb_is_ended(place: Path, name: str) -> None:
    """The signal comes while DuckDB counts; without an end the test would take hours."""
    data = str(endless(place))
    arguments = ["release", "rows.plan", data, "--table", "people", "--epsilon", "0.5", "--no-ledger", "-o", "out"]
    code, errors = ended(place, "stoppable.Stoppable.execute", "busy", name, arguments)
    assert code == 128 + getattr(signal, name)
    assert "error" not in errors
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.slow
def test_a_search_that_is_terminated_keeps_its_best_plan(tmp_path: Path) -> None:
    from hdmm.spec.spec import Spec

    Spec(SCHEMA, WORKLOAD).save(tmp_path / "spec.yaml")
    script = """
import os, signal, hdmm.cli
from hdmm import operators
def stop(*_, **__):
    os.kill(os.getpid(), signal.SIGTERM)
operators.MarginalPlus.propose = stop
hdmm.cli.main()
"""
    command = [sys.executable, "-c", script, "plan", "spec.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "wrote the best plan so far" in done.stdout) == (143, True)
    hdmm.Plan.load(tmp_path / "spec.plan")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spec.plan", "spec.plan.partial", "spec.yaml"]


@pytest.mark.slow
@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("hangup", ["SIG_IGN"], indirect=True)
def test_a_signal_that_is_ignored_stays_so(place: Path) -> None:
    """As under nohup."""
    code, errors = ended(place, "publish.measure", "before", "SIGHUP")
    assert (code, errors) == (0, "")


@pytest.mark.slow
def test_a_library_leaves_signals_alone(plan: hdmm.Plan, place: Path) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    hdmm.release(plan, place / "people.csv", hdmm.Budget("1"), ledger=None)
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == before
