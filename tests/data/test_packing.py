"""Codes as fields of bits: in one integer or in several, every table is that of the records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hdmm.data import count, open_source
from hdmm.data.packing import Packing
from hdmm.schema import Schema

SIZES = {
    "one short integer": [2, 100, 50, 7],
    "one full short integer": [2**16, 2**15],
    "one long integer": [2**16, 2**16, 2],
    "one full long integer": [2**20, 2**20, 2**20, 4],
    "two integers": [2**20, 2**20, 2**20, 5, 3],
    "many integers": [10] * 100,
    "nothing to tell": [1, 1],
    "among others nothing to tell": [1, 3, 1, 2**31 - 1],
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_fields_hold_their_codes_and_do_not_overlap(sizes: list[int]) -> None:
    schema = Schema({f"a{at}": range(size) for at, size in enumerate(sizes)})
    seen: dict[int, int] = {}
    for field, size in zip(Packing(schema).fields.values(), sizes, strict=True):
        assert (size - 1) << field.shift <= field.mask < 1 << 62
        assert not seen.get(field.word, 0) & field.mask
        seen[field.word] = seen.get(field.word, 0) | field.mask


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_tables_are_those_of_the_records(sizes: list[int]) -> None:
    rng = np.random.default_rng(2)
    names = [f"a{at}" for at in range(len(sizes))]
    schema = Schema({name: range(size) for name, size in zip(names, sizes, strict=True)})
    columns = {name: rng.integers(max(0, size - 3), size, 500) for name, size in zip(names, sizes, strict=True)}
    small = [name for name in names if schema[name].size <= 2**16]
    pairs = [pair for pair in ((small[0], name) for name in small[1:]) if schema[pair[1]].size <= 10]
    tables: list[tuple[str, ...]] = [(), *((name,) for name in small[:3]), *pairs[-2:]]
    source = open_source(pa.table(columns))
    source.columns_check(schema)
    for table, found in zip(tables, count(source, schema, tables), strict=True):
        cells = np.zeros(500, np.int64)
        for name in table:
            cells = cells * schema[name].size + columns[name]
        assert found.tolist() == np.bincount(cells, minlength=len(found)).tolist()
