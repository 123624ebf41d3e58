"""LRM: the low-rank mechanism (Yuan et al. 2012; Yuan et al. 2015 for Gaussian noise).

W ≈ BL with the least ‖B‖, where the columns of L lie in the unit ball of the L1 norm (Laplace) or of the L2 norm
(Gaussian): L is measured, and B gives the answers. An augmented Lagrangian with the penalty β is minimised by turns: B in
closed form, L by Nesterov's projected gradient. It starts from the singular value decomposition, which is feasible.

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
_MAX_ROUNDS = 60
_ALTERNATIONS = 20
"""The most times that B and L are improved by turns in a round."""
_SETTLED = 1e-4
"""The relative change of the Lagrangian at which a round ends."""
_GRADIENT_STEPS = 50
"""Steps of the projected gradient for L each time."""
_MAX_COST = 1 << 40
"""Multiplications for the gradients of all rounds together: on large domains there are fewer steps."""
_EXPECTED_ROUNDS = 30
_LEAST_STEPS = 10
_LEAST_EIGENVALUE = 1e-10
"""Eigenvalues of V below this, relative to the largest, are rounding."""
_ROUNDING = 1e-9
"""A relative residual that is rounding."""
_EXTRA_ROWS = 1e-3
"""The size of the random rows of L beyond the rank, in relation to the others: rows of zeros would never move."""
_PENALTY = 1.5
"""The first penalty, relative to the squared norm that the decomposition at the start has for a unit singular value.

Below 1, dropping singular values would be cheaper than keeping them. L then loses them, and never gets them back: that is
what the published start, β = 1, does to ranges and prefixes.
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


def _right_factor(V: Array, norm: Norm, effort: Effort) -> Solution | Aside:
    """L as a strategy, moved as little as possible so that W = BL holds exactly."""
    if not V.any():
        return Solution(Identity(len(V)), 0.0)
    result = decompose(V, norm, effort)
    L = result.right + np.linalg.pinv(result.left) @ (result.rows - result.left @ result.right)
    if np.linalg.norm(result.rows - result.left @ L) > _ROUNDING * np.linalg.norm(result.rows):
        return Aside("its decomposition lost a part of the workload")
    L /= np.linalg.norm(L, norm, axis=0).max()
    queries = L if len(result.rows) == len(V) else with_light_cells(L, norm)
    return Solution(Dense(queries), error(Dense(queries), DenseGram(V)))


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
    scale = sqrt(r) if norm == 1 else 1.0  # no column of Qᵀ is longer than 1, so its absolute sum is at most √r
    L = np.concatenate([vectors[:, kept].T, _EXTRA_ROWS * effort.random().standard_normal((r - rank, n)) / sqrt(n)])
    L = _projected(L / scale, norm)
    B = np.zeros((rank, r))
    multiplier = np.zeros_like(W)
    penalty = _PENALTY * scale**2
    pairs = min(1.0, _MAX_COST / (_EXPECTED_ROUNDS * _ALTERNATIONS * _GRADIENT_STEPS * float(r) ** 2 * n))
    steps = max(_LEAST_STEPS, round(_GRADIENT_STEPS * sqrt(pairs)))
    alternations = max(1, round(_ALTERNATIONS * pairs * _GRADIENT_STEPS / steps))
    for number in range(1, _MAX_ROUNDS + 1):
        before = np.inf
        for _ in range(alternations):
            target = penalty * W + multiplier
            B = np.linalg.solve(penalty * (L @ L.T) + np.eye(r), L @ target.T).T
            L = _gradient_steps(L, penalty * (B.T @ B), B.T @ target, norm, steps)
            residual = W - B @ L
            lagrangian = (B**2).sum() / 2 + (multiplier * residual).sum() + penalty / 2 * (residual**2).sum()
            if abs(before - lagrangian) < _SETTLED * abs(lagrangian):
                break
            before = lagrangian
        if np.linalg.norm(residual) <= _TOLERANCE or effort.over:
            break
        if number % _DOUBLED_EVERY == 0:
            penalty *= 2
        multiplier += penalty * residual
    return Decomposition(W, B, L)


def _gradient_steps(L: Array, hessian: Array, linear: Array, norm: Norm, steps: int) -> Array:
    """L after some of Nesterov's steps on ½tr(LᵀHL) − tr(TᵀL), kept within the unit balls."""
    length = 1 / float(np.linalg.norm(hessian, 2))
    before, momentum = L, 1.0
    point = L
    for _ in range(steps):
        L = _projected(point - length * (hessian @ point - linear), norm)
        following = (1 + sqrt(1 + 4 * momentum**2)) / 2
        point = L + (momentum - 1) / following * (L - before)
        before, momentum = L, following
    return L


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
