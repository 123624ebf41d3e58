"""The equations that the answers of several blocks are together, in coordinates that their tables share.

Every answer is divided by a standard deviation, that of its noise within the limits of :func:`weighing`, and
coordinates are scaled so that each weighs about the same in all equations: then iteration (LSMR) settles in few rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import sqrt
from typing import final

import numpy as np

from hdmm.errors import FaultError
from hdmm.matrix import Array, Matrix
from hdmm.strategy.base import Noise, weighing
from hdmm.strategy.block import Block
from hdmm.strategy.coordinates import Coordinates

NEGLIGIBLE = 1e-10
"""Directions with less than this share of the largest eigenvalue, at equal noise, are not measured."""
_LEAST = 1e-12
"""How precise a block may count beside the others, at very large budgets: iteration and singular values bear that."""
_FARTHEST = 1e-16
"""The same whatever makes blocks differ, such as weights that are far apart. It costs next to nothing."""
_TOLERANCE, _ROUNDS = 1e-12, 20_000


@final
class Equations:
    """The answers of blocks, each block weighed by a variance, as equations for coordinates."""

    def __init__(self, coordinates: Coordinates, blocks: Sequence[Block], variances: Sequence[float]) -> None:
        self._coordinates = coordinates
        self._blocks = [(block, block.matrix, sqrt(v)) for block, v in zip(blocks, variances, strict=True)]
        relative = [v / length for v, length in zip(variances, block_lengths(blocks), strict=True)]
        self._negligible = sqrt(NEGLIGIBLE * min(relative) / max(relative))
        queries = [block.queries for block in blocks]
        self._deviations = np.repeat(np.sqrt(variances), queries)
        *ends, self._queries = np.cumsum(queries).tolist()
        self.ends: list[int] = ends
        """Where the answers of one block end and those of the next begin."""

    def solve(self, answers: Sequence[Array]) -> Array:
        """The least-squares solution; of several, one that is short.

        It is precise relative to the counts; solved again for what is left, relative to the noise.
        """
        pairs = zip(answers, self._blocks, strict=True)
        seen = np.concatenate([given.astype(float) / deviation for given, (_, _, deviation) in pairs])
        found = _solved(self._apply, self._apply_t, seen, self._coordinates.count)
        found += _solved(self._apply, self._apply_t, seen - self._apply(found), self._coordinates.count)
        return self._scale * found

    def dual(self, axes: tuple[int, ...], query: Array) -> Array:
        """How the answer to one query on a table depends on all answers."""
        asked = np.zeros(self._coordinates.count)
        self._coordinates.add(asked, axes, query)
        found: Array = _solved(self._apply_t, self._apply, self._scale * asked, self._queries) / self._deviations
        return found

    @cached_property
    def inverse(self) -> Array:
        """What makes coordinates of answers: the pseudo-inverse, written out."""
        left, values, right = self._directions()
        told = values > self._negligible * values[0]
        inverse: Array = self._scale[:, None] * ((right[told].T / values[told]) @ left[: self._queries, told].T)
        inverse /= self._deviations
        return inverse

    def outside(self) -> Array:
        """Directions of unit length that no block tells, one in each column."""
        _, values, right = self._directions()
        found: Array = self._scale[:, None] * right[values <= self._negligible * values[0]].T
        found /= np.linalg.norm(found, axis=0)
        return found

    def _directions(self) -> tuple[Array, Array, Array]:
        """The singular vectors and values of the equations in scaled coordinates, one for every coordinate.

        Not those of their Gram matrix: it would square how much more one block tells than another.
        """
        system = self._apply(np.eye(self._coordinates.count))
        lacking = max(0, system.shape[1] - len(system))  # equations that say nothing, one for each missing value
        left, values, right = np.linalg.svd(np.pad(system, ((0, lacking), (0, 0))), full_matrices=False)
        return left[: self._queries], values, right

    def _apply(self, x: Array) -> Array:
        """The equations in scaled coordinates; x may have several columns."""
        x = (self._scale * x.T).T
        parts = [matrix.apply(self._coordinates.table(x, block.axes)) / d for block, matrix, d in self._blocks]
        return np.concatenate(parts)

    def _apply_t(self, y: Array) -> Array:
        found = np.zeros(self._coordinates.count)
        for (block, matrix, deviation), part in zip(self._blocks, np.split(y, self.ends), strict=True):
            self._coordinates.add(found, block.axes, matrix.apply_t(part / deviation))
        return self._scale * found

    @cached_property
    def _scale(self) -> Array:
        """What makes the columns of the equations about equally long."""
        lengths = np.zeros(self._coordinates.count)
        for block, _, deviation in self._blocks:
            factors = [_lengths(factor) for factor in block.factors]
            self._coordinates.spread(lengths, block.axes, factors, deviation**-2)
        return 1 / np.sqrt(np.where(lengths > 0, lengths, 1.0))


def weighed(blocks: Sequence[Block], noise: Noise) -> list[float]:
    """The variances by which blocks are weighed: those of the noise, up to a common factor, within limits."""
    lengths = block_lengths(blocks)
    relative = [v / length for v, length in zip(weighing(blocks, noise, _LEAST), lengths, strict=True)]
    least = _FARTHEST * max(relative)
    return [max(one, least) * length for one, length in zip(relative, lengths, strict=True)]


def block_lengths(blocks: Sequence[Block]) -> list[float]:
    """The largest squared length of a column of each block's queries: noise means little beside long ones.

    Weighed by these, all blocks count alike.
    """
    return [float(block.matrix.norm_power(2)) or 1.0 for block in blocks]


def _lengths(factor: Matrix) -> tuple[float, float]:
    """The squared length of a factor on the total, over √n, and on a contrast on average."""
    n = factor.shape[1]
    ones = np.ones(n)
    total = float((factor.apply(ones) ** 2).sum()) / n
    rest = float(factor.power(2).apply(ones).sum()) - total
    return total, rest / (n - 1) if rest > NEGLIGIBLE * total else 0.0


def _solved(apply: Callable[[Array], Array], apply_t: Callable[[Array], Array], seen: Array, count: int) -> Array:
    """The shortest least-squares solution, of so many numbers."""
    from scipy.sparse.linalg import LinearOperator, lsmr

    system = LinearOperator((len(seen), count), apply, rmatvec=apply_t, dtype=float)
    found, reason, *_ = lsmr(system, seen, atol=_TOLERANCE, btol=_TOLERANCE, conlim=0, maxiter=_ROUNDS)
    if reason not in (0, 1, 2, 4, 5):
        raise FaultError('least squares over all blocks did not settle; take estimator="local", or report the spec')
    return np.asarray(found)
