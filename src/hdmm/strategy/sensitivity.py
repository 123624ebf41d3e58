"""How much the answers of all blocks together can change if one record is added or removed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, final

from hdmm.matrix import Identity, Matrix, Norm, Number, Total
from hdmm.matrix.compose import restricted
from hdmm.matrix.norms import stacked_norm
from hdmm.matrix.orbits import OrbitQueries
from hdmm.strategy.block import Block
from hdmm.strategy.orbits import orbit_norm


@final
class Change(NamedTuple):
    """By how much the weighted answers of all blocks can change, as a norm to the power p: exact, or an upper bound."""

    power: Number
    exact: bool


def sensitivity(blocks: Sequence[Block], p: Norm) -> Number:
    """The largest column norm, to the power p, of all weighted blocks together: exact, or an upper bound."""
    return change_by_adding(blocks, p).power


def change_by_adding(blocks: Sequence[Block], p: Norm) -> Change:
    """How much the answers change, at most, if one record is added or removed.

    It is never 0: queries that count nobody are measured like any others.
    """
    norm = _joint_norm(blocks, p)
    if norm is not None:
        return Change(norm or 1, True)
    return Change(sum((block.weight**p * block.matrix.norm_power(p) for block in blocks), start=0) or 1, False)


def _joint_norm(blocks: Sequence[Block], p: Norm) -> Number | None:
    """The exact norm; None if there is no quick way to it."""
    if len(blocks) == 1 and blocks[0].condition is None:
        return blocks[0].weight ** p * blocks[0].matrix.norm_power(p)
    if all(block.condition is None and all(isinstance(f, Identity) for f in block.factors) for block in blocks):
        return _simplified(sum((block.weight**p for block in blocks), Fraction(0)))
    if any(isinstance(factor, OrbitQueries) for block in blocks for factor in block.factors):
        return orbit_norm(blocks, p)
    norm = _uniform_norm(blocks, p)
    if norm is not None:
        return norm
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
        else:  # |entry|^p is |product's entry|^p times the condition, which is a signed sum of boxes
            for box in block.condition.boxes:
                parts.append([restricted(factor, box.masks.get(axis)) for axis, factor in factors.items()])
                weights.append(block.weight**p * box.coefficient)
    return stacked_norm(parts, weights, p)


def _uniform_norm(blocks: Sequence[Block], p: Norm) -> Number | None:
    """The norm of any column, if all columns of every factor have the same one; else None."""
    norms: dict[int, Number | None] = {}
    totals: dict[int, Number] = {}  # by the denominator of the weight: fractions are slow to add up
    for block in blocks:
        block_norm: Number = block.weight.numerator**p
        for factor in block.factors:
            if id(factor) not in norms:
                largest = factor.norm_power(p)
                norms[id(factor)] = largest if (factor.column_norms(p) == largest).all() else None
            norm = norms[id(factor)]
            if norm is None or block.condition is not None:
                return None
            block_norm = block_norm * norm
        denominator = block.weight.denominator**p
        totals[denominator] = totals.get(denominator, 0) + block_norm
    total = sum((value * Fraction(1, denominator) for denominator, value in totals.items()), Fraction(0))
    return _simplified(total) if isinstance(total, Fraction) else total


def _simplified(value: Fraction) -> Number:
    """An integer if the fraction is one."""
    return value.numerator if value.denominator == 1 else value
