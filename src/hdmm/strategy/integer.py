"""Strategies of integer queries: what noise on a computer can be added to exactly (MATH §9).

A factor A of unit columns becomes B ≈ 2^k·A, rounded column by column so that no column's norm exceeds that of 2^k·A:
its absolute sum under Laplace noise, its squared length under Gaussian noise. B is then the strategy: its norms are
exact integers, and estimates and errors are those of B. The precision k is the least that is found at which rounding
costs next to nothing. That is computed for the B that is returned; a law only tells which precisions to try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil, exp, floor, log, prod, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import TooLargeError
from hdmm.matrix import LARGEST, Array, Dense, Identity, Matrix, Norm, Spiked, Total
from hdmm.strategy.base import Strategy, loss
from hdmm.strategy.block import REACH, Block, largest_reach
from hdmm.strategy.direct import DirectStrategy
from hdmm.workload import Encoded

_PRECISIONS = range(8, LARGEST.bit_length())
"""Bits to try; with more, entries of nearly 1 would be larger than those of an integer matrix may be."""
_COARSEST, _FINER = 3, 2
_GROWTH = 2e-4
"""How much larger the total squared error may become: half of it in RMSE."""
_PER_CELL: dict[Norm, float] = {1: 0.1, 2: 0.4}
"""Rounding factors of n cells to k bits costs about so many times n·4^−k, where prefixes or ranges are asked for."""
_HALVINGS = 30
_ENLARGED, _LARGE = 16, 32
"""How many entries of a column may be enlarged, and how much smaller than the largest they may be."""
_LEAST_SHARE = 1e-6
"""What all the lightest blocks together take of the budget at least, beside the heaviest one."""
_WRITTEN = 1 << 20
"""The most entries of a factor that is written out without need."""
_NEVER, _TINY = np.iinfo(np.int64).max, 1e-12

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class Rounded:
    """A strategy with integer queries, and how much its total squared error grew when they were rounded."""

    strategy: Strategy
    growth: float

    @property
    def cost(self) -> float:
        """What rounding added to the RMSE, as a share of it."""
        return sqrt(1 + self.growth) - 1


def round_strategy(strategy: Strategy, workload: Encoded, norm: Norm) -> Rounded | str:
    """The strategy with integer queries under noise of that norm, itself where they are integers already; or why not.

    Queries that are published as they are asked cannot be rounded.
    """
    if not all(strategy.supports(product) for product in workload.products):
        return "its strategy does not answer every question"
    strategy = _tempered(strategy, norm)
    factors = {id(factor): factor for block in strategy.blocks for factor in block.factors}
    fractional = {key: factor.dense() for key, factor in factors.items() if factor.dtype.kind != "i"}
    if not fractional:
        _check_reach(strategy)
        return Rounded(_written_out(strategy, factors), 0.0)
    if isinstance(strategy, DirectStrategy):
        return "the questions are not integer queries, which is all that can be measured as it is asked"
    before = loss(strategy, workload, norm)
    way = round_columns if norm == 1 else round_lengths
    queries = cache(lambda key, k: Dense(way(fractional[key], k)))

    def rounded(precisions: Mapping[int, int]) -> Rounded | None:
        try:
            found = _replaced(strategy, {key: (queries(key, k), k) for key, k in precisions.items()})
        except ValueError:  # so finely that an entry exceeds the largest one that a matrix may have
            return None
        if found is None or not all(found.supports(product) for product in workload.products):
            return None
        return Rounded(found, loss(found, workload, norm) / before - 1)

    cells = max(entries.shape[1] for entries in fractional.values())
    likely = min(ceil(log(_PER_CELL[norm] * cells / _GROWTH, 4)), LARGEST.bit_length() - 1)
    least = _least(lambda k: rounded(dict.fromkeys(fractional, k)), likely)
    if least is None:
        return "its queries cannot be rounded to integers that still answer every question"
    common, best = least
    if largest_reach(best.strategy.blocks) <= REACH:
        return replace(best, strategy=_written_out(best.strategy, factors))
    # Answers would be too large: from a finer start each factor as coarsely as its share of the growth allows.
    coarsest = _replaced(strategy, {key: (queries(key, _COARSEST), _COARSEST) for key in fractional})
    if coarsest is not None:
        _check_reach(coarsest)
    precisions = dict.fromkeys(fractional, common + _FINER)
    best = rounded(precisions) or best
    share = max(_GROWTH - best.growth, 0.0) / len(fractional)
    for number, key in enumerate(fractional, 1):
        allowed = _GROWTH - share * (len(fractional) - number)
        for k in range(_COARSEST, precisions[key]):
            coarser = rounded(precisions | {key: k})
            if coarser is not None and coarser.growth <= allowed:
                best, precisions = coarser, precisions | {key: k}
                break
    _check_reach(best.strategy)
    return replace(best, strategy=_written_out(best.strategy, factors))


def _tempered(strategy: Strategy, norm: Norm) -> Strategy:
    """The strategy with more weight on blocks so light that no float could hold their noise beside that of the others.

    The others hardly notice: all that is added is at most ``_LEAST_SHARE`` of the heaviest block's share of the budget.
    """
    norms = cache(lambda key: log(factors[key].norm_power(norm) or 1))
    factors = {id(factor): factor for block in strategy.blocks for factor in block.factors}
    shares = [
        norm * (log(block.weight.numerator) - log(block.weight.denominator))
        + sum(norms(id(one)) for one in block.factors)
        for block in strategy.blocks
    ]
    least = max(shares) + log(_LEAST_SHARE / len(shares))
    if min(shares) >= least:
        return strategy
    lacking = [ceil(exp(max(0.0, least - share) / norm)) for share in shares]
    blocks = [replace(block, weight=block.weight * more) for block, more in zip(strategy.blocks, lacking, strict=True)]
    return replace(strategy, blocks=tuple(blocks))


def _written_out(strategy: Strategy, factors: Mapping[int, Matrix]) -> Strategy:
    """The strategy with its small integer factors in the form that files hold, so that it adds in the same order."""
    if isinstance(strategy, DirectStrategy):  # its queries are read from the workload
        return strategy
    known: dict[int, tuple[Matrix, int]] = {
        key: (Dense(factor.dense()), 0)
        for key, factor in factors.items()
        if not isinstance(factor, (Dense, Identity, Total, Spiked))
        and factor.dtype.kind == "i"
        and prod(factor.shape) <= _WRITTEN
    }
    return (_replaced(strategy, known) or strategy) if known else strategy


def _least(rounded: Callable[[int], Rounded | None], likely: int) -> tuple[int, Rounded] | None:
    """The least precision found that costs little enough; where none does, the finest.

    The cost falls to about a quarter with every bit, so that each attempt tells which precision to try next.
    """
    first, last = _PRECISIONS.start, _PRECISIONS.stop - 1
    failed, enough = first - 1, last + 1
    best: tuple[int, Rounded] | None = None
    k = min(max(likely, first), last)
    while failed < k < enough:
        found = rounded(k)
        bits = 0 if found is None else floor(abs(log(max(found.growth, _TINY) / _GROWTH, 4)))
        if found is not None and found.growth <= _GROWTH:
            best, enough = (k, found), k
            k = max(k - bits, failed + 1)
        else:
            if found is not None and enough > last:
                best = (k, found)
            failed = k
            k = max(min(k + bits, last), k + 1)
    return best


def _check_reach(strategy: Strategy) -> None:
    if largest_reach(strategy.blocks) > REACH:
        raise TooLargeError(
            "a strategy's queries add up too many cells with too large coefficients to be answered exactly; "
            "ask for products of fewer attributes"
        )


def _replaced(strategy: Strategy, known: Mapping[int, tuple[Matrix, int]]) -> Strategy | None:
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
    tried = np.empty_like(scaled)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        np.rint(np.multiply(scaled, middle, out=tried), out=tried)
        fits = np.einsum("ij,ij->j", tried, tried) <= most
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    whole: Integers = np.rint(scaled * low).astype(np.int64)
    missing = most.astype(np.int64) - (whole**2).sum(axis=0)
    sizes = abs(whole)
    gains = np.where(sizes * _LARGE >= sizes.max(axis=0), 2 * sizes + 1, _NEVER)
    columns = np.arange(whole.shape[1])  # those in which something may still be enlarged, as in gains
    for _ in range(min(_ENLARGED, len(whole))):
        fitting = np.where(gains <= missing[columns], gains, 0)
        chosen = fitting.argmax(axis=0)
        gain = fitting[chosen, np.arange(len(columns))]
        left = gain > 0
        chosen, columns, gains = chosen[left], columns[left], gains[:, left]
        whole[chosen, columns] += np.where(scaled[chosen, columns] < 0, -1, 1)
        missing[columns] -= gain[left]
        gains[chosen, np.arange(len(columns))] = _NEVER
    return whole
