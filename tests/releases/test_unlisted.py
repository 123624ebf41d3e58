"""A product with too many answers for a table is released without one, and answers are asked for one by one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hdmm
from hdmm.cli import app
from hdmm.errors import TooLargeError

N = 6_000
SCHEMA = hdmm.Schema(amount=range(N))
BUDGET = hdmm.Budget("500")
W = hdmm.Workload(SCHEMA).add("ranges", amount=hdmm.AllRange()).add("hundreds", amount=hdmm.By("amount / 100"))
RECORDS = pa.table({"amount": [5, 7, 7, 4_000, 5_999]})


@pytest.fixture(scope="module")
def plan() -> hdmm.Plan:
    return hdmm.select(W, operators=[hdmm.baselines.HB()])


@pytest.fixture(scope="module")
def saved(plan: hdmm.Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unlisted") / "out"
    hdmm.release(plan, RECORDS, BUDGET, ledger=None, out=out)
    return out


def test_only_the_other_tables_are_written(saved: Path) -> None:
    assert [path.name for path in (saved / "tables").iterdir()] == ["002-hundreds.parquet"]
    assert [name for name, _ in hdmm.Release.load(saved).tables()] == ["hundreds"]


def test_the_table_is_refused_with_what_to_do_instead(saved: Path) -> None:
    with pytest.raises(TooLargeError, match=r"product 'ranges': has 18,003,000 answers.*release.answer\(workload\)"):
        hdmm.Release.load(saved).table("ranges")


def test_single_answers_are_given(saved: Path) -> None:
    asked = hdmm.Workload(SCHEMA).add("one", amount=hdmm.Ranges([(6, 4_000)]))
    (row,) = hdmm.Release.load(saved).answer(asked)["one"].to_pylist()
    assert round(row["answer"]) == 3
    assert row["low"] <= 3 <= row["high"]


def test_all_answers_at_once_are_refused(saved: Path) -> None:
    with pytest.raises(TooLargeError, match=r"limit is 1 GB"):
        hdmm.Release.load(saved).answer(hdmm.Workload(SCHEMA).add("all", amount=hdmm.AllRange()), memory="1GB")


def test_the_command_says_so_before_anything_is_charged(plan: hdmm.Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "a.plan")
    (tmp_path / "wrong.csv").write_text("other\n1\n")
    arguments = ["release", str(tmp_path / "a.plan"), str(tmp_path / "wrong.csv"), "--epsilon", "1", "--no-ledger"]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert "note: product 'ranges' has 18,003,000 answers, too many for a table: none is written" in result.output
    assert "ask the release for single answers, at no cost" in result.output


def test_tables_are_written_again_without_it(saved: Path, tmp_path: Path) -> None:
    hdmm.Release.load(saved).save_tables(tmp_path / "again")
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["002-hundreds.parquet"]
