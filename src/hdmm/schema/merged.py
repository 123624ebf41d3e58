"""Merged attributes: several columns read as one attribute, whose cells are all combinations of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import SchemaError, WorkloadError, nearest
from hdmm.schema.bins import Bins
from hdmm.schema.domain import COMPARE, OUTSIDE, Codes, Comparison, Domain, declared_once
from hdmm.schema.kinds import Boolean, Integers, Listed, named_domain
from hdmm.schema.levels import MAX_CELLS, Level, Named
from hdmm.text import count_text

_MAX_HINTED = 4096
"""Among more labels, the nearest one is not looked for."""


@final
@dataclass(frozen=True)
class Merged(Domain):
    """One attribute whose cells are all combinations of its parts; the last part changes first.

    >>> race = Merged(white=[False, True], black=[False, True])
    >>> race.labels()
    ['none', 'black', 'white', 'white+black']
    >>> Merged(sex=["F", "M"], age=range(2)).labels()
    ['F, 0', 'F, 1', 'M, 0', 'M, 1']

    Each part, and each level of a part, is a level of the merged attribute.

    Arguments:
        mapping: Parts by name, for names that are not identifiers.
        parts: Parts by name, each written like an attribute.
    """

    parts: Mapping[str, Domain]
    levels: _PartLevels = field(init=False, repr=False, compare=False)
    _flags: bool = field(init=False, repr=False, compare=False)

    def __init__(self, mapping: Mapping[str, object] | None = None, /, **parts: object) -> None:
        domains = {name: _part(name, part) for name, part in declared_once("part", mapping, parts).items()}
        if not domains:
            raise SchemaError("a merged attribute needs parts, for example Merged(white=[False, True])")
        cells = prod(part.size for part in domains.values())
        if cells > MAX_CELLS:
            raise SchemaError(
                f"merged: {count_text(cells)} combinations exceed the limit of {MAX_CELLS:,}; merge fewer parts"
            )
        flags = all(isinstance(part, Boolean) and part.size == 2 for part in domains.values())
        for name, part in domains.items():
            _check_labels(name, part, flags)
        self._set(parts=Named(domains), levels=_PartLevels(domains), _flags=flags)

    @property
    def declared(self) -> int:
        return prod(part.size for part in self.parts.values())

    @property
    def implied(self) -> tuple[str, ...]:
        return self.levels.implied

    def value(self, code: int) -> str:
        return self._joined(code, values=True)

    def label(self, code: int) -> str:
        return self._joined(code, values=False)

    def _joined(self, code: int, *, values: bool) -> str:
        digits: list[int] = []
        for part in reversed(list(self.parts.values())):
            code, digit = divmod(code, part.size)
            digits.insert(0, digit)
        if self._flags:
            return "+".join(name for name, digit in zip(self.parts, digits, strict=True) if digit) or "none"
        cells = zip(self.parts.values(), digits, strict=True)
        return ", ".join(_cell(part, digit, values=values) for part, digit in cells)

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        if operator not in ("=", "<>"):
            parts = ", ".join(repr(name) for name in self.parts)
            raise WorkloadError(f"'{operator}' does not order combinations; use = or <>, or compare one of {parts}")
        return COMPARE[operator](np.arange(self.declared), self.code(literal))

    def columns(self, name: str) -> Mapping[str, Domain]:
        return self.parts

    def combine(self, codes: Sequence[NDArray[np.signedinteger]]) -> Codes:
        cells = np.zeros(len(codes[0]), np.int64)
        outside = np.zeros(len(codes[0]), bool)
        for part, digits in zip(self.parts.values(), codes, strict=True):
            cells *= part.size
            cells += digits
            outside |= digits == OUTSIDE
        return np.where(outside, OUTSIDE, cells)

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        # No label holds a surrogate, so bytes that are not UTF-8 are in none.
        codes = (self.find(text.decode(errors="surrogateescape")) for text in texts)
        return np.fromiter(codes, np.int64, len(texts))

    def find(self, text: str) -> int:
        if self._flags:
            names = set(text.split("+"))
            digits = [int(name in names) for name in self.parts]
        else:
            digits = []
            pieces = text.split(", ")
            for part in self.parts.values():
                # The label of a bin has a comma of its own.
                size = 2 if isinstance(part, Bins) and pieces[:1] not in (["other"], ["missing"]) else 1
                digits.append(_digit(part, ", ".join(pieces[:size])))
                pieces = pieces[size:]
        code = 0
        for part, digit in zip(self.parts.values(), digits, strict=True):
            code = code * part.size + digit
        return code if OUTSIDE not in digits and text in (self.label(code), self.value(code)) else OUTSIDE

    def hint(self, text: str) -> str:
        if self.declared > _MAX_HINTED:
            return f", whose values are written like {self.label(self.declared - 1)!r}"
        return nearest(text, [self.label(code) for code in range(self.declared)])


@final
class _PartLevels(Mapping[str, Level]):
    """A level for each part and for each of its levels, built on request: all of them together would be large."""

    def __init__(self, parts: Mapping[str, Domain]) -> None:
        self._parts = parts
        self._owners: dict[str, tuple[str, str | None]] = {name: (name, None) for name in parts}
        for owner, part in parts.items():
            for name in part.levels:
                if name in part.implied:
                    continue
                if name in self._owners:
                    raise SchemaError(f"level {name!r} of part {owner!r}: the name is taken; give each its own name")
                self._owners[name] = (owner, name)
        long = {f"{owner} {name}": (owner, name) for owner, part in parts.items() for name in part.implied}
        self.implied = tuple(name for name in long if name not in self._owners)
        self._owners |= {name: long[name] for name in self.implied}

    def __getitem__(self, name: str) -> Level:
        owner, level = self._owners[name]
        sizes = [part.size for part in self._parts.values()]
        place = list(self._parts).index(owner)
        digits = np.tile(np.repeat(np.arange(sizes[place]), prod(sizes[place + 1 :])), prod(sizes[:place]))
        part = self._parts[owner]
        if level is None:
            return Level(part, digits)
        return Level(part.levels[level].domain, part.levels[level].codes[digits])

    def __contains__(self, name: object) -> bool:
        return name in self._owners

    def __iter__(self) -> Iterator[str]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)


def _part(name: str, declared: object) -> Domain:
    part = named_domain("part", name, declared)
    if isinstance(part, Merged):
        raise SchemaError(f"part {name!r}: it is merged itself; name its parts here instead")
    return part


def _check_labels(name: str, part: Domain, flags: bool) -> None:
    """Refuse names and listed values that would make a combination's label ambiguous."""
    if flags and ("+" in name or name == "none"):
        raise SchemaError(f"part {name!r}: labels join names by '+', and 'none' is the label of no part; rename it")
    texts = part.values if isinstance(part, Listed) else ()
    labels = part.value_labels.values() if isinstance(part, (Listed, Integers)) else ()
    for kind, given in (("value", texts), ("label", labels)):
        commas = [text for text in given if "," in text]
        if commas:
            raise SchemaError(f"part {name!r}: {kind} {commas[0]!r} holds a comma, which separates parts; rename it")


def _cell(part: Domain, digit: int, *, values: bool) -> str:
    if digit < part.declared:
        return str(part.value(digit) if values else part.label(digit))
    return "missing" if part.missing and digit == part.size - 1 else "other"


def _digit(part: Domain, label: str) -> int:
    if part.other and label == "other":
        return part.declared
    if part.missing and label == "missing":
        return part.size - 1
    return part.find(label)
