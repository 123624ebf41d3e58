"""The Gaussian optimum for a Gram written out: the dual fixed point by eigendecompositions (docs/math.md, section 4).

At weights v, X = diag(v)^-½ M^½ diag(v)^-½ with M = diag(v)^½ V diag(v)^½ becomes a strategy in one of two ways. Its
columns are normalised, which is best where V has full rank. Where V is singular that would turn X away from the
workload; there X is scaled until no column exceeds 1, and what each lacks is filled by a query on that cell alone.
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
_ROOM = 1e-5
"""The least that each cell's own query gets where V is singular: it keeps X well-conditioned, at this cost in error."""
_SMALL = 512
"""Up to as many cells more than one thread would not help."""
_PATIENCE = 20
"""The most iterations in a row that do not bring the gap down by a hundredth."""


def solve(V: Array, start: Array | None, tolerance: float, iterations: int, effort: Effort | None) -> Solution:
    """A strategy for a Gram with a positive diagonal, as soon as its gap is within the tolerance."""
    with one_blas_thread() if len(V) <= _SMALL else nullcontext():
        return _solve(V, start, tolerance, iterations, effort)


def _solve(V: Array, start: Array | None, tolerance: float, iterations: int, effort: Effort | None) -> Solution:
    blocks = _blocks(V)
    count = 1 / blocks[0].share
    weights = np.sqrt(np.diagonal(V)) if start is None else start
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
    """A part of V on vectors of one symmetry; all of V where it has none."""

    gram: Array
    share: Array
    """How much of this block's diagonal belongs to each cell."""
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
    """V, or where reversing the cells does not change it, its parts on symmetric and antisymmetric vectors."""
    n, scale = len(V), np.sqrt(np.diagonal(V))
    if n < 2 or (abs(V - V[::-1, ::-1]) > n * _EPS * np.multiply.outer(scale, scale)).any():
        return [_Block(V, np.ones(n))]
    half, rest = (n + 1) // 2, n // 2
    share = np.full(half, 0.5)
    share[rest:] = 1.0  # of an odd number of cells, the middle one is its own mirror image
    across = V[:, ::-1]
    even = (V[:half, :half] + across[:half, :half]) * np.sqrt(0.25 / np.multiply.outer(share, share))
    odd = V[:rest, :rest] - across[:rest, :rest]
    return [_Block(even, share, 1), _Block(odd, share[:rest], -1)]


@final
@dataclass(frozen=True, eq=False)
class _Root:
    """One block at some weights: V, and the eigenvectors and eigenvalues of M."""

    gram: Array
    root: Array
    """√v."""
    vectors: Array
    values: Array
    """The eigenvalues; those that may be nothing but rounding are zero."""
    trace_below: float
    """tr M^½ from below: what rounding may have added to an eigenvalue is taken off first."""

    @staticmethod
    def of(gram: Array, weights: Array) -> _Root:
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
        turned = self.vectors.T @ (norms[:, None] * self.vectors)
        error = float(self.values @ (turned**2 @ self.values**-0.5))
        return error, self.values[:, None] ** 0.25 * self.vectors.T / (self.root * norms)

    def filled(self, level: float, rest: Array) -> tuple[float, Array]:
        """The error and the queries of X / level with ``rest`` added to its diagonal."""
        from scipy.linalg import cholesky, solve_triangular

        half = self.vectors * self.values**0.25 / (np.sqrt(level) * self.root[:, None])
        X = half @ half.T
        X[np.diag_indices_from(X)] += rest[: len(X)]
        queries: Array = cholesky(X)
        once = solve_triangular(queries, self.gram, trans="T")
        return float(np.trace(solve_triangular(queries, once.T, trans="T"))), queries


def _strategy(roots: Sequence[_Root], diagonal: Array) -> tuple[float, list[Array]]:
    """The better of the two strategies: its error, and its queries in each block."""
    ways = []
    if all(root.values.all() for root in roots):
        ways.append([root.normalised(np.sqrt(diagonal)) for root in roots])
    scaled = diagonal.max() * sum(float(np.sqrt(root.values).sum()) for root in roots)
    if not ways or sum(error for error, _ in ways[0]) > scaled:
        level = diagonal.max() * (1 + _ROOM)
        ways.append([root.filled(level, 1 - diagonal / level) for root in roots])
    error, way = min(((sum(error for error, _ in way), way) for way in ways), key=lambda pair: pair[0])
    return error, [queries for _, queries in way]
