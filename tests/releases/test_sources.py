"""Releases from data of every kind, in Python and on the command line; what is refused is not charged."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hdmm
from hdmm import cli

PEOPLE = pa.table({"sex": ["F", "M", "F"] * 1000, "age": [1, 2, 3] * 1000})
BUDGET = hdmm.Budget(epsilon="400")


@pytest.fixture(scope="module")
def plan() -> hdmm.Plan:
    schema = hdmm.Schema(sex=["F", "M"], age=range(5))
    return hdmm.select(hdmm.marginals(schema, up_to=2), noise="laplace", restarts=1)


@pytest.fixture
def folder(tmp_path: Path, plan: hdmm.Plan) -> Path:
    plan.save(tmp_path / "people.plan")
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    for part in range(2):
        lines = [f"{row['sex']},{row['age']}" for row in PEOPLE.slice(1500 * part, 1500).to_pylist()]
        (tmp_path / f"people-{part}.csv").write_text("\n".join(["sex,age", *lines]))
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.register("given", PEOPLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run `hdmm release` on some data in this process: the exit code, and what it said of errors."""
    monkeypatch.chdir(folder)

    def command(*arguments: str) -> tuple[object, str]:
        words = ["hdmm", "release", "people.plan", *arguments, "--epsilon", "400", "-o", "out"]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as left:
            cli.main()
        return left.value.code or 0, capsys.readouterr().err

    return command


@pytest.mark.parametrize(
    "data",
    [
        ["people.parquet"],
        ["people-0.csv", "people-1.csv"],
        ["people-*.csv"],
        ["people.duckdb", "--table", "people"],
    ],
    ids=" ".join,
)
def test_the_command_line_reads_every_form(folder: Path, run, data: list[str]) -> None:
    code, said = run(*data, "--no-ledger")
    assert code == 0, said
    answers = hdmm.Release.load(folder / "out").table("sex")["answer"].to_numpy()
    assert np.abs(answers - [2000, 1000]).max() < 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["people.duckdb"], "people.duckdb: is a database; name its table"),
        (["people.duckdb", "people.duckdb", "--table", "people"], "--table people: goes with one database"),
        (["people.duckdb", "--table", "persons"], "there is no table 'persons'"),
        (["postgresql://me:Zx9Qk@host/db"], "postgresql://…: is a database"),
        (["nobody-*.csv"], "nobody-*.csv: no file matches this pattern"),
        (["people.parquet", "--delimiter", ";"], "--delimiter ';': goes with the path of a text file"),
    ],
)
def test_the_command_line_refuses_with_the_remedy(folder: Path, run, data: list[str], message: str) -> None:
    ledger = hdmm.Ledger.create(folder / "budget.db", BUDGET, hdmm.Unit())
    code, said = run(*data, "--ledger", "budget.db")
    assert code == 2
    assert message in said
    assert "Zx9Qk" not in said
    assert not ledger.entries()


def test_python_releases_from_a_frame_and_a_table(folder: Path, plan: hdmm.Plan) -> None:
    for data in (PEOPLE, PEOPLE.to_pandas(), hdmm.DatabaseTable(folder / "people.duckdb", "people")):
        release = hdmm.release(plan, data, BUDGET, ledger=None)
        assert np.abs(release.table("sex")["answer"].to_numpy() - [2000, 1000]).max() < 1


def test_a_column_that_cannot_be_read_is_refused_before_anything_is_charged(tmp_path: Path, plan: hdmm.Plan) -> None:
    ledger = hdmm.Ledger.create(tmp_path / "budget.db", BUDGET, hdmm.Unit())
    floats = PEOPLE.set_column(1, "age", pa.array([1.0, 2.0, 3.0] * 1000))
    with pytest.raises(hdmm.errors.DataError, match="data: column 'age' holds float64, which cannot be read exactly"):
        hdmm.release(plan, floats, BUDGET, ledger=ledger)
    assert not ledger.entries()
