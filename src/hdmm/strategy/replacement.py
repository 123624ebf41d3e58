"""How much the answers change where one record is replaced by another: the largest norm of a difference of two columns.

Of two columns s and t of a matrix with entries a, ‖a_s − a_t‖ to the power p is N_s + N_t − 2·M_st, where N are the
columns' own norms and M is their overlap: the Gram matrix for p = 2, and for p = 1 the sum over the rows of the smaller
of the two absolute values, where the signs agree. Overlaps of Kronecker products are the products of the overlaps of
their factors: exactly for p = 2, and for p = 1 where at most one factor has other entries than 0 and 1. Otherwise the
product is less than the overlap, since the smaller of two products is at least the product of the smaller factors, and
what comes out is an upper bound.

A record that replaces another may also be outside the domain, and is then not counted. So a replacement can do all that
adding or removing a record can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hdmm.matrix import Array, Identity, Matrix, Norm, Number, Spiked, Total
from hdmm.matrix.norms import largest_sum
from hdmm.strategy.block import Block
from hdmm.strategy.sensitivity import Change, added

_PAIRS = 1 << 22
"""The most pairs of cells of one attribute that are looked at."""
_WORK = 1 << 31
"""The most entries of pairs of columns that are compared."""
_EXACT = 1 << 53
_STEPS = 1 << 21
"""The most steps over blocks and attributes: with more blocks, each is bounded by itself."""


def replaced(blocks: Sequence[Block], p: Norm) -> Change:
    """How much the weighted answers of all blocks together change, at most, where one record is replaced by another."""
    alone = added(blocks, p)
    found = _identities(blocks, p)
    if found is None:
        found = _over_pairs(blocks, p)
    if found is not None:
        return max(alone, found, key=lambda change: change.power)
    bound = min(_by_block(blocks, p), 2**p * alone.power)
    return Change(max(alone.power, bound), False)


def _identities(blocks: Sequence[Block], p: Norm) -> Change | None:
    """Marginals: two records that differ in every attribute change two cells of each, but for the count of all."""
    for block in blocks:
        if block.condition is not None or not all(isinstance(f, Identity) and f.shape[1] > 1 for f in block.factors):
            return None
    return Change(sum((2 * block.weight**p for block in blocks if block.factors), start=0), True)


def _over_pairs(blocks: Sequence[Block], p: Norm) -> Change | None:
    """The largest over all pairs of cells; None where there are too many, or conditions across attributes."""
    if any(block.condition is not None for block in blocks):
        return None
    joint = any(block.joint for block in blocks)
    if joint and not all(block.axes == blocks[0].axes and block.joint for block in blocks):
        return None
    totals = {axis: Total(factor.shape[1]) for block in blocks for axis, factor in _factors(block).items()}
    if 3 * len(blocks) * len(totals) > _STEPS:
        return None
    overlaps: dict[int, list[_Overlap]] = {axis: [] for axis in totals}
    places: dict[int, list[int]] = {axis: [] for axis in overlaps}
    weights: list[Number] = []
    exact = True
    for block in blocks:
        uneven = 0
        for axis, total in totals.items():
            factor = _factors(block).get(axis, total)
            known = next((at for at, one in enumerate(overlaps[axis]) if one.factor is factor), None)
            if known is None:
                known = len(overlaps[axis])
                found = _overlap(factor, p)
                if found is None:
                    return None
                overlaps[axis].append(found)
            uneven += not overlaps[axis][known].binary
            places[axis] += [3 * known, 3 * known + 1, 3 * known + 2]
        exact &= p == 2 or uneven <= 1
        weights += [block.weight**p, block.weight**p, -2 * block.weight**p]
    vectors = [_pairs(found, totals[axis].n) for axis, found in overlaps.items()]
    monotone = all(int(vector.min()) >= 0 for vector in vectors)
    largest = largest_sum(vectors, list(places.values()), weights, monotone=monotone)
    return None if largest is None else Change(largest, exact)


def _factors(block: Block) -> dict[int, Matrix]:
    """The factors by their attribute; one that stands for several by the first of them."""
    return dict(zip(block.axes, block.factors, strict=not block.joint))


class _Overlap(NamedTuple):
    """The norms of a factor's columns and their overlaps; of a factor that treats all cells alike, of two of them."""

    factor: Matrix
    shared: Array
    binary: bool
    alike: bool

    def pairs(self, first: Array, second: Array) -> list[Array]:
        """For pairs of cells the norm of the one, of the other, and their overlap."""
        if self.alike:  # two cells are as any two others
            first, second = np.zeros_like(first), np.minimum(first != second, len(self.shared) - 1)
        return [self.shared[first, first], self.shared[second, second], self.shared[first, second]]


def _overlap(factor: Matrix, p: Norm) -> _Overlap | None:
    """The overlaps of a factor's columns; None where there are too many, or too large ones."""
    rows, cells = factor.shape
    alike = isinstance(factor, (Identity, Total, Spiked))
    if alike:
        columns = factor.apply(np.eye(cells, min(cells, 2), dtype=np.int64))
    elif cells**2 > _PAIRS or rows * cells * (cells if p == 1 else 1) > _WORK:
        return None
    else:
        columns = factor.dense()
    if (columns.astype(float) ** 2).sum(axis=0).max() >= _EXACT:  # beyond, floats would not add integers exactly
        return None
    binary = bool(((columns == 0) | (columns == 1)).all())
    if p == 2 or binary:
        shared = (columns.T.astype(float) @ columns.astype(float)).astype(np.int64)
    else:
        shared = _smaller(np.maximum(columns, 0)) + _smaller(np.maximum(-columns, 0))
    return _Overlap(factor, shared, binary, alike)


def _smaller(columns: Array) -> Array:
    """For every pair of columns of counts, the sum over the rows of the smaller of the two."""
    shared = np.zeros((columns.shape[1],) * 2, np.int64)
    if not columns.any():
        return shared
    fits = columns.sum(axis=0).max() < 1 << 31
    cells = np.ascontiguousarray(columns.T, np.int32 if fits else np.int64)
    for cell, own in enumerate(cells):
        shared[cell, cell:] = np.minimum(own, cells[cell:]).sum(axis=1, dtype=cells.dtype)
    return np.maximum(shared, shared.T)


def _pairs(overlaps: Sequence[_Overlap], cells: int) -> Array:
    """All pairs of an attribute's cells: three rows for every factor."""
    count = min(cells, 2) if all(one.alike for one in overlaps) else cells
    first, second = np.divmod(np.arange(count**2), count)
    return np.stack([row for one in overlaps for row in one.pairs(first, second)])


def _by_block(blocks: Sequence[Block], p: Norm) -> Number:
    """An upper bound: every block by itself, with the largest norms and the least overlap that its factors allow."""
    known: dict[int, tuple[int, int, int]] = {}
    total: Number = 0
    for block in blocks:
        low, high, norm = 1, 1, 1
        for factor in block.factors:
            if id(factor) not in known:
                known[id(factor)] = _range(factor, p)
            own = known[id(factor)]
            ends = [end * other for end in (low, high) for other in own[:2]]
            low, high, norm = min(ends), max(ends), norm * own[2]
        if block.condition is not None:
            low = min(low, 0)  # of cells that are not counted there is nothing to overlap
        total += 2 * block.weight**p * (norm - low)
    return total


def _range(factor: Matrix, p: Norm) -> tuple[int, int, int]:
    """The least and the largest overlap of two columns, and the largest norm."""
    norm = int(factor.norm_power(p))
    found = _overlap(factor, p)
    if found is not None:
        return int(found.shared.min()), int(found.shared.max()), norm
    return 0 if p == 1 else -norm, norm, norm
