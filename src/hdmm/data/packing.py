"""Records of an engine as few integers: the code of each attribute is a field of bits in one of them.

An engine then stores and reads a column or two, not one for each attribute, and a table of counts groups by the bits of
its attributes alone (`benchmarks/pushdown.py` measures it).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add, or_
from typing import Any, final

from hdmm.data.engine import Engine
from hdmm.data.tally import Records
from hdmm.schema import Schema

_LONG, _SHORT = 62, 31
"""Bits of the integers: the short ones are for those that need no more."""


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


@final
class Packing:
    """A field for every attribute of a schema, one after the other, in the integers w0, w1, …"""

    def __init__(self, schema: Schema) -> None:
        self.fields: dict[str, Field] = {}
        word = shift = 0
        for name, size in zip(schema.names, schema.sizes, strict=True):
            bits = (size - 1).bit_length()
            if shift + bits > _LONG:
                word, shift = word + 1, 0
            self.fields[name] = Field(word, shift, bits)
            shift += bits
        ends = {field.word: field.shift + field.bits for field in self.fields.values()}
        self._types = {word: "int32" if end <= _SHORT else "int64" for word, end in ends.items()}

    def packed(self, records: Any, columns: Mapping[str, str]) -> Any:
        """The query for the integers, from records with a column of codes for every attribute."""
        words = {}
        for word, type in self._types.items():
            own = {name: field for name, field in self.fields.items() if field.word == word}
            parts = [records[columns[name]].cast("int64") * (1 << field.shift) for name, field in own.items()]
            words[f"w{word}"] = reduce(add, parts).cast(type)
        return records.select(words)

    def counted(self, engine: Engine, records: Any, names: Collection[str]) -> Iterator[Records]:
        """Every combination of some attributes' codes that there is among packed records, and how many times."""
        import ibis

        own = {name: field for name, field in self.fields.items() if name in names}
        keys = {}
        for word in {field.word for field in own.values()}:
            mask = reduce(or_, (field.mask for field in own.values() if field.word == word))
            keys[f"k{word}"] = (records[f"w{word}"] & ibis.literal(mask, self._types[word])).cast(self._types[word])
        for found, times in engine.groups(records, keys):
            codes = {name: (found[f"k{field.word}"] & field.mask) >> field.shift for name, field in own.items()}
            yield Records(len(times), codes, times=times)
