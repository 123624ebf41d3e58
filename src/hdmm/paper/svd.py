"""The SVD bound where it has no closed form, from the blocks into which a workload's Gram falls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from itertools import product as choices
from math import prod, sqrt
from typing import TypeAlias

import numpy as np

from hdmm.bounds import svd_bound
from hdmm.demand.symmetry import symmetry_of
from hdmm.errors import TooLargeError
from hdmm.matrix import Array, AxisGram, Gram
from hdmm.matrix.axes import Axes, subsets
from hdmm.matrix.axis_gram import OnesGram
from hdmm.matrix.gram import kron_dense
from hdmm.operators.symmetric_search import Orbits

_MAX_ROWS = 1 << 11
"""The most rows of a block whose eigenvalues are computed."""
_MAX_BLOCKS = 1 << 12
"""The most blocks."""
_PART = {False: slice(0, 1), True: slice(1, None)}
"""The rows of the mean, and those of the differences from it."""
Factors: TypeAlias = tuple[AxisGram, ...]


def any_svd_bound(gram: Gram) -> float:
    """The SVD bound in closed form, or from blocks. A TooLargeError if it takes too long."""
    bound = svd_bound(gram)
    if bound is not None:
        return bound
    try:
        return symmetric_svd_bound(gram)
    except TooLargeError:
        return residual_svd_bound(gram)


def symmetric_svd_bound(gram: Gram) -> float:
    """The SVD bound of a Gram that treats many cells alike (docs/math.md, section 13).

    It is the dual bound at equal weights. A TooLargeError if too few cells are alike.
    """
    symmetry = symmetry_of(gram)
    roots = [block.root for block in symmetry.blocks]
    return Orbits(symmetry).reach(roots, roots).bound


def residual_svd_bound(gram: Gram) -> float:
    """The SVD bound of a Gram whose terms have few attributes each that are asked by more than values and totals.

    Attributes that are asked by values and totals alone divide it into one block for each set of them, as in the bound
    of marginals (docs/math.md, section 12). A block is about the other attributes. It is written out on their totals
    and on those differences that some term asks about. A TooLargeError if these are too many.
    """
    axes = range(len(gram.sizes))
    even = [axis for axis in axes if all(gram.at(term, axis).two_eigenvalues() for term in gram.terms)]
    ordered = [axis for axis in axes if axis not in even]
    blocks: defaultdict[Axes, defaultdict[Factors, float]] = defaultdict(lambda: defaultdict(float))
    for term in gram.terms:
        factors = tuple(gram.at(term, axis) for axis in ordered)
        pairs = {axis: gram.at(term, axis).two_eigenvalues() or (0.0, 0.0) for axis in even}
        for within in subsets(tuple(axis for axis, (differences, _) in pairs.items() if differences)):
            shares = (differences if axis in within else total for axis, (differences, total) in pairs.items())
            blocks[within][factors] += term.coefficient * prod(shares)
        if len(blocks) > _MAX_BLOCKS:
            raise TooLargeError(f"more than {_MAX_BLOCKS:,} sets of attributes")
    matrices = _on_differences({factors for block in blocks.values() for factors in block}, len(ordered))
    nuclear = 0.0
    for within, block in blocks.items():
        entries = sum((weight * matrices[factors] for factors, weight in block.items()), start=np.zeros(()))
        roots = np.sqrt(np.clip(np.linalg.eigvalsh(entries), 0, None))
        nuclear += prod(gram.sizes[axis] - 1 for axis in within) * float(roots.sum())
    return nuclear**2 / prod(gram.sizes)


def _on_differences(terms: Collection[Factors], attributes: int) -> dict[Factors, Array]:
    """Kronecker products of Grams on the totals of attributes and on the differences that any of them asks about."""
    supports = {
        factors: tuple(place for place, factor in enumerate(factors) if not isinstance(factor, OnesGram))
        for factors in terms
    }
    sizes = {place: factor.size for factors in terms for place, factor in enumerate(factors)}
    starts: dict[Axes, int] = {}
    rows = 0
    for within in sorted({within for support in supports.values() for within in subsets(support)}):
        starts[within] = rows
        rows += prod(sizes[place] - 1 for place in within)
    if rows > _MAX_ROWS:
        raise TooLargeError(f"a block of {rows:,} rows")
    rotated = {factor: _rotated(factor) for factors in terms for factor in factors}
    matrices = {}
    for factors, support in supports.items():
        matrix = np.zeros((rows, rows))
        totals = prod(sizes[place] for place in range(attributes) if place not in support)
        for left, right in choices(list(subsets(support)), repeat=2):
            parts = [rotated[factors[place]][_PART[place in left], _PART[place in right]] for place in support]
            entries = totals * kron_dense(parts)
            matrix[starts[left] :, starts[right] :][: len(entries), : entries.shape[1]] = entries
        matrices[factors] = matrix
    return matrices


def _rotated(factor: AxisGram) -> Array:
    """A Gram in an orthonormal basis that begins with the mean."""
    axis = -np.full(factor.size, 1 / sqrt(factor.size))
    axis[0] += 1
    basis = np.eye(factor.size) - 2 * np.outer(axis, axis) / (axis @ axis)
    return basis @ factor.dense() @ basis
