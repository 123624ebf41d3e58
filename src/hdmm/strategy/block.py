"""Blocks: the unit of measuring. Each has its attributes, its integer queries, and its weight in the strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from operator import ge
from typing import NamedTuple, final

from hdmm.matrix import Condition, Filtered, Identity, Kron, Matrix, Norm, Number, Total
from hdmm.matrix.compose import restricted
from hdmm.matrix.exact import reach_of
from hdmm.matrix.norms import stacked_norm
from hdmm.matrix.subsets import Axes

REACH = 1 << 57
"""The most times a count that a query may add up to: it is then answered exactly, a few bits of a count at a time."""
_NARROW = 1 << 22
"""Up to so many times, answers to counts of up to 2^40 fit 64 bits."""


@final
@dataclass(frozen=True)
class Block:
    """A Kronecker product over some attributes, measured with noise inversely proportional to its weight.

    With a condition across these attributes, only the records that satisfy it are counted.
    """

    axes: Axes
    factors: tuple[Matrix, ...]
    """One for each attribute; or one over the cells of all of them together."""
    weight: Fraction = Fraction(1)
    condition: Condition | None = None

    def __post_init__(self) -> None:
        fitting = len(self.factors) == len(self.axes) or self.joint
        if not fitting or any(map(ge, self.axes, self.axes[1:])):
            raise ValueError("a block has one factor for each of its axes, in order, or one for all")
        if self.joint and self.condition is not None:
            raise ValueError("a factor over several attributes needs no condition beside it")
        if self.weight <= 0:
            raise ValueError("a block's weight is positive")

    @property
    def joint(self) -> bool:
        """Whether one factor stands for several attributes."""
        return len(self.factors) == 1 < len(self.axes)

    @property
    def matrix(self) -> Matrix:
        """The block's queries over the cells of its attributes; without attributes, the one count of all records."""
        kron = Kron(self.factors or (Total(1),))
        if self.condition is None:
            return kron
        return Filtered(kron, self.condition.moved({axis: place for place, axis in enumerate(self.axes)}))

    @property
    def cells(self) -> int:
        """How many cells must be counted."""
        return prod(factor.shape[1] for factor in self.factors)

    @property
    def queries(self) -> int:
        """How many noisy answers it gives."""
        return prod(factor.shape[0] for factor in self.factors)

    @cached_property
    def reach(self) -> int:
        """How many times the largest count an answer can be, at most."""
        return largest_reach([self])

    @property
    def wide(self) -> bool:
        """Whether answers may need more than 64 bits."""
        return self.reach > _NARROW

    @property
    def integral(self) -> bool:
        """Whether every query has integer coefficients, so that it can be answered exactly before noise is added."""
        return all(factor.dtype.kind == "i" for factor in self.factors)


def largest_reach(blocks: Sequence[Block]) -> int:
    """The largest reach of some blocks of integer queries; equal factors are looked at once."""
    known: dict[int, int] = {}
    largest = 0
    for block in blocks:
        reach = 1
        for factor in block.factors:
            if id(factor) not in known:
                known[id(factor)] = reach_of(factor)
            reach *= known[id(factor)]
        largest = max(largest, reach)
    return largest


@final
class Change(NamedTuple):
    """By how much the weighted answers of all blocks can change, as a norm to the power p: exact, or an upper bound."""

    power: Number
    exact: bool


def sensitivity(blocks: Sequence[Block], p: Norm) -> Number:
    """The largest column norm, to the power p, of all weighted blocks together: exact, or an upper bound."""
    return added(blocks, p).power


def added(blocks: Sequence[Block], p: Norm) -> Change:
    """How much the answers change, at most, where one record is added or removed.

    It is never 0: queries that count nobody are measured like any others.
    """
    found = _joint_norm(blocks, p)
    if found is not None:
        return Change(found or 1, True)
    return Change(sum((block.weight**p * block.matrix.norm_power(p) for block in blocks), start=0) or 1, False)


def _joint_norm(blocks: Sequence[Block], p: Norm) -> Number | None:
    """The exact norm; None where it is not known."""
    if len(blocks) == 1 and blocks[0].condition is None:
        return blocks[0].weight ** p * blocks[0].matrix.norm_power(p)
    if all(block.condition is None and all(isinstance(f, Identity) for f in block.factors) for block in blocks):
        return _plain(sum((block.weight**p for block in blocks), Fraction(0)))
    even = _even_norm(blocks, p)
    if even is not None:
        return even
    if any(block.joint for block in blocks):
        return None
    sizes: dict[int, int] = {}
    for block in blocks:
        sizes.update((axis, factor.shape[1]) for axis, factor in zip(block.axes, block.factors, strict=True))
    totals: dict[int, Matrix] = {axis: Total(size) for axis, size in sorted(sizes.items())}
    parts, weights = [], []
    for block in blocks:
        factors = totals | dict(zip(block.axes, block.factors, strict=True))
        if block.condition is None:
            parts.append(list(factors.values()))
            weights.append(block.weight**p)
        else:  # |entry|^p is |product's entry|^p times the condition, which is a signed sum
            for term in block.condition.terms:
                parts.append([restricted(factor, term.masks.get(axis)) for axis, factor in factors.items()])
                weights.append(block.weight**p * term.coefficient)
    return stacked_norm(parts, weights, p)


def _even_norm(blocks: Sequence[Block], p: Norm) -> Number | None:
    """The norm where all columns of every factor have the same one: every cell is then as bad as any other."""
    known: dict[int, Number | None] = {}
    totals: dict[int, Number] = {}  # by the denominator of the weight: fractions are slow to add up
    for block in blocks:
        norm: Number = block.weight.numerator**p
        for factor in block.factors:
            if id(factor) not in known:
                largest = factor.norm_power(p)
                known[id(factor)] = largest if (factor.column_norms(p) == largest).all() else None
            own = known[id(factor)]
            if own is None or block.condition is not None:
                return None
            norm = norm * own
        denominator = block.weight.denominator**p
        totals[denominator] = totals.get(denominator, 0) + norm
    total = sum((value * Fraction(1, denominator) for denominator, value in totals.items()), Fraction(0))
    return _plain(total) if isinstance(total, Fraction) else total


def _plain(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value
