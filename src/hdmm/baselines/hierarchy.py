"""Hierarchies of boxes over two attributes: levels of ever smaller boxes, and how much of the budget each gets.

The cells on the edge of a rectangle decide its error: it is the sum of about n_l boxes of level l, as many as its edge
meets. With weights w_l on the levels the error is about Σ n_l/w_l². Under Laplace noise the w_l add up to a constant,
and it is least for w_l ∝ ∛n_l, the geometric allocation of Cormode et al.; under Gaussian noise their squares do, and
it is least for w_l ∝ ∜n_l.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from hdmm.baselines.asked_ranges import attributes_of_ranges
from hdmm.errors import InputError, nearest
from hdmm.estimators.nested import MAX_AXIS, MAX_CELLS
from hdmm.matrix import Identity, Norm, Partition
from hdmm.operators.weights import dyadic
from hdmm.strategy import Block, Strategy
from hdmm.syntax import given
from hdmm.workload import Encoded

Allocation = Literal["geometric", "uniform"]
"""How levels share the budget: finer ones get more, or all get the same."""


def check_allocation(allocation: str) -> None:
    """Refuse any other word."""
    if allocation not in get_args(Allocation):
        wrong = given("allocation", repr(allocation))
        raise InputError(f"{wrong}: expected 'geometric' or 'uniform'{nearest(str(allocation), get_args(Allocation))}")


def sizes_of_ranges(workload: Encoded) -> tuple[int, int] | str:
    """The cells of the two attributes on which ranges are asked; the reason if the workload is another one."""
    axes = attributes_of_ranges(workload)
    if isinstance(axes, str):
        return axes
    first, second = (workload.sizes[axis] for axis in axes)
    if max(first, second) > MAX_AXIS or first * second > MAX_CELLS:
        names = " × ".join(map(workload.attribute, axes))
        return f"{names} has {first:,} × {second:,} cells; at most {MAX_AXIS:,} each and {MAX_CELLS:,} in all"
    return first, second


def halvings(cells: int) -> int:
    """How often cells are split in half until each is by itself."""
    return (cells - 1).bit_length()


def hierarchy(
    workload: Encoded, depths: Sequence[tuple[int, int]], growth: float, allocation: Allocation, norm: Norm
) -> Strategy:
    """A level for each pair of depths, how often the workload's two attributes are halved.

    ``growth`` is the ratio by which n_l grows from one level to the next.
    """
    exponent = 0.0 if allocation == "uniform" else 1 / (2 + norm)
    blocks = []
    for finer, pair in zip(reversed(range(len(depths))), depths, strict=True):
        groups = [Partition.halved(workload.sizes[axis], d) for axis, d in zip(workload.axes, pair, strict=True)]
        split = {axis: part for axis, part in zip(workload.axes, groups, strict=True) if len(part.ends) > 1}
        factors = [Identity(part.n) if len(part.ends) == part.n else part for part in split.values()]
        blocks.append(Block(tuple(split), tuple(factors), dyadic(growth ** (-exponent * finer))))
    return Strategy(workload.sizes, tuple(blocks), "union")
