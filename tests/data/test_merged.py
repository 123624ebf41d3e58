"""A merged attribute is read from a column for each part, exactly as if the parts were attributes of their own."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from hdmm.data import CsvFile, count
from hdmm.errors import DataError
from hdmm.schema import Bins, Boolean, Listed, Merged, Schema

RACES = ["white", "black", "indian", "asian", "islander", "other race"]
FLAGS = Schema(sex=["F", "M"], race=Merged({race: Boolean() for race in RACES}))
APART = Schema({"sex": ["F", "M"], **{race: Boolean() for race in RACES}})
HEADER = ",".join(["sex", *RACES]).encode()
GOOD = [b"F,1,0,0,0,0,0", b"M,true,F,no,YES,0,f", b"F,0,0,0,0,0,0", b"M,1,1,1,1,1,1", b'"M", "1" ,0,0,0,0,\tt']


@pytest.fixture
def counts(tmp_path: Path):
    def of(schema: Schema, header: bytes, lines: list[bytes], *tables: tuple[str, ...]) -> list[list[int]]:
        path = tmp_path / "records.csv"
        path.write_bytes(b"".join(line + b"\n" for line in [header, *lines]))
        return [table.tolist() for table in count(CsvFile(path), schema, tables)]

    return of


def test_six_flags_are_counted_as_one_attribute_of_64_cells(counts) -> None:
    (table,) = counts(FLAGS, HEADER, GOOD, ("race",))
    labels = FLAGS["race"].labels()
    found = {labels[cell]: records for cell, records in enumerate(table) if records}
    assert (len(table), found) == (
        64,
        {"white": 1, "white+asian": 1, "none": 1, "+".join(RACES): 1, "white+other race": 1},
    )


BAD_FLAGS = [b"", b" ", b"2", b"-1", b"maybe", b"tr\0ue", b"\xff", b"1.0", b'"', b'1""', b"white", b"none", b"1" * 100]


@pytest.mark.parametrize("text", BAD_FLAGS)
@pytest.mark.parametrize("place", range(6))
def test_a_flag_that_is_neither_true_nor_false_drops_its_record_only(counts, place: int, text: bytes) -> None:
    flags = [b"0"] * 6
    flags[place] = text
    bad = b",".join([b"F", *flags])
    assert counts(FLAGS, HEADER, [GOOD[0], bad, *GOOD[1:]], (), ("race",), ("sex", "race")) == counts(
        FLAGS, HEADER, GOOD, (), ("race",), ("sex", "race")
    )


def test_merged_counts_are_those_of_the_parts_as_attributes(counts) -> None:
    choose = random.Random(1).choices
    flags = [b"1", b"0", b"no", b"T", b"?"]
    lines = [b",".join(choose([b"F", b"M", b"X"]) + choose(flags, [5, 5, 5, 5, 1], k=6)) for _ in range(5000)]
    merged = counts(FLAGS, HEADER, lines, ("race",), ("sex", "race"), ("race", "sex"))
    assert merged == counts(APART, HEADER, lines, tuple(RACES), ("sex", *RACES), (*RACES, "sex"))


def test_columns_may_stand_anywhere_and_a_column_named_like_the_whole_is_ignored(counts) -> None:
    schema = Schema(person=Merged(sex=["F", "M"], age=range(3)))
    assert counts(schema, b"age,person,sex", [b"2,nonsense,F", b"0,,M"], ("person",)) == [[0, 0, 1, 1, 0, 0]]


def test_each_part_has_its_own_cells_for_other_and_missing_values(counts) -> None:
    schema = Schema(x=Merged(a=Listed(["u"], other=True, missing=True), b=Bins([0, 1], missing=True)))
    lines = [b"u,0.5", b"v,0.5", b",0.5", b"u,", b",", b"v,nan", b"u,7"]
    labels = schema["x"].labels()
    (table,) = counts(schema, b"a,b", lines, ("x",))
    found = [labels[cell] for cell, records in enumerate(table) for _ in range(records)]
    assert found == ["u, [0, 1)", "u, missing", "other, [0, 1)", "missing, [0, 1)", "missing, missing"]


@pytest.mark.parametrize("sizes", [(11, 11), (100, 127), (128, 128), (127, 129, 2), (200, 200), (300, 300)])
def test_the_last_combination_of_parts_of_any_size_is_counted(counts, sizes: tuple[int, ...]) -> None:
    names = [f"part {place}" for place in range(len(sizes))]
    schema = Schema(x=Merged({name: range(size) for name, size in zip(names, sizes, strict=True)}))
    last = b",".join(b"%d" % (size - 1) for size in sizes)
    beyond = b",".join(b"%d" % size for size in sizes)
    (table,) = counts(schema, ",".join(names).encode(), [last, beyond], ("x",))
    assert np.flatnonzero(table).tolist() == [len(table) - 1]


def test_every_combination_is_counted_in_its_cell(counts) -> None:
    schema = Schema(x=Merged(a=range(3), b=["u", "v"], c=range(4)))
    lines = [b"%d,%s,%d" % cell for cell in product(range(3), [b"u", b"v"], range(4))]
    assert counts(schema, b"a,b,c", lines[5:], ("x",)) == [[0] * 5 + [1] * 19]


def refusal(path: Path, header: bytes) -> str:
    path.write_bytes(header + b"\nZx9Qk\n")
    with pytest.raises(DataError) as caught:
        CsvFile(path).columns_check(FLAGS)
    assert "Zx9Qk" not in str(caught.value)
    return str(caught.value)


def test_a_missing_column_is_named_with_the_attribute_that_it_is_a_part_of(tmp_path: Path) -> None:
    message = refusal(tmp_path / "a.csv", b"white,black,asian,Zx9Qk")
    parts = "'indian' (a part of 'race'), 'islander' (a part of 'race'), 'other race' (a part of 'race')"
    assert f"there is no column for 'sex', {parts}; the first line must be a header" in message


def test_a_column_for_the_whole_does_not_stand_for_its_parts(tmp_path: Path) -> None:
    assert "there is no column for 'white' (a part of 'race')" in refusal(tmp_path / "a.csv", b"sex,race")


def test_a_repeated_column_is_named_with_the_attribute_that_it_is_a_part_of(tmp_path: Path) -> None:
    message = refusal(tmp_path / "a.csv", HEADER + b",asian,Zx9Qk")
    assert "there is more than one column for 'asian' (a part of 'race'); keep one of each name" in message
