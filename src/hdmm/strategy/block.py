"""Blocks: the unit of measuring. Each has its attributes, its integer queries, and its weight in the strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from operator import ge
from typing import final

from hdmm.matrix import Condition, Filtered, Kron, Matrix, Total
from hdmm.matrix.axes import Axes
from hdmm.matrix.exact import reach_of

REACH = 1 << 57
"""The largest reach of a query that is measured: it is answered exactly, a few bits of a count at a time."""
_MAX_NARROW_REACH = 1 << 22
"""The largest reach at which answers to counts of up to 2^40 fit 64 bits."""


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
        """Upper bound on an answer's size, as a multiple of the largest count."""
        return largest_reach([self])

    @property
    def wide(self) -> bool:
        """Whether answers may need more than 64 bits."""
        return self.reach > _MAX_NARROW_REACH

    @property
    def integral(self) -> bool:
        """Whether every query has integer coefficients, so that it can be answered exactly before noise is added."""
        return all(factor.dtype.kind == "i" for factor in self.factors)


def largest_reach(blocks: Sequence[Block]) -> int:
    """The largest reach of some blocks of integer queries; a factor that they share is looked at once."""
    factors = {id(factor): factor for block in blocks for factor in block.factors}
    reaches = {key: reach_of(factor) for key, factor in factors.items()}
    return max(prod(reaches[id(factor)] for factor in block.factors) for block in blocks)
