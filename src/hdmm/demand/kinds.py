"""Cells that a workload treats alike: exchanging two of them leaves its Gram matrix as it is.

Whether that is so does not depend on how the workload is written. The Gram is a sum of Kronecker products; if the other
attributes are contracted with random vectors on both sides, what is left over one attribute is symmetric under an
exchange exactly if the Gram is, but for vectors of probability zero.
"""

from __future__ import annotations

from typing import final

import numpy as np

from hdmm.demand.kron_loss import Problem
from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array
from hdmm.matrix.orbits import Kinds

_DRAWS = 2
"""Random contractions."""
_ROUNDING = 1e-12
"""Differences that are smaller than this, relative to the largest entry, are rounding."""
_MAX_CELLS = 1 << 11
"""The most cells of an attribute that are compared, unless all of them are obviously alike."""
_MAX_ENTRIES = 1 << 27
"""The most entries of all Grams on one attribute that are written out."""


def kinds_of(problem: Problem, place: int) -> Kinds:
    """The kinds of cells on one attribute."""
    cells = problem.sizes[place]
    if problem.even[place] is not None:
        return Kinds(np.zeros(cells, np.int64))
    if cells > _MAX_CELLS or cells**2 * len(problem.factors[place]) > _MAX_ENTRIES:
        raise TooLargeError(f"an attribute has {cells:,} cells, too many to compare with each other")
    labels = np.full(cells, -1)
    left = np.arange(cells)
    contractions = [_Contraction(problem, place, draw) for draw in range(_DRAWS)]
    for kind in range(cells):
        alike = left
        for contraction in contractions:
            alike = contraction.exchangeable(left[0], alike)
        labels[alike] = kind
        left = left[labels[left] < 0]
        if not len(left):
            break
    return Kinds(labels)


@final
class _Contraction:
    """The Gram over one attribute, the others contracted with random vectors."""

    def __init__(self, problem: Problem, place: int, draw: int) -> None:
        weights = problem.coefficients
        for other, size in enumerate(problem.sizes):
            if other != place:
                left, right = _vectors(size, draw, other)
                values = np.array([left @ factor.apply(right) / size for factor in problem.factors[other]])
                weights = weights * values[problem.which[:, other]]
        shares = np.bincount(problem.which[:, place], weights=weights, minlength=len(problem.factors[place]))
        self._matrix = np.zeros((problem.sizes[place],) * 2)
        scale = 0.0
        for share, entries in zip(shares, problem.written(place), strict=True):
            self._matrix += share * entries
            scale += abs(share) * float(abs(entries).max())
        self._tolerance = _ROUNDING * scale
        size = len(self._matrix)
        self._marks = np.stack([np.diagonal(self._matrix) * size, self._matrix.sum(axis=0), self._matrix.sum(axis=1)])
        """Numbers that agree for cells that can be exchanged."""

    def exchangeable(self, cell: int, others: Array) -> Array:
        """The cells that can be exchanged with one, itself included: equal in rows and columns but for the two."""
        near = abs(self._marks[:, others] - self._marks[:, [cell]]).max(axis=0) <= self._tolerance * len(self._matrix)
        others = others[near]
        for rows in (self._matrix, self._matrix.T):
            difference = abs(rows[others] - rows[cell])
            difference[:, cell] = abs(rows[others, cell] - rows[cell, others])
            difference[np.arange(len(others)), others] = 0
            others = others[difference.max(axis=1) <= self._tolerance]
        return others


def _vectors(size: int, draw: int, place: int) -> Array:
    """Two vectors between 1/2 and 3/2 that nobody has chosen: fractional parts of multiples of irrational numbers."""
    steps = np.sqrt(np.array([2.0, 3.0])[:, None] + 5 * (draw + _DRAWS * place) + np.arange(1, size + 1))
    return 0.5 + (1000 * steps) % 1
