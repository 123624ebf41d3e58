"""CSV files and the terminal: digits that mean something, intervals that still hold, and totals with a label."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

import hdmm
from hdmm.errors import InputError
from hdmm.releases.present import meaningful, presented, terminal_rows, total_labels
from hdmm.text import text_table

SCHEMA = hdmm.Schema(sex=["F", "total"], age=range(3))
WORKLOAD = hdmm.Workload(SCHEMA).add("all", sex=hdmm.Identity() | hdmm.Total(), age=hdmm.Identity() | hdmm.Total())


@pytest.fixture
def release() -> hdmm.Release:
    plan = hdmm.select(WORKLOAD, "gaussian", operators=[hdmm.operators.Residual()])
    rng = np.random.default_rng(3)
    counts = tuple(rng.integers(-9, 9999, block.queries) for block in plan.mechanism.blocks)
    return hdmm.Release(plan, hdmm.Budget(rho="0.5"), counts)


EXAMPLES = {
    "tens": (1234.567, 45.67, 1235, 46),
    "units": (1234.567, 4.567, 1234.6, 4.6),
    "tenths": (12.346, 0.678, 12.35, 0.68),
    "hundreds": (123456.789, 4567.8, 123457, 4568),
    "just below ten": (5.56, 9.99, 5.6, 10.0),
    "thousandths": (-0.0123456, 0.00346, -0.0123, 0.0035),
    "no minus before a zero": (-0.04, 1.0, 0.0, 1.0),
}


@pytest.mark.parametrize(("answer", "stderr", "shown_answer", "shown_error"), EXAMPLES.values(), ids=EXAMPLES)
def test_an_answer_is_rounded_to_the_second_digit_of_its_error(answer, stderr, shown_answer, shown_error):
    shown = meaningful({"answer": np.array([answer]), "stderr": np.array([stderr])})
    assert (repr(float(shown["answer"][0])), float(shown["stderr"][0])) == (repr(float(shown_answer)), shown_error)


def test_every_row_has_a_precision_of_its_own():
    shown = meaningful({"answer": np.array([1.2345, 1.2345]), "stderr": np.array([12.0, 0.012])})
    assert shown["answer"].tolist() == [1.0, 1.234]


def test_an_exact_answer_is_not_rounded():
    numbers = {"answer": np.array([0.0, 1 / 3]), "stderr": np.zeros(2), "low": np.zeros(2), "high": np.zeros(2)}
    assert {name: values.tolist() for name, values in meaningful(numbers).items()} == {
        name: values.tolist() for name, values in numbers.items()
    }


FINITE = st.floats(-1e12, 1e12, allow_nan=False)
ERRORS = st.floats(1e-300, 1e12, allow_nan=False)


@given(FINITE, ERRORS, st.floats(0.5, 4), st.booleans())
def test_a_rounded_interval_holds_the_unrounded_one(answer: float, stderr: float, factor: float, with_stderr: bool):
    low, high = answer - factor * stderr, answer + factor * stderr
    numbers = {"answer": np.array([answer]), "low": np.array([low]), "high": np.array([high])}
    if with_stderr:
        numbers["stderr"] = np.array([stderr])
    shown = {name: float(repr(float(values[0]))) for name, values in meaningful(numbers).items()}
    assert shown["low"] <= low
    assert shown["high"] >= high
    assert shown["low"] <= shown["answer"] <= shown["high"]


@given(FINITE, ERRORS)
def test_little_is_lost_and_no_error_becomes_zero(answer: float, stderr: float):
    low, high = answer - 2 * stderr, answer + 2 * stderr
    numbers = {
        name: np.array([value])
        for name, value in zip(("answer", "stderr", "low", "high"), (answer, stderr, low, high), strict=True)
    }
    shown = {name: float(values[0]) for name, values in meaningful(numbers).items()}
    unit = max(stderr / 10, 0 if stderr < 10 else 1)  # the place of the second digit, at most
    assert shown["stderr"] > 0
    assert abs(shown["answer"] - answer) <= 0.5001 * unit + 1e-15 * abs(answer)
    assert low - shown["low"] <= 1.0001 * unit + 1e-15 * abs(low)
    assert shown["high"] - high <= 1.0001 * unit + 1e-15 * abs(high)


def test_bounds_that_are_whole_stay_as_they_are():
    numbers = {"answer": np.array([7.0]), "stderr": np.array([1.66]), "low": np.array([2.0]), "high": np.array([12.0])}
    assert [meaningful(numbers)[name].tolist() for name in ("low", "high")] == [[2.0], [12.0]]


def test_estimates_without_errors_are_written_to_hundredths_and_small_ones_to_two_digits():
    shown = meaningful({"answer": np.array([12.3456, 0.0, 0.00012345])})
    assert shown["answer"].tolist() == [12.35, 0.0, 0.00012]


@pytest.mark.parametrize("options", [{}, {"rounded": True}, {"estimator": "nonnegative"}], ids=str)
def test_csv_files_are_rounded_and_parquet_files_are_not(release: hdmm.Release, tmp_path: Path, options):
    table = release.table("all", **options)
    for format, digits in (("csv", "meaningful"), ("csv", "full"), ("parquet", "meaningful")):
        release.save_tables(tmp_path / f"{format}-{digits}", format=format, digits=digits, **options)  # type: ignore[arg-type]
    short = csv.read_csv(tmp_path / "csv-meaningful" / "001-all.csv")
    full = csv.read_csv(tmp_path / "csv-full" / "001-all.csv")
    whole = parquet.read_table(tmp_path / "parquet-meaningful" / "001-all.parquet")
    assert whole.to_pydict() == table.to_pydict()
    numbers = [name for name in ("answer", "stderr", "low", "high") if name in table.column_names]
    assert full.select(numbers).to_pydict() == table.select(numbers).to_pydict()
    rounded = meaningful({name: table[name].to_numpy() for name in numbers})
    assert short.select(numbers).to_pydict() == {name: rounded[name].tolist() for name in numbers}
    assert short != full


def test_a_release_is_written_with_these_digits(release: hdmm.Release, tmp_path: Path):
    release.save(tmp_path / "short", format="csv")
    release.save(tmp_path / "full", format="csv", digits="full")
    sizes = [(tmp_path / name / "tables" / "001-all.csv").stat().st_size for name in ("short", "full")]
    assert sizes[0] < sizes[1] / 2
    for name in ("short", "full"):
        assert hdmm.Release.load(tmp_path / name).table("all") == release.table("all")


def test_unknown_digits_are_refused_before_anything_is_written(release: hdmm.Release, tmp_path: Path):
    for save in (release.save, release.save_tables):
        with pytest.raises(InputError, match="digits=3: expected 'meaningful' or 'full'"):
            save(tmp_path / "out", format="csv", digits=3)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_totals_are_labelled_in_csv_and_null_in_arrow(release: hdmm.Release, tmp_path: Path):
    """A label is never one of the values: here one is called total."""
    release.save_tables(tmp_path / "out", format="csv")
    lines = (tmp_path / "out" / "001-all.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1::4]] == ['"F"', '"total"', '"(total)"']
    assert [line.split(",")[1] for line in lines[1:5]] == ['"0"', '"1"', '"2"', '"total"']
    assert release.table("all")["sex"].to_pylist()[-1] is None


def test_a_label_avoids_every_label_of_its_column():
    columns = {"a": pa.array(["total", "(total)", None]), "b": pa.array([1, None]), "c": pa.array(["x"])}
    assert total_labels(columns) == {"a": "((total))", "b": "total"}


def test_the_terminal_has_the_digits_of_csv(release: hdmm.Release):
    table = release.table("all")
    shown = presented(table, "meaningful").to_pylist()
    rows = terminal_rows(table, "meaningful")
    for row, expected in zip(rows, shown, strict=True):
        assert [str(cell) for cell in row[:2]] == [expected["sex"], expected["age"]]
        assert [float(cell) for cell in row[2:]] == [expected[name] for name in ("answer", "stderr", "low", "high")]


def test_numbers_of_a_terminal_column_have_as_many_decimals():
    table = pa.table({"answer": [1234.5, 2.0], "stderr": [1.25, 0.25], "low": [1.0, 2.0], "high": [2.0, 3.0]})
    assert [row[:2] for row in terminal_rows(table, "meaningful")] == [
        [Decimal("1234.50"), Decimal("1.20")],
        [Decimal("2.00"), Decimal("0.25")],
    ]
    assert text_table(["answer"], [[Decimal("1234.50")]]).splitlines()[-1] == "1,234.50"
