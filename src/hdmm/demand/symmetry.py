"""A workload by its symmetry: its Gram matrix falls apart into small blocks (docs/math.md, section 13).

On each attribute the cells are sorted into kinds. A block sees, on each attribute, either the sums over kinds, or the
differences within one kind of at least two cells. An orbit is a combination of kinds, one on each attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod
from typing import final

import numpy as np

from hdmm.demand.kinds import kinds_of
from hdmm.demand.kron_loss import Problem
from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram, OnesGram
from hdmm.matrix.gram import Gram, kron_dense
from hdmm.matrix.orbits import Kinds

MAX_ORBITS = 3000
"""The most combinations of kinds."""
_MAX_BLOCKS = 1 << 12
_ROUNDING = 1e-13
"""A smaller share of a Gram's diagonal is rounding."""
_EPS = float(np.finfo(float).eps)


@final
@dataclass(frozen=True, eq=False)
class SymmetricBlock:
    """The Gram on one choice of sums and differences."""

    within: tuple[int | None, ...]
    """For each attribute the kind whose cells are compared; None for sums over kinds."""
    summed: tuple[int, ...]
    """The attributes whose sums matter: on the others with sums, only totals are asked."""
    root: Array
    """L with LLᵀ = the mean entries of the Gram over combinations of kinds on these attributes."""
    multiplicity: float
    """How many differences there are."""
    share: float
    """What the differences' projection has on its diagonal."""


@final
@dataclass(frozen=True, eq=False)
class Symmetry:
    """The kinds of cells on each attribute of a Gram, and its blocks."""

    axes: tuple[int, ...]
    kinds: tuple[Kinds, ...]
    blocks: tuple[SymmetricBlock, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many kinds each attribute has."""
        return tuple(len(kinds) for kinds in self.kinds)

    @property
    def cells(self) -> Array:
        """How many cells each orbit has."""
        cells = np.ones(())
        for kinds in self.kinds:
            cells = np.multiply.outer(cells, kinds.sizes.astype(float))
        return cells


def symmetry_of(gram: Gram) -> Symmetry:
    """The symmetry of a Gram; a TooLargeError where there is too little of it."""
    touched = {axis for term in gram.terms for axis in term.factors}
    axes = tuple(axis for axis, size in enumerate(gram.sizes) if size > 1 and axis in touched)
    problem = Problem(gram, axes)
    kinds: list[Kinds] = []
    for place in range(len(axes)):
        kinds.append(kinds_of(problem, place))
        orbits = prod(len(kind) for kind in kinds)
        if orbits > MAX_ORBITS:
            raise TooLargeError(f"too few cells are alike: more than {MAX_ORBITS:,} combinations of them differ")
    reduced = [[_reduced(kind, factor) for factor in problem.factors[place]] for place, kind in enumerate(kinds)]
    blocks = (_block(problem, kinds, reduced, within, terms) for within, terms in _choices(problem, reduced).items())
    return Symmetry(axes, tuple(kinds), tuple(block for block in blocks if block is not None))


Reduced = tuple[Array, Array]
"""A Gram on one attribute: its mean entry for each pair of kinds, and its eigenvalue on differences in each kind."""


def _reduced(kinds: Kinds, factor: AxisGram) -> Reduced:
    pair = factor.two_eigenvalues() if len(kinds) == 1 else None
    if pair is not None:
        return np.full((1, 1), pair[1] / kinds.cells), np.array([pair[0] if kinds.cells > 1 else 0.0])
    entries = factor.dense()
    sizes = kinds.sizes
    means = kinds.means(kinds.means(entries).T).T
    diagonal = np.bincount(kinds.labels, weights=np.diagonal(entries), minlength=len(kinds))
    rest = (diagonal - sizes * np.diagonal(means)) / np.maximum(sizes - 1, 1)
    scale = diagonal / sizes
    return means, np.where((sizes > 1) & (abs(rest) > _ROUNDING * abs(scale)), rest, 0.0)


def _choices(problem: Problem, reduced: Sequence[Sequence[Reduced]]) -> dict[tuple[int | None, ...], list[int]]:
    """Every choice of sums and differences that some term of the Gram asks about, with these terms."""
    choices: dict[tuple[int | None, ...], list[int]] = {}
    for number, which in enumerate(problem.which):
        options = [[None, *np.flatnonzero(reduced[place][at][1]).tolist()] for place, at in enumerate(which)]
        if prod(len(option) for option in options) > _MAX_BLOCKS:
            raise TooLargeError(f"the workload asks about more than {_MAX_BLOCKS:,} kinds of differences")
        for within in combinations(*options):
            choices.setdefault(within, []).append(number)
        if len(choices) > _MAX_BLOCKS:
            raise TooLargeError(f"the workload asks about more than {_MAX_BLOCKS:,} kinds of differences")
    return choices


def _block(
    problem: Problem,
    kinds: Sequence[Kinds],
    reduced: Sequence[Sequence[Reduced]],
    within: tuple[int | None, ...],
    terms: Sequence[int],
) -> SymmetricBlock | None:
    """The Gram on one choice; None where nothing is asked of it."""
    which = problem.which[terms]
    coefficients = problem.coefficients[terms]
    summed = []
    for place, kind in enumerate(within):
        if kind is not None:
            coefficients = coefficients * np.array([reduced[place][at][1][kind] for at in which[:, place]])
        elif len(kinds[place]) == 1:
            coefficients = coefficients * np.array([reduced[place][at][0][0, 0] for at in which[:, place]])
        elif not all(isinstance(problem.factors[place][at], OnesGram) for at in which[:, place]):
            summed.append(place)
    gram = np.zeros((prod(len(kinds[place]) for place in summed),) * 2)
    scale = 0.0
    for coefficient, row in zip(coefficients, which, strict=True):
        factors = [reduced[place][row[place]][0] for place in summed]
        gram += coefficient * kron_dense(factors)
        scale += abs(coefficient) * prod(float(abs(factor).max()) for factor in factors)
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    if values[-1] <= 0:
        return None
    kept = values > len(values) * _EPS * max(values[-1], scale)
    if not kept.any():
        return None
    sizes = [int(kinds[place].sizes[kind]) for place, kind in enumerate(within) if kind is not None]
    return SymmetricBlock(
        within,
        tuple(summed),
        vectors[:, kept] * np.sqrt(values[kept]),
        float(prod(size - 1 for size in sizes)),
        prod((size - 1) / size for size in sizes),
    )
