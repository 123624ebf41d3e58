"""Compressed text files, other encodings, and words for delimiters."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hdmm
from hdmm.data import CsvFile, count, open_source
from hdmm.data import encodings as encodings_module
from hdmm.errors import DataError, FaultError
from hdmm.schema import Listed, Schema

SCHEMA = Schema(town=Listed(["Zürich", "Łódź", "東京", "x"], other=True), age=range(3))
TABLES = [("town",), ("age",)]
TEXT = "town,age\nx,1\nx,2\n\nx,7\nx\n"
COUNTS = [[0, 0, 0, 2, 0], [0, 1, 1]]
PACKED = {
    ".gz": gzip.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    ".ZSTD": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}
every_packing = pytest.mark.parametrize("suffix", PACKED)


def counted(source: Any, *options: Any, schema: Schema = SCHEMA, tables: Any = TABLES) -> list[list[int]]:
    opened = open_source(source, *options)
    opened.columns_check(schema)
    return [table.tolist() for table in count(opened, schema, tables)]


@every_packing
@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t"), ("a.TAB", "\t"), ("a", ",")])
def test_a_compressed_file_counts_like_a_plain_one(suffix: str, name: str, mark: str, tmp_path: Path) -> None:
    path = tmp_path / (name + suffix)
    path.write_bytes(PACKED[suffix](TEXT.replace(",", mark).encode()))
    assert counted(path) == COUNTS


@every_packing
def test_a_file_of_several_archives_is_read_to_its_end(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(PACKED[suffix](TEXT.encode()) + PACKED[suffix](b"x,1\n"))
    assert counted(path)[0] == [0, 0, 0, 3, 0]


@every_packing
def test_compressed_and_plain_files_count_together_with_progress(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a.csv{suffix}").write_bytes(PACKED[suffix](TEXT.encode() + os.urandom(5000).hex().encode() + b"\n"))
    (tmp_path / "a.csv").write_text(TEXT)
    seen: list[float] = []
    source = open_source([tmp_path / "a.csv", tmp_path / f"a.csv{suffix}"])
    assert count(source, SCHEMA, [("town",)], on_progress=seen.append)[0].tolist() == [0, 0, 0, 4, 0]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def damaged(suffix: str) -> dict[str, bytes]:
    whole = PACKED[suffix](b"town,age\n" + b"x,1\n" * 5000 + os.urandom(5000).hex().encode())
    return {
        "cut off": whole[:-5],
        "changed": whole[:12] + b"\xff\0\xff\0" + whole[16:],
        "followed by something": whole + b"secret",
        "something else": b"town,age\nsecret,1\n" * 9,
    }


@every_packing
@pytest.mark.parametrize("damage", damaged(".gz"))
def test_a_damaged_archive_is_refused_before_anything_is_charged(suffix: str, damage: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(damaged(suffix)[damage])
    unit = hdmm.Unit()
    ledger = hdmm.Ledger.create(tmp_path / "budget.db", hdmm.Budget("1"), unit)
    plan = hdmm.select(hdmm.Workload(SCHEMA).add("q", town=hdmm.Identity()))
    with pytest.raises(DataError, match=r"cannot be unpacked \(\w+\): it is cut off, damaged") as caught:
        hdmm.release(plan, path, hdmm.Budget("1"), ledger=ledger)
    assert "secret" not in str(caught.value)
    assert not ledger.entries()


def test_an_archive_that_is_damaged_later_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(damaged(".gz")["cut off"])
    with pytest.raises(FaultError, match="cannot be unpacked"):
        count(open_source(path), SCHEMA, TABLES)


WORDS = {"tab": "\t", "\\t": "\t", "TAB": "\t", "semicolon": ";", "pipe": "|", "comma": ",", "space": " ", "|": "|"}


@pytest.mark.parametrize("word", WORDS)
def test_a_delimiter_may_be_a_word(word: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TEXT.replace(",", WORDS[word]))
    assert counted(path, word) == COUNTS


def test_an_unknown_word_for_a_delimiter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    with pytest.raises(DataError, match="delimiter='colon': expected one ASCII character"):
        open_source(tmp_path / "a.csv", "colon")


ENCODINGS = {
    "utf-8": "Zürich Łódź 東京",
    "UTF8": "Zürich Łódź 東京",
    "utf-8-sig": "Zürich Łódź 東京",
    "latin-1": "Zürich",
    "iso-8859-1": "Zürich",
    "cp1252": "Zürich",
    "windows-1252": "Zürich",
    "iso-8859-2": "Zürich Łódź",
    "mac-roman": "Zürich",
    "cp850": "Zürich",
    "utf-16": "Zürich Łódź 東京",
    "utf-16-le": "Zürich Łódź 東京",
    "UTF-16BE": "Zürich Łódź 東京",
    "shift_jis": "東京",
    "euc-jp": "東京",
    "gb18030": "Zürich Łódź 東京",
    "big5": "東京",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("block", [1 << 20, 3])
def test_text_counts_in_every_encoding(encoding: str, block: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(encodings_module, "_BLOCK_BYTES", block)
    towns = ENCODINGS[encoding].split()
    path = tmp_path / "a.csv"
    path.write_bytes("\r\n".join(["age,town", *(f'1," {town}"' for town in towns), ""]).encode(encoding))
    expected = [int(town in towns) for town in ("Zürich", "Łódź", "東京", "x")]
    assert counted(path, None, encoding) == [[*expected, 0], [0, len(towns), 0]]


def test_names_of_columns_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("größe\nklein\n".encode("latin-1"))
    schema = Schema({"größe": ["klein"]})
    assert counted(path, None, "latin-1", schema=schema, tables=[("größe",)]) == [[1]]
    with pytest.raises(DataError, match="encoding"):
        counted(path, schema=schema, tables=[("größe",)])


HOSTILE: dict[str, tuple[str, list[bytes]]] = {
    "undefined bytes": ("cp1252", [b"\x81", b"\x8dx", b"x\x9d", b'"\x81', b"x\x81\x9d,1,2"]),
    "beyond ascii": ("ascii", [b"\xe9", b"\xff" * 50]),
    "lead bytes": ("shift_jis", [b"\x81", b"x,1\x81", b"\xff\xfe", b"\x93\x8c\x8b", b"\x80\xa0\xfd" * 9]),
    "broken sequences": ("gb18030", [b"\x81\x30\x81", b"x,1\x81\x30", b"\xff", b"\x81"]),
    "lone surrogates": (
        "utf-16-le",
        ["\ud83d".encode("utf-16-le", "surrogatepass"), "x,1\udc00".encode("utf-16-le", "surrogatepass"), b"\xff\xff"],
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("block", [1 << 20, 5])
def test_bytes_that_an_encoding_does_not_define_change_their_own_line_only(
    case: str, block: int, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(encodings_module, "_BLOCK_BYTES", block)
    encoding, lines = HOSTILE[case]
    path, end = tmp_path / "a.csv", "\n".encode(encoding)
    good = "x,1".encode(encoding)
    without = end.join(["town,age".encode(encoding), good, good, good, b""])
    for line in lines:
        for place in range(4):
            several = ["town,age".encode(encoding), good, good, good, b""]
            several.insert(place + 1, line)
            path.write_bytes(end.join(several))
            assert counted(path, None, encoding) == [[0, 0, 0, 3, 0], [0, 3, 0]], (line, place)
    path.write_bytes(without)
    assert counted(path, None, encoding) == [[0, 0, 0, 3, 0], [0, 3, 0]]


def test_a_byte_that_an_encoding_does_not_define_makes_another_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"town,age\n\x81,1\nx\x9d,1\nx,1\n")
    assert counted(path, None, "cp1252")[0] == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("encoding", ["shift_jis", "latin-1", "utf-16-le"])
def test_a_line_of_any_length_takes_no_more_memory_and_is_skipped(
    encoding: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(encodings_module, "_BLOCK_BYTES", 1000)
    path = tmp_path / "a.csv"
    path.write_bytes(("town,age\nx,1\nx," + "1" * (3 << 20) + "\nx,2\n").encode(encoding))
    assert counted(path, None, encoding)[0] == [0, 0, 0, 2, 0]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@every_packing
def test_compressed_files_may_have_any_encoding(suffix: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(PACKED[suffix]("town,age\nZürich,1\n".encode(encoding)))
    assert counted(path, None, encoding)[0] == [1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("encoding", "hint"),
    [
        ("latin1x", "did you mean 'latin-1'"),
        ("utf-61", "did you mean 'utf-16'|did you mean 'utf-8'"),
        ("windows-1525", "did you mean 'windows-1252'"),
        ("cp500", "did you mean"),  # in which a line feed is another byte
        ("rot13", "known: 'utf-8', 'latin-1', 'windows-1252', 'utf-16'"),
        ("base64", "known: "),
        ("utf-7", "did you mean 'utf-8'"),
        ("", "known: "),
        ("nul\0", "known: "),
        (7, "known: "),
    ],
)
def test_an_unknown_encoding_is_refused_with_the_nearest(encoding: Any, hint: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    with pytest.raises(DataError, match=r"encoding=.*: is not an encoding that text files are read in; (" + hint + ")"):
        open_source(tmp_path / "a.csv", None, encoding)


def test_an_encoding_goes_with_text_files_only(tmp_path: Path) -> None:
    for data in (pa.table({"town": ["x"]}), CsvFile):
        with pytest.raises(DataError, match="encoding='latin-1': goes with the path of a text file"):
            open_source(data, None, "latin-1")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="encoding='latin-1': goes with the path of a text file, not of Parquet"):
        open_source(tmp_path / "a.parquet", None, "latin-1")
