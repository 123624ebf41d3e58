"""The combinations of attributes to ask an engine for, so that every table can be added up from one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import final

_MAX_JOINT_CELLS = 1 << 16
"""Tables are counted together up to this many combinations: they cost about as much as one table."""
_RECENT_GROUPS = 256
"""Only this many of the last groups are considered for a table: with 10⁵ tables, all would be too many."""


@final
@dataclass
class Group:
    """Attributes whose combinations are counted together, and the positions of the tables that they cover."""

    names: frozenset[str]
    tables: list[int]


def cover(tables: Sequence[tuple[str, ...]], sizes: Mapping[str, int]) -> list[Group]:
    """Put every table into a group that holds its attributes: large tables first, each into the smallest group."""
    groups: list[Group] = []
    sets = [frozenset(table) for table in tables]
    for at in sorted(range(len(sets)), key=lambda at: -len(sets[at])):
        best, least = None, None
        for group in groups[-_RECENT_GROUPS:]:
            union = group.names | sets[at]
            cells = prod(sizes[name] for name in union)
            if (union == group.names or cells <= _MAX_JOINT_CELLS) and (least is None or cells < least):
                best, least = group, cells
                if union == group.names:
                    break
        if best is None:
            best = Group(sets[at], [])
            groups.append(best)
        best.names |= sets[at]
        best.tables.append(at)
    return groups
