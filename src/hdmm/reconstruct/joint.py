"""Least squares over all blocks of a union at once (paper, section 10): one estimate of the counts for all tables.

Each block alone gives an unbiased answer. The best linear one uses all blocks, each with its own variance; no answer
has a larger variance than it has from one block (Gauss and Markov), and since all come from one vector of counts, a
table's rows add up to those of every coarser table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import final

import numpy as np

from hdmm.errors import FaultError
from hdmm.matrix import Array, Identity, Kron, Total
from hdmm.strategy import Block, Noise, UnionStrategy
from hdmm.workload import EncodedProduct

_TOLERANCE = 1e-12
_ROUNDS = 20_000


@final
@dataclass(frozen=True, eq=False)
class Joint:
    """An estimate of the counts over all attributes that a union measures."""

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    counts: Array

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to a product, from the one estimate."""
        shape = dict(zip(self.axes, self.sizes, strict=True)) or {-1: 1}
        if product.condition is None:
            return Kron(product.factors.get(axis) or Total(n) for axis, n in shape.items()).apply(self.counts)
        own = {axis: shape[axis] for axis in product.axes}
        table = Kron(Identity(n) if axis in own else Total(n) for axis, n in shape.items()).apply(self.counts)
        return product.matrix(own).apply(table)


def joint_cells(strategy: UnionStrategy) -> int:
    """How many counts an estimate for all blocks holds."""
    return prod(strategy.sizes[axis] for axis in _axes(strategy))


def joint_estimate(strategy: UnionStrategy, answers: Sequence[Array], noise: Noise) -> Joint:
    """The counts that fit all measurements best, each weighted by its noise; of several such, the shortest."""
    from scipy.sparse.linalg import LinearOperator, lsmr

    axes = _axes(strategy)
    sizes = tuple(strategy.sizes[axis] for axis in axes)
    blocks = [_expanded(block, axes, sizes) for block in strategy.blocks]
    scales = [1 / sqrt(variance) for variance in noise]
    ends = np.cumsum([block.shape[0] for block in blocks])

    def forward(x: Array) -> Array:
        return np.concatenate([scale * block.apply(x) for scale, block in zip(scales, blocks, strict=True)])

    def backward(y: Array) -> Array:
        parts = np.split(y, ends[:-1])
        found = np.zeros(prod(sizes))
        for scale, block, part in zip(scales, blocks, parts, strict=True):
            found += block.apply_t(scale * part)
        return found

    stack = LinearOperator((int(ends[-1]), prod(sizes)), matvec=forward, rmatvec=backward, dtype=float)
    seen = np.concatenate([scale * given.astype(float) for scale, given in zip(scales, answers, strict=True)])
    counts, reason, *_ = lsmr(stack, seen, atol=_TOLERANCE, btol=_TOLERANCE, conlim=0, maxiter=_ROUNDS)
    if reason not in (0, 1, 2, 4, 5):
        raise FaultError("least squares over all blocks did not settle; take local=True, or report the spec")
    return Joint(axes, sizes, counts)


def _axes(strategy: UnionStrategy) -> tuple[int, ...]:
    return tuple(sorted({axis for block in strategy.blocks for axis in block.axes}))


def _expanded(block: Block, axes: Sequence[int], sizes: Sequence[int]) -> Kron:
    """The block's queries over the cells of all attributes: those that it lacks are added up."""
    own = dict(zip(block.axes, block.factors, strict=True))
    return Kron([own.get(axis) or Total(n) for axis, n in zip(axes, sizes, strict=True)] or [Total(1)])
