"""The Gaussian optimum of a workload by its symmetry: the dual fixed point over orbits (docs/math.md, section 13).

With weights v on the orbits, block β has A = Lᵀ·diag(a)·L: a is v times the sizes of the kinds that it adds up, summed
over the attributes of which it sees totals only. Its part of the strategy is X = L·A^-½·Lᵀ over sums of kinds. For any
v > 0, (Σ m·tr A^½)² over Σ cells·v bounds the error of every strategy from below; the best weights make the diagonal of
X constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.demand.roots import MAX_ROOT_WORK
from hdmm.demand.symmetry import SymmetricBlock, Symmetry, symmetry_of
from hdmm.errors import TooLargeError
from hdmm.matrix import Array, Dense, Gram
from hdmm.matrix.orbits import OrbitQueries, Within
from hdmm.operators.integer_span import integer_basis
from hdmm.operators.opt0.relaxation import Relaxation
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.parallel import one_blas_thread
from hdmm.strategy import Block, Strategy

_EPS = float(np.finfo(float).eps)
_TOLERANCE = 3e-5
"""The search ends as soon as the total squared error is proved to be this close to the least, relatively."""
_BOUND_TOLERANCE = 2e-3
"""The same if only the bound is wanted."""
_MAX_BOUND_WORK = 1 << 34
"""The most multiplications of one iteration if only the bound is wanted."""
_MAX_ENTRIES = 1 << 22
"""The most entries of all queries over combinations of kinds: plan files hold them."""
_MAX_SAMPLED_ORBITS = 700
"""How many combinations of kinds are looked at if there are too many."""
_MAX_ITERATIONS = 200
_PATIENCE = 25
"""The most iterations in a row that do not bring the gap down by a hundredth."""
_FILLING = 1e-8
"""What is added to the mean eigenvalue of a Gram so that its strategy spans everything."""


def measurable_symmetry(gram: Gram) -> Symmetry:
    """The symmetry of a Gram; a TooLargeError if its queries would be too large to be kept."""
    symmetry = symmetry_of(gram)
    entries = sum(block.root.size for block in symmetry.blocks)
    if entries > _MAX_ENTRIES:
        raise TooLargeError(f"its queries would have {entries:,} entries, and at most {_MAX_ENTRIES:,} are kept")
    return symmetry


def dual_bound(gram: Gram) -> float | None:
    """A lower bound on the loss of every strategy, within a thousandth of the best one; None if it would take long.

    It holds for Laplace noise too: a column whose absolute values add up to 1 is no longer than 1.
    """
    try:
        symmetry = symmetry_of(gram)
    except TooLargeError:
        return None
    return _bound(symmetry) if _work(symmetry) <= _MAX_BOUND_WORK else None


def sampled_bound(gram: Gram) -> float | None:
    """The same for questions over some of the cells: lower, but quick. None if an attribute has too many cells."""
    try:
        return _bound(symmetry_of(gram, _MAX_SAMPLED_ORBITS))
    except TooLargeError:
        return None


def _bound(symmetry: Symmetry) -> float:
    if not symmetry.blocks:  # nobody is counted
        return 0.0
    search = SymmetricSearch(symmetry, measured=False)
    with one_blas_thread():
        search.run(DEFAULT, _BOUND_TOLERANCE)
    return search.bound


def _work(symmetry: Symmetry) -> int:
    """Multiplications of one iteration; finding eigenvalues takes ten times as long as multiplying."""
    shapes = [block.root.shape for block in symmetry.blocks]
    return sum((rows + 10 * rank) * rank**2 for rows, rank in shapes)


@final
@dataclass(frozen=True, eq=False)
class Root:
    """A block at some weights: the eigenvalues of A, and L times its eigenvectors."""

    values: Array
    turned: Array

    @staticmethod
    def of(root: Array, weights: Array) -> Root:
        """Of L, at the weights that the block sees."""
        values, vectors = np.linalg.eigh(root.T @ (weights[:, None] * root))
        least = len(values) * _EPS * values.max(initial=0.0)
        return Root(np.maximum(values, least), root @ vectors)

    @property
    def trace(self) -> float:
        """tr A^½."""
        return float(np.sqrt(self.values).sum())

    @property
    def trace_below(self) -> float:
        """The same from below: what rounding may have added is taken off first."""
        rounding = len(self.values) * _EPS * self.values.max(initial=0.0)
        return float(np.sqrt(np.clip(self.values - 2 * rounding, 0, None)).sum())

    @property
    def diagonal(self) -> Array:
        """The diagonal of X."""
        return self.turned**2 @ self.values**-0.5

    @property
    def queries(self) -> Array:
        """B with BᵀB = X."""
        return self.values[:, None] ** -0.25 * self.turned.T

    def variances(self, rows: Array, span: Array) -> Array:
        """zᵀX⁺z for every query z, given by its coordinates in a span of orthonormal columns."""
        inverse = np.linalg.pinv(span.T @ self.turned, rcond=1e-13)
        return (rows @ inverse.T) ** 2 @ np.sqrt(self.values)


@final
@dataclass(frozen=True, eq=False)
class Reached:
    """X at some weights of the orbits."""

    roots: list[Root]
    diagonal: Array
    error: float
    """The total squared error of X, scaled so that its diagonal is at most 1."""
    bound: float
    """No strategy has a smaller one."""

    @property
    def largest(self) -> float:
        """The largest entry of the diagonal."""
        return float(self.diagonal.max())


@final
class Orbits:
    """Weights on the orbits of a symmetry, and what they mean for its blocks."""

    def __init__(self, symmetry: Symmetry) -> None:
        self._symmetry = symmetry
        self.cells = symmetry.cells
        self.weights = np.ones(symmetry.shape)

    @cached_property
    def bases(self) -> list[Array | None]:
        """Integer rows that span what each block asks; None where a strategy must span everything."""
        shape = self._symmetry.shape
        return [integer_basis(block.root, [shape[place] for place in block.summed]) for block in self._symmetry.blocks]

    def reach(self, roots: Sequence[Array], bounding: Sequence[Array]) -> Reached:
        """X for roots of the blocks' Grams; the bound is that for other roots, if these are filled up."""
        blocks = self._symmetry.blocks
        seen = [self._seen(block) for block in blocks]
        turned = [Root.of(root, weights) for root, weights in zip(roots, seen, strict=True)]
        below = [
            same if root is other else Root.of(other, weights)
            for root, other, same, weights in zip(roots, bounding, turned, seen, strict=True)
        ]
        diagonal = np.zeros(self.weights.shape)
        for block, root in zip(blocks, turned, strict=True):
            place = tuple(slice(None) if kind is None else kind for kind in block.within)
            shape = [
                len(kinds) if axis in block.summed else 1
                for axis, (kinds, kind) in enumerate(zip(self._symmetry.kinds, block.within, strict=True))
                if kind is None
            ]
            diagonal[place] += block.share * root.diagonal.reshape(shape)
        times = [block.multiplicity for block in blocks]
        trace_below = sum(count * root.trace_below for count, root in zip(times, below, strict=True))
        bound = trace_below**2 / float((self.cells * self.weights).sum())
        error = sum(count * root.trace for count, root in zip(times, turned, strict=True)) * float(diagonal.max())
        return Reached(turned, diagonal, error, bound)

    def _seen(self, block: SymmetricBlock) -> Array:
        """The weights as a block sees them: times the cells on attributes with sums, added up over those unseen."""
        place = tuple(slice(None) if kind is None else kind for kind in block.within)
        weights = self.weights[place]
        open_axes = [axis for axis, kind in enumerate(block.within) if kind is None]
        for position, axis in enumerate(open_axes):
            shape = [-1 if other == position else 1 for other in range(len(open_axes))]
            weights = weights * self._symmetry.kinds[axis].sizes.reshape(shape)
        unseen = tuple(position for position, axis in enumerate(open_axes) if axis not in block.summed)
        return weights.sum(axis=unseen).reshape(-1)

    def strategy(self, reached: Reached, sizes: Sequence[int]) -> Strategy:
        """X as a strategy, for attributes of these sizes."""
        blocks = [
            self._block(block, root.queries / np.sqrt(reached.largest), basis)
            for block, root, basis in zip(self._symmetry.blocks, reached.roots, self.bases, strict=True)
        ]
        return Strategy(tuple(sizes), tuple(blocks), "symmetric")

    def _block(self, block: SymmetricBlock, queries: Array, basis: Array | None) -> Block:
        """What is measured of a block; queries of unit length are multiplied by its weight."""
        length = float(np.sqrt((queries**2).sum(axis=0).max()))
        places = [place for place, kind in enumerate(block.within) if kind is not None or place in block.summed]
        if not places:
            return Block((), (), Fraction(length))
        kinds = tuple(self._symmetry.kinds[place] for place in places)
        parts = tuple(
            None if kind is None else Within.of(cell_kinds, kind)
            for cell_kinds, kind in zip(kinds, (block.within[place] for place in places), strict=True)
        )
        pairs = zip(kinds, parts, strict=True)
        compared = prod(int(cell_kinds.sizes[part.kind]) for cell_kinds, part in pairs if part is not None)
        factor = OrbitQueries(kinds, parts, Dense(queries / length), basis)
        axes = tuple(self._symmetry.axes[place] for place in places)
        return Block(axes, (factor,), Fraction(length) / compared)


@final
class SymmetricSearch:
    """The search for the weights of the orbits that make the total squared error least.

    Without ``measured`` only the bound is of use: its strategies may not survive rounding.
    """

    def __init__(self, symmetry: Symmetry, measured: bool = True) -> None:
        self._orbits = Orbits(symmetry)
        self._bounding = self._roots = [block.root for block in symmetry.blocks]
        if measured:
            self._roots = [
                root if basis is not None else filled(root)
                for root, basis in zip(self._bounding, self._orbits.bases, strict=True)
            ]
        self.bound = 0.0
        """No strategy has a smaller total squared error at unit noise."""
        self._best: Reached | None = None

    @property
    def gap(self) -> float:
        """By how much the best strategy may exceed the least error at most, relatively."""
        return self._best.error / self.bound - 1 if self._best is not None and self.bound else np.inf

    def run(self, effort: Effort, tolerance: float = _TOLERANCE) -> None:
        """Improve the weights until the gap is small enough, or the time is up."""
        orbits = self._orbits
        relaxation = Relaxation(orbits.cells.reshape(-1))
        least_gap, idle = np.inf, 0
        for _ in range(_MAX_ITERATIONS):
            reached = orbits.reach(self._roots, self._bounding)
            self.bound = max(self.bound, reached.bound)
            if self._best is None or reached.error < self._best.error:
                self._best = reached
            idle = 0 if self.gap < 0.99 * least_gap else idle + 1
            least_gap = min(least_gap, self.gap)
            if self.gap <= tolerance or idle == _PATIENCE or effort.over:
                return
            moved = relaxation.move(orbits.weights.reshape(-1), reached.diagonal.reshape(-1))
            orbits.weights = moved.reshape(orbits.weights.shape)

    def strategy(self, sizes: Sequence[int]) -> Strategy:
        """The best strategy found, for attributes of these sizes."""
        assert self._best is not None
        return self._orbits.strategy(self._best, sizes)


def filled(root: Array) -> Array:
    """A root of the same Gram with a little more on the diagonal, which spans everything."""
    if len(root) ** 3 > MAX_ROOT_WORK:
        raise TooLargeError(
            f"{len(root):,} combinations of unlike cells are too many if no integers span the questions"
        )
    values, vectors = np.linalg.eigh(root @ root.T)
    return vectors * np.sqrt(np.maximum(values, 0) + _FILLING * values.sum() / len(values))
