"""Levels: coarser domains over the same cells, such as states over counties and age groups over ages.

A level puts every declared value of an attribute into exactly one of its groups; the cells "other" and "missing" go
into the level's own. A group is given by its members: values, ranges, and groups of levels declared earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias, TypeVar, final

import numpy as np

from hdmm.errors import InputError, SchemaError
from hdmm.schema.domain import BLANK_TEXT, OUTSIDE, Codes, Domain, is_name

Groups: TypeAlias = Mapping[str, Mapping[Any, object]]
"""Levels as a user gives them: for each name its groups, and for each group its members."""

LARGEST = 1 << 24
"""How many cells an attribute may have whose cells are written out one by one."""

_SHOWN = 3
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
    """Things by their names, in declared order: read-only, compared and hashed with their order."""

    def __init__(self, given: Mapping[str, _Value]) -> None:
        self._given = dict(given)

    def __getitem__(self, name: str) -> _Value:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and list(self.items()) == list(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __repr__(self) -> str:
        return repr(self._given)


def read_levels(domain: Domain, given: Groups | None) -> Named[Level]:
    """The levels that a user means, over the cells of a domain; refuse those that leave a value's group in doubt."""
    if given is not None and not isinstance(given, Mapping):
        raise SchemaError(f"levels={given!r}: expected a mapping from the names of the levels to their groups")
    if given and domain.size > LARGEST:
        raise SchemaError(f"levels: the attribute has {domain.size:,} cells, and levels go up to {LARGEST:,}; use bins")
    levels: dict[str, Level] = {}
    for name, groups in (given or {}).items():
        if not is_name(name):
            raise SchemaError(f"level {name!r}: a name is a column's header: text on one line, without quotes")
        try:
            levels[name] = _read_level(domain, groups, levels)
        except InputError as error:
            raise SchemaError(f"level {name!r}: {error}") from None
    return Named(levels)


def _read_level(domain: Domain, groups: Mapping[Any, object], earlier: Mapping[str, Level]) -> Level:
    from hdmm.schema.kinds import Listed  # which has levels itself

    if not isinstance(groups, Mapping) or not groups:
        raise SchemaError(f"{groups!r}: expected groups with their members, for example {{'child': [(0, 17)]}}")
    coarse = Listed(groups, other=domain.other, missing=domain.missing)
    codes = np.full(domain.size, OUTSIDE, np.int64)
    for group, (label, members) in enumerate(zip(coarse.values, groups.values(), strict=True)):
        try:
            cells = _cells(domain, members, earlier)
        except InputError as error:
            raise SchemaError(f"group {label!r}: {error}") from None
        twice = cells[codes[cells] != OUTSIDE]
        if len(twice):
            first = codes[twice[0]]
            shown = _shown(domain, twice[codes[twice] == first])
            raise SchemaError(
                f"{shown} in two groups, {coarse.value(first)!r} and {label!r}; put every value into exactly one group"
            )
        codes[cells] = group
    left = np.flatnonzero(codes[: domain.declared] == OUTSIDE)
    if len(left):
        shown = _shown(domain, left)
        raise SchemaError(f"{shown} in no group; put every value into exactly one, a range as a pair (low, high)")
    codes[domain.declared :] = np.arange(coarse.declared, coarse.size)
    return Level(coarse, codes)


def _cells(domain: Domain, members: object, earlier: Mapping[str, Level]) -> Codes:
    """The cells of a group's members, some perhaps twice."""
    if isinstance(members, Iterable) and not isinstance(members, (list, range, str)):
        raise SchemaError(f"{members!r}: expected a list of members: [(0, 17)] is a range, [0, 17] are two values")
    given = members if isinstance(members, list) else [members]
    if not given:
        raise SchemaError("it has no members; list them, or leave the group out")
    return np.concatenate([_member(domain, member, earlier) for member in given])


def _member(domain: Domain, member: object, earlier: Mapping[str, Level]) -> Codes:
    if isinstance(member, range):
        if member.step != 1 or not len(member):
            raise SchemaError(f"{member!r}: expected a non-empty range with step 1, for example range(0, 18)")
        first, last = domain.span(member[0], member[-1])
        if [str(domain.value(code)) for code in range(first, last + 1)] != [str(number) for number in member]:
            raise SchemaError(f"{member!r}: these numbers are not neighbouring values of the attribute; list them")
        return np.arange(first, last + 1)
    if isinstance(member, (list, tuple)):
        if len(member) != 2:
            raise SchemaError(f"{member!r}: a range is a pair (low, high), both ends included")
        first, last = domain.span(*member)
        return np.arange(first, last + 1)
    text = str(member).strip(BLANK_TEXT)
    code = domain._find(text)
    found = {"a value": np.array([code])} if code != OUTSIDE else {}
    for name, level in earlier.items():
        group = level.domain._find(text)
        if group != OUTSIDE:
            found[f"a group of {name!r}"] = np.flatnonzero(level.codes == group)
    if len(found) > 1:
        raise SchemaError(f"{text!r} is ambiguous: {' and '.join(found)}; rename one, or list the values as pairs")
    if not found:
        groups = [label for level in earlier.values() for label in level.domain.labels()[: level.domain.declared]]
        close = get_close_matches(text, groups, 1)
        hint = f"; did you mean {close[0]!r}?" if close else domain._hint(text)
        raise SchemaError(f"{text!r} is neither a value nor a group of an earlier level{hint}")
    return next(iter(found.values()))


def _shown(domain: Domain, cells: Codes) -> str:
    """The first few values, to go before "in no group"."""
    codes = np.unique(cells)
    values = ", ".join(repr(domain.value(int(code))) for code in codes[:_SHOWN])
    if len(codes) == 1:
        return f"value {values} is"
    return f"values {values} are" if len(codes) <= _SHOWN else f"values {values}, … ({len(codes):,} in all) are"
