"""Streams and datasets of Arrow, relations of DuckDB and LazyFrames of polars."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import hdmm
from hdmm.data import count, open_source
from hdmm.errors import DataError, FaultError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

SCHEMA = Schema(sex=["F", "M"], age=range(3))
TABLE = pa.table({"sex": ["F", "M", "M", "x"], "age": [0, 1, 1, 2], "secret": [[1], [2], [3], [4]]})
PLAN = hdmm.select(hdmm.Workload(SCHEMA).add("q", sex=hdmm.Identity(), age=hdmm.Identity()))


def released(data: Any) -> list[int]:
    with patch("hdmm.measure.add_noise", lambda answers, kind, scale: answers):
        return hdmm.release(PLAN, data, hdmm.Budget("1"), ledger=None).table("q")["answer"].to_pylist()


COUNTS = [1, 0, 0, 0, 2, 0]


def test_a_reader_is_read_once_and_a_second_release_is_refused() -> None:
    reader = TABLE.to_reader()
    assert released(reader) == COUNTS
    source = open_source(TABLE.to_reader())
    count(source, SCHEMA, [("sex",)])
    with pytest.raises(
        FaultError, match="a stream can be read only once; make a new one for every check and every release"
    ):
        count(source, SCHEMA, [("sex",)])


def test_a_refused_release_has_read_nothing_of_a_reader() -> None:
    reader = TABLE.to_reader()
    with pytest.raises(DataError, match="there is no column for 'town'"):
        open_source(reader).columns_check(Schema(town=["x"]))
    with pytest.raises(DataError, match="column 'secret' holds"):
        open_source(reader).columns_check(Schema(secret=["x"]))
    assert released(reader) == COUNTS


def test_where_records_are_replaced_a_stream_is_still_read_once() -> None:
    (table,) = count(open_source(TABLE.to_reader()), SCHEMA, [("age",)], unit=Unit(1, "replace-one"), cap=2)
    assert table.sum() == 2


class Stream:
    """Nothing but the interface of Arrow streams; it counts how often it was asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.asked = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.asked += 1
        return self.table.to_reader(max_chunksize=1).__arrow_c_stream__(requested_schema)


def test_a_stream_that_was_read_before_is_refused_before_it_looks_empty() -> None:
    reader = TABLE.to_reader()
    assert released(reader) == COUNTS
    with pytest.raises(DataError, match="a stream can be read only once"):
        open_source(reader)


def test_anything_with_the_stream_interface_is_read_and_asked_once() -> None:
    stream = Stream(TABLE)
    assert released(stream) == COUNTS
    assert stream.asked == 1
    assert released(TABLE.to_batches()[0]) == COUNTS


@pytest.mark.parametrize("data", [pl.Series([1]), pa.chunked_array([[1]])])
def test_a_stream_that_holds_no_records_is_refused(data: Any) -> None:
    with pytest.raises(DataError, match="cannot be read as a stream of records"):
        open_source(data)


def test_a_class_is_no_stream() -> None:
    with pytest.raises(DataError, match="is not supported"):
        open_source(Stream)


def test_a_stream_that_fails_is_reported_without_its_message() -> None:
    def batches() -> Any:
        yield TABLE.to_batches()[0]
        raise ValueError("a record holds Zx9Qk")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    source = open_source(reader)
    source.columns_check(SCHEMA)
    with pytest.raises(FaultError, match=r"could not be counted \(\w+\)") as caught:
        count(source, SCHEMA, [("sex",)])
    assert "Zx9Qk" not in str(caught.value)


def test_texts_that_are_not_utf8_count_as_outside() -> None:
    raw = pa.array([b"F", b"\xff", b"M"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    stream = pa.table({"sex": texts, "age": [1, 1, 1]}).to_reader()
    assert released(stream) == [0, 1, 0, 0, 1, 0]


def test_a_dataset_is_read_as_often_as_one_likes(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 2), tmp_path / "a.parquet")
    pq.write_table(TABLE.slice(2), tmp_path / "b.parquet")
    data = ds.dataset(tmp_path)
    assert released(data) == released(data) == COUNTS


def test_a_relation_is_computed_by_its_own_connection() -> None:
    with duckdb.connect() as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        relation = connection.table("people")
        assert released(relation) == released(relation) == COUNTS
        assert released(relation.filter("age < 2")) == COUNTS
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (4,)


def test_names_of_a_relation_are_never_those_of_variables_or_expressions() -> None:
    people = pa.table({"sex": ["M"]})  # noqa: F841
    relation = duckdb.sql("""SELECT 'F' AS "people", 'M' AS "1 + 1", 'M' AS "a.b" """)
    for name, counts in {"people": [1, 0], "1 + 1": [0, 1], "a.b": [0, 1]}.items():
        (table,) = count(open_source(relation), Schema({name: ["F", "M"]}), [(name,)])
        assert table.tolist() == counts


def test_only_needed_columns_of_a_lazy_frame_are_computed() -> None:
    frame = pl.LazyFrame({"sex": ["F", "M", "M"], "age": [0, 1, 1], "text": ["a", "b", "c"]})
    fails = frame.with_columns(pl.col("text").cast(pl.Int64, strict=True))
    assert released(fails) == COUNTS
    assert released(frame.filter(pl.col("age") > 0)) == [0, 0, 0, 0, 2, 0]


def test_a_lazy_frame_is_computed_once_for_a_release() -> None:
    calls: list[int] = []

    def seen(frame: pl.DataFrame) -> pl.DataFrame:
        if len(frame):
            calls.append(len(frame))
        return frame

    frame = pl.LazyFrame({"sex": ["F"], "age": [0]}).map_batches(seen, validate_output_schema=False)
    assert released(frame)[0] == 1
    assert calls == [1]
