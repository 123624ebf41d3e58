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
from hdmm.demand.roots import root_of
from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram, OnesGram
from hdmm.matrix.gram import Gram
from hdmm.matrix.orbits import Kinds

MAX_ORBITS = 1 << 17
"""The most combinations of kinds."""
_MAX_AXES = 60
"""The most attributes: arrays over orbits have one axis for each, and numpy allows 64."""
_MAX_BLOCKS = 1 << 12
_ROUNDING = 1e-13
"""A smaller share of a Gram's diagonal is rounding."""


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


def symmetry_of(gram: Gram, most: int | None = None) -> Symmetry:
    """The symmetry of a Gram; a TooLargeError if there is too little of it.

    With ``most`` the Gram is restricted to some of its cells, so that at most this many combinations of kinds are left.
    The least error is then no larger than before: who has no records in the other cells loses nothing.
    """
    touched = {axis for term in gram.terms for axis in term.factors}
    axes = tuple(axis for axis, size in enumerate(gram.sizes) if size > 1 and axis in touched)
    if len(axes) > _MAX_AXES:
        raise TooLargeError(f"{len(axes)} attributes; at most {_MAX_AXES} are searched together")
    problem = Problem(gram, axes)
    kinds: list[Kinds] = []
    for place in range(len(axes)):
        kinds.append(kinds_of(problem, place))
        orbits = prod(len(kind) for kind in kinds)
        if orbits > MAX_ORBITS and most is None:
            raise TooLargeError(f"too few cells are alike: more than {MAX_ORBITS:,} combinations of them differ")
    reduced = [[_reduced(kind, factor) for factor in problem.factors[place]] for place, kind in enumerate(kinds)]
    if most is not None:
        chosen = _evenly_chosen([len(kind) for kind in kinds], most)
        kinds = [kind.only(some) for kind, some in zip(kinds, chosen, strict=True)]
        reduced = [
            [(means[np.ix_(some, some)], rest[some]) for means, rest in factors]
            for factors, some in zip(reduced, chosen, strict=True)
        ]
    blocks = (_block(problem, kinds, reduced, within, terms) for within, terms in _choices(problem, reduced).items())
    return Symmetry(axes, tuple(kinds), tuple(block for block in blocks if block is not None))


def _evenly_chosen(counts: Sequence[int], most: int) -> list[Array]:
    """Some of the kinds of every attribute, evenly spaced: as many as leave at most this many combinations."""
    limit = max(counts, default=1)
    while limit > 1 and prod(min(count, limit) for count in counts) > most:
        limit -= 1
    return [np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(np.int64)) for count in counts]


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
    root = root_of(
        [
            (float(coefficient), [reduced[place][row[place]][0] for place in summed])
            for coefficient, row in zip(coefficients, which, strict=True)
        ],
        [len(kinds[place]) for place in summed],
    )
    if root is None:
        return None
    sizes = [int(kinds[place].sizes[kind]) for place, kind in enumerate(within) if kind is not None]
    return SymmetricBlock(
        within,
        tuple(summed),
        root,
        float(prod(size - 1 for size in sizes)),
        prod((size - 1) / size for size in sizes),
    )
