"""Looking at public data: the same texts from every source, and no record where none is asked for."""

import gzip
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from hdmm.data import DatabaseTable, look, open_source
from hdmm.data.csv import CsvFile
from hdmm.data.look import Column, header_delimiter, structure, texts
from hdmm.errors import DataError


def counts(source):
    """The number of records with each text, for every column."""
    total: dict[str, dict[str, int]] = {column.name: {} for column in structure(source)}
    for piece in texts(source):
        for held, (found, which) in zip(total.values(), piece.columns, strict=True):
            for text, count in zip(found, np.bincount(which, minlength=len(found)).tolist(), strict=True):
                if count:
                    held[text] = held.get(text, 0) + count
    return total


ROWS = [("F", 34, 1.5, True), ("M", 7, None, False), (None, 7, 2.0, True)]
COUNTS = {"sex": {"F": 1, "M": 1, "": 1}, "age": {"34": 1, "7": 2}}


def arrow():
    sex, age, wage, member = zip(*ROWS, strict=True)
    return pa.table({"sex": sex, "age": age, "wage": wage, "member": member})


def csv(directory):
    (directory / "t.csv").write_text("sex,age,wage,member\nF,34,1.5,true\n M ,7,,false\n,7,2.0,true\n")
    return directory / "t.csv"


def parquet(directory):
    pyarrow.parquet.write_table(arrow(), directory / "t.parquet")
    return directory / "t.parquet"


def duckdb(directory):
    import duckdb as engine

    with engine.connect(directory / "t.duckdb") as connection:
        connection.execute("CREATE TABLE t (sex TEXT, age INTEGER, wage DOUBLE, member BOOLEAN)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    return DatabaseTable(directory / "t.duckdb", "t")


def sqlite(directory):
    with sqlite3.connect(directory / "t.sqlite") as connection:
        connection.execute("CREATE TABLE t (sex TEXT, age INTEGER, wage REAL, member BOOLEAN)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    connection.close()
    return DatabaseTable(directory / "t.sqlite", "t")


SOURCES = [csv, parquet, duckdb, sqlite]


@pytest.mark.parametrize("make", SOURCES)
def test_every_source_has_the_same_texts(make, tmp_path):
    seen = counts(open_source(make(tmp_path)))
    assert {name: seen[name] for name in COUNTS} == COUNTS


@pytest.mark.parametrize("make", SOURCES)
def test_a_real_number_and_a_gap_are_texts(make, tmp_path):
    seen = {text.removesuffix(".0"): count for text, count in counts(open_source(make(tmp_path)))["wage"].items()}
    assert seen == {"1.5": 1, "2": 1, "": 1}


@pytest.mark.parametrize(
    ("make", "types"),
    [
        (csv, ["text", "text", "text", "text"]),
        (parquet, ["text", "integer", "float", "boolean"]),
        (duckdb, ["text", "integer", "float", "boolean"]),
        (sqlite, ["untyped", "untyped", "float", "untyped"]),
    ],
)
def test_declared_types_are_known(make, types, tmp_path):
    columns = structure(open_source(make(tmp_path)))
    assert columns == [Column(name, type) for name, type in zip(("sex", "age", "wage", "member"), types, strict=True)]


def test_the_structure_of_a_text_file_is_its_first_line(tmp_path, monkeypatch):
    path = csv(tmp_path)
    monkeypatch.setattr(look.text_files, "_blocks", lambda *_: pytest.fail("a record was read"))
    assert [column.name for column in structure(open_source(path))] == ["sex", "age", "wage", "member"]


@pytest.mark.parametrize("size", [1, 7, 20, 1 << 20])
def test_pieces_of_any_size_hold_the_same(size, tmp_path):
    source = CsvFile(csv(tmp_path), chunk_size=size)
    assert counts(source)["age"] == COUNTS["age"]


def test_the_last_piece_is_the_end(tmp_path):
    assert [piece.fraction for piece in texts(open_source(csv(tmp_path)))][-1] == 1.0


def test_several_files_are_one(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n")
    assert counts(open_source(str(tmp_path / "*.csv"))) == {"x": {"1": 2}}


def test_files_with_other_columns_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("y\n1\n")
    with pytest.raises(DataError, match="its header differs"):
        structure(open_source(str(tmp_path / "*.csv")))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
def test_an_encoding_is_decoded(encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes("naïve,x\ncafé,1\n".encode(encoding))
    assert counts(open_source(tmp_path / "t.csv", encoding=encoding)) == {"naïve": {"café": 1}, "x": {"1": 1}}


def test_records_that_are_not_utf8_are_counted(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"x,y\ncaf\xe9,1\na,2\n")
    assert sum(piece.undecodable for piece in texts(open_source(tmp_path / "t.csv"))) == 1


def test_a_header_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"caf\xe9,y\n1,1\n")
    with pytest.raises(DataError, match="--encoding latin-1"):
        structure(open_source(tmp_path / "t.csv"))


def test_a_first_line_of_numbers_is_no_header(tmp_path):
    (tmp_path / "t.csv").write_text("39,40,F\n1,2,M\n")
    with pytest.raises(DataError, match="seems to be a record") as refused:
        structure(open_source(tmp_path / "t.csv"))
    assert "39" not in str(refused.value)


def test_lines_with_another_number_of_fields_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n1\n1,2,3\n\n")
    pieces = list(texts(open_source(tmp_path / "t.csv")))
    assert [sum(getattr(piece, name) for piece in pieces) for name in ("records", "ragged", "longer")] == [1, 2, 1]


def compressed_zst(path, data):
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(data)


@pytest.mark.parametrize(
    ("name", "write"),
    [("t.csv.gz", lambda path, data: path.write_bytes(gzip.compress(data))), ("t.csv.zst", compressed_zst)],
)
def test_compressed_files_are_read(name, write, tmp_path):
    write(tmp_path / name, b"x,y\n1,2\n")
    assert counts(open_source(tmp_path / name)) == {"x": {"1": 1}, "y": {"2": 1}}


def test_a_damaged_compressed_file_is_reported(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"x,y\n" + bytes(range(256)) * 99)[:-20])
    with pytest.raises(DataError, match="cannot be unpacked"):
        counts(open_source(tmp_path / "t.csv.gz"))


@pytest.mark.parametrize(
    ("line", "delimiter"), [("a,b", None), ("a;b", ";"), ("a\tb", "\t"), ("a|b|c", "|"), ("a", None), ("a,b;c;d", None)]
)
def test_the_delimiter_is_found_in_the_header(line, delimiter, tmp_path):
    (tmp_path / "t.csv").write_text(f"{line}\n1\n")
    assert header_delimiter(CsvFile(tmp_path / "t.csv")) == delimiter


def test_a_column_that_cannot_be_read_holds_no_texts(tmp_path):
    pyarrow.parquet.write_table(pa.table({"x": [[1], [2]], "y": [1, 2]}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet")
    assert structure(source)[0] == Column("x", "unreadable")
    assert counts(source)["x"] == {"": 2}
