"""The Gaussian optimum for a Gram written out: the dual fixed point by eigendecompositions (docs/math.md, section 4).

At weights v, X = diag(v)^-½ M^½ diag(v)^-½ with M = diag(v)^½ V diag(v)^½ becomes a strategy in one of two ways. Its
columns are normalised, which is best if V has full rank. If V is singular that would turn X away from the workload;
then X is scaled until no column exceeds 1, and each shorter column is filled up by a query on that cell alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.matrix import Array, Dense
from hdmm.operators.base import Solution
from hdmm.operators.opt0.relaxation import Relaxation
from hdmm.optimise.descent import Effort
from hdmm.parallel import one_blas_thread

_EPS = float(np.finfo(float).eps)
_LEAST_FILL = 1e-5
"""The least squared weight of a cell's own query if V is singular: it keeps X well-conditioned, at this cost."""
_MAX_CELLS_ONE_THREAD = 512
"""Up to this many cells, a second thread would not help."""
_PATIENCE = 20
"""The most iterations in a row that do not reduce the gap by a hundredth."""


def solve_dense(V: Array, tolerance: float, iterations: int, effort: Effort | None) -> Solution:
    """A strategy for a Gram with a positive diagonal, as soon as its gap is within the tolerance."""
    with one_blas_thread() if len(V) <= _MAX_CELLS_ONE_THREAD else nullcontext():
        return _solve(V, tolerance, iterations, effort)


def _solve(V: Array, tolerance: float, iterations: int, effort: Effort | None) -> Solution:
    blocks = _blocks(V)
    count = 1 / blocks[0].share
    weights = np.sqrt(np.diagonal(V))
    if len(blocks) > 1:
        weights = (weights + weights[::-1])[: len(count)]
    relaxation = Relaxation(count)
    bound, least, gap, idle = 0.0, np.inf, np.inf, 0
    best: list[Array] = []
    for _ in range(iterations):
        roots = [_Root.of(block.gram, weights) for block in blocks]
        diagonal = np.zeros(len(weights))
        for block, root in zip(blocks, roots, strict=True):
            diagonal[: len(block.share)] += block.share * root.diagonal
        bound = max(bound, sum(root.trace_below for root in roots) ** 2 / float(count @ weights))
        error, queries = _strategy(roots, diagonal)
        if error < least:
            least, best = error, queries
        idle = 0 if least / bound - 1 < 0.99 * gap else idle + 1
        gap = min(gap, least / bound - 1)
        if gap <= tolerance or idle == _PATIENCE or (effort is not None and effort.over):
            break
        weights = relaxation.move(weights, diagonal)
    strategy = np.concatenate([block.lift(queries, len(V)) for block, queries in zip(blocks, best, strict=True)])
    norm = float((strategy**2).sum(axis=0).max())
    return Solution(Dense(strategy / np.sqrt(norm)), least * norm, bound)


@final
@dataclass(frozen=True, eq=False)
class _Block:
    """A part of V on vectors of one symmetry; all of V if it has none."""

    gram: Array
    share: Array
    """The share of this block's diagonal that belongs to each cell."""
    mirror: int = 0
    """1: the second half of a vector mirrors the first; −1: it mirrors its negative; 0: no symmetry."""

    def lift(self, queries: Array, n: int) -> Array:
        """Queries over this block's vectors as queries over all n cells."""
        if not self.mirror:
            return queries
        lifted = np.zeros((len(queries), n))
        first = queries * np.sqrt(self.share)
        lifted[:, n - first.shape[1] :] = self.mirror * first[:, ::-1]
        lifted[:, : first.shape[1]] = first
        return lifted


def _blocks(V: Array) -> list[_Block]:
    """V; or if reversing the cells does not change it, its parts on symmetric and antisymmetric vectors."""
    n, scale = len(V), np.sqrt(np.diagonal(V))
    if n < 2 or (abs(V - V[::-1, ::-1]) > n * _EPS * np.multiply.outer(scale, scale)).any():
        return [_Block(V, np.ones(n))]
    half, rest = (n + 1) // 2, n // 2
    share = np.full(half, 0.5)
    share[rest:] = 1.0  # of an odd number of cells, the middle one is its own mirror image
    across = V[:, ::-1]
    symmetric = (V[:half, :half] + across[:half, :half]) * np.sqrt(0.25 / np.multiply.outer(share, share))
    antisymmetric = V[:rest, :rest] - across[:rest, :rest]
    return [_Block(symmetric, share, 1), _Block(antisymmetric, share[:rest], -1)]


@final
@dataclass(frozen=True, eq=False)
class _Root:
    """One block at some weights: V, and the eigenvectors and eigenvalues of M."""

    gram: Array
    root: Array
    """√v."""
    vectors: Array
    values: Array
    """The eigenvalues; those within rounding error of zero are zero."""
    trace_below: float
    """tr M^½ from below: the error that rounding may have added to an eigenvalue is taken off first."""

    @staticmethod
    def of(gram: Array, weights: Array) -> _Root:
        """The eigendecomposition of M at some weights."""
        root = np.sqrt(weights[: len(gram)])
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        rounding = len(values) * _EPS * values[-1]
        below = float(np.sqrt(np.clip(values - rounding, 0, None)).sum())
        return _Root(gram, root, vectors, np.where(values > rounding, values, 0.0), below)

    @property
    def diagonal(self) -> Array:
        """The diagonal of X."""
        return self.vectors**2 @ np.sqrt(self.values) / self.root**2

    def normalised(self, norms: Array) -> tuple[float, Array]:
        """The error and the queries of X with its columns divided by their norms, for X of full rank."""
        norms = norms[: len(self.root)]
        rotated = self.vectors.T @ (norms[:, None] * self.vectors)
        error = float(self.values @ (rotated**2 @ self.values**-0.5))
        return error, self.values[:, None] ** 0.25 * self.vectors.T / (self.root * norms)

    def filled(self, level: float, rest: Array) -> tuple[float, Array]:
        """The error and the queries of X / level with ``rest`` added to its diagonal."""
        from scipy.linalg import cholesky, solve_triangular

        half = self.vectors * self.values**0.25 / (np.sqrt(level) * self.root[:, None])
        X = half @ half.T
        X[np.diag_indices_from(X)] += rest[: len(X)]
        queries = cholesky(X)
        half_solved = solve_triangular(queries, self.gram, trans="T")
        return float(np.trace(solve_triangular(queries, half_solved.T, trans="T"))), queries


def _strategy(roots: Sequence[_Root], diagonal: Array) -> tuple[float, list[Array]]:
    """The better of the two strategies: its error, and its queries in each block."""
    candidates = []
    if all(root.values.all() for root in roots):
        candidates.append([root.normalised(np.sqrt(diagonal)) for root in roots])
    scaled_error = diagonal.max() * sum(float(np.sqrt(root.values).sum()) for root in roots)
    if not candidates or sum(error for error, _ in candidates[0]) > scaled_error:
        level = diagonal.max() * (1 + _LEAST_FILL)
        candidates.append([root.filled(level, 1 - diagonal / level) for root in roots])
    totals = [(sum(error for error, _ in parts), [queries for _, queries in parts]) for parts in candidates]
    return min(totals, key=lambda total: total[0])
