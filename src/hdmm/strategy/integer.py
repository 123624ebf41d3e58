"""Strategies of integer queries: what noise on a computer can be added to exactly (MATH §9).

A factor A of unit columns becomes B ≈ 2^k·A, rounded column by column so that no column's absolute sum exceeds 2^k. B
is then the strategy: its norms are exact integers, and estimates and errors are those of B. The precision k is the
least at which rounding costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import FaultError
from hdmm.matrix import Array, Dense, Identity, Matrix
from hdmm.strategy.base import Strategy, loss
from hdmm.strategy.block import Block
from hdmm.strategy.direct import DirectStrategy
from hdmm.workload import Encoded

_PRECISIONS = range(8, 17, 2)
_LOSS = 1e-4
"""How much larger the total squared error may become: half of it in RMSE."""


def integral(strategy: Strategy, workload: Encoded) -> Strategy | None:
    """The strategy with integer queries under Laplace noise; itself where they are integers already.

    None for queries that are published as they are asked: those cannot be rounded.
    """
    if all(block.integral for block in strategy.blocks):
        return strategy
    if isinstance(strategy, DirectStrategy):
        return None
    before = loss(strategy, workload, 1)
    found: Strategy | None = None
    for k in _PRECISIONS:
        rounded = _rounded(strategy, k)
        if rounded is None or not all(rounded.supports(product) for product in workload.products):
            continue
        found = rounded
        if loss(rounded, workload, 1) <= before * (1 + _LOSS):
            break
    if found is None:
        raise FaultError("the strategy cannot be rounded to integers; please report the spec")
    return found


def _rounded(strategy: Strategy, k: int) -> Strategy | None:
    factors = {id(factor): factor for block in strategy.blocks for factor in block.factors}
    known = {key: _integers(factor, k) for key, factor in factors.items()}
    try:
        return replace(strategy, blocks=tuple(_block(block, known) for block in strategy.blocks))
    except ValueError:  # rounded so coarsely that cells can no longer be told apart
        return None


def _block(block: Block, known: Mapping[int, Matrix]) -> Block:
    """The block over integer factors; the scale that each brings is taken out of its weight."""
    weight = block.weight
    factors = []
    for factor in block.factors:
        chosen = known[id(factor)]
        factors.append(chosen)
        if chosen is not factor:
            weight /= int(chosen.norm_power(1))
    return replace(block, factors=tuple(factors), weight=weight)


def _integers(factor: Matrix, k: int) -> Matrix:
    if isinstance(factor, Identity) or factor.dtype.kind == "i":
        return factor
    return Dense(round_columns(factor.dense(), k))


def round_columns(entries: Array, k: int) -> NDArray[np.int64]:
    """2^k times a matrix, rounded so that no column's absolute sum exceeds 2^k, by largest remainders."""
    sizes = abs(entries) * 2**k
    down = np.floor(sizes).astype(np.int64)
    missing = np.minimum(2**k - down.sum(axis=0), np.rint(sizes.sum(axis=0)).astype(np.int64) - down.sum(axis=0))
    order = np.argsort(down - sizes, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(order))[:, None], axis=0)
    whole: NDArray[np.int64] = np.sign(entries).astype(np.int64) * (down + (ranks < missing))
    return whole
