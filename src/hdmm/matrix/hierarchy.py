"""Hierarchies of ordered cells: levels of parts, each of which divides the parts of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def balanced_sizes(n: int, branching: int) -> list[Integers]:
    """The sizes of the parts of each level, from n cells together to single cells.

    A part is divided into ``branching`` parts, or into its cells if there are fewer; larger ones come first if the
    sizes differ, by one at most.
    """
    sizes = [np.array([n])]
    while sizes[-1].max() > 1:
        parts = np.minimum(sizes[-1], branching)
        ends = np.cumsum(parts)
        place = np.arange(ends[-1]) - np.repeat(ends - parts, parts)
        sizes.append(np.repeat(sizes[-1] // parts, parts) + (place < np.repeat(sizes[-1] % parts, parts)))
    return sizes


def parents_of(sizes: Sequence[Integers]) -> tuple[Integers, ...]:
    """For each level the number, on the level before, of the part that holds each part; none for the first level."""
    ends = [np.cumsum(level) for level in sizes]
    above = (np.searchsorted(coarse, fine) for coarse, fine in pairwise(ends))
    return np.empty(0, np.int64), *above


def starts_of(parents: Integers) -> Integers:
    """Where the parts that divide each part of the level before begin."""
    return np.flatnonzero(np.diff(parents, prepend=-1))
