"""Blocks: the unit of measuring. Each has its attributes, its integer queries, and its weight in the strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, pairwise
from math import prod
from typing import final

from hdmm.matrix import Condition, Filtered, Identity, Kron, Matrix, Norm, Number, Total
from hdmm.matrix.compose import restricted
from hdmm.matrix.norms import stacked_norm

Axes = tuple[int, ...]
"""A set of attributes, in order."""


@final
@dataclass(frozen=True)
class Block:
    """A Kronecker product over some attributes, measured with noise inversely proportional to its weight.

    With a condition across these attributes, only the records that satisfy it are counted.
    """

    axes: Axes
    factors: tuple[Matrix, ...]
    weight: Fraction = Fraction(1)
    condition: Condition | None = None

    def __post_init__(self) -> None:
        if len(self.axes) != len(self.factors) or any(one >= other for one, other in pairwise(self.axes)):
            raise ValueError("a block has one factor for each of its axes, in order")
        if self.weight <= 0:
            raise ValueError("a block's weight is positive")

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

    @property
    def integral(self) -> bool:
        """Whether every query has integer coefficients, so that it can be answered exactly before noise is added."""
        return self.matrix.dtype.kind == "i"


def subsets(axes: Axes) -> Iterator[Axes]:
    """All subsets of some attributes, the smaller ones first."""
    return chain.from_iterable(combinations(axes, count) for count in range(len(axes) + 1))


def sensitivity(blocks: Sequence[Block], p: Norm) -> Number:
    """The largest column norm, to the power p, of all weighted blocks together: exact, or an upper bound.

    It is never 0: queries that count nobody are measured like any others.
    """
    return _joint_norm(blocks, p) or 1


def _joint_norm(blocks: Sequence[Block], p: Norm) -> Number:
    if all(block.condition is None and all(isinstance(f, Identity) for f in block.factors) for block in blocks):
        return _plain(sum((block.weight**p for block in blocks), Fraction(0)))
    even = _even_norm(blocks, p)
    if even is not None:
        return even
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
    found = stacked_norm(parts, weights, p)
    if found is not None:
        return found
    return sum((block.weight**p * block.matrix.norm_power(p) for block in blocks), start=0)


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
