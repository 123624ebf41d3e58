"""Records of an engine as few integers: the code of each attribute is a field of bits in one of them.

An engine then stores and reads a column or two, not one for each attribute, and a table of counts groups by the bits of
its attributes alone. DuckDB takes half of the time and a quarter of the memory for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add, or_
from typing import Any, final

from hdmm.data.engine import Engine
from hdmm.data.tally import Records
from hdmm.schema import Schema

_LONG, _SHORT = 62, 31
"""Bits of the integers: the short ones are for schemas that need no more."""


@final
@dataclass(frozen=True)
class Field:
    """Where the code of an attribute is: in which integer, and in which of its bits."""

    word: int
    shift: int
    bits: int

    @property
    def mask(self) -> int:
        """The bits, as ones."""
        return ((1 << self.bits) - 1) << self.shift


def fields_of(schema: Schema) -> dict[str, Field]:
    """A field for every attribute, one after the other."""
    fields: dict[str, Field] = {}
    word = shift = 0
    for name, size in zip(schema.names, schema.sizes, strict=True):
        bits = (size - 1).bit_length()
        if shift + bits > _LONG:
            word, shift = word + 1, 0
        fields[name] = Field(word, shift, bits)
        shift += bits
    return fields


def packed(records: Any, columns: Mapping[str, str], fields: Mapping[str, Field]) -> Any:
    """The query for the integers w0, w1, …, from records with a column of codes for every attribute."""
    words = {}
    for word, own in _by_word(fields).items():
        parts = [records[columns[name]].cast("int64") * (1 << field.shift) for name, field in own.items()]
        words[f"w{word}"] = reduce(add, parts).cast(_type(own))
    return records.select(words)


def counted(engine: Engine, records: Any, fields: Mapping[str, Field], own: Mapping[str, Field]) -> Iterator[Records]:
    """Every combination of some attributes' codes that there is among packed records, and how many times."""
    import ibis

    keys = {}
    for word, some in _by_word(own).items():
        mask = reduce(or_, (field.mask for field in some.values()))
        type = _type(_by_word(fields)[word])
        keys[f"k{word}"] = (records[f"w{word}"] & ibis.literal(mask, type)).cast(type)
    for found, times in engine.groups(records, keys):
        codes = {name: (found[f"k{one.word}"] & one.mask) >> one.shift for name, one in own.items()}
        yield Records(len(times), codes, times=times)


def _by_word(fields: Mapping[str, Field]) -> dict[int, dict[str, Field]]:
    words: dict[int, dict[str, Field]] = {}
    for name, field in fields.items():
        words.setdefault(field.word, {})[name] = field
    return words


def _type(fields: Mapping[str, Field]) -> str:
    """The type of an integer with these fields."""
    return "int32" if max(field.shift + field.bits for field in fields.values()) <= _SHORT else "int64"
