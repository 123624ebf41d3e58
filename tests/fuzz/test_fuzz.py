"""A fixed part of the fuzzer: no findings in these cases, and planted faults are found; `make fuzz` runs many more."""

import pytest

from tests.fuzz.campaign import Task, run_task
from tests.fuzz.cases import OPERATORS, Case
from tests.fuzz.faults import caught
from tests.fuzz.script import script

DEFAULT = [(seed, noise, "default") for noise in ("laplace", "gaussian") for seed in (2, 4, 8, 12)]
SINGLE = [(seed, ("laplace", "gaussian")[seed % 2], name) for name in OPERATORS if name != "default" for seed in (0, 1)]


@pytest.mark.parametrize("task", DEFAULT + SINGLE, ids=lambda task: f"{task[2]}, {task[1]}, {task[0]}")
def test_the_library_agrees_with_the_oracle(task: Task):
    found = run_task(task).findings
    assert not found, "\n".join(script(finding, Case.random(*task)) for finding in found)


@pytest.mark.parametrize("name", ["prefixes shifted by one", "sensitivity 2% too small"])
def test_a_planted_fault_is_found(name: str):
    assert caught(name)
