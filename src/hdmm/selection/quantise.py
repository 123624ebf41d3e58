"""Strategies of integer queries: what noise on a computer can be added to exactly (docs/math.md, section 10).

A factor A of unit columns becomes B ≈ 2^k·A, rounded column by column so that no column's norm exceeds that of 2^k·A:
its absolute sum under Laplace noise, its squared length under Gaussian noise. B is then the strategy: its norms are
exact integers, and estimates and errors are those of B. The precision k is the least found at which rounding costs next
to nothing. That cost is computed for the B that is returned; a rule of thumb only says which precisions to try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil, exp, floor, inf, log, prod, sqrt
from typing import Any, final

from hdmm.errors import TooLargeError
from hdmm.estimators.estimator import LinearEstimator
from hdmm.estimators.least_squares import exact_least_squares
from hdmm.matrix import MAX_ENTRY, Dense, Identity, Matrix, Norm, Partition, Spiked, Total
from hdmm.matrix.orbits import OrbitQueries
from hdmm.matrix.solvable import Solvable
from hdmm.objective import Objective
from hdmm.strategy import Block, Strategy
from hdmm.strategy.block import REACH, largest_reach
from hdmm.strategy.integers import round_factor
from hdmm.workload import Encoded

_TOTAL_ERROR = Objective()
_LEAST_BITS = 8
"""The coarsest precision that is tried for all factors."""
_MOST_BITS = MAX_ENTRY.bit_length() - 1
"""The finest precision: with more bits, entries of nearly 1 would exceed the largest of an integer matrix."""
_COARSEST_BITS = 3
"""The coarsest precision of a single factor, if the answers would be too large otherwise."""
_FINER_BITS = 2
"""How much finer than necessary all factors begin, before each is made as coarse as it may be."""
_MAX_GROWTH = 2e-4
"""How much larger the total squared error may become: half of it in RMSE."""
_GROWTH_PER_CELL: dict[Norm, float] = {1: 0.1, 2: 0.4}
"""Rounding factors of n cells to k bits costs about this times n·4^−k if prefixes or ranges are asked for."""
_MAX_UNIT_NOISE = 2.0**42
"""The largest noise on a block at unit noise: samplers draw noise of up to 2^45, 8 times as much."""
_LEAST_GROWTH = 1e-12
"""A smaller growth is a rounding error, and says nothing about precisions."""
_LEAST_SHARE = 1e-6
"""The least share of the budget that the lightest blocks take together, relative to the heaviest one."""
_MAX_WRITTEN = 1 << 20
"""The most entries of a factor that is written out without need."""


@final
@dataclass(frozen=True, eq=False)
class Quantised:
    """A strategy of integer queries with its estimator, and how much its total squared error grew by rounding."""

    estimator: LinearEstimator[Any]
    growth: float

    @property
    def strategy(self) -> Strategy:
        """What is measured."""
        return self.estimator.strategy

    @property
    def cost(self) -> float:
        """What rounding added to the RMSE, as a share of it."""
        return sqrt(1 + self.growth) - 1


def quantise(strategy: Strategy, workload: Encoded, norm: Norm, objective: Objective = _TOTAL_ERROR) -> Quantised | str:
    """The strategy with integer queries, itself if they are integers already; or the reason why there is none.

    Rounding must not make worse what the objective makes small. Queries that are published as they are asked cannot be
    rounded.
    """
    if not _answers(exact_least_squares(strategy), workload):
        return "its strategy does not answer every question"
    strategy = _with_least_weights(strategy, norm)
    if all(block.integral for block in strategy.blocks):
        _check_reach(strategy)
        return Quantised(exact_least_squares(_as_in_files(strategy)), 0.0)
    if strategy.family == "direct":
        return "the questions are not integer queries, and only those can be measured as they are asked"
    quantised = _Quantiser(strategy, workload, norm, objective).least_precise()
    if quantised is None:
        return "its queries cannot be rounded to integers that still answer every question"
    _check_reach(quantised.strategy)
    return replace(quantised, estimator=exact_least_squares(_as_in_files(quantised.strategy)))


@final
class _Quantiser:
    """Rounds the factors of a strategy to several precisions; the same factor to the same precision only once."""

    def __init__(self, strategy: Strategy, workload: Encoded, norm: Norm, objective: Objective) -> None:
        self._strategy = strategy
        self._workload = workload
        self._norm: Norm = norm
        self._fractional = {
            id(factor): factor for block in strategy.blocks for factor in block.factors if factor.dtype.kind != "i"
        }
        self._objective = objective
        self._value = objective.value(exact_least_squares(strategy), workload, norm)
        self._rounded = cache(lambda key, bits: round_factor(self._fractional[key], bits, norm))

    def least_precise(self) -> Quantised | None:
        """The strategy with the fewest bits that cost little enough; None if no precision answers every question."""
        common = self._least_common()
        if common is None:
            return None
        bits, quantised = common
        if self._fits(quantised):
            return quantised
        coarsest = self._at(dict.fromkeys(self._fractional, _COARSEST_BITS))
        if coarsest is not None:
            _check_reach(coarsest)
        each = self._least_each(quantised, bits + _FINER_BITS)
        if self._fits(each):
            return each
        coarser = (self._attempt(dict.fromkeys(self._fractional, k)) for k in range(bits, _COARSEST_BITS - 1, -1))
        return next((attempt for attempt in coarser if attempt is not None and self._fits(attempt)), each)

    def _fits(self, quantised: Quantised) -> bool:
        """Whether answers are exact and their noise can be drawn."""
        strategy = quantised.strategy
        largest = max(strategy.unit_noise(self._norm))
        return largest_reach(strategy.blocks) <= REACH and largest <= _MAX_UNIT_NOISE**2

    def _least_common(self) -> tuple[int, Quantised] | None:
        """The fewest bits, the same for all factors, that cost little enough; if none does, the most."""
        cells = max(factor.shape[1] for factor in self._fractional.values())
        likely = ceil(log(_GROWTH_PER_CELL[self._norm] * cells / _MAX_GROWTH, 4))
        return fewest_bits(lambda bits: self._attempt(dict.fromkeys(self._fractional, bits)), likely)

    def _least_each(self, best: Quantised, bits: int) -> Quantised:
        """From a finer start, each factor as coarse as its share of the growth allows, so that answers are smaller."""
        precisions = dict.fromkeys(self._fractional, bits)
        best = self._attempt(precisions) or best
        share = max(_MAX_GROWTH - best.growth, 0.0) / len(precisions)
        for number, key in enumerate(self._fractional, 1):
            allowed = _MAX_GROWTH - share * (len(precisions) - number)
            for fewer in range(_COARSEST_BITS, precisions[key]):
                coarser = precisions | {key: fewer}
                quantised = self._attempt(coarser)
                if quantised is not None and quantised.growth <= allowed:
                    best, precisions = quantised, coarser
                    break
        return best

    def _attempt(self, precisions: Mapping[int, int]) -> Quantised | None:
        """The strategy with its factors at these precisions; None if it then does not answer every question."""
        strategy = self._at(precisions)
        if strategy is None:
            return None
        try:
            estimator = exact_least_squares(strategy)
        except ValueError:  # too coarse: cells can no longer be separated
            return None
        if not _answers(estimator, self._workload):
            return None
        value = self._objective.value(estimator, self._workload, self._norm)
        return Quantised(estimator, value / self._value - 1 if self._value else 0.0)

    def _at(self, precisions: Mapping[int, int]) -> Strategy | None:
        try:
            return _with_factors(self._strategy, {key: self._rounded(key, k) for key, k in precisions.items()})
        except ValueError:  # too fine: an entry exceeds the largest one that a matrix may have
            return None


def fewest_bits(attempt: Callable[[int], Quantised | None], likely: int) -> tuple[int, Quantised] | None:
    """The fewest bits found that cost little enough, beginning with the likely number; if none does, the most.

    The cost falls to about a quarter with every bit, so each attempt says which precision to try next.
    """
    too_few, enough = _LEAST_BITS - 1, _MOST_BITS + 1
    best: tuple[int, Quantised] | None = None
    bits = min(max(likely, _LEAST_BITS), _MOST_BITS)
    while too_few < bits < enough:
        quantised = attempt(bits)
        growth = inf if quantised is None else quantised.growth
        step = 0 if quantised is None else floor(abs(log(max(growth, _LEAST_GROWTH) / _MAX_GROWTH, 4)))
        if quantised is not None and (growth <= _MAX_GROWTH or enough > _MOST_BITS):
            best = bits, quantised
        if growth <= _MAX_GROWTH:
            enough = bits
            bits = max(bits - step, too_few + 1)
        else:
            too_few = bits
            bits = max(min(bits + step, _MOST_BITS), bits + 1)
    return best


def _answers(estimator: LinearEstimator[Any], workload: Encoded) -> bool:
    """Whether every product can be answered."""
    return all(estimator.supports(product) for product in workload.products)


def _with_least_weights(strategy: Strategy, norm: Norm) -> Strategy:
    """The strategy with more weight on blocks so light that no float could hold their noise beside that of the others.

    The others hardly notice: all that is added is at most ``_LEAST_SHARE`` of the heaviest block's share of the budget.
    """
    factors = {id(factor): factor for block in strategy.blocks for factor in block.factors}
    norms = {key: log(factor.norm_power(norm) or 1) for key, factor in factors.items()}
    shares = [
        norm * (log(block.weight.numerator) - log(block.weight.denominator))
        + sum(norms[id(factor)] for factor in block.factors)
        for block in strategy.blocks
    ]
    least = max(shares) + log(_LEAST_SHARE / len(shares))
    if min(shares) >= least:
        return strategy
    increases = [ceil(exp(max(0.0, least - share) / norm)) for share in shares]
    pairs = zip(strategy.blocks, increases, strict=True)
    return replace(strategy, blocks=tuple(replace(block, weight=block.weight * more) for block, more in pairs))


def _as_in_files(strategy: Strategy) -> Strategy:
    """The strategy with its small integer factors in the form that files hold, so that sums are in the same order."""
    if strategy.family == "direct":  # its queries are read from the workload
        return strategy
    factors = {id(factor): factor for block in strategy.blocks for factor in block.factors}
    written: dict[int, tuple[Matrix, int]] = {
        key: (Dense(factor.dense()), 0)
        for key, factor in factors.items()
        if not isinstance(factor, (Dense, Identity, OrbitQueries, Partition, Solvable, Spiked, Total))
        and factor.dtype.kind == "i"
        and prod(factor.shape) <= _MAX_WRITTEN
    }
    return _with_factors(strategy, written) if written else strategy


def _check_reach(strategy: Strategy) -> None:
    if largest_reach(strategy.blocks) > REACH:
        raise TooLargeError(
            "a strategy's queries add up too many cells with too large coefficients to be answered exactly; "
            "ask for products of fewer attributes"
        )


def _with_factors(strategy: Strategy, integers: Mapping[int, tuple[Matrix, int]]) -> Strategy:
    """The strategy with some factors replaced by integer ones, each 2^k times as large."""
    return replace(strategy, blocks=tuple(_with_block_factors(block, integers) for block in strategy.blocks))


def _with_block_factors(block: Block, integers: Mapping[int, tuple[Matrix, int]]) -> Block:
    """The block over integer factors; the scale that each brings is taken out of its weight."""
    weight = block.weight
    factors = []
    for factor in block.factors:
        replacement, bits = integers.get(id(factor), (factor, 0))
        factors.append(replacement)
        weight *= Fraction(1, 2**bits)
    return replace(block, factors=tuple(factors), weight=weight)
