"""The loss of a Kronecker strategy: the error of every Gram term is a product over the attributes (paper, eq. 7).

The workload's Gram is Σ_t c_t ⊗_i V_i^(t), and only a few different V occur on an attribute. With e_i(V) = tr(X_i⁻¹V)
for the attribute's strategy, the loss is Σ_t c_t ∏_i e_i(V_i^(t)). If the others are fixed, attribute i sees the
surrogate Gram Σ_t c_t ∏_{k≠i} e_k(V_k^(t)) V_i^(t) (paper, section 6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram, DenseGram, OnesGram, RestrictedGram, SumGram
from hdmm.matrix.gram import Gram

_MIN_SHARE = 1e-11
"""The least share of a factor in a surrogate Gram, relative to all."""
_MAX_WRITTEN_CELLS = 512
"""Most cells of an attribute for which a sum of several Grams is written out: products are then faster."""


@final
class Problem:
    """The terms of a Gram over some axes, with equal factors stored once; its other attributes have one cell only."""

    def __init__(self, gram: Gram, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)
        self.sizes = tuple(gram.sizes[axis] for axis in axes)
        self.coefficients = np.array([term.coefficient for term in gram.terms])
        self._dense: dict[int, list[Array]] = {}
        self.factors: list[list[AxisGram]] = []
        """For each axis its different factors."""
        self.which = np.full((len(gram.terms), len(axes)), -1, np.int64)
        """For each term and axis the number of the factor."""
        places = {axis: place for place, axis in enumerate(axes)}
        numbers: list[dict[AxisGram, int]] = [{} for _ in axes]
        seen: dict[tuple[int, int], int] = {}  # by identity, which is faster if terms share their factors
        for row, term in enumerate(gram.terms):
            for axis, factor in term.factors.items():
                if axis in places:
                    place = places[axis]
                    number = seen.get((place, id(factor)))
                    if number is None:
                        number = numbers[place].setdefault(factor, len(numbers[place]))
                        seen[place, id(factor)] = number
                    self.which[row, place] = number
                else:
                    self.coefficients[row] *= factor.total()
        for size, factors, column in zip(self.sizes, numbers, self.which.T, strict=True):
            untouched = column < 0
            if untouched.any():  # there a term is a total
                column[untouched] = factors.setdefault(OnesGram(size), len(factors))
            self.factors.append(list(factors))

    def products(self, errors: Sequence[Array], without: int | None = None) -> Array:
        """c_t ∏_i e_i for every term, one axis left out."""
        product = self.coefficients.copy()
        for place, error in enumerate(errors):
            if place != without:
                product = product * error[self.which[:, place]]
        return product

    def loss(self, errors: Sequence[Array]) -> float:
        """The total squared error at unit noise and sensitivity 1, from the errors of every factor on every axis."""
        return float(self.products(errors).sum())

    def shares(self, errors: Sequence[Array], place: int) -> Array:
        """∂loss/∂e for every factor of one axis: the coefficients of its surrogate Gram."""
        return np.bincount(
            self.which[:, place], weights=self.products(errors, place), minlength=len(self.factors[place])
        )

    def surrogate(self, errors: Sequence[Array], place: int) -> AxisGram:
        """The Gram that one axis sees while the others stay as they are.

        Every factor's share is large enough for floating point, so that a strategy for it answers all of them.
        """
        factors = self.factors[place]
        shares = self.shares(errors, place)
        traces = self._traces[place]
        least = np.divide(_MIN_SHARE * float(abs(shares) @ traces), traces, out=np.zeros(len(traces)), where=traces > 0)
        shares = np.where(shares < least, least, shares)
        if any(isinstance(factor, RestrictedGram) for factor in factors):  # cross-Grams are symmetric only in the sum
            return DenseGram(self.added(shares, place))
        if len(factors) == 1 and shares[0] == 1:
            return factors[0]
        total = SumGram(tuple((float(share), factor) for share, factor in zip(shares, factors, strict=True)))
        if len(factors) > 1 and total.size <= _MAX_WRITTEN_CELLS and total.two_eigenvalues() is None:
            return DenseGram(self.added(shares, place))
        return total

    @cached_property
    def _traces(self) -> list[Array]:
        """The traces of every axis's factors; 0 for cross-Grams, which are not Grams by themselves."""
        return [np.array([_trace(factor) for factor in factors]) for factors in self.factors]

    def added(self, shares: Array, place: int) -> Array:
        """A sum of an axis's factors, entry by entry, so that cells equal in every factor stay equal in every bit."""
        total = np.zeros((self.sizes[place], self.sizes[place]))
        for share, entries in zip(shares, self.written(place), strict=True):
            total += share * entries
        return (total + total.T) / 2

    def written(self, place: int) -> list[Array]:
        """The different factors of an axis, written out."""
        if place not in self._dense:
            self._dense[place] = [factor.dense() for factor in self.factors[place]]
        return self._dense[place]

    @cached_property
    def even(self) -> list[Array | None]:
        """For each axis whose factors are all αI + β11ᵀ, their two eigenvalues; None for the others."""
        pairs = [[factor.two_eigenvalues() for factor in factors] for factors in self.factors]
        return [None if None in axis_pairs else np.array(axis_pairs) for axis_pairs in pairs]


def _trace(factor: AxisGram) -> float:
    return 0.0 if isinstance(factor, RestrictedGram) and not factor.symmetric else factor.trace()
