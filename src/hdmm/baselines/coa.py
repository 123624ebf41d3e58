"""COA: Newton's method on the Gaussian problem (Yuan, Yang, Zhang and Hao 2016).

tr(X⁻¹V) is minimised over X ≻ 0 with a unit diagonal, from X = I: the off-diagonal entries take a few steps of
conjugate gradients towards Newton's direction, then Armijo's rule halves the step until X stays positive definite and
the error falls enough. The problem is the one that OPT_0 solves (docs/math.md, section 4). All steps keep the symmetry
of V: if pairs of cells can be exchanged, as under all ranges, matrices fall into two blocks of half the size.
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
_CONJUGATE_STEPS = 20
"""The most steps of conjugate gradients for one step of Newton's method."""
_MAX_COST = 1 << 42
"""The most n³ of all these steps together: prefixes of 4096 cells end before the optimum, as in the paper's table."""
_RIDGE = 1e-3
"""θ of V + θI as a share of the mean of V's diagonal: V may be singular, and X must not become so.

Of seven powers of ten, the one that comes nearest to the paper's table on 64 cells of width 32; not a published value.
"""
_DECREASE = 1e-4
"""The least decrease of a step, relative to what the gradient promises."""
_MAX_HALVINGS = 40
_TOLERANCE = 1e-7
"""The relative decrease at which the search ends."""
_SMALL_RESIDUAL = 0.03
"""The relative squared residual at which Newton's direction is known well enough.

Far from the optimum a better direction gains nothing, near it all conjugate steps are taken.
"""


@final
@dataclass(frozen=True)
class COA(Operator):
    """Optimise queries over all cells by Newton's method (Yuan et al. 2016); Gaussian noise.

    For a reader who wants to compare: ``Explicit`` solves the same problem, faster and with a proof.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The square root of the best X found, for workloads of at most 4096 cells."""
        if norm == 1:
            return Aside("it takes Gaussian noise: under Laplace noise its problem is not convex in X = AᵀA")
        return propose_over_cells(workload, _MAX_CELLS, lambda V: coa(V, effort))


def coa(V: Array, effort: Effort = DEFAULT) -> Solution:
    """A strategy with the X that Newton's method reaches."""
    scale = np.trace(V) / len(V)
    if not scale:
        return Solution(Dense(np.eye(len(V))), 0.0)
    mirror = mirror_of(V)
    parts = halves(V, mirror)
    X, inverse = newton(parts / scale + _RIDGE * np.eye(parts.shape[1]), effort)
    values, vectors = np.linalg.eigh(X)
    queries = whole((vectors * np.sqrt(values)[:, None, :]) @ vectors.transpose(0, 2, 1), mirror)
    return Solution(Dense(queries / np.sqrt((queries**2).sum(axis=0)).max()), float((inverse * parts).sum()))


def newton(V: Array, effort: Effort = DEFAULT) -> tuple[Array, Array]:
    """The X ≻ 0 of unit diagonal with the least tr(X⁻¹V) that is reached, and its inverse; all of them in blocks.

    With two blocks, their mean has the unit diagonal.
    """
    blocks, n, _ = V.shape
    X = np.tile(np.eye(n), (blocks, 1, 1))
    inverse, value = X, float((X * V).sum())
    affordable = _MAX_COST // (blocks * n**3)
    for _ in range(_NEWTON_STEPS):
        gradient = -inverse @ V @ inverse
        direction, steps = _direction(inverse, gradient, min(_CONJUGATE_STEPS, affordable))
        affordable -= steps
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
        if settled or effort.over or affordable <= 0:
            break
    return X, inverse


def _direction(inverse: Array, gradient: Array, most: int) -> tuple[Array, int]:
    """Newton's direction among matrices of zero diagonal, by conjugate gradients, and the number of their steps.

    The Hessian takes D to −X⁻¹DG − GDX⁻¹ with the gradient G = −X⁻¹VX⁻¹.
    """
    direction = np.zeros_like(gradient)
    residual = -gradient
    _clear_diagonal(residual)
    search = residual.copy()
    length = first = float((residual**2).sum())
    steps = 0
    while steps < most:
        steps += 1
        half = inverse @ search @ gradient
        product = -(half + half.transpose(0, 2, 1))
        _clear_diagonal(product)
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
    return direction, steps


def _clear_diagonal(blocks: Array) -> None:
    """Make the diagonal of the mean of the blocks zero."""
    diagonals = np.einsum("bii->bi", blocks)
    diagonals -= diagonals.mean(axis=0)


def mirror_of(V: Array) -> tuple[Array, Array] | None:
    """Pairs of cells, as their first and their second members, that can all be exchanged without a change of V.

    For ranges these are the cells as far from one end as from the other, in whatever order cells are. None if neither
    these nor pairs of cells with the same entry on the diagonal are such pairs.
    """
    n = len(V)
    if n % 2:
        return None
    by_diagonal = np.argsort(np.diagonal(V), kind="stable")
    for first, second in ((np.arange(n // 2), n - 1 - np.arange(n // 2)), (by_diagonal[::2], by_diagonal[1::2])):
        exchanged = np.empty(n, int)
        exchanged[first], exchanged[second] = second, first
        if np.array_equal(V[exchanged][:, exchanged], V):
            return first, second
    return None


def halves(V: Array, mirror: tuple[Array, Array] | None) -> Array:
    """V on the sums and on the differences of pairs of cells, which it does not mix; V alone without pairs."""
    if mirror is None:
        return V[None]
    first, second = mirror
    same, other = V[np.ix_(first, first)], V[np.ix_(first, second)]
    return np.stack([same + other, same - other])


def whole(parts: Array, mirror: tuple[Array, Array] | None) -> Array:
    """The matrix over all cells of which these are the halves."""
    if mirror is None:
        return parts[0]
    first, second = mirror
    V = np.empty((2 * len(first),) * 2)
    V[np.ix_(first, first)] = V[np.ix_(second, second)] = (parts[0] + parts[1]) / 2
    V[np.ix_(first, second)] = V[np.ix_(second, first)] = (parts[0] - parts[1]) / 2
    return V


def _inverse(blocks: Array) -> Array | None:
    """X⁻¹; None unless X is positive definite."""
    from scipy.linalg.lapack import dpotrf, dpotri

    inverses = np.empty_like(blocks)
    for X, inverse in zip(blocks, inverses, strict=True):
        triangle, failed = dpotrf(X, lower=1)
        if failed:
            return None
        lower, failed = dpotri(triangle, lower=1)
        if failed:
            return None
        inverse[:] = np.tril(lower) + np.tril(lower, -1).T
    return inverses
