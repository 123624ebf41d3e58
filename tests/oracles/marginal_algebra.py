"""Marginal query matrices M(u) and marginal Gram matrices G(v): an algebra of 2^d weights (paper, sections 7 and 8).

A weight belongs to a set of attributes, and weights are arrays of shape (2, …, 2): index 1 on axis i where attribute i
is in the set. All G(v) share eigenspaces, one for each set a, so that multiplying and inverting them is multiplying and
inverting eigenvalues; weights and eigenvalues are one superset sum apart, O(d·2^d) instead of the paper's O(4^d). The
eigenvalues are what is kept: they span many orders of magnitude, and going back and forth would lose the small ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import IdentityGram
from hdmm.matrix.base import Matrix
from hdmm.matrix.compose import Kron, Stack
from hdmm.matrix.gram import Gram, GramTerm
from hdmm.matrix.leaf import Identity, Total

Weights = NDArray[np.float64]

_MOST = 24  # attributes: 2^24 weights are 128 MiB
_ROUNDING = 1e-12


def marginal_matrix(sizes: Sequence[int], weights: Any) -> Stack:
    """M(u): every marginal with a weight, times its weight."""
    u = _shaped(sizes, weights)
    chosen = [place for place in product((0, 1), repeat=len(sizes)) if u[place] != 0]
    leaves: list[tuple[Matrix, Matrix]] = [(Total(n), Identity(n)) for n in sizes]
    parts = [Kron(leaves[i][inside] for i, inside in enumerate(place)) for place in chosen]
    return Stack(parts, [float(u[place]) for place in chosen])


@final
@dataclass(frozen=True, eq=False)
class MarginalGram:
    """G(v) = Σ_a v(a)·C(a): C(a) is the product of Identity on attributes in a and of all ones elsewhere."""

    sizes: tuple[int, ...]
    eigenvalues: Weights
    """κ(a) = Σ_{b⊇a} v(b)·c(b), for every set a."""

    @staticmethod
    def of_weights(sizes: Sequence[int], weights: Any) -> MarginalGram:
        """G(v) from its weights v."""
        scaled = _shaped(sizes, weights) * characteristic(sizes)
        values, sizes_of = _superset_sums(scaled), _superset_sums(abs(scaled))
        # Where weights cancel, what rounding leaves is nothing.
        return MarginalGram(tuple(sizes), np.where(abs(values) <= _ROUNDING * sizes_of, 0.0, values))

    @property
    def weights(self) -> Weights:
        """v(a), for every set a."""
        values = self.eigenvalues.copy()
        for axis in range(len(self.sizes)):
            outside, inside = _halves(values, axis)
            outside -= inside
        return values / characteristic(self.sizes)

    @staticmethod
    def approximate(gram: Gram) -> MarginalGram:
        """The G(w) with tr(G(u)·WᵀW) = tr(G(u)·G(w)) for every u: any workload, as marginal strategies see it."""
        total = np.zeros([2] * len(gram.sizes))
        for term in gram.terms:
            pairs = []
            for axis, n in enumerate(gram.sizes):
                factor = gram.at(term, axis)
                even = factor.total() / n
                pairs.append(np.array([even, (factor.trace() - even) / (n - 1) if n > 1 else 0.0]))
            total += term.coefficient * _outer(pairs)
        return MarginalGram(gram.sizes, total)

    def __matmul__(self, other: MarginalGram) -> MarginalGram:
        if self.sizes != other.sizes:
            raise ValueError(f"marginal Gram matrices over {self.sizes} and {other.sizes} do not multiply")
        return MarginalGram(self.sizes, self.eigenvalues * other.eigenvalues)

    def inverse(self) -> MarginalGram:
        """The inverse, or where there is none the Moore–Penrose inverse: reciprocal eigenvalues, zero for zero."""
        zero = self.eigenvalues == 0
        return MarginalGram(self.sizes, np.where(zero, 0.0, 1 / np.where(zero, 1.0, self.eigenvalues)))

    def trace(self) -> float:
        """The sum of the eigenvalues, each as often as it occurs."""
        return float(np.sum(multiplicity(self.sizes) * self.eigenvalues))

    def gram(self) -> Gram:
        """The same matrix as a sum of Kronecker products."""
        identities = [IdentityGram(n) for n in self.sizes]
        weights = self.weights
        terms = [
            GramTerm(float(weights[place]), {i: identities[i] for i, inside in enumerate(place) if inside})
            for place in product((0, 1), repeat=len(self.sizes))
            if weights[place] != 0
        ]
        return Gram(self.sizes, tuple(terms))


def characteristic(sizes: Sequence[int]) -> Weights:
    """c(a): how many cells the attributes outside a have."""
    return _outer([np.array([float(n), 1.0]) for n in sizes])


def multiplicity(sizes: Sequence[int]) -> Weights:
    """How often the eigenvalue of a occurs: ∏_{i∈a}(n_i − 1) times (docs/math.md, section 12, corrects the paper)."""
    return _outer([np.array([1.0, n - 1.0]) for n in sizes])


def _outer(vectors: Sequence[Array]) -> Weights:
    return np.asarray(reduce(np.multiply.outer, vectors, np.ones(())))


def _superset_sums(values: Weights) -> Weights:
    """For each set the sum over all sets that contain it."""
    sums = values.copy()
    for axis in range(values.ndim):
        outside, inside = _halves(sums, axis)
        outside += inside
    return sums


def _halves(values: Weights, axis: int) -> tuple[Weights, Weights]:
    """Views of the sets without and with an attribute."""
    moved = np.moveaxis(values, axis, 0)
    return moved[0], moved[1]


def _shaped(sizes: Sequence[int], weights: Any) -> Weights:
    if len(sizes) > _MOST:
        raise TooLargeError(
            f"{len(sizes)} attributes have 2^{len(sizes)} marginals; at most {_MOST} are handled at once"
        )
    array = np.asarray(weights, np.float64)
    if array.size != 2 ** len(sizes):
        raise ValueError(f"expected {2 ** len(sizes)} weights for {len(sizes)} attributes, one for each set")
    if prod(sizes) > 10**250:
        raise TooLargeError("the domain is beyond floating point")
    return array.reshape([2] * len(sizes))
