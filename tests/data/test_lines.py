"""Lines are read by themselves: the vectorised reader agrees with the rules written out byte by byte."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hdmm.data import CsvFile, count
from hdmm.data.lines import header, records, separators, unquote
from hdmm.schema import Integers, Listed, Schema

LONG = "a label of more than thirty-five bytes, with a comma"
SCHEMA = Schema(
    a=Listed(["F", "M", "seven b", LONG]), b=Integers(0, 9), c=Listed(["x", 'q"q'], other=True, missing=True)
)
TABLES = [(), ("a",), ("b",), ("c",), ("b", "a"), ("a", "b", "c")]


def fields_by_rule(line: bytes, delimiter: bytes) -> list[bytes]:
    """The fields of a line, one byte at a time."""
    fields, inside = [b""], False
    for position in range(len(line)):
        byte = line[position : position + 1]
        inside ^= byte == b'"'
        if byte == delimiter and not inside:
            fields.append(b"")
        else:
            fields[-1] += byte
    return [text_by_rule(field) for field in fields]


def text_by_rule(field: bytes) -> bytes:
    """The text of a field: trimmed, and without quotes around it."""
    field = field.strip(b" \t\r")
    if len(field) >= 2 and field[:1] == field[-1:] == b'"':
        field = field[1:-1].replace(b'""', b'"').strip(b" \t\r")
    return field


def counts_by_rule(file: bytes, delimiter: bytes, schema: Schema, table: tuple[str, ...]) -> list[int]:
    """The counts of a table, one line at a time."""
    first, *lines = file.split(b"\n")
    columns = fields_by_rule(first.removeprefix(b"\xef\xbb\xbf"), delimiter)
    cells: Counter[tuple[int, ...]] = Counter()
    for line in lines:
        fields = fields_by_rule(line.removesuffix(b"\r"), delimiter)
        if line.removesuffix(b"\r") and len(fields) == len(columns):
            texts = {name: fields[columns.index(name.encode())] for name in schema}
            codes = {name: int(schema[name].encode([text])[0]) for name, text in texts.items()}
            if min(codes.values()) >= 0:
                cells[tuple(codes[name] for name in table)] += 1
    return [cells[cell] for cell in np.ndindex(*(schema[name].size for name in table))]


PIECE = st.sampled_from([b'"', b'""', b",", b"\t", b" ", b"\r", b"\0", b"\xff", b"F", b"7", b"x"])
GOOD = st.sampled_from([b"F", b"M", b"seven b", LONG.encode(), b"0", b"7", b"9", b"x", b"other", b'q"q', b""])
QUOTED = GOOD.map(lambda text: b'"' + text.replace(b'"', b'""') + b'"')
BLANK = st.sampled_from([b"", b"", b" ", b"\t", b" \r "])
USUAL = st.tuples(BLANK, st.one_of(GOOD, QUOTED), BLANK).map(b"".join)
FIELD = st.one_of(USUAL, USUAL, st.lists(PIECE, max_size=40).map(b"".join), st.binary(max_size=40))


@st.composite
def files(draw: st.DrawFn, header_line: bytes, delimiter: bytes) -> bytes:
    """A file with the given header, most of whose lines have as many fields as it."""
    width = len(fields_by_rule(header_line, delimiter))
    sizes = st.one_of(st.just(width), st.just(width), st.integers(0, width + 2))
    widths = draw(st.lists(sizes, max_size=8))
    lines = [delimiter.join(draw(st.lists(FIELD, min_size=size, max_size=size))) for size in widths]
    ending = draw(st.sampled_from([b"\n", b"\r\n"]))
    return ending.join([header_line, *lines]) + draw(st.sampled_from([b"", ending]))


def agree(path: Path, delimiter: bytes, file: bytes, chunk_size: int, schema: Schema = SCHEMA) -> None:
    path.write_bytes(file)
    tables = [table for table in TABLES if set(table) <= set(schema)]
    counts = count(CsvFile(path, delimiter.decode(), chunk_size=chunk_size), schema, tables)
    assert [list(table) for table in counts] == [counts_by_rule(file, delimiter, schema, table) for table in tables]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines") / "records.csv"


@settings(max_examples=300)
@given(file=files(b'x,b,"a" ,c', b","), chunk_size=st.one_of(st.integers(1, 80), st.just(1 << 20)))
@example(file=b'x,b,a,c\n"\n,7,F,x\n', chunk_size=3)
@example(file=b"x,b,a,c\n,7,F,x\r\n\r\n,7,F,\0\n,7,F,", chunk_size=1 << 20)
def test_every_file_is_counted_as_the_rules_say(path: Path, file: bytes, chunk_size: int) -> None:
    agree(path, b",", file, chunk_size)


@settings(max_examples=100)
@given(file=files(b"\xef\xbb\xbfc\tb\ta", b"\t"), chunk_size=st.integers(1, 80))
def test_tabs_separate_as_commas_do(path: Path, file: bytes, chunk_size: int) -> None:
    agree(path, b"\t", file, chunk_size)


@settings(max_examples=200)
@given(file=files(b"c", b","), chunk_size=st.integers(1, 80))
@example(file=b"c\n\n\r\n \n\r\r\n\0\n\xff\nx", chunk_size=4)
def test_only_an_empty_line_of_a_single_column_holds_no_record(path: Path, file: bytes, chunk_size: int) -> None:
    agree(path, b",", file, chunk_size, Schema(c=SCHEMA["c"]))


def test_a_delimiter_inside_quotes_does_not_separate() -> None:
    assert header(b'"a,b",c', ord(",")) == [b"a,b", b"c"]


def test_a_quote_left_open_ends_with_its_line() -> None:
    block = np.frombuffer(b'\n"a,b\nc,d\n', np.uint8)
    assert separators(block, ord(",")).tolist() == [0, 5, 7, 9]


def test_only_lines_of_the_right_width_are_records() -> None:
    block = np.frombuffer(b"\na,b\nc\n\nd,e,f\ng,h\n", np.uint8)
    marks = separators(block, ord(","))
    assert marks[records(block, marks, 2)].tolist() == [0, 13]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (b" a ", b"a"),
        (b'"a"\r', b"a"),
        (b'" a\t"', b"a"),
        (b'"say ""a"""', b'say "a"'),
        (b'""', b""),
        (b'"', b'"'),
        (b'"a', b'"a'),
        (b'a"', b'a"'),
        (b'a "b" c', b'a "b" c'),
    ],
)
def test_blanks_and_quotes_around_a_field_are_removed(field: bytes, text: bytes) -> None:
    assert unquote(field) == text


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    assert header(b"\xef\xbb\xbfsex,age\r\n", ord(",")) == [b"sex", b"age"]
