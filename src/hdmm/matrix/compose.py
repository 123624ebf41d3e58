"""Matrices made of matrices: Kronecker products, stacks, and products under a condition across attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as product_pairs
from math import prod
from typing import Any, final

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array, along
from hdmm.matrix.axis_gram import AxisGram, RestrictedGram
from hdmm.matrix.base import Matrix, Norm, Number, column_sums, exact, largest_row_sum
from hdmm.matrix.condition import Condition
from hdmm.matrix.gram import Gram, GramTerm
from hdmm.matrix.intervals import Intervals
from hdmm.matrix.kronecker import Step, kron_apply
from hdmm.matrix.leaf import Dense, Identity, Total
from hdmm.matrix.norms import stacked_norm
from hdmm.matrix.spans import sum_over
from hdmm.matrix.wrappers import Restricted, Wrapped
from hdmm.memory.workspace import DENSE_LIMIT

_MAX_COLUMNS = 1 << 24
"""Most columns whose norms are computed one by one."""


@final
@dataclass(frozen=True)
class Kron(Matrix):
    """The Kronecker product of one matrix per attribute; its rows and columns are in row-major order."""

    factors: tuple[Matrix, ...]

    def __init__(self, factors: Iterable[Matrix]) -> None:
        object.__setattr__(self, "factors", tuple(factors))
        if not self.factors:
            raise ValueError("a Kronecker product needs at least one factor")

    @property
    def shape(self) -> tuple[int, int]:
        return prod(f.shape[0] for f in self.factors), prod(f.shape[1] for f in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The columns of each factor."""
        return tuple(factor.shape[1] for factor in self.factors)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*[factor.dtype for factor in self.factors])

    @property
    def steps(self) -> list[Step]:
        """The factors as steps of a product with a vector."""
        return [_step(factor) for factor in self.factors]

    def apply(self, x: Array) -> Array:
        return kron_apply(self.steps, x, self.dtype)

    def apply_float(self, x: Array) -> Array:
        """The product in floating point; a vector of integers is converted on the way, not beforehand."""
        return kron_apply(self.steps, x, np.dtype(np.float64))

    def apply_t(self, y: Array) -> Array:
        return kron_apply([_transposed_step(factor) for factor in self.factors], y, self.dtype)

    def gram(self) -> Gram:
        factors = {axis: factor.axis_gram() for axis, factor in enumerate(self.factors)}
        return Gram(self.sizes, (GramTerm(1.0, factors),))

    def power(self, p: Norm) -> Kron:
        return Kron(factor.power(p) for factor in self.factors)

    def norm_power(self, p: Norm) -> Number:
        return prod(factor.norm_power(p) for factor in self.factors)

    def rows(self, index: Array) -> Array:
        places = np.unravel_index(index, [factor.shape[0] for factor in self.factors])
        rows: Array = np.ones((len(index), 1), self.dtype)
        for factor, place in zip(self.factors, places, strict=True):
            rows = (rows[:, :, None] * factor.rows(place)[:, None, :]).reshape(len(index), -1)
        return rows


@final
@dataclass(frozen=True)
class Stack(Matrix):
    """Matrices on top of each other, each with a weight: the union of their queries."""

    parts: tuple[Matrix, ...]
    weights: tuple[Number, ...]

    def __init__(self, parts: Sequence[Matrix], weights: Sequence[Number] | None = None) -> None:
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "weights", tuple(weights) if weights is not None else (1,) * len(parts))
        if not self.parts or len(self.parts) != len(self.weights):
            raise ValueError("a stack needs at least one part, and one weight for each")
        if len({part.shape[1] for part in self.parts}) != 1:
            raise ValueError("the parts of a stack must have the same number of columns")

    @property
    def shape(self) -> tuple[int, int]:
        return sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*[part.dtype for part in self.parts], *[_kind(weight) for weight in self.weights])

    def apply(self, x: Array) -> Array:
        return np.concatenate([_times(w, part.apply(x)) for w, part in zip(self.weights, self.parts, strict=True)])

    def apply_t(self, y: Array) -> Array:
        ends = np.cumsum([part.shape[0] for part in self.parts])[:-1]
        pieces = np.split(y, ends)
        product = np.zeros((self.shape[1], *y.shape[1:]), np.result_type(self.dtype, y.dtype))
        for weight, part, piece in zip(self.weights, self.parts, pieces, strict=True):
            product += _times(weight, part.apply_t(piece))
        return product

    def gram(self) -> Gram:
        grams = [part.gram().scaled(float(w) ** 2) for w, part in zip(self.weights, self.parts, strict=True)]
        return Gram(grams[0].sizes, tuple(term for gram in grams for term in gram.terms))

    def power(self, p: Norm) -> Stack:
        return Stack([part.power(p) for part in self.parts], [_absolute(weight) ** p for weight in self.weights])

    def norm_power(self, p: Norm) -> Number:
        weights = [_absolute(weight) ** p for weight in self.weights]
        factored: list[Sequence[Matrix]] = []
        signed: list[Number] = []
        for part, weight in zip(self.parts, weights, strict=True):
            if isinstance(part, Filtered):
                factored += part.parts()
                signed += [weight * box.coefficient for box in part.condition.boxes]
            else:
                factored.append(part.factors if isinstance(part, Kron) else (part,))
                signed.append(weight)
        if len({tuple(factor.shape[1] for factor in factors) for factors in factored}) == 1:
            norm = stacked_norm(factored, signed, p)
            if norm is not None:
                return norm
        if self.shape[1] <= _MAX_COLUMNS:
            return exact(self.column_norms(p).max())
        return sum(weight * part.norm_power(p) for weight, part in zip(weights, self.parts, strict=True))

    @property
    def binary(self) -> bool:
        return all(weight in (0, 1) for weight in self.weights) and all(part.binary for part in self.parts)

    def rows(self, index: Array) -> Array:
        rows = np.zeros((len(index), self.shape[1]), self.dtype)
        start = 0
        for weight, part in zip(self.weights, self.parts, strict=True):
            here = (index >= start) & (index < start + part.shape[0])
            rows[here] = _times(weight, part.rows(index[here] - start))
            start += part.shape[0]
        return rows

    def intervals(self) -> Intervals | None:
        parts = [part.intervals() for part in self.parts]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or any(weight != 1 for weight in self.weights):
            return None
        return Intervals(*(np.concatenate(ends) for ends in zip(*known, strict=True)))


@column_sums.register
def _(matrix: Stack) -> Array:
    sums = np.zeros(matrix.shape[1], matrix.dtype)
    for weight, part in zip(matrix.weights, matrix.parts, strict=True):
        sums += _times(weight, column_sums(part))
    return sums


@largest_row_sum.register
def _(matrix: Stack) -> Number:
    parts = zip(matrix.weights, matrix.parts, strict=True)
    if all(weight >= 0 for weight in matrix.weights):
        return max(weight * largest_row_sum(part) for weight, part in parts)
    return exact(matrix.apply(np.ones(matrix.shape[1], matrix.dtype)).max())


@final
@dataclass(frozen=True, eq=False)
class Filtered(Wrapped):
    """A Kronecker product that counts only the records that satisfy a condition across its attributes.

    The condition's axes are the factors' places. A product costs one product of the Kronecker product; the Gram is the
    sum over all pairs of the condition's boxes.
    """

    inner: Kron
    condition: Condition

    def apply(self, x: Array) -> Array:
        return self.inner.apply(along(self._holds, x) * x)

    def apply_t(self, y: Array) -> Array:
        product = self.inner.apply_t(y)
        return along(self._holds, product) * product

    def gram(self) -> Gram:
        grams = {axis: factor.axis_gram() for axis, factor in enumerate(self.inner.factors)}
        return Gram(self.inner.sizes, filtered_terms(grams, self.condition))

    def power(self, p: Norm) -> Filtered:
        return Filtered(self.inner.power(p), self.condition)

    def norm_power(self, p: Norm) -> Number:
        norm = stacked_norm(self.parts(), [box.coefficient for box in self.condition.boxes], p)
        return self.inner.norm_power(p) if norm is None else norm

    def rows(self, index: Array) -> Array:
        return self.inner.rows(index) * self._holds

    def parts(self) -> list[list[Matrix]]:
        """The factors of each box of the condition."""
        return [
            [restricted(factor, box.masks.get(axis)) for axis, factor in enumerate(self.inner.factors)]
            for box in self.condition.boxes
        ]

    @cached_property
    def _holds(self) -> Array:
        if self.shape[1] > DENSE_LIMIT:
            raise TooLargeError(f"a condition over {self.shape[1]} cells exceeds the limit of {DENSE_LIMIT}")
        return self.condition.dense(self.inner.sizes)


def filtered_terms(grams: Mapping[int, AxisGram], condition: Condition) -> tuple[GramTerm, ...]:
    """The Gram of a filtered product from the Grams of its factors: a term for each pair of the condition's boxes."""
    terms = []
    for left, right in product_pairs(condition.boxes, repeat=2):
        factors = {}
        for axis, gram in grams.items():
            restricting = axis in left.masks or axis in right.masks
            whole = np.ones(gram.size, bool)
            masks = left.masks.get(axis, whole), right.masks.get(axis, whole)
            factors[axis] = RestrictedGram(gram, *masks) if restricting else gram
        terms.append(GramTerm(float(left.coefficient * right.coefficient), factors))
    return tuple(terms)


def restricted(factor: Matrix, mask: Array | None) -> Matrix:
    """A matrix that sees only the cells of a mask, or all without one."""
    if mask is None:
        return factor
    return sum_over(mask) if isinstance(factor, Total) else Restricted(factor, mask)


def _step(factor: Matrix) -> Step:
    if isinstance(factor, Identity):
        return Step(*factor.shape, None)
    if isinstance(factor, Total):
        return Step(*factor.shape, factor.apply, np.ones(factor.shape))
    return Step(*factor.shape, factor.apply, factor.array if isinstance(factor, Dense) else None)


def _transposed_step(factor: Matrix) -> Step:
    rows, columns = factor.shape
    if isinstance(factor, Identity):
        return Step(columns, rows, None)
    return Step(columns, rows, factor.apply_t, factor.array.T if isinstance(factor, Dense) else None)


def _absolute(value: Number) -> Number:
    return value if value >= 0 else -value


def _kind(weight: Number) -> np.dtype[Any]:
    return np.dtype(np.int64 if isinstance(weight, int) else np.float64)


def _times(weight: Number, array: Array) -> Array:
    if isinstance(weight, int) and weight == 1:
        return array
    return (float(weight) if isinstance(weight, Fraction) else weight) * array
