"""Dates and times in specs: read from YAML, written back, and refused with their line and a remedy."""

from pathlib import Path
from typing import Any

import pytest

import hdmm
from hdmm.errors import SpecError
from hdmm.schema import Dates, Domain, Merged, Schema, Times
from hdmm.spec.spec import Spec
from hdmm.workload import Workload

STAYS = """\
schema:
  came: {date: [2020-01-01, 2024-12-31], by: day}
  left: {date: [2020, 2024-06], by: month, format: "%m/%Y", other: true, missing: true}
  at:
    time: ["00:00", "24:00"]
    by: minute
    levels: {shift: {day: [["06:00", "21:59"]], night: [["00:00", "05:59"], ["22:00", "23:59"]]}}
  hour: {time: [08:00, "17:30"]}
  quarter: {merged: {begin: {date: [2020, 2020], by: quarter}, end: {date: [2020, 2020], by: quarter}}}
workload:
  - {name: months, product: {came: {level: month}}}
  - {name: spring, product: {came: {ranges: [[2021-03-01, 2021-05-31], [2022-03, 2022-05]]}}}
  - {name: weekends, product: {came: {where: "weekday IN ('Saturday', 'Sunday') AND came >= '2021-03-01'"}}}
  - {name: by shift, sql: "SELECT shift, COUNT(*) FROM t WHERE \\"came year\\" = 2021 GROUP BY shift"}
"""
SCHEMA = Schema(
    came=Dates("2020-01-01", "2024-12-31"),
    left=Dates("2020-01-01", "2024-06-30", by="month", format="%m/%Y", other=True, missing=True),
    at=Times(
        "00:00",
        "24:00",
        by="minute",
        levels={"shift": {"day": [("06:00", "21:59")], "night": [("00:00", "05:59"), ("22:00", "23:59")]}},
    ),
    hour=Times("08:00", "17:30"),
    quarter=Merged(begin=Dates("2020", "2020", by="quarter"), end=Dates("2020", "2020", by="quarter")),
)


@pytest.fixture
def load(tmp_path: Path):
    def of(text: str) -> Spec:
        (tmp_path / "spec.yaml").write_text(text)
        return Spec.load(tmp_path / "spec.yaml")

    return of


def test_yaml_and_python_declare_the_same_dates(load) -> None:
    assert load(STAYS).schema == SCHEMA


def test_dates_survive_saving_and_loading(load, tmp_path: Path) -> None:
    spec = load(STAYS)
    spec.save(tmp_path / "copy.yaml")
    assert Spec.load(tmp_path / "copy.yaml") == spec
    assert Spec.read(spec.data()) == spec


def labels(product: hdmm.Product) -> list[Any]:
    """The labels of the attribute that a product asks about last."""
    name = [name for name in SCHEMA if name in product.predicates][-1]
    return product.predicates[name].labels(name, SCHEMA[name])


def test_questions_about_dates_count_their_days(load) -> None:
    workload = load(STAYS).workload
    assert [len(labels(product)) for product in workload.products] == [60, 2, 1, 2]
    came, spring = SCHEMA["came"], workload.products[1].predicates["came"]
    assert spring.matrix("came", came).dense().sum(axis=1).tolist() == [92, 92]
    assert spring.labels("came", came) == ["2021-03-01..2021-05-31", "2022-03-01..2022-05-31"]


WRITTEN: dict[str, tuple[Domain, Any]] = {
    "days": (Dates("2020", "2021"), {"date": ["2020-01-01", "2021-12-31"], "by": "day"}),
    "months in a format": (
        Dates("2020", "2021", by="month", format="%m/%Y", missing=True),
        {"date": ["2020-01-01", "2021-12-31"], "by": "month", "format": "%m/%Y", "missing": True},
    ),
    "hours with levels": (
        Times("08:30", "12:00", levels={"part": {"early": [("08:30", "09:59")], "late": [("10:00", "11:59")]}}),
        {
            "time": ["08:30", "12:00"],
            "by": "hour",
            "levels": {"part": {"early": [["08:30", "09:59"]], "late": [["10:00", "11:59"]]}},
        },
    ),
    "a level called like one that comes by itself": (
        Dates("2020", "2020", by="quarter", levels={"year": {"all": [("2020-Q1", "2020-Q4")]}}),
        {
            "date": ["2020-01-01", "2020-12-31"],
            "by": "quarter",
            "levels": {"year": {"all": [["2020-Q1", "2020-Q4"]]}},
        },
    ),
}


@pytest.mark.parametrize(("domain", "data"), WRITTEN.values(), ids=WRITTEN)
def test_dates_are_written_without_the_levels_that_come_by_themselves(domain: Domain, data: Any) -> None:
    schema = Schema(attribute=domain)
    spec = Spec(schema, Workload(schema).add("total"))
    assert spec.data()["schema"] == {"attribute": data}
    assert Spec.read(spec.data()) == spec


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("{date: [2020-01-01]}", "line 2: schema.a.date: expected two values, the first and the last"),
        ("{date: 2020}", "schema.a.date: expected a list"),
        ("{date: [2020-01-01, {x: 1}]}", "schema.a.date.2.: expected a single value"),
        ("{date: [2024-01-01, 2020-01-01]}", "schema.a: \\[2024-01-01, 2020-01-01\\]: the domain is empty"),
        ("{date: [2020-02-30, 2020-03-01]}", "date: '2020-02-30': expected a date"),
        ("{date: [2020, 2021], by: decade}", "by: 'decade': expected a size of cells; known: 'day'"),
        ("{date: [2020, 2021], by: hour}", "by: 'hour': expected a size of cells"),
        ("{date: [2020, 2021], format: '%d.%m'}", "format: '%d.%m': a year is missing"),
        ("{date: [2020, 2021], format: '%d.%m.%K'}", "'%K' is not a directive"),
        ("{date: [2020, 2021], closed: true}", "unknown key 'closed'"),
        ("{date: [2020, 2021], time: ['00:00', '24:00']}", "expected exactly one of values, min and max"),
        ("{time: ['08:00', '08:00']}", "the domain is empty"),
        ("{time: ['08:00', '09:00'], by: day}", "by: 'day': expected a size of cells; known: 'hour', 'minute'"),
    ],
)
def test_a_mistake_is_refused_with_its_place(load, attribute: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load(f"schema:\n  a: {attribute}\nworkload:\n  - {{name: total}}\n")


def test_a_plan_and_its_answers_keep_dates_and_times(tmp_path: Path) -> None:
    schema = Schema(
        came=Dates("2020-11-20", "2021-02-10", by="month", format="%d.%m.%Y", other=True, missing=True),
        at=Times("08:00", "10:30"),
    )
    workload = Workload(schema).add("both", came=hdmm.Identity(), at=hdmm.Identity())
    workload = workload.add("until", came=hdmm.Prefix()).add("years", came=hdmm.Level("year"))
    plan = hdmm.select(workload, operators=[hdmm.baselines.Identity()])
    plan.save(tmp_path / "a.plan")
    loaded = hdmm.Plan.load(tmp_path / "a.plan")
    assert loaded.workload == workload
    records = ["came,at", "20.11.2020,08:59", "19.11.2020,09:00", ",10:29:59", "1.1.2021,09:30", "01.01.2021,10:30"]
    (tmp_path / "a.csv").write_text("\n".join(records))
    budget = hdmm.Budget(epsilon="500")
    release = hdmm.release(loaded, tmp_path / "a.csv", budget, ledger=None, out=tmp_path / "out")
    table = hdmm.Release.load(tmp_path / "out").table("both").to_pylist()
    assert {(row["came"], row["at"]) for row in table if row["answer"]} == {
        ("2020-11", "08:00–08:59"),
        ("other", "09:00–09:59"),
        ("missing", "10:00–10:29"),
        ("2021-01", "09:00–09:59"),
    }
    until = release.table("until")
    assert until["came"].to_pylist() == ["<= 2020-11", "<= 2020-12", "<= 2021-01", "<= 2021-02"]
    assert until["answer"].to_pylist() == [1, 1, 2, 2]
    assert release.table("years")["year"].to_pylist() == ["2020", "2021", "other", "missing"]
    question = Workload(schema).add_sql("q", "SELECT COUNT(*) FROM t WHERE came >= '2021-01-01' AND at < '10:00'")
    assert release.answer(question)["q"]["answer"].to_pylist() == [1]


def test_synthetic_records_are_read_back_by_the_same_schema(tmp_path: Path) -> None:
    schema = Schema(
        came=Dates("2020-11-20", "2021-02-10", by="month", format="%d.%m.%Y", other=True, missing=True),
        left=Dates("2020", "2021", by="quarter"),
        at=Times("08:00", "10:30"),
    )
    workload = Workload(schema).add("all", came=hdmm.Identity(), left=hdmm.Identity(), at=hdmm.Identity())
    plan = hdmm.select(workload, operators=[hdmm.baselines.Identity()])
    lines = ["came,left,at"]
    for came in ("20.11.2020", "05.12.2020", "x", ""):
        lines += [f"{came},{left},{at}" for left in ("2020-05-05", "2021-12-31") for at in ("08:15", "10:29")]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    budget = hdmm.Budget(epsilon="500")
    release = hdmm.release(plan, tmp_path / "a.csv", budget, ledger=None)
    made = release.synthesize(seed=1)
    for ending in ("csv", "parquet"):
        hdmm.releases.write.save_table(made, tmp_path / f"made.{ending}")
        again = hdmm.release(plan, tmp_path / f"made.{ending}", budget, ledger=None)
        assert again.table("all") == release.table("all")
