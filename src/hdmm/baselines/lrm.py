"""LRM: the low-rank mechanism (Yuan et al. 2012; Yuan et al. 2015 for Gaussian noise).

W ≈ BL with the least ‖B‖, where the columns of L lie in the unit ball of the L1 norm (Laplace) or of the L2 norm
(Gaussian): L is measured, and B gives the answers. An augmented Lagrangian with the penalty β is minimised by turns: B
in closed form, L by Nesterov's projected gradient. It starts from the singular value decomposition, which is feasible.
Three things differ from the publication, because on ranges and prefixes its own choices lose parts of W: the penalty
starts higher, B is renewed at every step on L, and over many cells the start is the decomposition of groups of cells.

Only V is needed: the rows of W may be rotated, so W is replaced by Λ^½Qᵀ with V = QΛQᵀ, of as many rows as its rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import final

import numpy as np

from hdmm.baselines.written_out import propose_over_cells, with_light_cells
from hdmm.estimators.inverse import error
from hdmm.matrix import Array, Dense, Identity, Norm
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.base import Aside, Operator, Proposal, Solution
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded

_MAX_CELLS = 1 << 10
"""The most cells that are decomposed."""
_RANK_RATIO = 1.2
"""The rows of L, relative to the rank of W."""
_TOLERANCE = 0.01
"""The ‖W − BL‖ at which W counts as decomposed."""
_DOUBLED_EVERY = 10
"""Rounds after which the penalty doubles."""
_MAX_ROUNDS = 40
_FIRST_STEPS = 700
"""Steps at the first penalty, where most of the gain is."""
_STEPS = 60
"""Steps of every later round."""
_SETTLED = 1e-6
"""The relative length of a step at which a round ends."""
_MAX_COST = 1 << 37
"""The most r²n of all steps together, for L of r rows: on large domains there are fewer steps."""
_POWER_STEPS = 3
"""Steps of the power iteration for the largest singular value of B, which changes little from one step to the next."""
_SAFETY = 1.05
"""What that value is multiplied by, because it is approached from below."""
_LEAST_EIGENVALUE = 1e-10
"""Eigenvalues of V below this, relative to the largest, are rounding."""
_LIGHTS = (2.0**-10, 2.0**-7, 2.0**-5, 2.0**-4)
"""Weights of the queries on single cells that see what L misses: more of it is left on large domains."""
_ROUNDING = 1e-9
"""A relative residual that is rounding."""
_MAX_STEEP = 1 << 9
"""The most cells for which the descent starts from singular vectors: from there it takes thousands of steps."""
_GROUPED = 8
"""Neighbouring cells that are first taken together on larger domains."""
_GROUPS_SHARE = 0.65
"""The share of the unit ball that groups get at the start; single cells get the rest."""
_EXTRA_ROWS = 1e-3
"""The size of the random rows of L beyond the rank, in relation to the others: rows of zeros would never move."""
_PENALTY = 4.0
"""The first penalty, relative to the squared norm that the decomposition at the start has for a unit singular value.

Below 1, dropping singular values would be cheaper than keeping them. L then loses them, and never gets them back: that
is what the published start, β = 1, did to ranges and prefixes over 64 cells. This value is ours: prefixes still lost
some at 2.
"""


@final
@dataclass(frozen=True)
class LRM(Operator):
    """Measure the right factor of a low-rank decomposition of the workload (Yuan et al. 2012, 2015).

    For a reader who wants to compare: ``Explicit`` finds better strategies, in less time.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The right factor, for workloads of at most 1024 cells; answers follow from it by least squares."""
        return propose_over_cells(workload, _MAX_CELLS, lambda V: _right_factor(V, norm, effort))


def _right_factor(V: Array, norm: Norm, effort: Effort) -> Solution:
    """L as a strategy, in one of two ways, because W = BL holds only up to the tolerance: the better one.

    Either a light query on every cell sees what L misses; of several weights, the best. Or L is moved as little as
    possible so that W = BL is exact; where B hardly sees a direction, that is far. If V is singular, light queries are
    needed anyway.
    """
    if not V.any():
        return Solution(Identity(len(V)), 0.0)
    result = decompose(V, norm, effort)
    candidates = [with_light_cells(_scaled(result.right, norm), norm, weight) for weight in _LIGHTS]
    moved = result.right + np.linalg.pinv(result.left) @ (result.rows - result.left @ result.right)
    if np.linalg.norm(result.rows - result.left @ moved) <= _ROUNDING * np.linalg.norm(result.rows):
        moved = _scaled(moved, norm)
        candidates.append(moved if len(result.rows) == len(V) else with_light_cells(moved, norm))
    gram = DenseGram(V)
    solutions = [Solution(Dense(queries), error(Dense(queries), gram)) for queries in candidates]
    return min(solutions, key=lambda solution: solution.error)


def _scaled(queries: Array, norm: Norm) -> Array:
    """Queries of unit sensitivity."""
    return queries / np.linalg.norm(queries, norm, axis=0).max()


@final
@dataclass(frozen=True, eq=False)
class Decomposition:
    """W ≈ BL, with W rotated to as many rows as its rank."""

    rows: Array
    """W, rotated: a matrix with Gram V and as many rows as its rank."""
    left: Array
    right: Array


def decompose(V: Array, norm: Norm, effort: Effort = DEFAULT) -> Decomposition:
    """The least ‖B‖ found for which ‖W − BL‖ is within the tolerance, and L's columns within the unit ball."""
    values, vectors = np.linalg.eigh(V)
    kept = values > _LEAST_EIGENVALUE * values[-1]
    W = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    rank, n = W.shape
    r = ceil(_RANK_RATIO * rank)
    if n > _MAX_STEEP and n % _GROUPED == 0 and norm == 1:
        start, scale = _by_groups(V, effort), 1 / (1 - _GROUPS_SHARE)
        r = max(r, len(start))
    else:
        scale = sqrt(r) if norm == 1 else 1.0  # no column of Qᵀ is longer than 1, so its absolute sum is at most √r
        start = vectors[:, kept].T / scale
    extra = _EXTRA_ROWS * effort.random().standard_normal((r - len(start), n)) / sqrt(n)
    L = _projected(np.concatenate([start, extra / scale]), norm)
    multiplier = np.zeros_like(W)
    penalty = _PENALTY * scale**2
    affordable = max(1, _MAX_COST // (r * r * n))
    for number in range(1, _MAX_ROUNDS + 1):
        steps = min(affordable, _FIRST_STEPS if number == 1 else _STEPS)
        B, L = _alternated(penalty, penalty * W + multiplier, L, norm, steps, effort)
        residual = W - B @ L
        affordable -= steps
        if np.linalg.norm(residual) <= _TOLERANCE or effort.over or affordable <= 0:
            break
        if number % _DOUBLED_EVERY == 0:
            penalty *= 2
        multiplier += penalty * residual
    return Decomposition(W, B, L)


def _by_groups(V: Array, effort: Effort) -> Array:
    """The start on large domains: the L of groups of neighbouring cells, beside queries on single cells."""
    groups = np.kron(np.eye(len(V) // _GROUPED), np.ones(_GROUPED))
    coarse = decompose(groups @ V @ groups.T / _GROUPED**2, 1, effort).right
    return np.concatenate([_GROUPS_SHARE * coarse @ groups, (1 - _GROUPS_SHARE) * np.eye(len(V))])


def _alternated(penalty: float, target: Array, L: Array, norm: Norm, steps: int, effort: Effort) -> tuple[Array, Array]:
    """B, and L after some steps: B in closed form, then one of Nesterov's steps on L, kept within the unit balls.

    ``target`` is βW + π with the multipliers π. Momentum that leads uphill is dropped (O'Donoghue and Candès 2015).
    """
    r = len(L)
    point, momentum = L, 1.0
    singular = np.full(r, 1 / sqrt(r))
    for _ in range(steps):
        B = _left_factor(penalty, target, point)
        for _ in range(_POWER_STEPS):
            singular = B.T @ (B @ singular)
            length = float(np.linalg.norm(singular))
            singular /= length
        gradient = B.T @ (penalty * (B @ point) - target)
        following = _projected(point - gradient / (_SAFETY * penalty * length), norm)
        if np.vdot(point - following, following - L) > 0:
            momentum = 1.0
        moved = float(np.linalg.norm(following - point))
        later = (1 + sqrt(1 + 4 * momentum**2)) / 2
        point = following + (momentum - 1) / later * (following - L)
        L, momentum = following, later
        if moved <= _SETTLED * float(np.linalg.norm(L)) or effort.over:
            break
    return _left_factor(penalty, target, L), L


def _left_factor(penalty: float, target: Array, L: Array) -> Array:
    """The B with the least ½‖B‖² − tr(πᵀBL) + ½β‖W − BL‖², for βW + π."""
    return np.linalg.solve(penalty * (L @ L.T) + np.eye(len(L)), L @ target.T).T


def _projected(L: Array, norm: Norm) -> Array:
    """Every column moved to the nearest point of the unit ball."""
    lengths = np.linalg.norm(L, norm, axis=0)
    if norm == 2:
        return L / np.maximum(lengths, 1.0)
    outside = np.flatnonzero(lengths > 1)
    if not len(outside):
        return L
    # The nearest point of the L1 ball shrinks all entries by the same amount, down to zero (Duchi et al. 2008).
    sizes = np.abs(L[:, outside])
    falling = -np.sort(-sizes, axis=0)
    shrinking = (np.cumsum(falling, axis=0) - 1) / np.arange(1, len(L) + 1)[:, None]
    last = (falling > shrinking).sum(axis=0) - 1
    projected = L.copy()
    projected[:, outside] = np.sign(L[:, outside]) * np.maximum(sizes - shrinking[last, np.arange(len(outside))], 0.0)
    return projected
