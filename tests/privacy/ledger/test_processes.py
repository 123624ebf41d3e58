"""Processes that race, and processes that are killed: entries are there whole or not at all, and one of two wins."""

import signal
import subprocess
import sys

import pytest

from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger
from tests.privacy.ledger.steps import PLAN, RELEASE, UNIT, in_memory, refused

PRELUDE = f"""
import os, signal, sys
from hdmm.errors import BudgetError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger, chain
from hdmm.privacy.unit import Unit
PLAN, RELEASE = {PLAN!r}, {RELEASE!r}
"""
RACER = """
for line in sys.stdin:
    path = line.strip()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        Ledger.open(path).reserve(sys.argv[1], Budget("0.1"), Unit(), PLAN)
        print("won", flush=True)
    except BudgetError as error:
        print("lost" if "left of" in str(error) else error, flush=True)
"""


def test_of_two_processes_that_race_for_the_last_budget_one_wins_each_time():
    with in_memory() as directory:
        command = [sys.executable, "-c", PRELUDE + RACER]
        racers = [
            subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            for name in ("one", "two")
        ]
        winners = []
        for number in range(100):
            ledger = Ledger.create(directory / f"{number}.db", Budget("0.15"), UNIT)
            tell(racers, str(ledger.path))
            assert [heard(racer) for racer in racers] == ["ready", "ready"]
            tell(racers[:: -1 if number % 2 else 1], "go")
            results = [heard(racer) for racer in racers]
            assert sorted(results) == ["lost", "won"]
            assert [entry.id for entry in ledger.entries()] == [("one", "two")[results.index("won")]]
            winners.append(results.index("won"))
        for racer in racers:
            racer.communicate()
    assert set(winners) == {0, 1}  # or nobody raced


def tell(racers: list[subprocess.Popen[str]], line: str) -> None:
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(line + "\n")


def heard(racer: subprocess.Popen[str]) -> str:
    assert racer.stdout is not None
    return racer.stdout.readline().strip()


KILLED = """
commit = chain.commit
def killed(connection):
    if sys.argv[3] == "after":
        commit(connection)
    os.kill(os.getpid(), signal.SIGKILL)
ledger = Ledger.open(sys.argv[1])
if sys.argv[2] == "publish":
    ledger.reserve("a", Budget("0.6"), Unit(), PLAN)
chain.commit = killed
if sys.argv[2] == "reserve":
    ledger.reserve("a", Budget("0.6"), Unit(), PLAN)
else:
    ledger.publish("a", RELEASE)
"""


@pytest.mark.parametrize(
    ("step", "when", "states"),
    [
        ("reserve", "before", []),
        ("reserve", "after", ["reserved"]),
        ("publish", "before", ["reserved"]),
        ("publish", "after", ["published"]),
    ],
)
def test_a_process_killed_at_a_commit_leaves_the_entry_whole_or_not_at_all(
    ledger: Ledger, step: str, when: str, states: list[str]
):
    done = subprocess.run([sys.executable, "-c", PRELUDE + KILLED, str(ledger.path), step, when], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [entry.state for entry in Ledger.open(ledger.path).entries()] == states
    assert ledger.verify().steps == len(states) + (states == ["published"])
    assert refused(ledger, Budget("0.6")) == bool(states)


BUSY = """
ledger = Ledger.open(sys.argv[1])
for number in range(10_000):
    ledger.reserve(f"{os.getpid()} {number}", Budget("1e-9"), Unit(), PLAN)
    print(f"{os.getpid()} {number}", flush=True)
"""


def test_what_was_reserved_is_there_whenever_the_process_is_killed(ledger: Ledger):
    acknowledged: list[str] = []
    for wanted in (1, 2, 3, 5):
        busy = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + BUSY, str(ledger.path)], stdout=subprocess.PIPE, text=True
        )
        assert busy.stdout is not None
        lines = [busy.stdout.readline() for _ in range(wanted)]
        busy.kill()
        acknowledged += [line.strip() for line in [*lines, *busy.communicate()[0].splitlines()]]
        ids = [entry.id for entry in ledger.entries()]
        ledger.verify()
        assert [id for id in ids if id in acknowledged] == acknowledged
        assert len(ids) - len(acknowledged) <= 4  # one for each kill, at most
