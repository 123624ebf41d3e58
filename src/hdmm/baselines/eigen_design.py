"""EigenDesign: the eigenvectors of the workload's Gram, with the best weights (Li and Miklau 2012).

With the eigenvalues λ and eigenvectors Q of V, a strategy diag(√c)Qᵀ has the error Σ λ_i/c_i and the squared column
norms (Q∘Q)c. Both are convex in c ≥ 0. The dual gives every μ ≥ 0 the best c_i ∝ √(λ_i/((Q∘Q)ᵀμ)_i) and the bound
(Σ √(λ_i·((Q∘Q)ᵀμ)_i))²/Σμ; μ moves until no cell that has weight is below the largest norm. Shorter columns are then
filled up by a query on the cell alone, as in the published algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.baselines.written_out import propose_over_cells, with_light_cells
from hdmm.estimators.inverse import error
from hdmm.matrix import Array, Dense, Identity, Norm
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.base import Aside, Operator, Proposal, Solution
from hdmm.operators.opt0.relaxation import Relaxation
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded

_MAX_CELLS = 1 << 12
"""The most cells whose eigenvectors are computed."""
_LEAST_EIGENVALUE = 1e-10
"""Eigenvalues below this, relative to the largest, are rounding."""
_GAP = 1e-8
"""The gap between the weights' error and its lower bound at which the search ends."""
_MAX_STEPS = 2000
_LEAST_FILL = 1e-6
"""A column is filled up if it lacks more than this share of the squared norm."""


@final
@dataclass(frozen=True)
class EigenDesign(Operator):
    """Measure the eigenvectors of the workload, weighted as well as possible (Li and Miklau 2012); Gaussian noise.

    For a reader who wants to compare: ``Explicit`` is never worse. If eigenvalues are equal, the result depends on
    which of their eigenvectors the eigendecomposition returns.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The weighted eigenvectors, for workloads of at most 4096 cells."""
        if norm == 1:
            return Aside("it takes Gaussian noise: under Laplace noise its problem is not convex in squared weights")
        return propose_over_cells(workload, _MAX_CELLS, lambda V: eigen_design(V, effort))


def eigen_design(V: Array, effort: Effort = DEFAULT) -> Solution:
    """The eigenvectors of V with the best weights, and queries on single cells that fill up shorter columns."""
    values, vectors = np.linalg.eigh(V)
    kept = values > _LEAST_EIGENVALUE * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    if not len(values):
        return Solution(Identity(len(V)), 0.0)
    weights = eigen_weights(values, vectors**2, effort)[0]
    missing = 1 - vectors**2 @ weights
    filled = np.flatnonzero(missing > _LEAST_FILL)
    alone = np.zeros((len(filled), len(V)))
    alone[np.arange(len(filled)), filled] = np.sqrt(missing[filled])
    queries = np.concatenate([np.sqrt(weights)[:, None] * vectors.T, alone])
    matrix = Dense(queries if kept.all() else with_light_cells(queries, 2))
    return Solution(matrix, error(matrix, DenseGram(V)))


def eigen_weights(values: Array, squares: Array, effort: Effort = DEFAULT) -> tuple[Array, float]:
    """The c ≥ 0 with (Q∘Q)c ≤ 1 for which Σ λ_i/c_i is least, and a proved lower bound on that sum."""
    cells = np.flatnonzero(squares.max(axis=1) > _LEAST_EIGENVALUE)  # the others are not asked for
    squares = squares[cells]
    dual = squares @ np.sqrt(values)
    relaxation = Relaxation()
    best, least, bound = values, np.inf, 0.0
    for _ in range(_MAX_STEPS):
        slopes = squares.T @ dual
        bound = max(bound, float(np.sqrt(values * slopes).sum() ** 2 / dual.sum()))
        weights = np.sqrt(values / slopes)
        norms = squares @ weights
        weights /= norms.max()
        total = float((values / weights).sum())
        if total < least:
            best, least = weights, total
        if least <= (1 + _GAP) * bound or effort.over:
            break
        dual = relaxation.move(dual, norms)
    return best, bound
