"""A person counts with as many records as the unit allows, chosen by looking at that person's records alone."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from hdmm.data import CsvFile, count
from hdmm.data.people import salt
from hdmm.errors import DataError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

SCHEMA = Schema(sex=["F", "M"], age=range(5))
TABLES = [(), ("sex",), ("sex", "age")]
Record = tuple[str, str, str]


def counted(path: Path, lines: list[bytes], rows: int, id: str = "who", **options) -> list[list[int]]:
    path.write_bytes(b"who,sex,age,note\n" + b"".join(line + b"\n" for line in lines))
    source = CsvFile(path, **options)
    return [table.tolist() for table in count(source, SCHEMA, TABLES, unit=Unit(rows, id=id))]


def lines_of(records: list[Record]) -> list[bytes]:
    return [",".join((*record, "x")).encode() for record in records]


def oracle(records: list[Record], rows: int) -> list[list[int]]:
    """The rule, written out for one person after another."""
    people: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for who, sex, age in records:
        if who and sex in "FM" and age in "01234":
            people[who].append(("FM".index(sex), int(age)))
    kept: Counter[tuple[int, int]] = Counter()
    for who, own in people.items():
        key = sha256(f"{salt()}{who}".encode()).hexdigest()[:32]
        keyed = []
        seen: Counter[tuple[int, int]] = Counter()
        for cell in own:
            seen[cell] += 1
            keyed.append((sha256(f"{key},{cell[0]},{cell[1]},{seen[cell]}".encode()).hexdigest()[:32], cell))
        kept.update(cell for _, cell in sorted(keyed)[:rows])
    table = np.zeros((2, 5), int)
    for cell, times in kept.items():
        table[cell] = times
    return [[int(table.sum())], table.sum(axis=1).tolist(), table.ravel().tolist()]


def some(seed: int, count: int = 400) -> list[Record]:
    rng = random.Random(seed)
    people = [f"p{n}" for n in range(60)] + ["Åse", "p 1", "", "NULL"]
    weights = [1 / (n + 1) for n in range(len(people))]
    return [
        (rng.choices(people, weights)[0], rng.choice(["F", "M", "F", "X"]), str(rng.randrange(6))) for _ in range(count)
    ]


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_counts_are_those_of_the_rule_written_out(tmp_path, seed, rows):
    records = some(seed)
    assert counted(tmp_path / "a.csv", lines_of(records), rows) == oracle(records, rows)


def test_without_a_column_every_record_counts(tmp_path):
    records = [record for record in some(0) if record[0]]
    assert counted(tmp_path / "a.csv", lines_of(records), 10**6) == oracle(records, 10**6)


def test_the_order_of_the_records_does_not_matter(tmp_path):
    records = some(2)
    expected = counted(tmp_path / "a.csv", lines_of(records), 2)
    for seed in range(3):
        random.Random(seed).shuffle(records)
        assert counted(tmp_path / "a.csv", lines_of(records), 2, chunk_size=256) == expected


def test_a_person_changes_the_counts_by_no_more_than_its_rows(tmp_path):
    records = some(3)
    everyone = np.array(counted(tmp_path / "a.csv", lines_of(records), 3)[2])
    for who in ("p0", "p1", "p7", "p30"):
        others = [record for record in records if record[0] != who]
        without = np.array(counted(tmp_path / "a.csv", lines_of(others), 3)[2])
        own = [record for record in records if record[0] == who]
        assert (everyone - without).tolist() == oracle(own, 3)[2]
        assert abs(everyone - without).sum() <= 3


def test_people_are_told_apart_by_the_text_of_their_identifiers(tmp_path):
    lines = [b"7,F,1,", b' "7" ,F,1,', b"07,F,1,", b"7.0,F,1,", b"7 ,F,1,", b'"7""",F,1,']
    assert counted(tmp_path / "a.csv", lines, 1)[0] == [4], "7, 07, 7.0 and 7 with a quote"


def test_records_without_an_identifier_are_nobodys(tmp_path):
    lines = [b",F,1,", b'"",F,1,', b"   ,F,1,", b"\xff\xfe,F,1,", b"a" * 1001 + b",F,1,", b"a,F,1,", b"F,1,"]
    assert counted(tmp_path / "a.csv", lines, 5)[0] == [1]


def test_long_identifiers_and_odd_bytes_are_told_apart(tmp_path):
    lines = [b"a" * 999 + b"b,F,1,", b"a" * 999 + b"c,F,1,", b"x\x00y,F,1,", b"x\x00z,F,1,", b"x,F,1,"]
    assert counted(tmp_path / "a.csv", lines, 1)[0] == [5]


def test_nobody_at_all(tmp_path):
    assert counted(tmp_path / "a.csv", [], 2) == [[0], [0, 0], [0] * 10]


def test_a_missing_or_repeated_column_is_refused(tmp_path):
    with pytest.raises(DataError, match="no column for 'patient'"):
        counted(tmp_path / "a.csv", [], 2, id="patient")
    (tmp_path / "b.csv").write_bytes(b"who,sex,age,who\n")
    with pytest.raises(DataError, match="more than one column for 'who'"):
        count(CsvFile(tmp_path / "b.csv"), SCHEMA, TABLES, unit=Unit(2, id="who"))


def test_the_choice_does_not_favour_early_records(tmp_path):
    """Of 2,000 people with one record in each of ten cells, every cell keeps about a tenth: a normal bound of 1e-6."""
    lines = [f"p{n},{sex},{age},".encode() for n in range(2000) for sex in "FM" for age in range(5)]
    cells = np.array(counted(tmp_path / "a.csv", lines, 1)[2])
    assert cells.sum() == 2000
    assert abs(cells - 200).max() < 5.4 * (2000 * 0.1 * 0.9) ** 0.5
