"""A plan says which attributes were too large to be optimised, and which products are too long for a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hdmm
from hdmm.errors import TooLargeError
from hdmm.plans.notes import notes

N = 12_000
SCHEMA = hdmm.Schema(code=[f"c{i}" for i in range(N)], age=range(5))
SHUFFLED = [f"c{i}" for i in np.random.default_rng(1).permutation(N)]
PERMUTED = hdmm.Workload(SCHEMA).add("permuted", code=hdmm.Permuted(hdmm.Width(3), SHUFFLED), age=hdmm.Identity())
BUDGET = hdmm.Budget("1", "1e-6")
LARGE = hdmm.Workload(hdmm.Schema(amount=range(100_000))).add("ranges", amount=hdmm.AllRange())


def counted() -> hdmm.Plan:
    return hdmm.select(PERMUTED, "gaussian", operators=[hdmm.operators.Kron()])


def large() -> hdmm.Plan:
    return hdmm.select(LARGE, "gaussian", operators=[hdmm.baselines.HB()])


def test_an_attribute_that_falls_back_to_counts_is_named_with_a_remedy() -> None:
    (line,) = notes(counted())
    assert "attribute 'code' is counted value by value" in line
    assert "12,000 values" in line
    assert "declare groups of values as a level" in line


def test_the_candidate_is_listed_with_the_reason() -> None:
    (reason,) = counted().candidates["reason"].to_pylist()
    assert reason == "counted value by value, because no better queries are found for this many: 'code' (12,000 values)"


def test_the_note_is_in_the_description_and_survives_a_file(tmp_path: Path) -> None:
    plan = counted()
    plan.save(tmp_path / "a.plan")
    loaded = hdmm.Plan.load(tmp_path / "a.plan")
    assert f"note: {notes(plan)[0]}" in loaded.describe(BUDGET).splitlines()
    assert loaded.candidates["reason"].to_pylist() == plan.candidates["reason"].to_pylist()


@pytest.mark.parametrize(
    ("attribute", "remedy"),
    [
        (range(N), "declare bins"),
        (hdmm.Bins(range(N + 1)), "declare wider bins"),
        (hdmm.Dates("1990-01-01", "2025-12-31"), "declare coarser cells (by=)"),
    ],
)
def test_the_remedy_suits_the_attribute(attribute: object, remedy: str) -> None:
    workload = hdmm.Workload(hdmm.Schema(x=attribute)).add("asked", x=hdmm.Prefix())
    (line,) = notes(hdmm.select(workload, operators=[hdmm.baselines.Identity()]))
    assert remedy in line


@pytest.mark.parametrize("predicates", [hdmm.Identity(), hdmm.Identity() | hdmm.Total()])
def test_counts_that_are_asked_for_need_no_note(predicates: hdmm.workload.Predicates) -> None:
    workload = hdmm.Workload(hdmm.Schema(x=range(N))).add("asked", x=predicates)
    assert notes(hdmm.select(workload, "gaussian", operators=[hdmm.baselines.Identity()])) == []


def test_few_values_need_no_note() -> None:
    workload = hdmm.Workload(SCHEMA).add("ages", age=hdmm.Prefix())
    assert notes(hdmm.select(workload, operators=[hdmm.baselines.Identity()])) == []


def test_optimised_attributes_need_no_note() -> None:
    workload = hdmm.Workload(hdmm.Schema(x=range(N))).add("asked", x=hdmm.Prefix())
    assert notes(hdmm.select(workload, operators=[hdmm.baselines.HB()])) == []


def test_the_error_of_ranges_that_no_table_can_list_is_known_except_for_the_largest() -> None:
    (row,) = large().errors(BUDGET).to_pylist()
    assert row["queries"] == 100_000 * 100_001 // 2
    assert (row["stderr_max"], row["margin95"]) == (None, None)
    some = hdmm.Workload(LARGE.schema).add("some", amount=hdmm.Width(500))
    assert row["rmse"] == pytest.approx(
        hdmm.select(some, "gaussian", operators=[hdmm.baselines.HB()]).rmse(BUDGET), rel=0.5
    )


def test_a_description_says_that_no_table_is_written_and_what_to_do() -> None:
    text = large().describe(BUDGET)
    assert "note: product 'ranges' has 5,000,050,000 answers, too many for a table: none is written" in text
    assert "release.answer(workload)" in text


def test_the_accuracy_of_all_answers_is_refused() -> None:
    with pytest.raises(TooLargeError, match="product 'ranges': has 5,000,050,000 answers, too many for a table"):
        large().accuracy("ranges", BUDGET)


@pytest.mark.parametrize("arguments", [{"objective": "max"}, {"targets": {"ranges": "50@95%"}}])
def test_the_largest_error_of_too_many_answers_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(TooLargeError, match="'ranges': its largest error is that of one among 5,000,050,000 answers"):
        hdmm.select(LARGE, "gaussian", **arguments)  # type: ignore[arg-type]
