"""How many bytes work arrays take, from shapes alone."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from hdmm.matrix import Identity, Matrix, Total
from hdmm.matrix.kronecker import Step, work_size
from hdmm.matrix.solvable import Solvable
from hdmm.strategy import Block, Strategy
from hdmm.workload import EncodedProduct

NUMBER = 8
"""Bytes of one number."""
_TABLES = 3
"""Arrays of a marginal's size while it is put together from its parts."""


def steps(factors: Iterable[Matrix], *, inverse: bool = False) -> list[Step]:
    """Steps with the shapes of factors, or of their inverses, to estimate sizes; what they compute does not matter."""
    return [
        Step(*(factor.shape[::-1] if inverse else factor.shape), None if isinstance(factor, Identity) else abs)
        for factor in factors
    ]


def estimate_bytes(block: Block) -> int:
    """Bytes to estimate the counts of a block from its answers; none if they are the counts."""
    if all(isinstance(factor, Identity) for factor in block.factors):
        return 0
    return NUMBER * work_size(steps(block.factors, inverse=True))


def solution_bytes(block: Block) -> list[int]:
    """The sizes of the arrays with which implicit factors are solved."""
    return [
        NUMBER * factor.solution_size
        for factor in block.factors
        if isinstance(factor, Solvable)
        for _ in range(factor.solution_arrays)
    ]


def assembled_bytes(strategy: Strategy, product: EncodedProduct) -> int:
    """Bytes to answer a product from a table that is put together for it."""
    table = prod(strategy.sizes_of(product.axes).values())
    return NUMBER * (_TABLES * table + work_size(steps(product.factors.values()) or [Step(1, 1, None)]))


def held_bytes(strategy: Strategy, product: EncodedProduct) -> int:
    """Bytes to answer a product from the counts of one block."""
    sizes = [
        work_size(steps(product.factors.get(axis) or Total(strategy.sizes[axis]) for axis in block.axes))
        for block in strategy.blocks
        if block.axes and set(product.axes) <= set(block.axes)
    ]
    conditions = 0 if product.condition is None else 2 * prod(strategy.sizes_of(product.axes).values())
    return NUMBER * (max(sizes, default=1) + conditions)
