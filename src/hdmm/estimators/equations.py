"""The joint least-squares system of several blocks, in coordinates that their tables share (see `coordinates`).

Every answer is divided by a standard deviation: that of its noise, within the limits of :func:`weighing_variances`.
Coordinates are scaled so that each has about the same weight in all equations; then LSMR settles in few iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import sqrt
from typing import final

import numpy as np

from hdmm.errors import FaultError
from hdmm.estimators.coordinates import Coordinates
from hdmm.estimators.estimator import Noise, weighing_variances
from hdmm.matrix import Array, Matrix
from hdmm.matrix.compose import restricted
from hdmm.strategy import Block
from hdmm.syntax import example

NEGLIGIBLE = 1e-10
"""Directions with less than this share of the largest eigenvalue, at equal noise, are not measured."""
_LEAST_NOISE = 1e-12
"""The least that a block's noise counts beside the others, at very large budgets: both solvers bear that much."""
_LEAST_VARIANCE = 1e-16
"""The same if weights that are far apart add to the difference."""
_TOLERANCE = 1e-12
"""The relative residual at which LSMR stops."""
_MAX_ITERATIONS = 20_000
"""The most iterations of LSMR."""
_SETTLED = (0, 1, 2, 4, 5)
"""LSMR's reasons to stop that are a solution: x = 0, within the tolerances, or as precise as floating point allows.
The others are 3 and 6, a condition number that is too large, and 7, the iteration limit."""


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
        """The least-squares solution; of several, a short one.

        The first solve is precise relative to the counts, the second, for the residual, relative to the noise.
        """
        pairs = zip(answers, self._blocks, strict=True)
        scaled = np.concatenate([measured.astype(float) / deviation for measured, (_, _, deviation) in pairs])
        solution = _solve(self._apply, self._apply_t, scaled, self._coordinates.count)
        solution += _solve(self._apply, self._apply_t, scaled - self._apply(solution), self._coordinates.count)
        return self._scale * solution

    def dual(self, axes: tuple[int, ...], query: Array) -> Array:
        """How the answer to one query on a table depends on all answers."""
        coordinates = np.zeros(self._coordinates.count)
        self._coordinates.add(coordinates, axes, query)
        dual = _solve(self._apply_t, self._apply, self._scale * coordinates, self._queries)
        return np.asarray(dual / self._deviations)

    @cached_property
    def inverse(self) -> Array:
        """The pseudo-inverse, written out: from answers to coordinates."""
        left, values, right = self._directions()
        seen = values > self._negligible * values[0]
        return self._scale[:, None] * ((right[seen].T / values[seen]) @ left[:, seen].T) / self._deviations

    def unseen(self) -> Array:
        """Directions of unit length that no block sees, one in each column."""
        _, values, right = self._directions()
        directions = self._scale[:, None] * right[values <= self._negligible * values[0]].T
        return directions / np.linalg.norm(directions, axis=0)

    def _directions(self) -> tuple[Array, Array, Array]:
        """The singular vectors and values of the equations in scaled coordinates, one for every coordinate.

        Not those of their Gram matrix: it would square the ratio of the blocks' precisions.
        """
        system = self._apply(np.eye(self._coordinates.count))
        lacking = max(0, system.shape[1] - len(system))  # empty equations, one for each missing value
        left, values, right = np.linalg.svd(np.pad(system, ((0, lacking), (0, 0))), full_matrices=False)
        return left[: self._queries], values, right

    def _apply(self, x: Array) -> Array:
        """The equations in scaled coordinates; x may have several columns."""
        x = (self._scale * x.T).T
        parts = [matrix.apply(self._coordinates.table(x, block.axes)) / d for block, matrix, d in self._blocks]
        return np.concatenate(parts)

    def _apply_t(self, y: Array) -> Array:
        coordinates = np.zeros(self._coordinates.count)
        for (block, matrix, deviation), part in zip(self._blocks, np.split(y, self.ends), strict=True):
            self._coordinates.add(coordinates, block.axes, matrix.apply_t(part / deviation))
        return self._scale * coordinates

    @cached_property
    def _scale(self) -> Array:
        """Factors that make the columns of the equations about equally long."""
        lengths = np.zeros(self._coordinates.count)
        for block, _, deviation in self._blocks:
            for coefficient, factors in _parts(block):
                per_axis = [_lengths(factor) for factor in factors]
                self._coordinates.add_lengths(lengths, block.axes, per_axis, abs(coefficient) / deviation**2)
        return 1 / np.sqrt(np.where(lengths > 0, lengths, 1.0))


def equation_variances(blocks: Sequence[Block], noise: Noise) -> list[float]:
    """The variances by which blocks are weighed: those of the noise, up to a common factor, within limits."""
    lengths = block_lengths(blocks)
    variances = weighing_variances(blocks, noise, _LEAST_NOISE)
    relative = [v / length for v, length in zip(variances, lengths, strict=True)]
    least = _LEAST_VARIANCE * max(relative)
    return [max(ratio, least) * length for ratio, length in zip(relative, lengths, strict=True)]


def block_lengths(blocks: Sequence[Block]) -> list[float]:
    """The largest squared length of a column of each block's queries. Weighed by these, all blocks count alike."""
    return [float(block.matrix.norm_power(2)) or 1.0 for block in blocks]


def _parts(block: Block) -> Iterator[tuple[int, Sequence[Matrix]]]:
    """The factors of a block; under a condition those of each of its boxes, with its coefficient."""
    if block.condition is None:
        yield 1, block.factors
        return
    pairs = list(zip(block.axes, block.factors, strict=True))
    for box in block.condition.boxes:
        yield box.coefficient, [restricted(factor, box.masks.get(axis)) for axis, factor in pairs]


def _lengths(factor: Matrix) -> tuple[float, float]:
    """The squared length of a factor on the total, over √n, and on a contrast on average."""
    n = factor.shape[1]
    ones = np.ones(n)
    total = float((factor.apply(ones) ** 2).sum()) / n
    rest = float(factor.power(2).apply(ones).sum()) - total
    return total, rest / (n - 1) if rest > NEGLIGIBLE * total else 0.0


def _solve(apply: Callable[[Array], Array], apply_t: Callable[[Array], Array], right: Array, count: int) -> Array:
    """The shortest least-squares solution, a vector of ``count`` numbers."""
    from scipy.sparse.linalg import LinearOperator, lsmr

    system = LinearOperator((len(right), count), apply, rmatvec=apply_t, dtype=float)
    solution, reason, *_ = lsmr(system, right, atol=_TOLERANCE, btol=_TOLERANCE, conlim=0, maxiter=_MAX_ITERATIONS)
    if reason not in _SETTLED:
        other = example("estimator", "local")
        raise FaultError(f"least squares over all blocks did not settle; use {other}, or report the spec")
    return np.asarray(solution)
