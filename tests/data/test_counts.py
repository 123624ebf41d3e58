"""Counts are exact, a bad line costs only itself, and no message shows what a file holds."""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from hdmm.data import CAP, CsvFile, count, open_source
from hdmm.data.lines import LONGEST_LINE
from hdmm.errors import DataError, FaultError
from hdmm.schema import Bins, Boolean, Listed, Schema

SCHEMA = Schema(
    sex=["F", "M"],
    age=range(115),
    hispanic=Boolean(),
    state=Listed(["CA", "NY"], other=True),
    income=Bins([0, 100, 500]),
)
SEX = Schema(sex=["F", "M"])
SEX_AND_AGE = Schema(sex=["F", "M"], age=range(115))
HEADER = b"sex,age,hispanic,state,income\n"
GOOD = [b"F,30,true,CA,99.5", b"M,7,no,NY,100", b"F,30,1,TX,0", b"M,114,f,CA,499.99"]
TABLES = [(), ("sex",), ("age",), ("hispanic",), ("state",), ("income",), ("sex", "age"), ("state", "sex")]


@pytest.fixture
def counts(tmp_path: Path):
    def of(lines: list[bytes], tables=TABLES, **options) -> list[list[int]]:
        path = tmp_path / "records.csv"
        path.write_bytes(HEADER + b"".join(line + b"\n" for line in lines))
        return [table.tolist() for table in count(CsvFile(path), SCHEMA, tables, **options)]

    return of


def test_cells_are_in_row_major_order_of_the_attributes_as_given(counts) -> None:
    assert counts(GOOD, [("sex", "state"), ("state", "sex")]) == [[1, 0, 1, 1, 1, 0], [1, 1, 0, 1, 1, 0]]


def test_the_empty_table_counts_the_records(counts) -> None:
    assert counts([*GOOD, b"too,short"], [()]) == [[4]]


def test_counts_have_64_bits(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"age\n5\n")
    (table,) = count(open_source(str(tmp_path / "a.csv")), Schema(age=range(115)), [("age",)])
    assert (table.dtype, table.shape) == (np.dtype(np.int64), (115,))


def test_a_table_much_larger_than_the_file_is_counted(counts) -> None:
    (table,) = counts(GOOD, [("age", "state", "sex", "income", "hispanic")])
    assert (len(table), sum(table)) == (115 * 3 * 2 * 2 * 2, 4)


@pytest.mark.parametrize("size", [127, 128, 129, 32768, 32769])
def test_the_last_cell_of_a_domain_of_any_size_is_counted(tmp_path: Path, size: int) -> None:
    (tmp_path / "a.csv").write_bytes(b"number\n%d\n%d\n" % (size - 1, size))
    (table,) = count(CsvFile(tmp_path / "a.csv"), Schema(number=range(size)), [("number",)])
    assert np.flatnonzero(table).tolist() == [size - 1]


@pytest.mark.parametrize(
    "line", [b"F,30", b"", b"F,30,true,CA,99.5,1", b'"F,30,true,CA,99.5', b'F,"30,true,CA,99.5', b"\r"]
)
@pytest.mark.parametrize("place", range(len(GOOD) + 1))
def test_a_line_that_is_no_record_changes_nothing(counts, line: bytes, place: int) -> None:
    assert counts([*GOOD[:place], line, *GOOD[place:]]) == counts(GOOD)


BAD_FIELDS = {
    "unknown category": (0, b"X"),
    "category in another case": (0, b"f"),
    "category that is not UTF-8": (0, b"\xff\xfe"),
    "category with a NUL byte": (0, b"F\0"),
    "category with a broken quote": (0, b'F""'),
    "blank category": (0, b"  "),
    "number out of range": (1, b"115"),
    "negative number": (1, b"-1"),
    "number beyond 64 bits": (1, b"18446744073709551646"),
    "text in a numeric column": (1, b"thirty"),
    "decimal in an integer column": (1, b"30.0"),
    "NUL byte after a number": (1, b"30\0"),
    "blank number": (1, b""),
    "NaN in an integer column": (1, b"NaN"),
    "neither true nor false": (2, b"maybe"),
    "NaN": (4, b"nan"),
    "infinity": (4, b"inf"),
    "negative infinity": (4, b"-Infinity"),
    "beyond the last edge": (4, b"500"),
    "a field of a million bytes": (4, b"1" * 1_000_000),
}


@pytest.mark.parametrize(("place", "text"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_a_bad_field_drops_its_record_from_every_table_and_no_other_record(counts, place: int, text: bytes) -> None:
    fields = GOOD[0].split(b",")
    fields[place] = text
    assert counts([b",".join(fields), *GOOD[1:]]) == counts(GOOD[1:])


@pytest.mark.parametrize("text", [b"TX", b"\xff", b"\0", b"", b"nan"])
def test_a_value_that_is_not_listed_counts_as_other_where_that_is_declared(counts, text: bytes) -> None:
    assert counts([b"F,30,true," + text + b",1"], [("state",)]) == [[0, 0, 1]]


def test_the_order_of_the_records_does_not_matter(counts) -> None:
    lines = [*GOOD * 5, b"X,1,true,CA,1", b"short", b'"']
    shuffled = random.Random(1).sample(lines, len(lines))
    assert shuffled != lines
    assert counts(shuffled) == counts(lines)


def test_repeated_records_are_all_counted(counts) -> None:
    assert counts(GOOD[:1] * 1000, [("sex",)]) == [[1000, 0]]


def test_no_records_are_no_error(counts) -> None:
    assert counts([], [(), ("sex",)]) == [[0], [0, 0]]


def test_a_header_without_a_line_break_is_a_file_without_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex")
    assert count(CsvFile(tmp_path / "a.csv"), SEX, [("sex",)])[0].tolist() == [0, 0]


def test_counts_stop_at_the_cap(counts) -> None:
    assert counts([b"F,1,t,CA,1"] * 5 + [b"M,1,t,CA,1"] * 2, [("sex",), ()], cap=3) == [[3, 2], [3]]


def test_the_cap_is_public_and_leaves_room_for_exact_sums() -> None:
    assert CAP == 2**40


def test_chunks_read_by_several_threads_add_up(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"age,sex\n" + b"".join(b"%d,%s\n" % (n % 115, b"FM"[n % 2 :][:1]) for n in range(20_000)))
    (table,) = count(CsvFile(path, chunk_size=1000), SEX_AND_AGE, [("sex", "age")])
    assert table.tolist() == np.bincount([n % 2 * 115 + n % 115 for n in range(20_000)]).tolist()


def test_progress_grows_to_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"sex\n" + b"F\n" * 1000)
    seen: list[float] = []
    count(CsvFile(path, chunk_size=100), SEX, [("sex",)], on_progress=seen.append)
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_a_fault_in_a_thread_is_raised(counts, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Listed, "encode", fail)
    with pytest.raises(FaultError, match=r"could not be counted \(MemoryError\)") as caught:
        counts(GOOD)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["a.tsv", "a.TAB"])
def test_the_ending_of_the_path_chooses_the_delimiter(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"sex\tage\nF\t1\n")
    assert count(open_source(tmp_path / name), SEX_AND_AGE, [("sex",)])[0].tolist() == [1, 0]


def test_a_delimiter_that_is_given_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex;age\nF;1\n")
    assert count(CsvFile(tmp_path / "a.csv", ";"), SEX_AND_AGE, [("sex",)])[0].tolist() == [1, 0]


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "é"])
def test_a_delimiter_that_cannot_separate_is_refused(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex\n")
    with pytest.raises(DataError, match="expected one ASCII character"):
        CsvFile(tmp_path / "a.csv", delimiter)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.csv: there is no such file; check the path"):
        open_source(tmp_path / "nowhere.csv")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="this is a directory; give the path of a file, or a pattern"):
        open_source(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_because_it_cannot_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="this is not a regular file"):
        open_source(tmp_path / "pipe")


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.csv").write_bytes(b"sex\n")
    source = CsvFile(tmp_path / "a.csv")
    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(FaultError, match=r"a\.csv: cannot be read: Permission denied"):
        count(source, SCHEMA, [("sex",)])


def test_something_that_is_no_path_is_refused() -> None:
    with pytest.raises(DataError, match="dict is not supported; give the path of CSV or Parquet files"):
        open_source({"sex": ["F"]})


def test_a_source_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex\n")
    source = CsvFile(tmp_path / "a.csv")
    assert open_source(source) is source


SECRETS = ["Zx9Qk", "Wv4Jp", "Hb3Tn"]


def refusal(path: Path, file: bytes) -> str:
    path.write_bytes(file)
    with pytest.raises(DataError) as caught:
        CsvFile(path).columns_check(Schema({name: SCHEMA[name] for name in ("sex", "age", "state")}))
    assert not any(text in str(caught.value) for text in SECRETS)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (b"", "the file is empty"),
        (b"\n", "its first line is empty"),
        (b"\r\nF,1\n", "its first line is empty"),
        (b"\xef\xbb\xbf", "the first line must be a header"),
    ],
)
def test_a_file_without_a_first_line_is_refused(tmp_path: Path, file: bytes, why: str) -> None:
    assert f"there is no header; {why}" in refusal(tmp_path / "a.csv", file)


def test_a_missing_column_is_named_without_showing_the_file(tmp_path: Path) -> None:
    message = refusal(tmp_path / "a.csv", b"Zx9Qk,sex,Wv4Jp\n1,F,Hb3Tn\n")
    assert "there is no column for 'age', 'state'; the first line must be a header" in message


def test_a_header_that_is_not_utf8_matches_nothing(tmp_path: Path) -> None:
    assert "there is no column for 'age'" in refusal(tmp_path / "a.csv", b"sex,\xe4ge,state\n")


def test_a_repeated_column_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path / "a.csv", b'sex,age,state,"age" ,Zx9Qk\n')
    assert "there is more than one column for 'age'; keep one of each name" in message


def test_a_repeated_column_that_is_not_needed_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex,age,age\nF,1,2\n")
    assert count(CsvFile(tmp_path / "a.csv"), SEX, [("sex",)])[0].tolist() == [1, 0]


@pytest.mark.parametrize("chunk_size", [1000, 1 << 20, 8 << 20])
@pytest.mark.parametrize("size", [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 3 * LONGEST_LINE])
def test_a_line_of_more_than_a_mebibyte_is_no_record(tmp_path: Path, size: int, chunk_size: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"note,sex\n,F\n" + b"x" * (size - 2) + b",M\n,F\n")
    (table,) = count(CsvFile(path, chunk_size=chunk_size), SEX, [("sex",)])
    assert table.tolist() == [2, int(size <= LONGEST_LINE)]


def test_a_long_line_needs_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"sex\n" + b'","' * (20 << 20) + b"\nF\n")
    tracemalloc.start()
    (table,) = count(CsvFile(path, chunk_size=1 << 20), SEX, [("sex",)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.tolist() == [1, 0]
    assert peak < 20 << 20


def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be a file: File name too long"):
        open_source(tmp_path / ("n" * 300))


def test_a_delimiter_is_for_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex;age\nF;1\n")
    source = open_source(tmp_path / "a.csv", ";")
    assert count(source, SEX_AND_AGE, [("sex",)])[0].tolist() == [1, 0]
    with pytest.raises(DataError, match="goes with the path of a text file"):
        open_source(source, ";")
