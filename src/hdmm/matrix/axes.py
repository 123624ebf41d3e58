"""Sets of attributes, by their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

Axes = tuple[int, ...]
"""A set of attributes, in order."""


def subsets(axes: Axes) -> Iterator[Axes]:
    """All subsets of some attributes, the smaller ones first."""
    return chain.from_iterable(combinations(axes, count) for count in range(len(axes) + 1))
