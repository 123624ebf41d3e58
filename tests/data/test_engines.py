"""The rules of reading are the same wherever records are: every engine counts what the reader of text files counts."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hdmm.data import CsvFile, count, open_source
from hdmm.errors import DataError
from hdmm.privacy.unit import Unit
from hdmm.schema import Bins, Boolean, Integers, Listed, Merged, Schema
from tests.data.conftest import ENGINES, Hold

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the engines' own packages
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
every_engine = pytest.mark.parametrize("engine", ENGINES)

SHORT = (
    "| |\t|\r| \t\r |F| F |\tF\r|f|FF|F M|Ｆ|F\u200b|F\u00a0|\u2003F|\vF|F\x1f|\0|F\0|5\0|M|other|missing|null|NULL"
    "|None|a,b|a\"b|\"|'|''|\\|\\x41|%|é|e\u0301|É|1,000|5|+5|-5|05|+0007|-0|00| 7 |7 7|--5|+-5|+|-|5.0|5.|1e3|1_0"
    "|0x5|٣|५|５|²|9223372036854775807|0.1|0.09999999999999999999|0.1000000000000000000001|1e-1|10E-2|1000e-4|.1|+.1e0|-.0|0."
    "|100|100.0|1e2|1E+02|100.00000000000000000001|99.99999999999999999999|1e999|1e-999|1e1000|nan|NaN|inf|-Infinity|e5"
    "|.|0.30|0.29999999999999999|0.3000000000000001|-1|-0.5|true|TRUE|tRuE|t|yes|YeS|no|nO|1|0|y|on|ſ|yeſ|K|truе|false "
)
TEXTS = [*SHORT.split("|"), "9" * 30, "-" + "9" * 30, "0" * 50 + "7", "1" * 5000]
LISTED = ["F", "M", "5", "é", "a,b", 'a"b', "\\x41", "true"]


def schema_of(**cells: Any) -> Schema:
    """A schema of every kind of attribute, with or without cells for other and missing values."""
    return Schema(
        sex=Listed(LISTED, **cells),
        age=Integers(-5, 110, **cells),
        flag=Boolean(**cells),
        share=Bins(["-0.5", "0.1", "0.3", 100], **cells),
        closed=Bins([0, "0.1", 100], closed=True, **cells),
        both=Merged(left=Boolean(**cells), right=Integers(0, 9, **cells)),
    )


SCHEMAS = {
    "no cells": schema_of(),
    "other": schema_of(other=True),
    "missing": schema_of(missing=True),
    "both": schema_of(other=True, missing=True),
}
GOOD = {"sex": "F", "age": "7", "flag": "true", "share": "0.2", "closed": "0.05", "left": "no", "right": "3"}
TABLES = [
    (),
    ("sex",),
    ("age",),
    ("flag",),
    ("share",),
    ("closed",),
    ("both",),
    ("flag", "sex"),
    ("both", "closed", "age"),
]


def texts(engine: str) -> pa.Table:
    """Good records, and each of the texts once in each of the columns, in different numbers; NULL too."""
    values = [text for text in TEXTS if engine != "postgres" or "\0" not in text] + [None]
    rows: list[dict[str, str | None]] = [{**GOOD}] * 3
    for column in GOOD:
        for at, text in enumerate(values):
            rows += [{**GOOD, column: text}] * (1 + at % 3)
    return pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in [*reversed(GOOD)]})


def as_csv(table: pa.Table, path: Path) -> CsvFile:
    """The same records as text, every field in quotes: floats by their exact decimals, NULL and NaN as empty fields."""

    def field(value: Any) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        exact = f"{Decimal(value):f}" if isinstance(value, float) and math.isfinite(value) else str(value)
        return '"' + exact.replace('"', '""') + '"'

    lines = [",".join(table.column_names), *(",".join(map(field, row.values())) for row in table.to_pylist())]
    path.write_bytes("\n".join(lines).encode())
    return CsvFile(path)


def counted(data: Any, schema: Schema, tables=TABLES, **options) -> list[list[int]]:
    return [table.tolist() for table in count(open_source(data), schema, tables, **options)]


@every_engine
@pytest.mark.parametrize("cells", SCHEMAS)
def test_texts_count_as_in_a_text_file(engine: str, cells: str, hold: Hold, tmp_path: Path) -> None:
    table, schema = texts(engine), SCHEMAS[cells]
    expected = counted(as_csv(table, tmp_path / "a.csv"), schema)
    assert counted(hold(table), schema) == expected
    assert (expected[0][0] == table.num_rows) == (cells in ("other", "both"))


def test_the_texts_reach_every_cell(tmp_path: Path) -> None:
    """Otherwise engines could agree about values that are never there."""
    schema = SCHEMAS["both"]
    counts = counted(as_csv(texts("csv"), tmp_path / "a.csv"), schema)
    for (name,), table in zip(TABLES[1:6], counts[1:6], strict=True):
        cells = np.array(table)
        assert (cells[-2:] > 10).all(), name
        if name != "age":
            assert (cells > 0).all(), name


def typed() -> tuple[pa.Table, Schema]:
    """Columns of every type that can be read, with values at and around every edge."""
    edges = [0.1, 0.3, 0.1 + 0.2, 100.0, -0.5, 0.0, 1.0, 5e-324, 1e308]
    floats: list[float | None] = [
        *(math.nextafter(edge, way) for edge in edges for way in (-math.inf, math.inf)),
        *edges,
    ]
    floats += [-0.0, math.nan, math.inf, -math.inf, None]
    singles = [None if number is None else float(np.float32(number)) for number in floats if not _large(number)]
    wholes = [0, 1, 2, 7, -5, -6, 110, 111, 5, 100, -1, 99, 2**63 - 1, -(2**63), None]
    smalls = [0, 1, 2, 7, -5, -6, 110, 111, 5, 100, -1, 32767, -32768, None]
    cents = [Decimal(text) for text in ("0.09", "0.10", "0.11", "0.30", "100.00", "99.99", "-0.50", "-0.51", "7.00")]
    digits = [Decimal(number) for number in (0, 1, 7, -5, -6, 110, 111, 5, 10**17)]
    flags = [True, False, None]
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "age": (pa.int64(), wholes),
        "small": (pa.int16(), smalls),
        "digits": (pa.decimal128(18, 0), [*digits, None]),
        "flag": (pa.bool_(), flags),
        "bit": (pa.int64(), wholes),
        "listed": (pa.int64(), wholes),
        "truth": (pa.bool_(), flags),
        "share": (pa.float64(), floats),
        "single": (pa.float32(), singles),
        "cents": (pa.decimal128(10, 2), [*cents, None]),
        "whole": (pa.int64(), wholes),
        "closed": (pa.float64(), floats),
    }
    rows = max(len(values) for _, values in columns.values())
    arrays = {name: pa.array((values * rows)[: 3 * rows], type) for name, (type, values) in columns.items()}
    cells: dict[str, Any] = {"other": True, "missing": True}
    bins = ["-0.5", "0.1", "0.3", 100]
    schema = Schema(
        age=Integers(-5, 110, **cells),
        small=Integers(-5, 110, **cells),
        digits=Integers(-5, 110, **cells),
        flag=Boolean(**cells),
        bit=Boolean(**cells),
        listed=Listed(["7", "-5", "007", "5.0", "F", "9223372036854775807", "99999999999999999999"], **cells),
        truth=Listed(["true", "F"], **cells),
        share=Bins(bins, **cells),
        single=Bins(bins, **cells),
        cents=Bins(["-0.505", "0.095", "0.3", "100.001"], **cells),
        whole=Bins(bins, **cells),
        closed=Bins(["0.1", "0.3"], closed=True, **cells),
    )
    return pa.table(arrays), schema


def _large(number: float | None) -> bool:
    return number is not None and math.isfinite(number) and abs(number) > 1e38


@every_engine
def test_typed_columns_count_as_their_texts_do(engine: str, hold: Hold, tmp_path: Path) -> None:
    table, schema = typed()
    tables = [(name,) for name in schema if engine != "sqlite" or name != "truth"]  # whose booleans are 0 and 1
    expected = counted(as_csv(table, tmp_path / "a.csv"), schema, tables)
    for one, ours, theirs in zip(tables, counted(hold(table), schema, tables), expected, strict=True):
        assert ours == theirs, one


@every_engine
def test_typed_columns_are_dropped_as_their_texts_are(engine: str, hold: Hold, tmp_path: Path) -> None:
    table, _ = typed()
    schema = Schema(
        age=Integers(-5, 110), flag=Boolean(), share=Bins(["-0.5", "0.1", "0.3", 100]), listed=["7", "-5", "5"]
    )
    tables = [(), ("age",), ("flag", "share"), ("listed",)]
    expected = counted(as_csv(table, tmp_path / "a.csv"), schema, tables)
    assert counted(hold(table), schema, tables) == expected
    assert expected[0][0] > 0


PEOPLE = Schema(sex=["F", "M"], age=range(3))


def people() -> pa.Table:
    """People with up to nine records each, some of them equal, some outside, some nobody's."""
    random = np.random.default_rng(0)
    names = ["7", "07", " 7 ", "Åse", "a,1", "a", "", "  ", None, "x" * 1000, "x" * 1001, "É", "é", "f", "F", "NULL"]
    who = [names[place] for place in random.choice(len(names), 150)]
    sex = [["F", "M", "X"][place] for place in random.choice(3, 150, p=[0.6, 0.3, 0.1])]
    age = random.integers(0, 4, 150)
    number = [None if place == 9 else int(place) for place in random.integers(-2, 10, 150)]
    columns = {
        "who": (who, pa.string()),
        "sex": (sex, pa.string()),
        "age": (age, pa.int64()),
        "number": (number, pa.int64()),
    }
    return pa.table({name: pa.array(values, type) for name, (values, type) in columns.items()})


@every_engine
@pytest.mark.parametrize("id", ["who", "number"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_same_records_of_a_person_count(engine: str, id: str, rows: int, hold: Hold, tmp_path: Path) -> None:
    table, tables, unit = people(), [(), ("sex", "age")], Unit(rows, id=id)
    expected = counted(as_csv(table, tmp_path / "a.csv"), PEOPLE, tables, unit=unit)
    assert counted(hold(table), PEOPLE, tables, unit=unit) == expected
    assert 0 < expected[0][0] < 100


@every_engine
def test_an_empty_table_has_counts_of_zero(engine: str, hold: Hold) -> None:
    table = people().slice(0, 0)
    assert counted(hold(table), PEOPLE, [(), ("sex",)]) == [[0], [0, 0]]
    assert counted(hold(table), PEOPLE, [("sex",)], unit=Unit(2, id="who")) == [[0, 0]]


SECRET = "Zx9Qk"
REFUSED = {
    "float as integers": (pa.float64(), 7.0, Integers(0, 9)),
    "boolean as integers": (pa.bool_(), True, Integers(0, 9)),
    "decimal as integers": (pa.decimal128(10, 2), Decimal("7.00"), Integers(0, 9)),
    "boolean as bins": (pa.bool_(), True, Bins([0, 1])),
    "float as boolean": (pa.float64(), 1.0, Boolean()),
    "float as text": (pa.float64(), 1.0, Listed(["1.0"])),
    "date as text": (pa.date32(), date(2020, 1, 1), Listed(["2020-01-01"])),
}


@pytest.mark.parametrize("engine", ["parquet", "arrow", "polars", "duckdb", "postgres", "spark"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_type_that_cannot_be_read_exactly_is_refused(engine: str, case: str, hold: Hold) -> None:
    type, value, domain = REFUSED[case]
    data = hold(pa.table({"x": pa.array([value, None], type)}))
    with pytest.raises(DataError, match=r"column 'x' holds .*; cast it to ") as caught:
        open_source(data).columns_check(Schema(x=domain))
    assert str(value) not in str(caught.value)


@every_engine
def test_a_missing_column_is_named_and_nothing_else_if_names_may_be_a_record(engine: str, hold: Hold) -> None:
    data = hold(pa.table({SECRET: ["F"], "sex": ["F"]}))
    with pytest.raises(
        DataError, match="there is no column for 'age'; name the columns exactly as the schema does"
    ) as caught:
        open_source(data).columns_check(PEOPLE)
    assert SECRET not in str(caught.value)
    with pytest.raises(DataError, match="there is no column for 'patient'"):
        open_source(data).columns_check(Schema(sex=["F", "M"]), "patient")


@every_engine
def test_the_columns_of_a_table_are_listed_if_half_of_the_needed_ones_are_there(engine: str, hold: Hold) -> None:
    data = hold(pa.table({"Age": ["1"], "sex": ["F"], "income": ["3"]}))
    with pytest.raises(DataError, match="its columns are 'Age', 'sex', 'income'; 'Age' may be 'age'"):
        open_source(data).columns_check(PEOPLE)


@every_engine
def test_each_group_of_tables_is_told_to_progress(engine: str, hold: Hold) -> None:
    seen: list[float] = []
    counted(hold(people()), PEOPLE, [("sex",), ("age",)], on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
