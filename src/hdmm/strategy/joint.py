"""Least squares over all blocks at once (paper, section 10): one population for all tables, so that they add up.

A union answers each table from one block. The best linear answer uses all blocks, each weighted by its noise; by Gauss
and Markov no answer has a larger variance than from one block. It is found by iteration (LSMR) in coordinates that all
blocks share, scaled so that each weighs about the same; no vector of the full domain is needed.

How the answers depend on the noise is written out where there are few coordinates; else, on request, by one solve for
every answer. Without it the errors that are told are those of answers from one block: upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any, final

import numpy as np

from hdmm.errors import FaultError
from hdmm.matrix import Array, Gram, Matrix
from hdmm.strategy.base import Coefficients, Noise, Spread, Strategy, written_rows, written_types
from hdmm.strategy.block import Block
from hdmm.strategy.coordinates import WAYS, Coordinates
from hdmm.strategy.direct import DirectStrategy
from hdmm.strategy.kron import KronStrategy
from hdmm.strategy.rows import RowTypes
from hdmm.strategy.union import UnionStrategy
from hdmm.workload import EncodedProduct

_WRITTEN, _ENTRIES = 1 << 10, 1 << 22
"""The most coordinates, and the most entries, of an inverse that is written out."""
_LARGEST = 1 << 25
"""The most cells of all blocks for which answers from all blocks are the default."""
_TOLERANCE, _ROUNDS = 1e-12, 20_000
_NEGLIGIBLE = 1e-10
"""Directions with less than this share of the largest eigenvalue are not measured."""


def joined(strategy: Strategy) -> Strategy:
    """Least squares over all blocks, where a strategy does less by itself, and its tables fit memory."""
    if not isinstance(strategy, (UnionStrategy, DirectStrategy)):
        return strategy
    if len(strategy.blocks) == 1 and strategy.blocks[0].condition is None:
        return KronStrategy(strategy.sizes, strategy.blocks)
    large = sum(block.cells + block.queries for block in strategy.blocks) > _LARGEST
    if large or any(len(block.axes) > WAYS or block.joint for block in strategy.blocks):
        return strategy
    return JointStrategy(strategy.sizes, strategy.blocks, strategy)


@final
@dataclass(frozen=True, eq=False)
class JointStrategy(Strategy):
    """The blocks of another strategy, with answers by least squares over all of them."""

    local: Strategy
    """How products are answered from one block alone: it says which are, and bounds their errors."""
    solved: bool = False
    """Whether exact errors are worth one solve for every answer."""

    def __getstate__(self) -> dict[str, Any]:
        return {"sizes": self.sizes, "blocks": self.blocks, "local": self.local, "solved": self.solved}

    @property
    def bounded(self) -> bool:
        """Whether the errors that are told are upper bounds."""
        return not (self.solved or self._written)

    @cached_property
    def _written(self) -> bool:
        return self._system.coordinates.count <= _WRITTEN and self._system.inverse_size <= _ENTRIES

    @cached_property
    def _system(self) -> _System:
        return _System(self.sizes, self.blocks)

    def supports(self, product: EncodedProduct) -> bool:
        """Whether one block tells the product; or all of them together, where that is written out."""
        if not self._system.coordinates.holds(product.axes):
            return False
        if self._one(product).supports(product):
            return True
        if not self._written:
            return False
        everything = max(Gram(self.sizes, product.terms).on(product.axes).trace(), 1.0)
        return not self._outside.size or self._squares(product, self._outside) <= _NEGLIGIBLE * everything

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        """Exact where the inverse is written out, else that of answers from one block, which is not smaller."""
        if not self._written:
            return self._one(product).squared_error(product, noise)
        return self._squares(product, self._inverse(noise))

    def _one(self, product: EncodedProduct) -> Strategy:
        """How a product is answered from one block: as the other strategy does it, or by that block's least squares."""
        return self.local if self.local.supports(product) else self._blockwise

    @cached_property
    def _blockwise(self) -> UnionStrategy:
        return UnionStrategy(self.sizes, self.blocks)

    def _squares(self, product: EncodedProduct, columns: Array) -> float:
        """The sum of the squares of a product's answers to columns of coordinates."""
        tables = self._system.coordinates.table(columns, product.axes)
        return float((tables * Gram(self.sizes, product.terms).on(product.axes).apply(tables)).sum())

    @cached_property
    def _outside(self) -> Array:
        return self._system.outside()

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._one(product).row_types(product, axis) if self.bounded else written_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        if self.bounded:
            return self._one(product).row_size(product, types)
        written = prod(one.width for one in types) * len(product.coefficients) + self._system.queries
        return prod(len(one) for one in types[1:]) * written

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        if self.bounded:
            yield from self._one(product).coefficients(product, types, noise)
            return
        rows = written_rows(product, types)
        if self._written:
            values = rows @ self._system.coordinates.table(self._inverse(noise), product.axes)
        else:
            values = np.stack([self._system.dual(product.axes, row, noise) for row in rows])
        shape, d = tuple(len(one) for one in types), len(types)
        parts = np.split(values, self._system.ends[:-1], axis=1)
        for index, (part, variance) in enumerate(zip(parts, noise, strict=True)):
            yield Spread(index, (part / sqrt(variance)).reshape(*shape, -1), np.ones([1] * (d + 1)), d)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        """The coordinates that fit all answers best."""
        return self._system.solve(answers, noise)

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        sizes = {axis: self.sizes[axis] for axis in product.axes}
        return product.matrix(sizes).apply(self._system.coordinates.table(state, product.axes))

    def _inverse(self, noise: Noise) -> Array:
        """What makes coordinates of answers over their standard deviations."""
        key = tuple(noise)
        if key not in self._inverses:
            self._inverses.clear()
            self._inverses[key] = self._system.inverse(noise)
        return self._inverses[key]

    @cached_property
    def _inverses(self) -> dict[tuple[float, ...], Array]:
        return {}


@final
class _System:
    """The equations that all blocks' answers are, in the coordinates of their tables."""

    def __init__(self, sizes: tuple[int, ...], blocks: tuple[Block, ...]) -> None:
        self.coordinates = Coordinates(sizes, (block.axes for block in blocks))
        self._blocks = [(block, block.matrix) for block in blocks]
        self.ends = np.cumsum([block.queries for block in blocks])
        self.queries = int(self.ends[-1])
        self.inverse_size = self.coordinates.count * self.queries

    def solve(self, answers: Sequence[Array], noise: Noise) -> Array:
        """The least-squares solution; of several, one that is short.

        It is precise relative to the counts; solved again for what is left, relative to the noise.
        """
        seen = np.concatenate([given.astype(float) / sqrt(v) for given, v in zip(answers, noise, strict=True)])
        scale = self._scale(noise)
        apply, apply_t = self._scaled(noise, scale)
        found = _solved(apply, apply_t, seen, self.coordinates.count)
        found += _solved(apply, apply_t, seen - apply(found), self.coordinates.count)
        return scale * found

    def dual(self, axes: tuple[int, ...], query: Array, noise: Noise) -> Array:
        """How the answer to one query on a table depends on all answers over their standard deviations."""
        asked = np.zeros(self.coordinates.count)
        self.coordinates.add(asked, axes, query)
        scale = self._scale(noise)
        apply, apply_t = self._scaled(noise, scale)
        return _solved(apply_t, apply, scale * asked, self.queries)

    def inverse(self, noise: Noise) -> Array:
        """The pseudo-inverse, written out."""
        scale = self._scale(noise)
        system = self._apply(np.diag(scale), noise)
        values, vectors = np.linalg.eigh(system.T @ system)
        kept = values > _NEGLIGIBLE * values[-1]
        vectors = vectors[:, kept]
        inverse: Array = scale[:, None] * ((vectors / values[kept]) @ (vectors.T @ system.T))
        return inverse

    def outside(self) -> Array:
        """Directions of unit length that no block tells, one in each column."""
        noise = [1.0] * len(self._blocks)
        system = self._apply(np.diag(self._scale(noise)), noise)
        values, vectors = np.linalg.eigh(system.T @ system)
        unseen = vectors[:, values <= _NEGLIGIBLE * values[-1]]
        found: Array = self._scale(noise)[:, None] * unseen
        found /= np.linalg.norm(found, axis=0)
        return found

    def _scaled(self, noise: Noise, scale: Array) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """The equations, and their transpose, in scaled coordinates."""
        return lambda x: self._apply(scale * x, noise), lambda y: scale * self._apply_t(y, noise)

    def _apply(self, x: Array, noise: Noise) -> Array:
        parts = [
            matrix.apply(self.coordinates.table(x, block.axes)) / sqrt(variance)
            for (block, matrix), variance in zip(self._blocks, noise, strict=True)
        ]
        return np.concatenate(parts)

    def _apply_t(self, y: Array, noise: Noise) -> Array:
        found = np.zeros(self.coordinates.count)
        pieces = zip(self._blocks, np.split(y, self.ends[:-1]), noise, strict=True)
        for (block, matrix), part, variance in pieces:
            self.coordinates.add(found, block.axes, matrix.apply_t(part / sqrt(variance)))
        return found

    def _scale(self, noise: Noise) -> Array:
        """What makes the columns of the equations about equally long."""
        lengths = np.zeros(self.coordinates.count)
        for (block, _), variance in zip(self._blocks, noise, strict=True):
            self.coordinates.spread(lengths, block.axes, [_lengths(factor) for factor in block.factors], 1 / variance)
        seen = lengths > 0
        return 1 / np.sqrt(np.where(seen, lengths, 1.0))


def _lengths(factor: Matrix) -> tuple[float, float]:
    """The squared length of a factor on the total, over √n, and on a contrast on average."""
    n = factor.shape[1]
    ones = np.ones(n)
    total = float((factor.apply(ones) ** 2).sum()) / n
    rest = float(factor.power(2).apply(ones).sum()) - total
    return total, rest / (n - 1) if rest > _NEGLIGIBLE * total else 0.0


def _solved(apply: Callable[[Array], Array], apply_t: Callable[[Array], Array], seen: Array, count: int) -> Array:
    """The shortest least-squares solution, of so many numbers."""
    from scipy.sparse.linalg import LinearOperator, lsmr

    system = LinearOperator((len(seen), count), apply, rmatvec=apply_t, dtype=float)
    found, reason, *_ = lsmr(system, seen, atol=_TOLERANCE, btol=_TOLERANCE, conlim=0, maxiter=_ROUNDS)
    if reason not in (0, 1, 2, 4, 5):
        raise FaultError('least squares over all blocks did not settle; take estimator="local", or report the spec')
    return np.asarray(found)
