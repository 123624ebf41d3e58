"""Blocks: the unit of measuring. Each has its attributes, its integer queries, and its weight in the strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hdmm.matrix import Identity, Kron, Matrix, Norm, Number, Total
from hdmm.matrix.norms import stacked_norm


@final
@dataclass(frozen=True)
class Block:
    """A Kronecker product over some attributes, measured with noise inversely proportional to its weight."""

    axes: tuple[int, ...]
    factors: tuple[Matrix, ...]
    weight: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if len(self.axes) != len(self.factors) or list(self.axes) != sorted(set(self.axes)):
            raise ValueError("a block has one factor for each of its axes, in order")
        if self.weight <= 0:
            raise ValueError("a block's weight is positive")

    @property
    def matrix(self) -> Kron:
        """The block's queries over the cells of its attributes; without attributes, the one count of all records."""
        return Kron(self.factors or (Total(1),))

    @property
    def cells(self) -> int:
        """How many cells must be counted."""
        return self.matrix.shape[1]

    @property
    def queries(self) -> int:
        """How many noisy answers it gives."""
        return self.matrix.shape[0]

    @property
    def integral(self) -> bool:
        """Whether every query has integer coefficients, so that it can be answered exactly before noise is added."""
        return self.matrix.dtype.kind == "i"


def sensitivity(blocks: Sequence[Block], p: Norm) -> Number:
    """The largest column norm, to the power p, of all weighted blocks together: exact, or an upper bound.

    It is never 0: queries that count nobody are measured like any others.
    """
    return _joint_norm(blocks, p) or 1


def _joint_norm(blocks: Sequence[Block], p: Norm) -> Number:
    if all(isinstance(factor, Identity) for block in blocks for factor in block.factors):
        return _plain(sum((block.weight**p for block in blocks), Fraction(0)))
    sizes: dict[int, int] = {}
    for block in blocks:
        sizes.update((axis, factor.shape[1]) for axis, factor in zip(block.axes, block.factors, strict=True))
    totals: dict[int, Matrix] = {axis: Total(size) for axis, size in sorted(sizes.items())}
    parts = [list((totals | dict(zip(block.axes, block.factors, strict=True))).values()) for block in blocks]
    weights = [block.weight**p for block in blocks]
    found = stacked_norm(parts, weights, p)
    if found is not None:
        return found
    return sum((w * block.matrix.norm_power(p) for w, block in zip(weights, blocks, strict=True)), start=0)


def _plain(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value
