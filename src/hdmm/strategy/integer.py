"""Strategies of integer queries: what noise on a computer can be added to exactly (MATH §9).

A factor A of unit columns becomes B ≈ 2^k·A, rounded column by column so that no column's norm exceeds that of 2^k·A:
its absolute sum under Laplace noise, its squared length under Gaussian noise. B is then the strategy: its norms are
exact integers, and estimates and errors are those of B. The precision k is the least at which rounding costs next to
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import FaultError, TooLargeError
from hdmm.matrix import Array, Dense, Matrix, Norm
from hdmm.strategy.base import Strategy, loss
from hdmm.strategy.block import REACH, Block, largest_reach
from hdmm.strategy.direct import DirectStrategy
from hdmm.workload import Encoded

_PRECISIONS = (8, 9, 10, 11, 12, 14, 16)
_COARSER, _FINER = range(3, 16), 2
_LOSS = 2e-4
"""How much larger the total squared error may become: half of it in RMSE."""
_HALVINGS = 30
_ENLARGED, _LARGE = 16, 32
"""How many entries of a column may be enlarged, and how much smaller than the largest they may be."""

Integers = NDArray[np.int64]


def integral(strategy: Strategy, workload: Encoded, norm: Norm) -> Strategy | None:
    """The strategy with integer queries under noise of that norm; itself where they are integers already.

    None for queries that are published as they are asked: those cannot be rounded.
    """
    factors = {id(factor): factor for block in strategy.blocks for factor in block.factors}
    fractional = {key: factor.dense() for key, factor in factors.items() if factor.dtype.kind != "i"}
    if not fractional:
        return _measurable(strategy)
    if isinstance(strategy, DirectStrategy):
        return None
    most = loss(strategy, workload, norm) * (1 + _LOSS)

    def rounded(precisions: Mapping[int, int]) -> tuple[Strategy, float] | None:
        found = _rounded(strategy, fractional, precisions, norm)
        if found is None or not all(found.supports(product) for product in workload.products):
            return None
        return found, loss(found, workload, norm)

    best: tuple[Strategy, float] | None = None
    for k in _PRECISIONS:
        precisions = dict.fromkeys(fractional, k)
        found = rounded(precisions)
        if found is not None:
            best = found
            if found[1] <= most:
                break
    if best is None:
        raise FaultError("the strategy cannot be rounded to integers; please report the spec")
    if largest_reach(best[0].blocks) <= REACH:
        return best[0]
    # Answers would be too large: from a finer start each factor as coarsely as its share of the loss allows.
    precisions = dict.fromkeys(fractional, max(precisions.values()) + _FINER)
    best = rounded(precisions) or best
    share = max(most - best[1], 0.0) / len(fractional)
    for number, key in enumerate(fractional, 1):
        allowed = most - share * (len(fractional) - number)
        for k in _COARSER:
            coarser = None if k >= precisions[key] else rounded(precisions | {key: k})
            if coarser is not None and coarser[1] <= allowed:
                best, precisions = coarser, precisions | {key: k}
                break
    return _measurable(best[0])


def _measurable(strategy: Strategy) -> Strategy:
    if largest_reach(strategy.blocks) > REACH:
        raise TooLargeError(
            "a strategy's queries add up too many cells with too large coefficients to be answered exactly; "
            "ask for products of fewer attributes"
        )
    return strategy


def _rounded(
    strategy: Strategy, fractional: Mapping[int, Array], precisions: Mapping[int, int], norm: Norm
) -> Strategy | None:
    way = round_columns if norm == 1 else round_lengths
    known = {key: (Dense(way(entries, precisions[key])), precisions[key]) for key, entries in fractional.items()}
    try:
        return replace(strategy, blocks=tuple(_block(block, known) for block in strategy.blocks))
    except ValueError:  # rounded so coarsely that cells can no longer be told apart
        return None


def _block(block: Block, known: Mapping[int, tuple[Matrix, int]]) -> Block:
    """The block over integer factors; the scale that each brings is taken out of its weight."""
    weight = block.weight
    factors = []
    for factor in block.factors:
        chosen, k = known.get(id(factor), (factor, 0))
        factors.append(chosen)
        weight *= Fraction(1, 2**k)
    return replace(block, factors=tuple(factors), weight=weight)


def round_columns(entries: Array, k: int) -> Integers:
    """2^k times a matrix, rounded so that no column's absolute sum exceeds 2^k, by largest remainders."""
    sizes = abs(entries) * 2**k
    down = np.floor(sizes).astype(np.int64)
    missing = np.minimum(2**k - down.sum(axis=0), np.rint(sizes.sum(axis=0)).astype(np.int64) - down.sum(axis=0))
    order = np.argsort(down - sizes, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(order))[:, None], axis=0)
    whole: Integers = np.sign(entries).astype(np.int64) * (down + (ranks < missing))
    return whole


def round_lengths(entries: Array, k: int) -> Integers:
    """2^k times a matrix, rounded so that no column's squared length exceeds its own, nor 4^k if that is at most 1.

    A column is stretched or shrunk a little before it is rounded, as much as just keeps its length. What is then still
    missing is made up by enlarging a few entries by one, so that all columns are as long as before to a few units.
    """
    scaled = entries * 2.0**k
    most = np.floor((scaled**2).sum(axis=0) * (1 + 1e-12))
    low, high = np.zeros(scaled.shape[1]), np.full(scaled.shape[1], 2.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = (np.rint(scaled * middle) ** 2).sum(axis=0) <= most
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    whole: Integers = np.rint(scaled * low).astype(np.int64)
    signs = np.where(scaled < 0, -1, 1)
    missing = most.astype(np.int64) - (whole**2).sum(axis=0)
    large = abs(whole) * _LARGE >= abs(whole).max(axis=0)
    gains = np.where(large, 2 * abs(whole) + 1, np.iinfo(np.int64).max)
    columns = np.arange(whole.shape[1])
    for _ in range(min(_ENLARGED, len(whole))):
        fitting = np.where(gains <= missing, gains, 0)
        chosen = fitting.argmax(axis=0)
        gain = fitting[chosen, columns]
        whole[chosen, columns] += np.where(gain > 0, signs[chosen, columns], 0)
        missing -= gain
        gains[chosen, columns] = np.where(gain > 0, np.iinfo(np.int64).max, gains[chosen, columns])
    return whole
