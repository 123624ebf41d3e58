"""The search in parallel, on a cluster, and after a crash: always the same plan."""

import json
import pickle
import signal
import subprocess
import sys
from functools import partial

import joblib
import numpy as np
import pytest

import hdmm
from hdmm import operators
from hdmm.errors import InputError
from hdmm.estimators.least_squares import local_least_squares
from hdmm.optimise.descent import Effort
from hdmm.plans.file import plan_bytes
from hdmm.selection import tasks

SCHEMA = hdmm.Schema(a=range(3), b=range(5), c=["x", "y"])
W = hdmm.marginals(SCHEMA, k=2, prefix=["b"]) + hdmm.Workload(SCHEMA).add("ranges", b=hdmm.AllRange(), weight=2)
SEARCHED = [operators.Kron(), operators.MarginalPlus()]


def same(one: hdmm.Plan, other: hdmm.Plan) -> bool:
    """Whether two plans measure the same and list the same candidates, whatever the time they took."""
    tried = [[(c.operator, c.rmse, c.seed, c.certificate) for c in plan.search] for plan in (one, other)]
    blocks = [
        [(b.axes, b.weight, [factor.dense().tolist() for factor in b.factors]) for b in plan.mechanism.blocks]
        for plan in (one, other)
    ]
    return blocks[0] == blocks[1] and tried[0] == tried[1] and one.least_value == other.least_value


@pytest.fixture(scope="module")
def alone() -> hdmm.Plan:
    return hdmm.select(W, operators=SEARCHED, restarts=11)


def test_many_restarts_are_several_tasks():
    found = tasks.tasks_of([operators.Kron(), operators.Residual()], Effort(restarts=12, seed=3), 2)
    assert [task.effort.restarts for task in found] == [5, 5, 2, 12]
    assert len({task.effort.seed for task in found[:3]}) == 3
    assert len({task.name for task in found}) == 4


def test_more_restarts_are_never_worse(alone):
    few = hdmm.select(W, operators=SEARCHED, restarts=5)
    budget = hdmm.Budget(1)
    assert alone.rmse(budget) <= few.rmse(budget)
    assert len(alone.search) > len(few.search)


def test_two_processes_find_the_same_plan(alone):
    assert same(hdmm.select(W, operators=SEARCHED, restarts=11, jobs=2), alone)


def test_a_dask_cluster_of_two_workers_finds_the_same_plan(alone):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "processes": True}
    cluster = distributed.LocalCluster(**options)
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert tasks.workers(None) == 2
        found = hdmm.select(W, operators=SEARCHED, restarts=11)
    assert same(found, alone)


def test_what_is_sent_to_other_processes_is_read_back_without_what_was_computed(alone):
    alone.errors(hdmm.Budget(1))
    strategy, encoded = pickle.loads(pickle.dumps((alone.mechanism.strategy, W.encoded)))
    assert set(vars(strategy)) == {"sizes", "blocks", "family"}
    noise = [1.0] * len(strategy.blocks)
    expected = alone.mechanism.local.squared_errors(W.encoded.products, noise)
    np.testing.assert_array_equal(local_least_squares(strategy).squared_errors(encoded.products, noise), expected)


def test_a_search_goes_on_from_its_checkpoint(alone, tmp_path, monkeypatch):
    path = tmp_path / "search.partial"
    done = 0
    run = tasks.Judge.run

    def crash(self, task):
        nonlocal done
        if done == 4:
            raise RuntimeError("the machine fails")
        done += 1
        return run(self, task)

    monkeypatch.setattr(tasks.Judge, "run", crash)
    with pytest.raises(RuntimeError):
        hdmm.select(W, operators=SEARCHED, restarts=11, checkpoint=path)
    left = []

    def counted(self, task):
        left.append(task.name)
        return run(self, task)

    monkeypatch.setattr(tasks.Judge, "run", counted)
    found = hdmm.select(W, operators=SEARCHED, restarts=11, checkpoint=path)
    assert len(left) == len(alone.search) - 4
    assert same(found, alone)
    left.clear()
    assert same(hdmm.select(W, operators=SEARCHED, restarts=11, checkpoint=path), alone)
    assert not left
    hdmm.select(W, operators=SEARCHED, restarts=11, seed=1, checkpoint=path)
    assert len(left) == len(alone.search), "another search does not use it"


@pytest.mark.parametrize("damage", [b"", b"{}", "half", "bit"])
def test_a_damaged_checkpoint_costs_nothing_but_time(tmp_path, damage):
    path = tmp_path / "search.partial"
    small = hdmm.Workload(SCHEMA).add("a", a=hdmm.Identity())
    expected = hdmm.select(small, checkpoint=path)
    data = path.read_bytes()
    broken = {"half": data[: len(data) // 2], "bit": data.replace(b"1", b"2", 1)}.get(damage, damage)
    path.write_bytes(broken)
    assert same(hdmm.select(small, checkpoint=path), expected)
    assert path.read_bytes() != broken


@pytest.mark.parametrize("objective", ["total", "max"])
def test_a_finished_search_is_read_from_its_checkpoint(tmp_path, objective):
    path = tmp_path / "search.partial"
    first = hdmm.select(W, "gaussian", objective=objective, checkpoint=path)
    again = hdmm.select(W, "gaussian", objective=objective, checkpoint=path, time_limit=1e-9)
    assert plan_bytes(again) == plan_bytes(first)


KILLED = """
import os, signal, sys
import hdmm.cli
from hdmm.selection import checkpoint
write, when = checkpoint.write, sys.argv.pop(1)
def killed(*arguments, **named):
    if when == "after":
        write(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)
checkpoint.write = killed
hdmm.cli.main()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes cannot be killed on this system")
def test_a_killed_search_goes_on_where_it_was(tmp_path):
    """kill −9, before and after it writes down a result: the plan is the one of a search that was left alone."""
    spec = hdmm.Spec(SCHEMA, hdmm.marginals(SCHEMA, k=1))
    for name in ("alone", "killed"):
        (tmp_path / name).mkdir()
        spec.save(tmp_path / name / "spec.yaml")
    arguments = ["plan", "spec.yaml", "--restarts", "6", "--jobs", "1"]
    command = [sys.executable, "-m", "hdmm", *arguments]
    alone = subprocess.run(command, cwd=tmp_path / "alone", check=True, capture_output=True, text=True)
    partial, plan = (tmp_path / "killed" / name for name in ("spec.plan.partial", "spec.plan"))
    done = []
    for when in ("after", "before", "after", "after"):
        dying = [sys.executable, "-c", KILLED, when, *arguments]
        killed = subprocess.run(dying, cwd=tmp_path / "killed", capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL
        done.append(len(json.loads(partial.read_bytes())["content"]["done"]))
    assert done == [1, 1, 2, 3]
    subprocess.run(command, cwd=tmp_path / "killed", check=True, capture_output=True)
    assert same(hdmm.Plan.load(plan), hdmm.Plan.load(tmp_path / "alone" / "spec.plan"))
    assert not partial.exists()
    assert "wrote spec.plan" in alone.stdout
    assert sorted(path.name for path in (tmp_path / "alone").iterdir()) == ["spec.plan", "spec.yaml"]


@pytest.mark.parametrize("jobs", [0, True, "2", 1.5])
def test_a_number_of_jobs_that_makes_no_sense_is_refused(jobs):
    with pytest.raises(InputError, match="how many processes share the search"):
        hdmm.select(W, jobs=jobs)


def test_a_checkpoint_is_good_on_a_machine_with_other_memory(tmp_path, monkeypatch):
    search = partial(hdmm.select, W, "laplace", checkpoint=tmp_path / "search", restarts=1)
    first = search()
    monkeypatch.setattr("hdmm.memory.limit.physical_memory", lambda: 1 << 33)
    assert same(search(time_limit=1e-9), first)
    other = search(time_limit=1e-9, memory="1GB")  # a limit that is given does matter
    assert len(other.search) < len(first.search)
