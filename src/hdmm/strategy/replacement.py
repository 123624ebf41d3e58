"""How much the answers change if one record is replaced by another: the largest norm of a difference of two columns.

Of two columns s and t of a matrix with entries a, ‖a_s − a_t‖ to the power p is N_s + N_t − 2·M_st. Here N are the
norms of the columns and M is their overlap: the Gram matrix for p = 2, and for p = 1 the sum over the rows of the
smaller of the two absolute values, if their signs agree. Overlaps of Kronecker products are the products of the
overlaps of their factors: exactly for p = 2, and for p = 1 if at most one factor has other entries than 0 and 1.
Otherwise the product is less than the overlap, since the smaller of two products is at least the product of the smaller
factors, and the result is an upper bound.

A record that replaces another may also be outside the domain, and is then not counted. So a replacement can do all that
adding or removing a record can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hdmm.matrix import Array, Identity, Matrix, Norm, Number, Spiked, Total
from hdmm.matrix.norms import largest_sum
from hdmm.matrix.solvable import Solvable
from hdmm.strategy.block import Block
from hdmm.strategy.orbits import orbit_difference_norm
from hdmm.strategy.sensitivity import Change, change_by_adding

_MAX_PAIRS = 1 << 22
"""The most pairs of cells of one attribute that are looked at."""
_MAX_COMPARED = 1 << 31
"""The most entries of pairs of columns that are compared."""
_MAX_EXACT = 1 << 53
"""Floats add integers exactly below this."""
_MAX_STEPS = 1 << 21
"""The most steps over blocks and attributes: with more blocks, each is bounded by itself."""
_SIGNS = (1, 1, -2)
"""The signs of N_s, N_t and M_st."""


def change_by_replacing(blocks: Sequence[Block], p: Norm) -> Change:
    """How much the weighted answers of all blocks together change, at most, if one record is replaced by another."""
    added = change_by_adding(blocks, p)
    change = _identities(blocks, p) or _over_orbits(blocks, p) or _in_hierarchy(blocks, p)
    if change is None:
        change = _over_pairs(blocks, p)
    if change is not None:
        return max(added, change, key=lambda change: change.power)
    bound = min(_by_block(blocks, p), 2**p * added.power)
    return Change(max(added.power, bound), False)


def _identities(blocks: Sequence[Block], p: Norm) -> Change | None:
    """Marginals: two records that differ in every attribute change two cells of each, but for the count of all."""
    for block in blocks:
        if block.condition is not None or not all(isinstance(f, Identity) and f.shape[1] > 1 for f in block.factors):
            return None
    return Change(sum((2 * block.weight**p for block in blocks if block.factors), start=0), True)


def _over_orbits(blocks: Sequence[Block], p: Norm) -> Change | None:
    """Queries over kinds of cells: pairs of cells of the same kinds change them alike."""
    largest = orbit_difference_norm(blocks) if p == 2 else None
    return None if largest is None else Change(largest, True)


def _in_hierarchy(blocks: Sequence[Block], p: Norm) -> Change | None:
    """One matrix over ordered cells that knows by how much its columns differ."""
    if len(blocks) > 1 or len(blocks[0].factors) != 1:
        return None
    factor = blocks[0].factors[0]
    largest = factor.difference_norm(p) if isinstance(factor, Solvable) else None
    return None if largest is None else Change(blocks[0].weight ** p * largest, True)


def _over_pairs(blocks: Sequence[Block], p: Norm) -> Change | None:
    """The largest over all pairs of cells; None if there are too many, or conditions across attributes."""
    if any(block.condition is not None for block in blocks):
        return None
    joint = any(block.joint for block in blocks)
    if joint and not all(block.axes == blocks[0].axes and block.joint for block in blocks):
        return None
    totals: dict[int, Matrix] = {
        axis: Total(factor.shape[1]) for block in blocks for axis, factor in _factors(block).items()
    }
    if len(_SIGNS) * len(blocks) * len(totals) > _MAX_STEPS:
        return None
    products = [totals | _factors(block) for block in blocks]
    overlaps = _overlaps((factor for product in products for factor in product.values()), p)
    if overlaps is None:
        return None
    vectors, places = [], []
    for axis, total in totals.items():
        distinct = list(dict.fromkeys(id(product[axis]) for product in products))
        first_rows = {key: len(_SIGNS) * number for number, key in enumerate(distinct)}
        vectors.append(_pairs([overlaps[key] for key in distinct], total.shape[1]))
        places.append([first_rows[id(product[axis])] + row for product in products for row in range(len(_SIGNS))])
    weights = [sign * block.weight**p for block in blocks for sign in _SIGNS]
    monotone = all(int(vector.min()) >= 0 for vector in vectors)
    largest = largest_sum(vectors, places, weights, monotone=monotone)
    if largest is None:
        return None
    general = (sum(not overlaps[id(factor)].binary for factor in product.values()) for product in products)
    return Change(largest, p == 2 or all(count <= 1 for count in general))


def _factors(block: Block) -> dict[int, Matrix]:
    """The factors by their attribute; one that stands for several by the first of them."""
    return dict(zip(block.axes, block.factors, strict=not block.joint))


class _Overlap(NamedTuple):
    """The overlaps of a factor's columns, with their norms on the diagonal."""

    shared: Array
    binary: bool
    """Whether all entries are 0 and 1."""
    alike: bool
    """Whether the factor treats all cells alike: then ``shared`` is about two of them."""

    def pairs(self, first: Array, second: Array) -> list[Array]:
        """For pairs of cells N_s, N_t and M_st."""
        if self.alike:  # two cells are as any two others
            first, second = np.zeros_like(first), np.minimum(first != second, len(self.shared) - 1)
        return [self.shared[first, first], self.shared[second, second], self.shared[first, second]]


def _overlaps(factors: Iterable[Matrix], p: Norm) -> dict[int, _Overlap] | None:
    """The overlaps of distinct factors, by their identity; None if those of some factor are not computed."""
    overlaps: dict[int, _Overlap] = {}
    for factor in factors:
        if id(factor) not in overlaps:
            overlap = _overlap(factor, p)
            if overlap is None:
                return None
            overlaps[id(factor)] = overlap
    return overlaps


def _overlap(factor: Matrix, p: Norm) -> _Overlap | None:
    """The overlaps of a factor's columns; None if there are too many, or too large ones."""
    rows, cells = factor.shape
    alike = isinstance(factor, (Identity, Total, Spiked))
    if alike:
        columns = factor.apply(np.eye(cells, min(cells, 2), dtype=np.int64))
    elif cells**2 > _MAX_PAIRS or rows * cells * (cells if p == 1 else 1) > _MAX_COMPARED:
        return None
    else:
        columns = factor.dense()
    if (columns.astype(float) ** 2).sum(axis=0).max() >= _MAX_EXACT:
        return None
    binary = bool(((columns == 0) | (columns == 1)).all())
    if p == 2 or binary:
        shared = (columns.T.astype(float) @ columns.astype(float)).astype(np.int64)
    else:
        shared = _smaller(np.maximum(columns, 0)) + _smaller(np.maximum(-columns, 0))
    return _Overlap(shared, binary, alike)


def _smaller(columns: Array) -> Array:
    """For every pair of columns of counts, the sum over the rows of the smaller of the two."""
    shared = np.zeros((columns.shape[1],) * 2, np.int64)
    if not columns.any():
        return shared
    fits = columns.sum(axis=0).max() < 1 << 31
    cells = np.ascontiguousarray(columns.T, np.int32 if fits else np.int64)
    for number, cell in enumerate(cells):
        shared[number, number:] = np.minimum(cell, cells[number:]).sum(axis=1, dtype=cells.dtype)
    return np.maximum(shared, shared.T)


def _pairs(overlaps: Sequence[_Overlap], cells: int) -> Array:
    """All pairs of an attribute's cells: for every factor one row for each of N_s, N_t and M_st."""
    count = min(cells, 2) if all(overlap.alike for overlap in overlaps) else cells
    first, second = np.divmod(np.arange(count**2), count)
    return np.stack([row for overlap in overlaps for row in overlap.pairs(first, second)])


def _by_block(blocks: Sequence[Block], p: Norm) -> Number:
    """An upper bound: every block by itself, with the largest norms and the least overlap that its factors allow."""
    factors = {id(factor): factor for block in blocks for factor in block.factors}
    ranges = {key: _range(factor, p) for key, factor in factors.items()}
    total: Number = 0
    for block in blocks:
        low, high, norm = 1, 1, 1
        for factor in block.factors:
            least, most, factor_norm = ranges[id(factor)]
            ends = [end * other for end in (low, high) for other in (least, most)]
            low, high, norm = min(ends), max(ends), norm * factor_norm
        if block.condition is not None:
            low = min(low, 0)  # cells that are not counted have no overlap
        total += 2 * block.weight**p * (norm - low)
    return total


def _range(factor: Matrix, p: Norm) -> tuple[int, int, int]:
    """The least and the largest overlap of two columns, and the largest norm."""
    norm = int(factor.norm_power(p))
    overlap = _overlap(factor, p)
    if overlap is not None:
        return int(overlap.shared.min()), int(overlap.shared.max()), norm
    if isinstance(factor, Solvable):
        return factor.least_overlap(p), norm, norm
    return 0 if p == 1 else -norm, norm, norm
