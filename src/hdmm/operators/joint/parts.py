"""Blocks taken apart for a joint descent: cells of even attributes, and queries over classes of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations
from math import prod, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.estimators.coordinates import MAX_WAYS
from hdmm.matrix import Array, Identity, Kron, Matrix
from hdmm.matrix.axes import Axes
from hdmm.strategy import Block, Strategy

_MAX_BLOCKS = 1 << 9
_MAX_EVEN_CELLS = 1 << 10
"""The most cells of an attribute whose cells are compared."""
_MAX_ENTRIES = 1 << 20
"""The most entries of a block's queries on the attributes that are not even."""
_NEGLIGIBLE = 1e-9
"""The share of a diagonal entry below which a difference is rounding."""


@final
@dataclass(frozen=True, eq=False)
class Part:
    """A block as the even attributes whose cells it counts, and its queries on the others."""

    even: Axes
    others: Axes
    queries: Array
    """Over the classes of cells; times the weight of the block."""
    classes: NDArray[np.int64]
    """The class of each cell of the other attributes: cells of one class are in the same queries."""
    factors: tuple[Matrix, ...]
    """The queries on each of the other attributes, if they stay as they are."""

    @property
    def free(self) -> bool:
        """Whether the entries of the queries move, and not only the weight."""
        return len(self.others) == 1

    @property
    def width(self) -> int:
        return self.queries.shape[1]


def split_blocks(strategy: Strategy) -> list[Part] | None:
    """The blocks, each with counts of cells or of nothing on even attributes; None if there are too many."""
    blocks = strategy.blocks
    if any(block.condition is not None or block.joint or len(block.axes) > MAX_WAYS for block in blocks):
        return None
    pairs = [(axis, factor) for block in blocks for axis, factor in zip(block.axes, block.factors, strict=True)]
    even = {axis for axis, _ in pairs} - {axis for axis, factor in pairs if _even_weights(factor) is None}
    parts: list[Part] = []
    for block in blocks:
        if len(parts) > _MAX_BLOCKS:
            return None
        others = [(axis, factor) for axis, factor in zip(block.axes, block.factors, strict=True) if axis not in even]
        table = Kron([factor for _, factor in others] or [Identity(1)])
        if table.shape[0] * table.shape[1] > _MAX_ENTRIES:
            return None
        dense = float(block.weight) * table.dense().astype(float)
        columns, classes = np.unique(dense, axis=1, return_inverse=True)
        for counted, scale in _expanded(block, even):
            parts.append(
                Part(
                    counted,
                    tuple(axis for axis, _ in others),
                    abs(scale * columns),
                    classes.reshape(-1),
                    tuple(factor for _, factor in others),
                )
            )
    return parts if len(parts) > 1 else None


def _expanded(block: Block, even: set[int]) -> Iterator[tuple[Axes, float]]:
    """The even attributes of a block: each factor as counts of cells and a total, with the product of their weights."""
    options: list[list[tuple[int | None, float]]] = []
    for axis, factor in zip(block.axes, block.factors, strict=True):
        if axis in even:
            weights = _even_weights(factor)
            assert weights is not None
            options.append([(i, weight) for i, weight in zip((axis, None), weights, strict=True) if weight > 0])
    for chosen in combinations(*options):
        yield tuple(axis for axis, _ in chosen if axis is not None), prod(scale for _, scale in chosen)


def _even_weights(factor: Matrix) -> tuple[float, float] | None:
    """The weights of single cells and of the total that measure the same as a factor; None if cells are not alike."""
    if isinstance(factor, Identity):
        return 1.0, 0.0
    gram = factor.gram().axis_gram()
    n = gram.size
    if n > _MAX_EVEN_CELLS:
        return None
    entries = gram.dense()
    diagonal, shared = float(entries[0, 0]), float(entries[0, -1]) if n > 1 else 0.0
    alike = np.full((n, n), shared)
    np.fill_diagonal(alike, diagonal)
    if shared < -_NEGLIGIBLE * diagonal or abs(entries - alike).max() > _NEGLIGIBLE * diagonal:
        return None
    least = _NEGLIGIBLE * diagonal
    alone = diagonal - shared
    return sqrt(alone) if alone > least else 0.0, sqrt(shared) if shared > least else 0.0
