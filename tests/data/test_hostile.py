"""One record, person or file name can neither stop a count nor change how anything else is counted."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdmm.data import DatabaseTable, Source, count, engine, open_source
from hdmm.data.engine import engine_of
from hdmm.errors import DataError
from hdmm.memory.limit import memory_allowed
from hdmm.privacy.unit import Unit
from hdmm.schema import Integers, Listed, Schema

SEX = Schema(sex=["F", "M"])


def counted(data: Any, schema: Schema = SEX, tables: Any = (("sex",),), **options: Any) -> list[list[int]]:
    source = open_source(data)
    unit = options.get("unit")
    source.columns_check(schema, None if unit is None else unit.id)
    return [table.tolist() for table in count(source, schema, list(tables), **options)]


def raw(*values: bytes | None) -> pa.Array:
    """Texts of these bytes, whether they are UTF-8 or not."""
    array = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(array), array.buffers())


NAMES = [
    "d[1].parquet",
    "d*.parquet",
    "d?.parquet",
    "a\\[1].parquet",
    "q'\"#%41.parquet",
    "new\nline.parquet",
    "sex=F/d.parquet",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_parquet_file_is_read_once_and_by_itself_whatever_its_name_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for other in ("d1.parquet", "dx.parquet", "a1.parquet", "a\\1.parquet"):
        pq.write_table(pa.table({"sex": ["F"]}), tmp_path / other)
    pq.write_table(pa.table({"sex": ["M"]}), path)
    assert counted(path) == [[0, 1]]
    assert counted([path, tmp_path / "d1.parquet"]) == [[1, 1]]


def test_a_folder_does_not_say_whose_records_are_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "who=7"
    folder.mkdir()
    pq.write_table(pa.table({"sex": ["F", "M"], "who": ["1", "2"]}), folder / "d.parquet")
    assert counted(folder / "d.parquet", unit=Unit(1, id="who")) == [[1, 1]]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_link_to_a_file_is_that_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        path.write_text("sex\nF\n")
    else:
        pq.write_table(pa.table({"sex": ["F"]}), path)
    os.link(path, tmp_path / f"hard.{kind}")
    (tmp_path / f"soft.{kind}").symlink_to(path)
    for other in ("hard", "soft"):
        with pytest.raises(DataError, match="is given twice"):
            open_source([path, tmp_path / f"{other}.{kind}"])


@pytest.mark.parametrize("name", ["a?b.db", "%41.db", "md:x.db", "a#b.db", ":memory:"])
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_database_is_the_file_of_that_name(tmp_path: Path, name: str, kind: str, monkeypatch: Any) -> None:
    plain = tmp_path / "plain.db"
    connection: Any = sqlite3.connect(plain) if kind == "sqlite" else duckdb.connect(str(plain))
    connection.execute("CREATE TABLE people (sex TEXT)")
    connection.execute("INSERT INTO people VALUES ('M')")
    connection.commit() if kind == "sqlite" else None
    connection.close()
    plain.rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert counted(DatabaseTable(name, "people")) == [[0, 1]]


def test_a_name_that_means_two_tables_is_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.db")) as connection:
        connection.execute('CREATE SCHEMA s; CREATE TABLE s.people (sex TEXT); CREATE TABLE "s.people" (sex TEXT)')
    with pytest.raises(DataError, match="rename one of them"):
        counted(DatabaseTable(tmp_path / "a.db", "s.people"))


def test_a_name_that_is_no_table_is_not_a_file_or_a_variable_either(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"sex": ["F"]}), "people.parquet")
    duckdb.connect("a.db").close()
    with pytest.raises(DataError, match="there is no table"):
        counted(DatabaseTable("a.db", "people.parquet"))


LONG = 70_000_000


def in_parquet(values: list[str], path: Path) -> Any:
    pq.write_table(pa.table({"sex": values}), path / "a.parquet")
    return path / "a.parquet"


def in_duckdb(values: list[str], path: Path) -> Any:
    with duckdb.connect(str(path / "a.db")) as connection:
        connection.register("given", pa.table({"sex": values}))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return DatabaseTable(path / "a.db", "people")


def in_sqlite(values: list[str], path: Path) -> Any:
    with closing(sqlite3.connect(path / "a.db")) as connection, connection:
        connection.execute("CREATE TABLE people (sex TEXT)")
        connection.executemany("INSERT INTO people VALUES (?)", [(value,) for value in values])
    return DatabaseTable(path / "a.db", "people")


def in_pandas(values: list[str], path: Path) -> Any:
    import pandas as pd

    return pd.DataFrame({"sex": pd.Series(values, dtype="string")})


def in_csv(values: list[str], path: Path) -> Any:
    (path / "a.csv").write_text("\n".join(["sex", *values, ""]))
    return path / "a.csv"


HOLDERS = [in_csv, in_parquet, in_duckdb, in_sqlite, in_pandas, lambda values, path: pa.table({"sex": values})]


@pytest.mark.parametrize("hold", HOLDERS)
def test_a_text_as_long_as_a_film_is_a_record_outside_the_schema(tmp_path: Path, hold: Callable[..., Any]) -> None:
    data = hold(["F", "x" * LONG, "M"], tmp_path)
    with memory_allowed("1GB"):
        assert counted(data) == [[1, 1]]


@pytest.mark.parametrize("hold", HOLDERS)
def test_many_long_texts_are_records_outside_the_schema(
    tmp_path: Path, hold: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MOST_MEMORY", 48 << 20)  # of which a part of a table fills twice as much
    data = hold(["F", *["x" * (8 << 20)] * 12, "M"], tmp_path)
    with memory_allowed("64MB"):
        assert counted(data) == [[1, 1]]


@pytest.mark.parametrize("hold", HOLDERS)
def test_a_text_counts_as_other_or_not_by_its_length_in_its_source(tmp_path: Path, hold: Callable[..., Any]) -> None:
    padded = ["M" + " " * (size - 1) for size in (2**16, 2**16 + 1)]
    data = hold([*padded, "F"], tmp_path)
    assert counted(data) == [[1, 1]]
    assert counted(data, Schema(sex=Listed(["F", "M"], other=True, missing=True))) == [[1, 1, 1, 0]]


def test_texts_that_are_not_utf8_are_records_outside_the_schema(tmp_path: Path) -> None:
    table = pa.table({"sex": raw(b"F", b"\xffM", None, b" M", b"M"), "who": raw(b"1", b"2", b"3", b"\xfe", b"5")})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_bytes(b"sex,who\nF,1\n\xffM,2\n,3\n M,\xfe\nM,5\n")
    everything = Schema(sex=Listed(["F", "M"], other=True, missing=True))
    for data in (table, tmp_path / "a.parquet", tmp_path / "a.csv"):
        assert counted(data) == [[1, 2]]
        assert counted(data, everything) == [[1, 2, 1, 1]]
        assert counted(data, everything, unit=Unit(2, id="who")) == [[1, 1, 1, 1]], (
            "the one with a broken identifier is nobody's"
        )


def test_half_a_pair_of_surrogates_in_a_column_of_texts_is_a_record_outside_the_schema() -> None:
    import pandas as pd

    frame = pd.DataFrame({"sex": pd.Series(["F", "\ud800", "M", None], dtype=pd.StringDtype("python"))})
    assert counted(frame) == [[1, 1]]
    assert counted(frame, Schema(sex=Listed(["F", "M"], other=True, missing=True))) == [[1, 1, 1, 1]]


@pytest.mark.parametrize("odd", [7, 7.5, ("a",), b"M", True, "x" * 10], ids=repr)
def test_an_odd_category_is_a_record_outside_the_schema(odd: object) -> None:
    import pandas as pd

    with_it = pd.DataFrame({"sex": pd.Series(["F", odd, "M", None, "M"], dtype="category")})
    assert counted(with_it) == [[1, 2]]
    if isinstance(odd, (bool, float)):  # which pandas itself takes for a number, or turns numbers into
        return
    numbers = pd.DataFrame({"age": pd.Series([1, odd, 3], dtype="category")})
    assert sum(counted(numbers, Schema(age=Integers(1, 3)), [("age",)])[0]) == 2


@pytest.mark.parametrize("type", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers_may_be_below_a_negative_least_value(type: str) -> None:
    table = pa.table({"age": pa.array([0, 3, 200], type)})
    assert counted(table, Schema(age=Integers(-5, 4)), [("age",)]) == [[0] * 5 + [1, 0, 0, 1, 0]]


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_a_person_with_very_many_records_and_a_long_name_counts_as_the_unit_says(tmp_path: Path, source: str) -> None:
    who = pa.array(["y" * 900] * 200_000 + ["z"])
    table = pa.table({"who": who, "sex": ["F", "M"] * 100_000 + ["F"]})
    if source == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    else:
        pq.write_table(table, tmp_path / "a.parquet")
    with memory_allowed("1GB"):
        (counts,) = counted(tmp_path / f"a.{source}", unit=Unit(3, id="who"))
    assert sum(counts) == 4


@pytest.mark.parametrize("encoding", ["UTF8", "LATIN1", "SQL_ASCII", "WIN1252", "EUC_JP"])
def test_a_database_from_whose_encoding_a_text_may_not_be_read_is_refused(encoding: str) -> None:
    status = SimpleNamespace(parameter_status={"server_encoding": encoding}.get)
    backend = SimpleNamespace(name="postgres", con=SimpleNamespace(info=status))
    if encoding in ("WIN1252", "EUC_JP"):
        with pytest.raises(DataError, match=f"encoding {encoding}"):
            engine_of(backend)
    else:
        engine_of(backend)


@pytest.mark.parametrize("id", [None, "who"])
@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_where_records_are_replaced_all_tables_stop_at_the_same_records(
    tmp_path: Path, kind: str, id: str | None
) -> None:
    """Every replacement of one record by any other, also by one outside: tables change as for one record, together."""
    schema = Schema(sex=["F", "M"], age=range(3))
    tables = [(), ("sex",), ("age",), ("sex", "age")]
    unit = Unit(1, "replace-one", id)
    cells = [*product("FM", range(3)), ("X", 0)]
    before = [("F", 0), ("F", 0), ("F", 1), ("M", 2), ("M", 0), ("F", 2), ("F", 0)]

    def counts(records: list[tuple[str, int]]) -> list[np.ndarray]:
        named = [(f"p{number}", *record) for number, record in enumerate(records)]
        if kind == "arrow":
            data: Any = pa.table(dict(zip(("who", "sex", "age"), zip(*named, strict=True), strict=True)))
        else:
            data = tmp_path / "a.csv"
            data.write_text("\n".join(["who,sex,age", *(",".join(map(str, one)) for one in named), ""]))
        return count(open_source(data), schema, tables, unit=unit, cap=4)

    exact = counts(before)
    assert [int(table.sum()) for table in exact] == [4, 4, 4, 4]
    for place, other in product(range(len(before)) if (kind, id) == ("csv", None) else (0, 3), cells):
        after = counts([*before[:place], other, *before[place + 1 :]])
        total, sex, age, both = (new - old for new, old in zip(after, exact, strict=True))
        moved = both.reshape(2, 3)
        assert abs(moved).sum() <= 2
        assert total.tolist() == [moved.sum()]
        assert sex.tolist() == moved.sum(axis=1).tolist()
        assert age.tolist() == moved.sum(axis=0).tolist()


def test_a_remedy_never_makes_one_value_stop_all_others() -> None:
    with pytest.raises(DataError, match="TRY_CAST"):
        counted(pa.table({"sex": [1.5]}))


@pytest.mark.parametrize(
    "error", [RuntimeError("Query interrupted"), duckdb.InterruptException("stop"), KeyboardInterrupt()]
)
def test_an_interrupt_stays_one_whatever_an_engine_makes_of_it(error: BaseException) -> None:
    class Interrupted(Source):
        def columns_check(self, schema: Schema, id: str | None = None) -> None: ...

        def count(self, *given: Any) -> Any:
            raise error

    with pytest.raises(KeyboardInterrupt):
        count(Interrupted(), SEX, [("sex",)])


def test_duckdb_may_hold_texts_that_are_not_utf8(tmp_path: Path) -> None:
    """Once it has seen a letter beyond ASCII in a column, it looks no more, and stumbles when it trims such a text."""
    sex, who = raw("é".encode(), b"F", b"GGG\xff", b"M", None), raw("é".encode(), b"1", b"3", b"\xed\xa0\x80", b"9")
    given = pa.table({"sex": sex, "who": who})
    with duckdb.connect(str(tmp_path / "a.db")) as connection:
        connection.register("given", given)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    table = DatabaseTable(tmp_path / "a.db", "people")
    everything = Schema(sex=Listed(["F", "M"], other=True, missing=True))
    assert counted(table) == [[1, 1]]
    assert counted(table, everything) == [[1, 1, 2, 1]]
    assert counted(table, everything, unit=Unit(1, id="who")) == [[1, 0, 2, 1]]
