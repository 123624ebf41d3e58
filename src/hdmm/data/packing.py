"""Records of an engine packed into few integers: the code of each attribute is a field of bits in one of them.

So an engine stores and reads a column or two, not one for each attribute, and a table of counts groups by the bits of
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

_LONG_BITS = 62
"""Bits of an integer that hold codes."""
_SHORT_BITS = 31
"""Integers that need no more than these bits are stored in 32."""


@final
@dataclass(frozen=True)
class Field:
    """The place of an attribute's code: its integer, and the bits in it."""

    word: int
    shift: int
    bits: int

    @property
    def mask(self) -> int:
        """The bits, as ones."""
        return ((1 << self.bits) - 1) << self.shift


@final
class Packing:
    """A field for every attribute of a schema, one after the other, in the integers w0, w1, …; there is at least w0."""

    def __init__(self, schema: Schema) -> None:
        self.fields: dict[str, Field] = {}
        word = shift = 0
        for name, size in zip(schema.names, schema.sizes, strict=True):
            bits = (size - 1).bit_length()
            if shift + bits > _LONG_BITS:
                word, shift = word + 1, 0
            self.fields[name] = Field(word, shift, bits)
            shift += bits
        ends = {field.word: field.shift + field.bits for field in self.fields.values()}
        self._types = {word: "int32" if end <= _SHORT_BITS else "int64" for word, end in (ends or {0: 0}).items()}

    def packed(self, records: Any, columns: Mapping[str, str]) -> Any:
        """The query for the integers, from records with a column of codes for every attribute."""
        import ibis

        words = {}
        for word, type in self._types.items():
            fields = {name: field for name, field in self.fields.items() if field.word == word}
            parts = [records[columns[name]].cast("int64") * (1 << field.shift) for name, field in fields.items()]
            words[f"w{word}"] = reduce(add, parts, ibis.literal(0, "int64")).cast(type)
        return records.select(words)

    def counted(self, engine: Engine, records: Any, names: Collection[str]) -> Iterator[Records]:
        """The combinations of some attributes' codes among packed records, and how often each occurs."""
        import ibis

        fields = {name: field for name, field in self.fields.items() if name in names}
        keys = {}
        for word in {field.word for field in fields.values()}:
            mask = reduce(or_, (field.mask for field in fields.values() if field.word == word))
            keys[f"k{word}"] = (records[f"w{word}"] & ibis.literal(mask, self._types[word])).cast(self._types[word])
        for words, times in engine.groups(records, keys):
            codes = {name: (words[f"k{field.word}"] & field.mask) >> field.shift for name, field in fields.items()}
            yield Records(len(times), codes, times=times)
