"""Sensitivity of queries over kinds of cells: all cells of an orbit, a combination of kinds, have the same column norm.

Floats say which orbits, or pairs of them, may be the worst. These are then worked out exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np

from hdmm.matrix import Array, Norm, Number
from hdmm.matrix.orbits import Kinds, OrbitQueries, Within, integer_product
from hdmm.strategy.block import Block

_NEAR = 1e-9
"""Sums of floats this close to the largest, relatively, may be the largest."""
_MAX_PAIRS = 1 << 25
"""The most pairs of orbits that are looked at."""
_CHUNK = 1 << 20
"""Pairs that are looked at together."""


def orbit_norm(blocks: Sequence[Block], p: Norm) -> Number | None:
    """The largest column norm to the power p of all weighted blocks; None for other blocks than queries over kinds."""
    kinds = _kinds(blocks)
    if kinds is None:
        return None
    norms = []
    for block in blocks:
        table: Array = np.ones((), object)
        for factor in block.factors:
            assert isinstance(factor, OrbitQueries)
            table = factor.orbit_norms(p)
        sizes: dict[int, int] = dict(zip(block.axes, table.shape, strict=True))
        norms.append(table.reshape([sizes.get(axis, 1) for axis in kinds]))
    weights = [block.weight**p for block in blocks]
    total = np.zeros([len(cell_kinds) for cell_kinds in kinds.values()])
    for weight, table in zip(weights, norms, strict=True):
        total += float(weight) * table.astype(float)
    if not all(block.integral for block in blocks):
        return float(total.max())
    largest = Fraction(0)
    for place in np.argwhere(total >= total.max() * (1 - _NEAR)):
        here = [table[tuple(np.minimum(place, np.array(table.shape, np.int64) - 1))] for table in norms]
        largest = max(largest, sum((w * norm for w, norm in zip(weights, here, strict=True)), Fraction(0)))
    return largest.numerator if largest.denominator == 1 else largest


def orbit_difference_norm(blocks: Sequence[Block]) -> Number | None:
    """The largest squared length of a difference of two columns of all weighted blocks.

    None for other blocks, and for too many pairs of orbits.
    """
    kinds = _kinds(blocks)
    if kinds is None:
        return None
    pairs = {axis: _Pairs.of(cell_kinds) for axis, cell_kinds in kinds.items()}
    if prod(len(axis_pairs.first) for axis_pairs in pairs.values()) > _MAX_PAIRS or not pairs:
        return None
    overlaps = [_BlockOverlap.of(block) for block in blocks]
    weights = [float(block.weight) ** 2 for block in blocks]
    chunks = list(_chunks(list(pairs.values())))
    scale, largest = 0.0, 0.0
    near: list[tuple[float, tuple[Array, ...], int]] = []
    for number, chunk in enumerate(chunks):
        chunk_pairs = dict(zip(pairs, chunk, strict=True))
        lengths, shared = np.zeros(()), np.zeros(())
        for weight, overlap in zip(weights, overlaps, strict=True):
            first, second, both = overlap.at(chunk_pairs)
            lengths, shared = lengths + weight * (first + second), shared + weight * both
        difference = np.broadcast_to(lengths - 2 * shared, [len(part.first) for part in chunk])
        scale = max(scale, float(np.max(lengths)))
        largest = max(largest, float(difference.max()))
        places = np.nonzero(difference >= largest - _NEAR * scale)
        near.append((float(difference.max()), places, number))
    exact = Fraction(0)
    for most, places, number in near:
        if most >= largest - _NEAR * scale:
            for place in zip(*places, strict=True):
                spots = [part.at(int(spot)) for part, spot in zip(chunks[number], place, strict=True)]
                exact = max(exact, _exactly(blocks, overlaps, dict(zip(pairs, spots, strict=True))))
    return exact.numerator if exact.denominator == 1 else exact


def _kinds(blocks: Sequence[Block]) -> dict[int, Kinds] | None:
    """The kinds of every attribute; None if some block has other queries, or other kinds."""
    kinds: dict[int, Kinds] = {}
    for block in blocks:
        factor = block.factors[0] if block.factors else None
        if factor is None and not block.axes:
            continue
        if not isinstance(factor, OrbitQueries) or len(factor.kinds) != len(block.axes):
            return None
        for axis, cell_kinds in zip(block.axes, factor.kinds, strict=True):
            if not np.array_equal(kinds.setdefault(axis, cell_kinds).labels, cell_kinds.labels):
                return None
    return dict(sorted(kinds.items()))


class _Pairs(NamedTuple):
    """Pairs of cells of one attribute, one of each sort: their kinds, and whether they are the same cell."""

    first: Array
    second: Array
    same: Array

    @staticmethod
    def of(kinds: Kinds) -> _Pairs:
        first, second = np.divmod(np.arange(len(kinds) ** 2), len(kinds))
        several = np.flatnonzero(kinds.sizes > 1)  # of which two different cells may be of one kind
        different = np.zeros(len(several), bool)
        return _Pairs(
            np.concatenate([first, several]),
            np.concatenate([second, several]),
            np.concatenate([first == second, different]),
        )

    def at(self, place: int | slice) -> _Pairs:
        """Some of the pairs."""
        chosen = slice(place, place + 1) if isinstance(place, int) else place
        return _Pairs(self.first[chosen], self.second[chosen], self.same[chosen])


def _chunks(pairs: list[_Pairs]) -> Iterator[list[_Pairs]]:
    """All pairs of orbits in pieces, cut along the attribute with most pairs."""
    longest = max(range(len(pairs)), key=lambda place: len(pairs[place].first))
    others = prod(len(axis_pairs.first) for place, axis_pairs in enumerate(pairs) if place != longest)
    step = max(1, _CHUNK // others)
    for start in range(0, len(pairs[longest].first), step):
        piece = pairs[longest].at(slice(start, start + step))
        yield [piece if place == longest else axis_pairs for place, axis_pairs in enumerate(pairs)]


class _BlockOverlap(NamedTuple):
    """The Gram of a block's queries over sums of kinds, and its differences."""

    axes: tuple[int, ...]
    gram: Array
    """With two axes for each attribute with sums: all of one cell's kinds, then all of the other's."""
    parts: dict[int, tuple[Within, int]]
    """The differences on the other attributes, and the size of the kind."""

    @staticmethod
    def of(block: Block) -> _BlockOverlap:
        if not block.factors:
            return _BlockOverlap((), np.ones((), np.int64), {})
        (factor,) = block.factors
        assert isinstance(factor, OrbitQueries)
        sums = [len(factor.kinds[place]) for place in factor.summed]
        gram = integer_product(factor.queries.array.T, factor.queries.array).reshape([*sums, *sums])
        parts = {
            axis: (part, int(cell_kinds.sizes[part.kind]))
            for axis, cell_kinds, part in zip(block.axes, factor.kinds, factor.parts, strict=True)
            if part is not None
        }
        return _BlockOverlap(tuple(block.axes[place] for place in factor.summed), gram, parts)

    def at(self, pairs: dict[int, _Pairs], dtype: type = float) -> tuple[Array, Array, Array]:
        """The squared lengths of both columns and their product, for all combinations of pairs on each attribute."""
        shape = {axis: [-1 if other == axis else 1 for other in pairs] for axis in pairs}
        ones = [pairs[axis].first.reshape(shape[axis]) for axis in self.axes]
        others = [pairs[axis].second.reshape(shape[axis]) for axis in self.axes]
        gram: Array = self.gram.astype(dtype)
        first, second, both = gram[(*ones, *ones)], gram[(*others, *others)], gram[(*ones, *others)]
        for axis, (part, size) in self.parts.items():
            axis_pairs = pairs[axis]
            norm, product = part.norm_power(size, 2), 2 * part.diagonal * part.rest + (size - 2) * part.rest**2
            inside, outside = axis_pairs.first == part.kind, axis_pairs.second == part.kind
            shared = np.where(axis_pairs.same, norm, product) * (inside & outside)
            first = first * (norm * inside).astype(dtype).reshape(shape[axis])
            second = second * (norm * outside).astype(dtype).reshape(shape[axis])
            both = both * shared.astype(dtype).reshape(shape[axis])
        return first, second, both


def _exactly(blocks: Sequence[Block], overlaps: Sequence[_BlockOverlap], pairs: dict[int, _Pairs]) -> Fraction:
    """The squared length of one difference."""
    total = Fraction(0)
    for block, overlap in zip(blocks, overlaps, strict=True):
        first, second, both = (np.asarray(value).item() for value in overlap.at(pairs, object))
        total += block.weight**2 * (int(first) + int(second) - 2 * int(both))
    return total
