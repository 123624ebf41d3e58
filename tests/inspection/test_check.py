"""A check counts what is outside, on every source alike, and nothing of it can reach a release."""

from __future__ import annotations

import sqlite3
import tomllib
from collections import Counter
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import hdmm
from hdmm.cli import app
from hdmm.data.findings import Findings
from hdmm.errors import DataError
from hdmm.inspection.report import PRIVATE

SCHEMA = hdmm.Schema(
    sex=hdmm.Listed(["F", "M"]),
    age=hdmm.Integers(0, 99, missing=True),
    state=hdmm.Listed(["CA", "NY"], other=True),
    unasked=["x"],
)
WORKLOAD = hdmm.Workload(SCHEMA).add("a", sex=hdmm.Identity(), age=hdmm.Prefix()).add("b", state=hdmm.Identity())
SPEC = hdmm.Spec(SCHEMA, WORKLOAD)
ROWS = [
    *[("F", "5", "CA", "p1")] * 3,
    *[("m", "7", "NY", "p2")] * 2,
    *[("M", "", "TX", "p1")] * 4,
    *[("M", "120", "CA", "p3")] * 5,
    *[("", "x", "CA", "")] * 6,
    ("F", "9", "", "p4"),
]
NAMES = ("sex", "age", "state", "person")


def csv(tmp_path, rows):
    path = tmp_path / "records.csv"
    path.write_text("\n".join([",".join(NAMES), *(",".join(row) for row in rows)]) + "\n")
    return str(path)


def arrow(rows):
    return pa.table({name: list(column) for name, column in zip(NAMES, zip(*rows, strict=True), strict=True)})


def parquet(tmp_path, rows):
    pyarrow.parquet.write_table(arrow(rows), tmp_path / "records.parquet")
    return str(tmp_path / "records.parquet")


def in_duckdb(tmp_path, rows):
    with duckdb.connect(tmp_path / "records.duckdb") as connection:
        connection.execute("CREATE TABLE t (sex TEXT, age TEXT, state TEXT, person TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return hdmm.DatabaseTable(tmp_path / "records.duckdb", "t")


def in_sqlite(tmp_path, rows):
    connection = sqlite3.connect(tmp_path / "records.sqlite")
    connection.execute("CREATE TABLE t (sex TEXT, age TEXT, state TEXT, person TEXT)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return hdmm.DatabaseTable(tmp_path / "records.sqlite", "t")


SOURCES = {
    "csv": csv,
    "parquet": parquet,
    "arrow": lambda _, rows: arrow(rows),
    "pandas": lambda _, rows: pd.DataFrame(rows, columns=list(NAMES)),
    "stream": lambda _, rows: pa.RecordBatchReader.from_batches(arrow(rows).schema, arrow(rows).to_batches()),
    "polars": lambda _, rows: pl.DataFrame(rows, schema=list(NAMES), orient="row"),
    "duckdb": in_duckdb,
    "sqlite": in_sqlite,
}
every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def findings_of(spec, data) -> Findings:
    found = hdmm.check(spec, data).findings
    assert found is not None
    return found


@every_source
def test_counts_are_those_of_the_records(source, tmp_path):
    found = findings_of(SPEC, source(tmp_path, ROWS))
    assert (found.records, found.used) == (21, 3 + 4 + 1)
    assert set(found.columns) == {"sex", "age", "state"}
    sex, age, state = (found.columns[name] for name in ("sex", "age", "state"))
    assert Counter(dict(sex.texts)) == {b"m": 2, b"": 6}
    assert (sex.outside, sex.distinct) == (8, 2)
    assert Counter(dict(age.texts)) == {b"120": 5, b"x": 6}
    assert (age.outside, age.missing) == (11, 4)
    assert (state.outside, state.other) == (0, 4 + 1)


@every_source
def test_people_with_too_many_records_are_counted(source, tmp_path):
    spec = hdmm.Spec(SCHEMA, WORKLOAD, unit=hdmm.Unit(rows=2, id="person"))
    found = findings_of(spec, source(tmp_path, ROWS))
    assert found.people is not None
    assert (found.people.people, found.people.exceeding, found.people.unidentified) == (4, 2, 6)
    assert found.used == 2 + 1  # p1 has 7 readable records, p4 one
    assert found.people.uncounted == 5


@every_source
def test_the_used_records_are_those_that_a_release_counts(source, tmp_path):
    plan = hdmm.select(WORKLOAD, "gaussian", restarts=1)
    budget = hdmm.Budget(rho="1e5")
    used = findings_of(SPEC, source(tmp_path, ROWS)).used
    (tmp_path / "again").mkdir()
    data = source(tmp_path / "again", ROWS)
    table = hdmm.release(plan, data, budget, ledger=None).answer(hdmm.Workload(SCHEMA).add("all"))["all"]
    assert round(table["answer"][0].as_py()) == used


def test_a_column_that_is_not_there_is_named_and_the_others_are_looked_at(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("Sex,age,state\nF,500,CA\n")
    report = hdmm.check(SPEC, path)
    assert report.findings is not None
    assert "there is no column 'sex'; 'Sex' looks like it" in str(report)
    assert report.findings.columns["age"].outside == 1


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"sex;age;state\nF;5;CA\n", 'state delimiter=";"'),
        (b"sex\tage\tstate\nF\t5\tCA\n", 'state delimiter="tab"'),
        ("sex,age,state\nF,5,CA\n".encode("utf-16"), 'state encoding="utf-16"'),
        (b"PK\x03\x04....", "is compressed; unpack it first"),
        (b"1,2,3\n4,5,6\n", "the first line must be a header"),
        (b'"sex","age","state"\n"1","F",5,"CA"\n"2","M",5,"CA"\n', "row.names = FALSE"),
        (b'sex,age,state\nF,5,"CA\nstill",6\n', "an odd number of quotes"),
        (
            b"sex,age,state\nF,5\nF,5,CA\n",
            "1 line does not have 3 fields as the header does, and is not read (1 line has 2)",
        ),
    ],
)
def test_what_is_wrong_with_the_file_as_a_whole_is_said(tmp_path, content, advice):
    path = tmp_path / "records.csv"
    path.write_bytes(content)
    assert advice in str(hdmm.check(SPEC, path))


def test_the_report_says_that_it_is_private_and_escapes_what_a_terminal_would_obey(tmp_path):
    path = tmp_path / "records.csv"
    path.write_bytes(b"sex,age,state\n\x1b[2J,5,CA\n")
    text = str(hdmm.check(SPEC, path))
    assert PRIVATE in text
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_without_data_nothing_is_private(tmp_path):
    text = str(hdmm.check(SPEC))
    assert PRIVATE not in text
    assert "no question uses it" in text


def test_the_command_writes_nothing_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SPEC.save("spec.yaml")
    csv(tmp_path, ROWS)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = CliRunner().invoke(app, ["check", "spec.yaml", "records.csv"])
    assert result.exit_code == 0, result.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    result = CliRunner().invoke(app, ["check", "spec.yaml", "records.csv", "-o", "private.txt"])
    assert result.exit_code == 0
    assert (tmp_path / "private.txt").stat().st_mode & 0o077 == 0
    assert PRIVATE in (tmp_path / "private.txt").read_text()


@every_source
def test_a_release_never_looks_at_records_in_this_way(source, tmp_path, monkeypatch):
    def looked(*_):
        raise AssertionError("a release inspected records")

    data = source(tmp_path, ROWS)
    for name in ("chunked.Inspection", "relation.inspect_columns", "relation.people_in"):
        monkeypatch.setattr(f"hdmm.data.{name}", looked)
    with pytest.raises((AssertionError, DataError)):
        hdmm.check(SPEC, data)
    (tmp_path / "again").mkdir()
    data = source(tmp_path / "again", ROWS)
    plan = hdmm.select(WORKLOAD, "gaussian", restarts=1, operators=[hdmm.operators.Residual()])
    release = hdmm.release(plan, data, hdmm.Budget(rho="1"), ledger=None, out=tmp_path / "out")
    assert release.table("b").num_rows == 3


def test_the_import_contracts_keep_a_check_and_releases_apart():
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        contracts = {c["name"]: c for c in tomllib.load(file)["tool"]["importlinter"]["contracts"]}
    (row,) = [row for row in contracts["A package imports only packages below it"]["layers"] if "inspection" in row]
    assert {"measure", "inspection"} <= {name.strip() for name in row.split("|")}  # of one row, none imports another
    protected = contracts["Nothing that is published looks at records"]
    assert set(protected["allowed_importers"]) == {"hdmm.data", "hdmm.inspection"}


def test_several_files_are_named_and_a_first_line_without_names_is_shown(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("39, State-gov, Male\n50, Private, Male\n")
    text = str(hdmm.check(SPEC, [tmp_path / "a.csv", tmp_path / "b.csv"]))
    assert f"{tmp_path / 'a.csv'}, {tmp_path / 'b.csv'}: no record was read" in text
    assert "the first line holds '39', 'State-gov', 'Male'" in text
    assert "shows you more" not in text


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_header_in_another_encoding_is_read_and_named(tmp_path, delimiter):
    schema = hdmm.Schema({"größe": range(10), "stadt": ["Zürich", "Bern"]})
    spec = hdmm.Spec(schema, hdmm.marginals(schema, up_to=2))
    path = tmp_path / "l.csv"
    path.write_bytes("größe,stadt\n4,Zürich\n5,bern\n".replace(",", delimiter).encode("latin-1"))
    report = hdmm.check(spec, path)
    assert 'state encoding="cp1252"' in str(report)
    assert ('state delimiter=";"' in str(report)) is (delimiter == ";")
    assert report.findings is not None
    assert (report.findings.records, report.findings.used) == (2, 1)
