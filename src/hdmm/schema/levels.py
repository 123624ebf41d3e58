"""Levels: coarser domains over the same cells, such as states over counties and age groups over ages.

A level puts every declared value of an attribute into exactly one of its groups; the cells "other" and "missing" go
into the level's own. A group is given by its members: values, ranges, and groups of levels declared earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, final

import numpy as np

from hdmm.errors import InputError, SchemaError, closest
from hdmm.numbers import shown
from hdmm.schema.domain import OUTSIDE, Codes, Domain, check_name, text_of
from hdmm.syntax import given

Groups: TypeAlias = Mapping[str, Mapping[Any, object]]
"""Levels as a user gives them: for each name its groups, and for each group its members."""

MAX_CELLS = 1 << 24
"""Cells of an attribute that has levels or is merged: something is kept for each of them."""
_MAX_CODES = 1 << 25
"""Codes of all levels of an attribute together, of eight bytes each."""
_MAX_NAMED = 3
"""Values that a message names."""
_Value = TypeVar("_Value")


@final
@dataclass(frozen=True, eq=False)
class Level:
    """A coarser domain, and for each cell of the attribute its cell in it."""

    domain: Domain
    codes: Codes

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes, np.int64).view()
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Level) and self.domain == other.domain and np.array_equal(self.codes, other.codes)

    def __hash__(self) -> int:
        return hash((self.domain, self.codes.tobytes()))


@final
class Named(Mapping[str, _Value]):
    """A read-only mapping from names, in declared order; order counts when it is compared and hashed."""

    def __init__(self, entries: Mapping[str, _Value]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> _Value:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and list(self.items()) == list(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __repr__(self) -> str:
        return repr(self._entries)


def level_names(name: str, domain: Domain) -> dict[str, str]:
    """Every name of a level of an attribute, and the level: those that come by themselves also have long names.

    The level "month" of the attribute "admitted" is called "admitted month" too.
    """
    long = {f"{name} {level}": level for level in domain.implied}
    return long | {level: level for level in domain.levels}


def read_levels(domain: Domain, declared: Groups | None) -> Named[Level]:
    """The levels that a user declares over the cells of a domain; every value must be in exactly one group of each."""
    if declared is not None and not isinstance(declared, Mapping):
        raise SchemaError(
            f"{given('levels', shown(declared))}: expected a mapping from the names of the levels to their groups"
        )
    if declared and domain.size > MAX_CELLS:
        raise SchemaError(
            f"levels: the attribute has {domain.size:,} cells, and levels go up to {MAX_CELLS:,}; use bins"
        )
    if declared and domain.size * len(declared) > _MAX_CODES:
        raise SchemaError(
            f"levels: {len(declared):,} levels over {domain.size:,} cells are too many; "
            f"{_MAX_CODES // domain.size:,} fit: declare fewer, or use bins"
        )
    levels: dict[str, Level] = {}
    for name, groups in (declared or {}).items():
        check_name("level", name)
        try:
            levels[name] = _read_level(domain, groups, levels)
        except InputError as error:
            raise SchemaError(f"level {name!r}: {error}") from None
    return Named(levels)


def _read_level(domain: Domain, groups: Mapping[Any, object], earlier: Mapping[str, Level]) -> Level:
    from hdmm.schema.kinds import Listed  # it imports this module

    if not isinstance(groups, Mapping) or not groups:
        raise SchemaError(f"{shown(groups)}: expected groups with their members, for example {{'child': [(0, 17)]}}")
    coarse = Listed(groups, other=domain.other, missing=domain.missing)
    codes = np.full(domain.size, OUTSIDE, np.int64)
    sorted_cells = _SortedCells(earlier)
    room = 2 * domain.size  # a value may stand twice in its group, but not as often as it takes to fill the memory
    for group, (label, members) in enumerate(zip(coarse.values, groups.values(), strict=True)):
        try:
            for cells in _cells(domain, members, sorted_cells):
                before = codes[cells]
                room -= len(before)
                if room < 0:
                    raise SchemaError("its members overlap again and again; put every value into exactly one group")
                taken = (before != OUTSIDE) & (before != group)
                if taken.any():
                    first = before[np.argmax(taken)]
                    twice = np.flatnonzero(before == first)
                    values = _shown(domain, twice + cells.start if isinstance(cells, slice) else cells[twice])
                    raise _TwiceError(
                        f"{values} in two groups, {coarse.value(first)!r} and {label!r}; put every value into exactly "
                        "one group"
                    )
                codes[cells] = group
        except _TwiceError:
            raise
        except InputError as error:
            raise SchemaError(f"group {label!r}: {error}") from None
    ungrouped = np.flatnonzero(codes[: domain.declared] == OUTSIDE)
    if len(ungrouped):
        values = _shown(domain, ungrouped)
        raise SchemaError(f"{values} in no group; put every value into exactly one, a range as a pair (low, high)")
    codes[domain.declared :] = np.arange(coarse.declared, coarse.size)
    return Level(coarse, codes)


@final
class _TwiceError(SchemaError):
    """A value is in two groups; the message names both."""


@final
class _SortedCells:
    """The cells of every group of the earlier levels; each level is sorted once, on the first request."""

    def __init__(self, levels: Mapping[str, Level]) -> None:
        self.levels = levels
        self._sorted: dict[str, tuple[Codes, Codes]] = {}

    def of(self, name: str, group: int) -> Codes:
        """The cells of a group of a level."""
        if name not in self._sorted:
            level = self.levels[name]
            order = np.argsort(level.codes, kind="stable")
            starts = np.searchsorted(level.codes[order], np.arange(level.domain.size + 1))
            self._sorted[name] = (order, starts)
        order, starts = self._sorted[name]
        return order[starts[group] : starts[group + 1]]


def _cells(domain: Domain, members: object, earlier: _SortedCells) -> Iterator[Codes | slice]:
    """The cells of each of a group's members."""
    if isinstance(members, Iterable) and not isinstance(members, (list, range, str)):
        raise SchemaError(f"{shown(members)}: expected a list of members: [(0, 17)] is a range, [0, 17] are two values")
    if members == []:
        raise SchemaError("it has no members; list them, or leave the group out")
    for member in members if isinstance(members, list) else [members]:
        yield _member(domain, member, earlier)


def _member(domain: Domain, member: object, earlier: _SortedCells) -> Codes | slice:
    if isinstance(member, range):
        if member.step != 1 or member.start >= member.stop:
            raise SchemaError(f"{shown(member)}: expected a non-empty range with step 1, for example range(0, 18)")
        first, last = domain.span(member.start, member.stop - 1)
        codes = range(first, last + 1)
        if member.stop - member.start != len(codes) or any(
            str(domain.value(code)) != str(number) for code, number in zip(codes, member, strict=True)
        ):
            raise SchemaError(f"{shown(member)}: these numbers are not neighbouring values of the attribute; list them")
        return slice(first, last + 1)
    if isinstance(member, (list, tuple)):
        if len(member) != 2:
            raise SchemaError(f"{shown(member)}: a range is a pair (low, high), both ends included")
        first, last = domain.span(*member)
        return slice(first, last + 1)
    text = text_of(member)
    code = domain.find(text)
    meanings = {"a value": np.array([code])} if code != OUTSIDE else {}
    for name, level in earlier.levels.items():
        group = level.domain.find(text)
        if group != OUTSIDE:
            meanings[f"a group of {name!r}"] = earlier.of(name, group)
    if len(meanings) > 1:
        raise SchemaError(f"{text!r} is ambiguous: {' and '.join(meanings)}; rename one, or list the values as pairs")
    if not meanings:
        coarse = [level.domain for level in earlier.levels.values()]
        close = closest(text, (str(level.value(group)) for level in coarse for group in range(level.declared)))
        hint = f"; did you mean {close!r}?" if close is not None else domain.hint(text)
        raise SchemaError(f"{shown(text)} is neither a value nor a group of an earlier level{hint}")
    return next(iter(meanings.values()))


def _shown(domain: Domain, cells: Codes) -> str:
    """The first few values, to go before "in no group"."""
    codes = np.unique(cells)
    values = ", ".join(repr(domain.value(int(code))) for code in codes[:_MAX_NAMED])
    if len(codes) == 1:
        return f"value {values} is"
    return f"values {values} are" if len(codes) <= _MAX_NAMED else f"values {values}, … ({len(codes):,} in all) are"
