"""COA: Newton's method on the Gaussian problem (Yuan, Yang, Zhang and Hao 2016).

tr(X⁻¹V) is minimised over X ≻ 0 with a unit diagonal, from X = I: the off-diagonal entries take a few steps of
conjugate gradients towards Newton's direction, then Armijo's rule halves the step until X stays positive definite and
the error falls enough. The problem is the one that OPT_0 solves (docs/math.md, section 4). With these limits on the
iterations, runs on large domains end before the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.baselines.written_out import propose_over_cells
from hdmm.matrix import Array, Dense, Norm
from hdmm.operators.base import Aside, Operator, Proposal, Solution
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded

_MAX_CELLS = 1 << 12
"""The most cells for which X is searched."""
_NEWTON_STEPS = 50
"""About as many as COA is said to need (paper, section 4.2)."""
_CONJUGATE_STEPS = 5
"""Steps of conjugate gradients for one step of Newton's method.

With 50 times 5 steps, prefixes of 256 cells end before the optimum, where the run in the paper's table does.
"""
_RIDGE = 1e-3
"""θ of V + θI as a share of the mean of V's diagonal: V may be singular, and X must not become so.

Of seven powers of ten, the one that comes nearest to the paper's table on 64 cells of width 32; not a published value.
"""
_DECREASE = 1e-4
"""The least decrease of a step, relative to what the gradient promises."""
_MAX_HALVINGS = 40
_TOLERANCE = 1e-9
"""The relative decrease at which the search ends."""
_SMALL_RESIDUAL = 1e-10
"""The relative squared residual at which Newton's direction is known well enough."""


@final
@dataclass(frozen=True)
class COA(Operator):
    """Optimise queries over all cells by Newton's method (Yuan et al. 2016); Gaussian noise.

    For a reader who wants to compare: ``Explicit`` solves the same problem, faster and with a proof.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The square root of the best X found, for workloads of at most 4096 cells."""
        if norm == 1:
            return Aside("the norm of Laplace noise is no function of X = AᵀA, so its problem is not convex")
        return propose_over_cells(workload, _MAX_CELLS, lambda V: coa(V, effort))


def coa(V: Array, effort: Effort = DEFAULT) -> Solution:
    """A strategy with the X that Newton's method reaches."""
    scale = np.trace(V) / len(V)
    if not scale:
        return Solution(Dense(np.eye(len(V))), 0.0)
    X, inverse = newton(V / scale + _RIDGE * np.eye(len(V)), effort)
    values, vectors = np.linalg.eigh(X)
    queries = (vectors * np.sqrt(values)) @ vectors.T
    return Solution(Dense(queries / np.sqrt((queries**2).sum(axis=0)).max()), float((inverse * V).sum()))


def newton(V: Array, effort: Effort = DEFAULT) -> tuple[Array, Array]:
    """The X ≻ 0 of unit diagonal with the least tr(X⁻¹V) that is reached, and its inverse."""
    X, inverse, value = np.eye(len(V)), np.eye(len(V)), float(np.trace(V))
    for _ in range(_NEWTON_STEPS):
        gradient = -inverse @ V @ inverse
        direction = _direction(inverse, gradient)
        slope = float((gradient * direction).sum())
        length = 1.0
        for _ in range(_MAX_HALVINGS):
            candidate = _inverse(X + length * direction)
            if candidate is not None:
                reached = float((candidate * V).sum())
                if reached <= value + _DECREASE * length * slope:
                    break
            length /= 2
        else:
            break
        assert candidate is not None
        settled = value - reached <= _TOLERANCE * value
        X, inverse, value = X + length * direction, candidate, reached
        if settled or effort.over:
            break
    return X, inverse


def _direction(inverse: Array, gradient: Array) -> Array:
    """Newton's direction among matrices of zero diagonal, by conjugate gradients.

    The Hessian takes D to −X⁻¹DG − GDX⁻¹ with the gradient G = −X⁻¹VX⁻¹.
    """
    direction = np.zeros_like(gradient)
    residual = -gradient
    np.fill_diagonal(residual, 0.0)
    search = residual.copy()
    length = first = float((residual**2).sum())
    for _ in range(_CONJUGATE_STEPS):
        half = inverse @ search @ gradient
        product = -(half + half.T)
        np.fill_diagonal(product, 0.0)
        curvature = float((search * product).sum())
        if not curvature > 0:  # nothing left, or rounding
            break
        direction += length / curvature * search
        residual -= length / curvature * product
        following = float((residual**2).sum())
        if following <= _SMALL_RESIDUAL * first:
            break
        search = residual + following / length * search
        length = following
    return direction


def _inverse(X: Array) -> Array | None:
    """X⁻¹; None unless X is positive definite."""
    from scipy.linalg.lapack import dpotrf, dpotri

    triangle, failed = dpotrf(X, lower=1)
    if failed:
        return None
    lower, failed = dpotri(triangle, lower=1)
    return None if failed else np.tril(lower) + np.tril(lower, -1).T
