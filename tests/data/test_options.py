"""Options of attributes (missing texts, decimals, case, aliases, number formats): the same counts on every source."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hdmm.data import CsvFile, count, open_source
from hdmm.schema import Bins, Boolean, Integers, Listed, Merged, Schema
from tests.data.conftest import ENGINES, Hold

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the engines' own packages
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
every_engine = pytest.mark.parametrize("engine", ENGINES)
NA = ["NA", "null", ".", "-9", "9.99"]
KINDS: dict[str, Any] = {
    "sex": lambda **cells: Listed(["F", "M", "2"], aliases={"F": ["woman", "1"], "M": ["male"]}, **cells),
    "any": lambda **cells: Listed(["Straße", "İ", "M"], ignore_case=True, aliases={"M": ["ὈΔΟΣ"]}, **cells),
    "age": lambda **cells: Integers(-5, 110, decimals=True, **cells),
    "cash": lambda **cells: Integers(-5, 5000, thousands=",", currency="$", **cells),
    "euro": lambda **cells: Bins([0, "1.5", 1000, 5000], closed=True, thousands=".", point=",", currency="€", **cells),
    "flag": Boolean,
    "left": lambda **cells: Merged(part=Integers(0, 9, decimals=True, point=",", **cells)),
}
COLUMNS = {"sex": "F", "any": "m", "age": "7.0", "cash": "$12", "euro": "2,5", "flag": "no", "part": "3"}
WORDS = (
    "|F|f|woman|Woman|1|01|male|MALE|m|M|2|2.0|STRASSE|straße|strasse|İ|i̇|I|i|ὀδος|ὀδός|ὈΔΟΣ|NA| NA |na|n/a|null|NULL|."
    "|-9|-09|-9.0|-9,0|-9.|-$9|$-9|9.99|9,99|9.990|0999e-2|45|45.0|45.|45.00000000000000000000|45.5|4.5e1|45e-1|.0|-.0"
    "|0.|1e2|1e-1|1e999|1,234|1234|12,34|1,2345|1,,234|,234|1,234,|0,001|0,000,007|1,234.0|1.234|1.234,5|1234,5|1.234.567"
    "|1,5|1,50|,5|5,|1,5e3|$5|$ 5|5$|5 $|$5$|-$5|$-5|- 5|-$-5|+$5|$|$$5|€5|5€|5 €|5\u00a0€|5\u202f€|1.000,00 €|€ 1.000"
    "|5 EUR|1 234|٣|٣,0|5\u00a0|true|no|yes|\0|\\|é"
)
TEXTS = WORDS.split("|")
EXTRA: list[dict[str, Any]] = [{}, {"missing": NA}, {"other": True}, {"other": True, "missing": NA}]
TABLES = [(), ("sex",), ("any",), ("age",), ("cash",), ("euro",), ("flag",), ("left",), ("left", "flag", "sex")]


def schema_of(cells: dict[str, Any]) -> Schema:
    return Schema({name: make(**cells) for name, make in KINDS.items()})


def texts(engine: str) -> pa.Table:
    values = [text for text in TEXTS if engine != "postgres" or "\0" not in text] + [None]
    rows: list[dict[str, str | None]] = [{**COLUMNS}] * 3
    for column in COLUMNS:
        for at, text in enumerate(values):
            rows += [{**COLUMNS, column: text}] * (1 + at % 3)
    return pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in COLUMNS})


def as_csv(table: pa.Table, path: Path) -> CsvFile:
    """The same records as text: floats by their exact decimals, NULL and NaN as empty fields."""

    def field(value: Any) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        exact = f"{Decimal(value):f}" if isinstance(value, float) and math.isfinite(value) else str(value)
        return '"' + exact.replace('"', '""') + '"'

    lines = [",".join(table.column_names), *(",".join(map(field, row.values())) for row in table.to_pylist())]
    path.write_bytes("\n".join(lines).encode())
    return CsvFile(path)


def counted(data: Any, schema: Schema, tables: Any = TABLES) -> list[list[int]]:
    source = open_source(data)
    source.columns_check(schema)
    return [table.tolist() for table in count(source, schema, tables)]


@every_engine
@pytest.mark.parametrize("cells", EXTRA, ids=lambda cells: "+".join(cells) or "none")
def test_texts_count_as_in_a_text_file(engine: str, cells: dict[str, Any], hold: Hold, tmp_path: Path) -> None:
    table, schema = texts(engine), schema_of(cells)
    expected = counted(as_csv(table, tmp_path / "a.csv"), schema)
    assert counted(hold(table), schema) == expected
    assert (expected[0][0] == table.num_rows) == ("other" in cells)


TYPED: dict[str, tuple[pa.DataType, list[Any], Any]] = {
    "whole": (pa.float64(), [7.0, 7.5, -5.0, -6.0, 110.0, 111.0, 0.1, -0.0, 1e300, math.inf, math.nan, -9.0, None],
              Integers(-5, 110, decimals=True, other=True, missing=NA)),
    "single": (pa.float32(), [7.0, 7.5, -9.0, 9.99, math.inf, math.nan, None],
               Integers(-5, 110, decimals=True, other=True, missing=NA)),
    "cents": (pa.decimal128(10, 2), [Decimal(t) for t in ("7.00", "7.01", "-5.00", "-9.00", "9.99", "99999999.99")],
              Integers(-5, 110, decimals=True, other=True, missing=NA)),
    "tight": (pa.decimal128(3, 2), [Decimal(t) for t in ("7.00", "9.99", "9.50", "-9.00")],
              Integers(0, 9, decimals=True, other=True, missing=["9.99"])),
    "large": (pa.float64(), [2.0**59, 2.0**59 + 128, 2.0**60, -(2.0**60)],
              Integers(2**59, 2**59 + 200, decimals=True, other=True)),
    "real": (pa.float64(), [0.5, -9.0, 9.99, 10.0, -3.4028234663852886e38, 1e300, math.nan, None],
             Bins([0, 5, 9], other=True, missing=[*NA, "-3.4028235e38", "1e300"])),
    "price": (pa.decimal128(10, 2), [Decimal(t) for t in ("0.50", "-9.00", "9.99", "10.00")],
              Bins([0, 5, 9], other=True, missing=NA)),
    "count": (pa.int64(), [0, 3, -9, 9, 10, 2**62, None],
              Bins([0, 5, 9], other=True, missing=[*NA, str(2**70), "9" * 5000])),
    "small": (pa.int16(), [0, 3, -9, 9, 110, 111, None], Integers(0, 110, other=True, missing=[*NA, "111.0", "99999"])),
    "code": (pa.int64(), [1, 2, 3, -9, 99, 8, None],
             Listed(["1", "2"], aliases={"1": ["3"]}, labels={"1": "one"}, other=True, missing=["-9", "99"])),
    "bit": (pa.int64(), [0, 1, -9, 2, None], Boolean(other=True, missing=NA)),
    "amount": (pa.float64(), [1.234, 1234.0, 2.0, 4999.5, None],
               Bins([0, 1, 2, 1000, 5000], thousands=".", point=",", currency="€", other=True, missing=True)),
    "grouped": (pa.int64(), [1234, 5, -1, None], Integers(0, 2000, thousands=".", other=True, missing=NA)),
}  # fmt: skip


def typed() -> pa.Table:
    rows = max(len(values) for _, values, _ in TYPED.values())
    return pa.table({name: pa.array((values * rows)[: 3 * rows], type) for name, (type, values, _) in TYPED.items()})


@every_engine
def test_typed_columns_count_as_their_texts_do(engine: str, hold: Hold, tmp_path: Path) -> None:
    table = typed()
    schema = Schema({name: domain for name, (_, _, domain) in TYPED.items()})
    plain = {
        "amount": Bins([0, 1, 2, 1000, 5000], other=True, missing=True),
        "grouped": Integers(0, 2000, other=True, missing=NA),
    }
    tables = [(name,) for name in TYPED]
    expected = counted(as_csv(table, tmp_path / "a.csv"), Schema({**schema, **plain}), tables)
    for one, ours, theirs in zip(tables, counted(hold(table), schema, tables), expected, strict=True):
        assert ours == theirs, one


def test_the_typed_columns_reach_their_missing_cells(tmp_path: Path) -> None:
    for name, (_, values, domain) in TYPED.items():
        texts = ["" if value is None else str(value) for value in values]
        schema = Schema({name: domain})
        (tmp_path / "a.csv").write_text(f"{name}\n" + "".join(f'"{text}"\n' for text in texts if text))
        (counts,) = counted(tmp_path / "a.csv", schema, [(name,)])
        if domain.missing_texts and name != "grouped":
            assert counts[-1] > 0, name


def test_objects_of_pandas_are_read_by_their_own_type() -> None:
    import pandas as pd

    values = [1.234, 1234, "1.234", "1.234,0", 5.0, "5", 45.5, -9, "-9,0", None, True, Decimal("1234.0"), 1234.5]
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    german: dict[str, Any] = {"thousands": ".", "other": True, "missing": ["-9"]}
    bins = Schema(x=Bins([0, 2, 1000, 1235], point=",", **german))
    assert counted(frame, bins, [("x",)]) == [[1, 3, 5, 1, 3]]
    whole = Schema(x=Integers(0, 2000, decimals=True, point=",", **german))
    assert sum(counted(frame, whole, [("x",)])[0][:-2]) == 6
    strict = Schema(x=Integers(0, 2000, **german))
    (counts,) = counted(frame, strict, [("x",)])
    assert (counts[1234], counts[5], counts[-2], counts[-1]) == (2, 1, 8, 2)
