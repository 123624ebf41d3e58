"""Gram matrices as sums of Kronecker products: all that selection sees of a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram, OnesGram, SumGram
from hdmm.matrix.kronecker import Step, kron_apply


@final
@dataclass(frozen=True, eq=False)
class GramTerm:
    """One Kronecker product: its coefficient and its factors by axis. On an absent axis it is all ones (Total)."""

    coefficient: float
    factors: Mapping[int, AxisGram]


@final
@dataclass(frozen=True, eq=False)
class Gram:
    """Σ c·(G₁ ⊗ … ⊗ G_d) over attributes of the given sizes; coefficients may be negative."""

    sizes: tuple[int, ...]
    terms: tuple[GramTerm, ...]

    @staticmethod
    def of(factor: AxisGram) -> Gram:
        """The Gram of a matrix over one attribute."""
        return Gram((factor.size,), (GramTerm(1.0, {0: factor}),))

    def __add__(self, other: Gram) -> Gram:
        if self.sizes != other.sizes:
            raise ValueError(f"Grams over {self.sizes} and {other.sizes} do not add")
        return Gram(self.sizes, self.terms + other.terms)

    def scaled(self, c: float) -> Gram:
        """The Gram times c."""
        return Gram(self.sizes, tuple(GramTerm(c * term.coefficient, term.factors) for term in self.terms))

    def axis_gram(self) -> AxisGram:
        """The Gram of a matrix over one attribute, without the sum around it."""
        if len(self.sizes) != 1:
            raise ValueError(f"this is a Gram over {len(self.sizes)} attributes, not over one")
        parts = tuple((term.coefficient, self.at(term, 0)) for term in self.terms)
        return parts[0][1] if len(parts) == 1 and parts[0][0] == 1 else SumGram(parts)

    def at(self, term: GramTerm, axis: int) -> AxisGram:
        """A term's factor on one axis: all ones if it is not stored."""
        return term.factors.get(axis) or OnesGram(self.sizes[axis])

    def on(self, axes: Sequence[int]) -> Gram:
        """The Gram over some axes alone, on which all its terms lie."""
        if len(axes) == len(self.sizes):
            return self
        places = {axis: place for place, axis in enumerate(axes)}
        terms = (
            GramTerm(t.coefficient, {places[axis]: factor for axis, factor in t.factors.items()}) for t in self.terms
        )
        return Gram(tuple(self.sizes[axis] for axis in axes), tuple(terms))

    def trace(self) -> float:
        """The sum of the diagonal: the squared Frobenius norm of the matrix."""
        return sum(t.coefficient * prod(self.at(t, i).trace() for i in range(len(self.sizes))) for t in self.terms)

    def apply(self, x: Array) -> Array:
        """The product with a vector."""
        product = np.zeros(x.shape)
        for term in self.terms:
            factors = [self.at(term, axis) for axis in range(len(self.sizes))]
            steps = [Step(factor.size, factor.size, factor.apply) for factor in factors]
            product += term.coefficient * kron_apply(steps, x, np.dtype(float))
        return product

    def dense(self, limit: int = 1 << 13) -> Array:
        """All entries written out; refused beyond ``limit`` rows."""
        rows = prod(self.sizes)
        if rows > limit:
            raise TooLargeError(f"a dense Gram of {rows} rows exceeds the limit of {limit}")
        product = np.zeros((rows, rows))
        for term in self.terms:
            product += term.coefficient * kron_dense([self.at(term, axis).dense() for axis in range(len(self.sizes))])
        return product


def kron_dense(arrays: Sequence[Array]) -> Array:
    """The Kronecker product of arrays, written out; of none, the number 1."""
    product: Array = np.ones((1, 1), np.result_type(*arrays) if arrays else float)
    for array in arrays:
        product = np.kron(product, array)
    return product
