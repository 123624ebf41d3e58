"""Least squares in a pyramid of hats by one pass up and one down.

With W the cells' weights, H the hats and T = HW⁻¹, the estimate is W⁻¹[y + Tᵀz] for z = K⁻¹(y_H − Ty) and K = I + TTᵀ.
Between two neighbouring knots of a level only two hats of this level and of each coarser one overlap. So the cells
between knots of the first level are *blocks* that know 2L hats, L the number of levels, and so are m such blocks
together, between neighbouring knots of the next level, once the hats inside are eliminated: those of knots that are
knots of no coarser level. This is one batch of small matrices for each level, as all blocks of a level are alike.

A block has these parts: the hats inside, and its 2L *outer* ones (first the left of each level, then the right). G is
the inverse of K among those inside, A = G·K(inside, outer). For the sum of some cells, u = Σ θᵢ/wᵢ with θᵢ a column of
T; its variance is Σ 1/wᵢ² − uᵀK⁻¹u. See docs/math.md, section 15.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.pyramid import Pyramid, knots

ARRAYS = 48
"""Numbers for each cell, at most: entries, the matrices of all blocks, and what is computed from them."""
_CELLS = 1 << 16
"""Cells at a time."""


@final
class Level:
    """The blocks between knots of one level, each made of blocks of the level before; their hats are numbered."""

    def __init__(self, levels: int, level: int, parts: int, S: Array, rho: Array, tau: Array) -> None:
        """``level`` counts from 1: the levels whose knots divide the blocks. S, rho and tau are those of the parts."""
        self.parts = parts
        self.inside = inside = (parts - 1) * level
        outer = np.arange(inside, inside + 2 * levels).reshape(2, levels)
        at = np.empty((parts + 1, level), np.int64)  # the numbers of the hats of every knot
        at[1:-1] = np.arange(inside).reshape(parts - 1, level)
        at[0], at[-1] = outer[0, :level], outer[1, :level]
        self.places = np.stack(
            [np.concatenate([at[t], outer[0, level:], at[t + 1], outer[1, level:]]) for t in range(parts)]
        )
        """For each part the numbers of its outer hats."""
        size = inside + 2 * levels
        count = len(S) // parts
        M = np.zeros((count, size, size))
        rho, tau = rho.reshape(count, parts, -1), tau.reshape(count, parts)
        for t, place in enumerate(self.places):
            M[:, place[:, None], place] += S.reshape(count, parts, *S.shape[1:])[:, t]
        diagonal = np.arange(inside)
        M[:, diagonal, diagonal] += 1
        self.G = np.linalg.inv(M[:, :inside, :inside])
        self.A = self.G @ M[:, :inside, inside:]
        across = M[:, :inside, inside:].transpose(0, 2, 1) @ self.A
        self.S = M[:, inside:, inside:] - (across + across.transpose(0, 2, 1)) / 2
        """K among the outer hats once those inside are eliminated."""
        self.before = np.zeros((count, parts + 1, size))
        """The sums u of the first parts, for any number of them."""
        for t, place in enumerate(self.places):
            self.before[:, t + 1] = self.before[:, t]
            self.before[:, t + 1, place] += rho[:, t]
        self.tau_before = np.concatenate([np.zeros((count, 1)), np.cumsum(tau, axis=1)], axis=1)
        whole = self.before[:, -1]
        self.rho = whole[:, inside:] - np.einsum("bio,bi->bo", self.A, whole[:, :inside])
        """u of a whole block among its outer hats."""
        product = np.einsum("bij,bj->bi", self.G, whole[:, :inside])
        self.tau = self.tau_before[:, -1] - np.einsum("bi,bi->b", whole[:, :inside], product)
        """Σ 1/wᵢ² less what the hats inside explain."""

    def inverses(self, P: Array) -> Array:
        """K⁻¹ among all hats of blocks, from K⁻¹ among their outer ones."""
        inside, size = self.inside, self.inside + P.shape[1]
        AP = self.A @ P
        Q = np.empty((len(P), size, size))
        Q[:, :inside, :inside] = self.G + AP @ self.A.transpose(0, 2, 1)
        Q[:, :inside, inside:], Q[:, inside:, :inside] = -AP, -AP.transpose(0, 2, 1)
        Q[:, inside:, inside:] = P
        return Q

    def spread(self, P: Array, z: Array, left: Array) -> tuple[Array, Array, Array]:
        """K⁻¹ among the outer hats of all parts; for the sum of all cells before each, K⁻¹u there; and its variance.

        From the same of all blocks.
        """
        Q = self.inverses(P)
        first = np.concatenate([-np.einsum("bio,bo->bi", self.A, z), z], axis=1)
        before = self.before[:, :-1]
        moved = before @ Q
        explained = np.einsum("bti,bti->bt", before, moved + 2 * first[:, None])
        lefts = left[:, None] + self.tau_before[:, :-1] - explained
        inner = np.stack([Q[:, place[:, None], place] for place in self.places], axis=1)
        starts = np.stack([(first + moved[:, t])[:, place] for t, place in enumerate(self.places)], axis=1)
        outer = P.shape[1]
        return inner.reshape(-1, outer, outer), starts.reshape(-1, outer), lefts.reshape(-1)


@final
class HatSolution:
    """The matrices of all blocks, from the first level to all cells together."""

    def __init__(self, pyramid: Pyramid) -> None:
        self.pyramid = pyramid
        self.n = n = len(pyramid.cells)
        self.spacings = spacings = pyramid.spacings
        self.levels = len(spacings)
        self.width = spacings[0]
        self.padded = (knots(n, spacings[-1]) - 1) * spacings[-1]
        """Cells up to the last knot of the coarsest level; those that do not exist have no entries."""
        self.blocks = self.padded // self.width
        S = np.empty((self.blocks, 2 * self.levels, 2 * self.levels))
        rho, tau = np.empty((self.blocks, 2 * self.levels)), np.empty(self.blocks)
        for some in self.pieces():
            theta, inverse = self.columns(some)
            np.matmul(theta.transpose(0, 2, 1), theta, out=S[some])
            rho[some] = np.einsum("bci,bc->bi", theta, inverse)
            tau[some] = (inverse**2).sum(axis=1)
        self.rho, self.tau = rho, tau
        parts = [coarser // finer for finer, coarser in pairwise(spacings)] + [self.padded // spacings[-1]]
        self.stages: list[Level] = []
        for number, count in enumerate(parts, 1):
            self.stages.append(Level(self.levels, number, count, S, rho, tau))
            S, rho, tau = self.stages[-1].S, self.stages[-1].rho, self.stages[-1].tau
        self.outermost = np.linalg.inv(S[0] + np.eye(2 * self.levels))
        """K⁻¹ among the hats of the first and the last knot."""
        self.numbers = [self._numbers(number, stage) for number, stage in enumerate(self.stages, 1)]
        """For each level the rows of the hats inside its blocks, one block after the other."""
        ends = np.array([[0] * self.levels, [self.padded // s for s in spacings]])
        self.ends = self._rows(ends)
        """The rows of the hats of the first and the last knot."""

    def pieces(self) -> Iterator[slice]:
        """Some blocks of the first level at a time."""
        step = max(1, _CELLS // self.width)
        return (slice(low, min(low + step, self.blocks)) for low in range(0, self.blocks, step))

    def columns(self, blocks: slice) -> tuple[Array, Array]:
        """For some blocks of the first level the columns of T, and 1/w; 0 for cells that do not exist."""
        low, high = blocks.start * self.width, blocks.stop * self.width
        last = min(high, self.n)
        inverse = np.zeros(high - low)
        inverse[: max(last - low, 0)] = 1 / self.pyramid.cells[low:last]
        theta = np.zeros((high - low, 2 * self.levels))
        for number, entries in enumerate((*self.pyramid.falling, *self.pyramid.rising)):
            theta[: max(last - low, 0), number] = entries[low:last]
        theta *= inverse[:, None]
        return theta.reshape(-1, self.width, 2 * self.levels), inverse.reshape(-1, self.width)

    @cached_property
    def inner(self) -> tuple[Array, Array, Array]:
        """For every block of the first level what `Level.spread` says."""
        P, z, left = self.outermost[None], np.zeros((1, 2 * self.levels)), np.zeros(1)
        for stage in reversed(self.stages):
            P, z, left = stage.spread(P, z, left)
        return P, z, left

    @cached_property
    def prefixes(self) -> Array:
        """The variances of the sums of the first cells, for any number of them from 1."""
        P, z, left = self.inner
        variances = np.empty((self.blocks, self.width))
        for some in self.pieces():
            theta, inverse = self.columns(some)
            u = np.cumsum(theta * inverse[:, :, None], axis=1)
            explained = np.einsum("bci,bci->bc", u, u @ P[some] + 2 * z[some, None])
            variances[some] = left[some, None] + np.cumsum(inverse**2, axis=1) - explained
        return variances.reshape(-1)[: self.n]

    def solve(self, y: Array) -> Array:
        """The estimates of all cells, for a matrix of columns."""
        weights = self.pyramid.cells[:, None]
        counts = y[: self.n] / weights
        z = self._eliminate(y[self.n :] - self.pyramid.hats(counts))
        return counts + self.pyramid.hats_t(z) / weights**2

    def solve_t(self, x: Array) -> Array:
        """The transpose, for a matrix of columns."""
        weights = self.pyramid.cells[:, None]
        z = self._eliminate(self.pyramid.hats(x / weights**2))
        return np.concatenate([(x - self.pyramid.hats_t(z)) / weights, z])

    def _eliminate(self, rows: Array) -> Array:
        """K⁻¹ times some columns."""
        outer, columns = 2 * self.levels, rows.shape[1]
        rows = np.concatenate([rows, np.zeros((1, columns))])
        message = np.zeros((self.blocks, outer, columns))
        kept = []
        for stage, numbers in zip(self.stages, self.numbers, strict=True):
            parts = message.reshape(len(stage.A), stage.parts, outer, columns)
            v = np.zeros((len(parts), stage.inside + outer, columns))
            v[:, : stage.inside] = rows[numbers]
            for t, place in enumerate(stage.places):
                v[:, place] += parts[:, t]
            kept.append(v[:, : stage.inside])
            message = v[:, stage.inside :] - stage.A.transpose(0, 2, 1) @ kept[-1]
        z = (self.outermost @ (message[0] + rows[self.ends]))[None]
        solved = np.zeros_like(rows)
        solved[self.ends] = z[0]
        for stage, numbers in zip(reversed(self.stages), reversed(self.numbers), strict=True):
            inside = stage.G @ kept.pop() - stage.A @ z
            solved[numbers] = inside
            whole = np.concatenate([inside, z], axis=1)
            z = np.stack([whole[:, place] for place in stage.places], axis=1).reshape(
                len(z) * stage.parts, outer, columns
            )
        return solved[:-1]

    def _numbers(self, level: int, stage: Level) -> Array:
        spacings = np.array(self.spacings[:level])
        width = self.spacings[level - 1]
        positions = np.arange(len(stage.A))[:, None] * stage.parts + np.arange(1, stage.parts)
        return self._rows(positions[:, :, None] * (width // spacings)).reshape(len(stage.A), -1)

    def _rows(self, places: Array) -> Array:
        """The rows of hats by their numbers, with the levels along the last axis; one past the end if there is none."""
        counts = np.array([knots(self.n, spacing) for spacing in self.spacings])
        total, counts = int(counts.sum()), counts[: places.shape[-1]]
        return np.where(places < counts, places + np.cumsum(counts) - counts, total).reshape(*places.shape[:-2], -1)
