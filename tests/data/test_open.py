"""What a user may give as data becomes one source, or is refused before anything is counted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdmm.data import DatabaseTable, count, open_source
from hdmm.data.csv import CsvFiles
from hdmm.data.grouping import cover
from hdmm.errors import DataError, FaultError
from hdmm.privacy.unit import Unit
from hdmm.schema import Bins, Boolean, Domain, Integers, Listed, Schema

SCHEMA = Schema(sex=["F", "M"], age=range(5))
TABLES = [("sex",), ("sex", "age")]


def counted(data: object, schema: Schema = SCHEMA) -> list[list[int]]:
    source = open_source(data)
    source.columns_check(schema)
    return [table.tolist() for table in count(source, schema, TABLES)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people-1.csv").write_bytes(b"sex,age\nF,1\nM,2\n")
    (tmp_path / "people-2.csv").write_bytes(b"note,age,sex\nx,1,F\nx,9,F\n")
    return tmp_path


def test_text_files_are_read_one_after_the_other_each_by_its_own_header(folder: Path) -> None:
    expected = [[2, 1], [0, 2, 0, 0, 0, 0, 0, 1, 0, 0]]
    assert counted(str(folder / "people-*.csv")) == expected
    assert counted([folder / "people-2.csv", str(folder / "people-1.csv")]) == expected


def test_progress_runs_over_all_files(folder: Path) -> None:
    seen: list[float] = []
    count(open_source(str(folder / "*.csv")), SCHEMA, TABLES, on_progress=seen.append)
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] == 1


def test_every_header_is_checked_before_anything_is_counted(folder: Path) -> None:
    (folder / "people-3.csv").write_bytes(b"sex,years\nF,1\n")
    source = open_source(folder / "people-*.csv")
    assert isinstance(source, CsvFiles)
    with pytest.raises(DataError, match=r"people-3\.csv: there is no column for 'age'"):
        source.columns_check(SCHEMA)


def test_a_name_that_is_also_a_pattern_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_bytes(b"sex,age\nF,1\n")
    assert counted(tmp_path / "a[1].csv")[0] == [1, 0]


def test_a_pattern_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no-\*\.csv: no file matches this pattern"):
        open_source(tmp_path / "no-*.csv")


def test_a_file_that_is_given_twice_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="is given twice; give each file once"):
        open_source([str(folder / "people-*.csv"), folder / ".." / folder.name / "people-1.csv"])


def test_files_of_two_kinds_are_refused(folder: Path) -> None:
    pq.write_table(pa.table({"sex": ["F"]}), folder / "a.parquet")
    with pytest.raises(DataError, match=r"people-1\.csv: is no Parquet file, others are"):
        open_source([folder / "a.parquet", folder / "people-1.csv"])


def test_parquet_files_of_different_types_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"sex": ["F"], "age": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"sex": ["F"], "age": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: its columns have other names or types than those of"):
        counted(tmp_path / "*.parquet")


def test_parquet_columns_in_another_order_are_matched_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"sex": ["F"], "age": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"age": [2], "sex": ["M"]}), tmp_path / "b.parquet")
    assert counted(tmp_path / "*.parquet")[1] == [0, 1, 0, 0, 0, 0, 0, 1, 0, 0]


def test_a_file_that_is_no_parquet_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"Zx9Qk" * 100)
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read \(\w+\)") as caught:
        counted(tmp_path / "a.parquet")
    assert "Zx9Qk" not in str(caught.value)
    with pytest.raises(DataError, match="there is no such file"):
        open_source(tmp_path / "b.parquet")


def test_a_delimiter_is_for_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"sex": ["F"]}), tmp_path / "a.parquet")
    for data in (tmp_path / "a.parquet", pa.table({"sex": ["F"]})):
        with pytest.raises(DataError, match="goes with the path of a text file"):
            open_source(data, ";")


def test_a_column_that_a_frame_has_twice_is_refused() -> None:
    table = pa.table([["F"], [1], [2]], names=["sex", "age", "age"])
    with pytest.raises(DataError, match="more than one column for 'age'"):
        counted(table)


def test_categories_and_objects_of_pandas_are_texts() -> None:
    import pandas as pd

    frame = pd.DataFrame({"sex": pd.Categorical(["F", "M", None, "X", "F"])})
    frame["age"] = pd.Series([1, "2", 3, object(), True], dtype=object)
    assert counted(frame, Schema(sex=["F", "M"], age=Integers(0, 4)))[1] == [0, 1, 0, 0, 0, 0, 0, 1, 0, 0]


def test_a_bad_object_changes_no_other_record() -> None:
    import pandas as pd

    good = pd.DataFrame({"sex": pd.Series(["F", "M"], dtype=object), "age": [1, 2]})
    odd = [
        b"F",
        1.5,
        [1],
        "\ud800",
        float("nan"),
        np.ones(2),
        10**5000,
        Decimal("sNaN"),
        Decimal("1e999999999"),
        pd.NaT,
    ]
    bad = pd.DataFrame({"sex": pd.Series(["F", *odd, "M"], dtype=object), "age": [1] * (len(odd) + 1) + [2]})
    assert counted(bad) == counted(good)


OBJECTS: dict[str, tuple[Any, Domain, list[int]]] = {
    "integers of numpy": ([np.int64(1), np.uint8(0), 1, Decimal(1)], Integers(0, 1), [1, 3]),
    "truth": ([True, np.bool_(False), "TRUE", np.bool_(True)], Listed(["true", "false"]), [2, 1]),
    "truth as such": ([True, np.bool_(False), "no"], Boolean(), [2, 1]),
    "no truth among integers": ([True, 1], Integers(0, 1), [0, 1]),
    "reals, exactly": ([0.3, np.float32(0.3), Decimal("0.3"), "0.3"], Bins([0, "0.3", 1]), [1, 3]),
    "no reals among integers": ([1.0, np.float64(1), 1], Integers(0, 1), [0, 1]),
}


@pytest.mark.parametrize(("values", "domain", "expected"), OBJECTS.values(), ids=OBJECTS)
def test_objects_are_read_by_their_own_type(values: list[Any], domain: Domain, expected: list[int]) -> None:
    import pandas as pd

    schema = Schema(x=domain)
    source = open_source(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    source.columns_check(schema)
    assert sorted(count(source, schema, [("x",)])[0].tolist()) == sorted(expected)


def test_a_column_may_have_the_name_of_a_method() -> None:
    import pandas as pd

    schema = Schema(column_names=range(2), to_arrow=range(2))
    source = open_source(pd.DataFrame({"column_names": [0, 1, 1], "to_arrow": [1, 1, 1]}))
    source.columns_check(schema)
    assert [found.tolist() for found in count(source, schema, [("column_names",), ("to_arrow",)])] == [[1, 2], [0, 3]]


def test_columns_that_differ_in_case_only_are_refused_by_engines() -> None:
    with pytest.raises(DataError, match="data: columns 'sex' and 'SEX' differ in case only"):
        open_source(pa.table({"sex": ["F"], "SEX": ["F"]})).columns_check(Schema(sex=["F", "M"], SEX=["F", "M"]))


def test_files_elsewhere_are_not_taken_for_databases(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="s3://…: files elsewhere are not read; copy them here"):
        open_source("s3://bucket/people.csv")
    with pytest.raises(DataError, match="no file matches this pattern"):
        open_source(tmp_path / ("a" * 300 + "*.csv"))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_database_needs_the_name_of_a_table_that_is_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "people.db"
    connection = duckdb.connect(str(path)) if kind == "duckdb" else sqlite3.connect(path)
    connection.execute("CREATE TABLE people (sex TEXT, age INTEGER)")
    connection.execute("INSERT INTO people VALUES ('F', 1)")
    connection.execute("CREATE VIEW women AS SELECT * FROM people WHERE sex = 'F'")
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match=r"people\.db: is a database; name its table"):
        open_source(path)
    with pytest.raises(DataError, match="there is no table 'persons'"):
        counted(DatabaseTable(path, "persons"))
    assert counted(DatabaseTable(str(path), "people"))[0] == [1, 0]
    assert counted(DatabaseTable(path, "women"))[0] == [1, 0]


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex\n")
    with pytest.raises(DataError, match=r"a\.csv: is no file of DuckDB or SQLite"):
        DatabaseTable(tmp_path / "a.csv", "people")
    with pytest.raises(DataError, match=r"b\.duckdb: there is no such file"):
        DatabaseTable(tmp_path / "b.duckdb", "people")
    with pytest.raises(DataError, match=r"mysql://…: expected postgresql://…"):
        DatabaseTable("mysql://user:secret@host/db", "people")


def test_a_password_is_in_no_message() -> None:
    address = "postgresql://hdmm:Zx9Qk@127.0.0.1:1/nowhere"
    with pytest.raises(DataError, match="postgresql://…: is a database") as caught:
        open_source(address)
    assert "Zx9Qk" not in str(caught.value)
    pytest.importorskip("psycopg", reason="needs the extra hdmm[postgres]")
    table = DatabaseTable(address, "people")
    with pytest.raises(DataError, match=r"table 'people': cannot be read \(\w+\)") as caught:
        table.columns_check(SCHEMA)
    assert "Zx9Qk" not in str(caught.value) + repr(table)


def test_a_collation_changes_nothing(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        text = "VARCHAR COLLATE NOCASE.NOACCENT"
        connection.execute(f"CREATE TABLE people (who {text}, sex {text}, age {text}, share {text})")
        rows = [("a", "F", "1", "1e1"), ("A", "F", "1", "1E1"), ("á", "f", "1", "1e1"), ("b", "É", "1", "10")]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", [*rows, ("c", "e", "1", "10"), rows[0]])
    schema = Schema(sex=["F", "e"], age=range(5), share=Bins([0, 100]))
    source = DatabaseTable(tmp_path / "a.duckdb", "people")
    assert count(source, schema, [("sex",)])[0].tolist() == [3, 1]
    assert count(source, schema, [("sex",)], unit=Unit(1, id="who"))[0].tolist() == [2, 1]


@pytest.mark.parametrize("type", ["UTINYINT", "UBIGINT", "HUGEINT", "DECIMAL(38, 0)"])
def test_integers_of_any_width_are_read_by_value(tmp_path: Path, type: str) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people (age {type}, listed {type}, bin {type}, flag {type})")
        largest = {"UTINYINT": 2**8 - 1, "UBIGINT": 2**64 - 1}.get(type, 10**37)
        outside = [(largest, 7, 1, 1), (1, largest, 1, 1), (1, 7, largest, 1), (1, 7, 1, 2)]
        for values in [(1, 7, 1, 1), (4, 7, 2, 0), *outside]:
            connection.execute("INSERT INTO people VALUES (?, ?, ?, ?)", values)
    schema = Schema(age=Integers(-3, 4), listed=["-1", "7"], bin=Bins([-1, "1.5", 3]), flag=[False, True])
    tables = [(), ("age",), ("listed",), ("bin", "flag")]
    counts = [table.tolist() for table in count(DatabaseTable(tmp_path / "a.duckdb", "people"), schema, tables)]
    assert counts == [[2], [0, 0, 0, 0, 1, 0, 0, 1], [0, 2], [0, 1, 1, 0]]


def test_decimals_of_any_length_are_compared_exactly(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE amounts (x numeric)")
        longer = ["0.09999999999999999999999999999999", "0.20000000000000000000000001", "1e50"]
        for text in ["0.1", "0.2", "NaN", "Infinity", *longer]:
            connection.execute("INSERT INTO amounts VALUES (%s::numeric)", [text])
    source = DatabaseTable(postgres, "amounts")
    assert count(source, Schema(x=Bins([0, "0.1", "0.2"], closed=True)), [("x",)])[0].tolist() == [1, 2]
    with pytest.raises(DataError, match="column 'x' holds decimal, which cannot be read exactly as Integers"):
        source.columns_check(Schema(x=range(5)))


def test_sqlite_reads_each_value_by_its_own_type(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE people (sex, age, income)")
        rows = [("F", 1, 0.1), ("F", "1", "0.1"), ("F", 1.0, 0.1), (b"F", 1, 1), ("F", 1, float("inf")), ("F", 2, None)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO people VALUES (CAST(x'ff' AS TEXT), 1, 1)")
    connection.close()
    schema = Schema(sex=["F", "M"], age=range(5), income=Bins(["0.1", 1], closed=True))
    assert counted(DatabaseTable(tmp_path / "a.sqlite", "people"), schema)[1] == [0, 3, 0, 0, 0, 0, 0, 0, 0, 0]


def test_sqlite_refuses_real_columns_where_they_are_no_bins(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE people (sex TEXT, age DOUBLE PRECISION)")
    connection.close()
    with pytest.raises(DataError, match=r"'age' holds DOUBLE PRECISION, which can be read as bins, .* true; cast it"):
        counted(DatabaseTable(tmp_path / "a.sqlite", "people"))


def test_an_ibis_table_of_sqlite_is_refused_with_the_remedy(tmp_path: Path) -> None:
    import ibis

    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE people (sex TEXT, age INTEGER)")
    connection.close()
    backend = ibis.sqlite.connect(tmp_path / "a.sqlite")
    with pytest.raises(DataError, match=r"give hdmm\.DatabaseTable\(path, name\) instead"):
        counted(backend.table("people"))
    backend.disconnect()


def test_a_fault_while_counting_tells_only_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hdmm.data.engine import Engine

    source = open_source(pa.table({"sex": ["F"], "age": [1]}))

    def fail(*_: object) -> list[object]:
        raise ValueError("Zx9Qk")

    monkeypatch.setattr(Engine, "groups", fail)
    with pytest.raises(FaultError, match=r"could not be counted \(ValueError\)") as caught:
        count(source, SCHEMA, TABLES)
    assert "Zx9Qk" not in str(caught.value)


def test_a_table_is_added_up_from_one_that_holds_it() -> None:
    sizes = {"a": 10, "b": 10, "c": 10**6, "d": 10}
    groups = cover([("a",), ("a", "c"), (), ("b", "d"), ("c",)], sizes)
    found = [(sorted(group.names), sorted(group.tables)) for group in groups]
    assert found == [(["a", "c"], [0, 1, 2, 4]), (["b", "d"], [3])]


def test_tables_with_few_combinations_are_asked_for_together() -> None:
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    assert len(cover(pairs, dict.fromkeys("abcd", 10))) == 1
    assert len(cover(pairs, dict.fromkeys("abcd", 1000))) == 4
