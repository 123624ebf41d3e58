"""The boxes of nested partitions, level by level: sums of parts, and what a box hands down to its parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import final

import numpy as np

from hdmm.matrix import Array, Identity, Matrix, Partition, Total
from hdmm.matrix.axes import Axes
from hdmm.strategy import Block, Strategy


@final
class Boxes:
    """The levels of a tree of boxes, the coarsest first. A table of a level has one entry for each of its boxes."""

    def __init__(self, axes: Axes, order: Sequence[int], levels: Sequence[Sequence[Partition]]) -> None:
        self.axes = axes
        self.order = order
        """The block that counts each level."""
        self.levels = levels
        """For each level the groups on every attribute."""
        self._parts = [
            [np.searchsorted(part.starts, whole.starts) for whole, part in zip(wholes, parts, strict=True)]
            for wholes, parts in pairwise(levels)
        ]

    @staticmethod
    def of(strategy: Strategy) -> Boxes | None:
        """The boxes that the blocks of a strategy count; None if they are not nested down to single cells."""
        blocks = strategy.blocks
        if any(block.condition is not None or block.joint for block in blocks):
            return None
        axes = strategy.axes
        levels = [_groups(block, axes, strategy.sizes) for block in blocks]
        order = sorted(range(len(blocks)), key=lambda index: blocks[index].queries)
        sorted_levels = [level for index in order if (level := levels[index]) is not None]
        if len(sorted_levels) < len(blocks) or not axes:
            return None
        finer = all(
            set(whole.ends) <= set(part.ends)
            for wholes, parts in pairwise(sorted_levels)
            for whole, part in zip(wholes, parts, strict=True)
        )
        cells = all(len(part.ends) == part.n for part in sorted_levels[-1])
        return Boxes(axes, order, sorted_levels) if finer and cells else None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The cells of each attribute."""
        return tuple(part.n for part in self.levels[-1])

    def shape(self, level: int) -> tuple[int, ...]:
        """How many groups each attribute has."""
        return tuple(len(part.ends) for part in self.levels[level])

    @property
    def even(self) -> bool:
        """Whether all boxes of a level have equally many cells."""
        return all(len(set(part.widths.tolist())) == 1 for level in self.levels for part in level)

    def added(self, level: int, table: Array) -> Array:
        """The sums over the parts of each box of a level; the table has any axes before those of the attributes."""
        lead = table.ndim - len(self.axes)
        for place, starts in enumerate(self._parts[level]):
            if len(starts) < table.shape[lead + place]:
                table = np.add.reduceat(table, starts, axis=lead + place)
        return table

    def spread(self, level: int, table: Array) -> Array:
        """Each box's entry at every one of its parts."""
        lead = table.ndim - len(self.axes)
        for place, starts in enumerate(self._parts[level]):
            parts = len(self.levels[level + 1][place].ends)
            if len(starts) < parts:
                table = np.repeat(table, np.diff(starts, append=parts), axis=lead + place)
        return table

    def over_cells(self, level: int, table: Array) -> Array:
        """Each box's entry at every one of its cells."""
        for finer in range(level, len(self.levels) - 1):
            table = self.spread(finer, table)
        return table

    def within(self, place: int, entries: Array) -> list[float]:
        """For every level the sum of those entries over an attribute whose row and column are in one group."""
        sums = [float(np.trace(entries))]
        for starts in reversed([parts[place] for parts in self._parts]):
            if len(starts) < len(entries):
                entries = np.add.reduceat(np.add.reduceat(entries, starts, axis=0), starts, axis=1)
            sums.insert(0, float(np.trace(entries)))
        return sums

    def overlaps(self, place: int, rows: Array) -> Array:
        """For rows over an attribute, all inner products on groups of one level of means over groups of coarser ones.

        The mean over a group is that of the means over its parts. The columns are those of :meth:`pairs`.
        """
        means = [rows]
        for starts in reversed([parts[place] for parts in self._parts]):
            widths = np.diff(starts, append=means[0].shape[1])
            means.insert(0, np.add.reduceat(means[0], starts, axis=1) / widths)
        columns: list[Array] = []
        spread: list[Array] = []
        for level, own in enumerate(means):
            if level:
                widths = np.diff(self._parts[level - 1][place], append=own.shape[1])
                spread = [np.repeat(table, widths, axis=1) for table in spread]
            spread.append(own)
            columns += [(table * other).sum(axis=1) for number, table in enumerate(spread) for other in spread[number:]]
        return np.stack(columns, axis=1)

    def pairs(self, level: int, linear: Array) -> Array:
        """The weights of overlaps in the squared length of a combination of the means, spread over a level's boxes."""
        weights: list[float] = []
        for finer in range(len(self.levels)):
            for first in range(finer + 1):
                twice = [2.0 * linear[second] for second in range(first + 1, finer + 1)]
                weights += [linear[first] * one if finer == level else 0.0 for one in (linear[first], *twice)]
        return np.array(weights)


def _groups(block: Block, axes: Axes, sizes: Sequence[int]) -> list[Partition] | None:
    """The groups of a block on all attributes; None if its queries are others."""
    factors: dict[int, Matrix] = dict(zip(block.axes, block.factors, strict=True))
    groups = []
    for axis in axes:
        n = sizes[axis]
        match factors.get(axis, Total(n)):
            case Partition() as partition:
                groups.append(partition)
            case Identity():
                groups.append(Partition(n, tuple(range(1, n + 1))))
            case Total():
                groups.append(Partition(n, (n,)))
            case _:
                return None
    return groups
