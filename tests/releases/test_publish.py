"""Releases that are charged to a ledger: in the right order, once, and whatever happens in between."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hdmm
from hdmm import measure as measuring
from hdmm.errors import ArtefactError, BudgetError, InputError

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(5))
WORKLOAD = hdmm.Workload(SCHEMA).add("by sex", sex=hdmm.Identity()).add("by age", age=hdmm.Prefix())
HALF = hdmm.Budget("0.5")


@pytest.fixture(scope="module")
def plan() -> hdmm.Plan:
    return hdmm.select(WORKLOAD, operators=[hdmm.baselines.Identity()])


@pytest.fixture
def place(tmp_path: Path, plan: hdmm.Plan) -> Path:
    (tmp_path / "people.csv").write_text("sex,age\nF,1\nM,4\nM,0\n")
    plan.save(tmp_path / "people.plan")
    hdmm.Ledger.create(tmp_path / "budget.db", hdmm.Budget("1"), hdmm.Unit())
    return tmp_path


def spent(place: Path) -> float:
    return float(hdmm.Ledger.open(place / "budget.db").spent().epsilon or 0)


def test_a_release_is_charged_and_marked_published(plan, place):
    made = hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db", id="first", out=place / "out")
    (entry,) = hdmm.Ledger.open(place / "budget.db").entries()
    assert (entry.id, entry.state, entry.budget) == ("first", "published", HALF)
    assert spent(place) == 0.5
    again = hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db", id="first", out=place / "out")
    assert spent(place) == 0.5
    for name, table in made.tables():
        assert again.table(name) == table


def test_each_call_without_an_id_is_a_new_release(plan, place):
    for _ in range(2):
        hdmm.release(plan, place / "people.csv", HALF, ledger=str(place / "budget.db"))
    with pytest.raises(BudgetError, match="has nothing left of ε = 1"):
        hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db")
    assert [entry.state for entry in hdmm.Ledger.open(place / "budget.db").entries()] == ["published"] * 2


def test_ten_tenths_are_one_and_no_more(plan, place):
    tenth = hdmm.Budget("0.1")
    for _ in range(10):
        hdmm.release(plan, place / "people.csv", tenth, ledger=place / "budget.db")
    with pytest.raises(BudgetError, match="left of"):
        hdmm.release(plan, place / "people.csv", tenth, ledger=place / "budget.db")


def missing_columns(place: Path) -> dict[str, object]:
    """Sources of every kind that lack the column age."""
    import sqlite3

    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"sex": ["F", "M"]})
    (place / "short.csv").write_text("sex\nF\n")
    (place / "other.csv").write_text("sex;age\nF;1\n")
    parquet.write_table(table, place / "short.parquet")
    with sqlite3.connect(place / "short.sqlite") as connection:
        connection.execute("CREATE TABLE people (sex TEXT)")
    connection.close()
    return {
        "csv": place / "short.csv",
        "another delimiter": place / "other.csv",
        "parquet": place / "short.parquet",
        "sqlite": hdmm.DatabaseTable(place / "short.sqlite", "people"),
        "frame": table,
    }


@pytest.mark.parametrize("kind", ["csv", "another delimiter", "parquet", "sqlite", "frame"])
def test_a_missing_column_is_told_before_any_margin_is_computed(plan, place, kind, monkeypatch):
    def slow(*given, **more):
        raise AssertionError("margins are computed before the columns are checked")

    monkeypatch.setattr("hdmm.plans.plan.accuracy", slow)
    data = missing_columns(place)[kind]
    with pytest.raises(hdmm.HdmmError, match=r"there is no column for .*'age'"):
        hdmm.release(plan, data, hdmm.Budget("0.25"), ledger=place / "budget.db")
    assert spent(place) == 0


def test_a_missing_id_column_is_told_before_any_margin_is_computed(place, monkeypatch):
    plan = hdmm.select(WORKLOAD, unit=hdmm.Unit(2, id="patient"), operators=[hdmm.baselines.Identity()])
    monkeypatch.setattr("hdmm.plans.plan.accuracy", None)
    with pytest.raises(hdmm.HdmmError, match="there is no column for 'patient'"):
        hdmm.release(plan, place / "people.csv", HALF, ledger=None)


BAD = {
    "no ledger said": ({}, TypeError, "missing 1 required keyword-only argument: 'ledger'"),
    "no ledger there": ({"ledger": "none.db"}, ArtefactError, "there is no such ledger"),
    "not a path": ({"ledger": 5}, InputError, "expected the path of a ledger"),
    "an id without a ledger": ({"ledger": None, "id": "x"}, InputError, "give the ledger too"),
    "no data": ({"ledger": "budget.db", "data": "none.csv"}, InputError, "none.csv"),
    "no such column": ({"ledger": "budget.db", "data": "short.csv"}, InputError, "age"),
    "an output that exists": ({"ledger": "budget.db", "out": "people.csv"}, ArtefactError, "exists already"),
    "a delta": ({"ledger": "budget.db", "budget": hdmm.Budget("0.5", "1e-6")}, BudgetError, "Laplace noise takes"),
    "too much": ({"ledger": "budget.db", "budget": hdmm.Budget("1.1")}, BudgetError, "left of"),
}


@pytest.mark.parametrize(("given", "error", "message"), BAD.values(), ids=BAD)
def test_what_is_refused_is_refused_before_it_is_charged(plan, place, given, error, message, monkeypatch):
    monkeypatch.chdir(place)
    (place / "short.csv").write_text("sex\nF\n")
    with pytest.raises(error, match=message):
        hdmm.release(**({"plan": plan, "data": "people.csv", "budget": HALF} | given))
    assert spent(place) == 0


def test_an_id_is_bound_to_its_plan_and_budget(plan, place):
    hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db", id="a", out=place / "out")
    other = hdmm.Budget("0.25")
    with pytest.raises(BudgetError, match="for another plan or budget"):
        hdmm.release(plan, place / "people.csv", other, ledger=place / "budget.db", id="a", out=place / "out")
    for path in (place / "out").glob("*.json"):
        path.write_bytes(b"{}")
    with pytest.raises(ArtefactError):
        hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db", id="a", out=place / "out")
    assert spent(place) == 0.5


def test_a_fault_while_measuring_stays_charged(plan, place, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(measuring, "discrete_laplace", fail)
    with pytest.raises(RuntimeError):
        hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db", id="a", out=place / "out")
    monkeypatch.undo()
    assert spent(place) == 0.5
    with pytest.raises(BudgetError, match=r"was reserved on .* and not published"):
        hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db", id="a", out=place / "out")
    assert spent(place) == 0.5
    hdmm.Ledger.open(place / "budget.db").abandon("a")
    hdmm.release(plan, place / "people.csv", HALF, ledger=place / "budget.db", id="a", out=place / "out")
    assert spent(place) == 1


STEPS = ["chain.commit", "publish.measure", "file.os.rename", "ledger.Ledger.publish"]
"""The steps of a release, in order: reserve, measure, write, mark. The process dies right before or right after one."""

SCRIPT = """
import os, signal, sys
import hdmm.cli
from hdmm.releases import publish
from hdmm.releases import file
from hdmm.privacy.ledger import chain, ledger

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

path, when = sys.argv[1].split("."), sys.argv[2]
owner = {"chain": chain, "ledger": ledger, "publish": publish, "file": file}[path[0]]
for step in path[1:-1]:
    owner = getattr(owner, step)
real = getattr(owner, path[-1])

def after(*arguments, **named):
    real(*arguments, **named)
    die()

setattr(owner, path[-1], die if when == "before" else after)
sys.argv = ["hdmm", *sys.argv[3:]]
hdmm.cli.main()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes cannot be killed on this system")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_kill_9_at_every_step(place, step, when):
    """Never published and uncharged; given again, the command never spends silently."""
    arguments = ["release", "people.plan", "people.csv", "--epsilon", "0.5", "--ledger", "budget.db", "-o", "out"]
    dying = [sys.executable, "-c", SCRIPT, step, when, *arguments]
    killed = subprocess.run(dying, cwd=place, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    reserved = (step, when) != ("chain.commit", "before")
    written = (step, when) == ("file.os.rename", "after") or step == "ledger.Ledger.publish"
    assert (place / "out").exists() == written
    assert spent(place) == 0.5 * reserved
    hdmm.Ledger.open(place / "budget.db").verify()
    environment = {**os.environ, "COLUMNS": "200"}
    command = [sys.executable, "-m", "hdmm", *arguments]
    again = subprocess.run(command, cwd=place, capture_output=True, text=True, env=environment, check=False)
    if reserved and not written:
        assert again.returncode == 2
        assert "stays charged: choose another id, or abandon this one" in again.stderr
        assert not (place / "out").exists()
    else:
        assert again.returncode == 0
        assert ("nothing was spent" in again.stdout) == written
        (entry,) = hdmm.Ledger.open(place / "budget.db").entries()
        assert entry.state == "published"
        hdmm.Release.load(place / "out")
    assert spent(place) == 0.5


def test_two_processes_race_for_the_last_budget(place):
    """Each wants more than half: one of them is refused, and publishes nothing."""
    command = [sys.executable, "-m", "hdmm", "release", "people.plan", "people.csv", "--ledger", "budget.db"]
    racers = [
        subprocess.Popen([*command, "--epsilon", "0.6", "-o", f"out{number}"], cwd=place, stderr=subprocess.PIPE)
        for number in range(2)
    ]
    for racer in racers:
        racer.communicate()
    codes = [racer.returncode for racer in racers]
    assert sorted(codes) == [0, 2]
    assert [(place / f"out{number}").exists() for number in range(2)] == [code == 0 for code in codes]
    assert spent(place) == 0.6


def test_gaussian_releases_compose_in_a_ledger(place):
    plan = hdmm.select(WORKLOAD, "gaussian", operators=[hdmm.operators.Residual()])
    ledger = hdmm.Ledger.create(place / "gauss.db", hdmm.Budget("1", "1e-6"), hdmm.Unit())
    rho = ledger.left().rho
    assert rho is not None
    quarter = hdmm.Budget(rho=rho / 4)
    for _ in range(4):
        hdmm.release(plan, place / "people.csv", quarter, ledger=ledger)
    with pytest.raises(BudgetError, match="left of"):
        hdmm.release(plan, place / "people.csv", hdmm.Budget(rho="0.0001"), ledger=ledger)
    laplace = hdmm.select(WORKLOAD, operators=[hdmm.baselines.Identity()])
    with pytest.raises(BudgetError, match="left of"):
        hdmm.release(laplace, place / "people.csv", hdmm.Budget("0.001"), ledger=ledger)
    assert np.isclose(float(ledger.spent().rho or 0), float(rho))
