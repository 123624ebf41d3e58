"""Attributes that no question uses: their columns are neither needed nor read, on every source."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import hdmm
from hdmm.data import CsvFile, count, open_source
from hdmm.errors import WorkloadError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema
from tests.data.conftest import ENGINES, Hold

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the engines' own packages
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SCHEMA = Schema(
    sex=["F", "M"],
    age=range(10),
    one=["only"],
    both=hdmm.Merged(left=[False, True], right=range(2)),
    place=hdmm.Listed(["a", "b"], levels={"side": {"left": ["a"], "right": ["b"]}}),
)
W = hdmm.Workload(SCHEMA)
BUDGET = hdmm.Budget("500")


def exact(plan: hdmm.Plan, data: Any) -> hdmm.Release:
    with patch("hdmm.measure.add_noise", lambda answers, kind, scale: answers):
        return hdmm.release(plan, data, BUDGET, ledger=None)


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (W.add("q"), ()),
        (W.add("q", age=hdmm.Total()), ()),
        (W.add("q", sex=hdmm.Identity(), age=hdmm.Total()), ("sex",)),
        (W.add("q", age=hdmm.Identity()).add("r", sex=hdmm.Identity()), ("sex", "age")),
        (W.add("q", sex=hdmm.Identity() | hdmm.Total()), ("sex",)),
        (W.add("every value", age=hdmm.Where("age >= 0")), ("age",)),
        (W.add("the only value", one=hdmm.Identity()), ("one",)),
        (W.add("q", where="sex = 'F' OR age >= 5"), ("sex", "age")),
        (W.add("every value", where="sex = 'F' OR age >= 0"), ("sex", "age")),
        (W.add("a level", where="side = 'left'"), ("place",)),
        (W.add("a part", where='"left"'), ("both",)),
        (W.add("q", place=hdmm.Level("side")), ("place",)),
        (W.add_sql("q", "SELECT COUNT(*) FROM t WHERE age >= 0 AND sex IN ('F', 'M')"), ("sex", "age")),
        (W.add_sql("q", "SELECT one, COUNT(*) FROM t GROUP BY one"), ("one",)),
    ],
)
def test_a_workload_asks_about_the_attributes_that_it_names(workload: hdmm.Workload, names: tuple[str, ...]) -> None:
    assert workload.asked == names
    assert hdmm.select(workload).counted.names == names


def test_a_plan_reads_what_its_measurements_use_even_if_no_question_asks() -> None:
    whole = hdmm.select(W.add("q", sex=hdmm.Identity(), age=hdmm.Identity()), operators=[hdmm.baselines.Identity()])
    narrow = hdmm.select(W.add("q", sex=hdmm.Identity()))
    plan = hdmm.Plan(narrow.workload, whole.mechanism, narrow.goal, "Identity")
    assert plan.counted.names == ("sex", "age")


def test_the_columns_of_other_attributes_are_not_needed_and_drop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,sex\nnot a number,F\n99,F\n,M\n")
    plan = hdmm.select(W.add("q", sex=hdmm.Identity()))
    assert exact(plan, path).table("q")["answer"].to_pylist() == [2, 1]


def test_a_condition_that_every_value_satisfies_still_drops_records(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age\n99\n1\n\n,\n2\n")
    plan = hdmm.select(W.add_sql("q", "SELECT COUNT(*) FROM t WHERE age >= 0"))
    assert exact(plan, path).table("q")["answer"].to_pylist() == [2]


def test_a_loaded_plan_reads_the_same_columns(tmp_path: Path) -> None:
    plan = hdmm.select(W.add("q", sex=hdmm.Identity()).add("every value", where="age >= 0"))
    plan.save(tmp_path / "a.plan")
    assert hdmm.Plan.load(tmp_path / "a.plan").counted == plan.counted


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("id", [None, "who"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_records_are_counted_even_if_nothing_is_read(engine: str, hold: Hold, id: str | None, neighbours: Any) -> None:
    data = hold(pa.table({"who": ["a", "b", "a", "a", " ", None, "c"], "x": [None, "1", "2", "3", "4", "5", "6"]}))
    nothing = SCHEMA.only(())
    for cap in (3, 10):
        source = open_source(data)
        source.columns_check(nothing, id)
        (table,) = count(source, nothing, [()], unit=Unit(2, neighbours, id), cap=cap)
        assert table.tolist() == [min(cap, 7 if id is None else 4)]


def test_lines_of_a_text_file_are_counted_even_if_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("who,x\na,1\nb\n\na,2\na,3\n,4\n")
    source = CsvFile(tmp_path / "a.csv")
    assert count(source, SCHEMA.only(()), [()])[0].tolist() == [4]
    assert count(source, SCHEMA.only(()), [()], unit=Unit(2, id="who"))[0].tolist() == [2]


def test_questions_about_unread_attributes_are_refused_even_if_every_value_answers_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sex\nF\n")
    release = exact(hdmm.select(W.add("q", sex=hdmm.Identity())), path)
    reason = "measured nothing about 'age'; a new plan must ask for it"
    for later in (
        W.add("r", age=hdmm.Identity()),
        W.add("r", age=hdmm.Where("age >= 0")),
        W.add("r", where="age >= 0 OR sex = 'F'"),
    ):
        with pytest.raises(WorkloadError, match=reason):
            release.answer(later)
    for estimator in ("global", "nonnegative"):
        with pytest.raises(WorkloadError, match=reason):
            release.answer(W.add("r", age=hdmm.Identity()), estimator=estimator)
    for part in ("age >= 0", {"age": 3}):
        with pytest.raises(WorkloadError, match=reason):
            release.share(part)
    with pytest.raises(WorkloadError, match=reason):
        release.quantile("age", 0.5)
    assert release.answer(W.add("r", age=hdmm.Total()))["r"]["answer"].to_pylist() == [1]


def test_synthetic_records_have_all_attributes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sex\nF\nM\n")
    release = exact(hdmm.select(W.add("q", sex=hdmm.Identity())), path)
    assert release.synthesize(rows=5, seed=1).column_names == list(SCHEMA.names)
