"""Matrices made of matrices: Kronecker products, stacks and signed sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, final

import numpy as np

from hdmm.matrix.base import Array, Matrix, Norm, Number, exact
from hdmm.matrix.factors import DenseGram
from hdmm.matrix.gram import Gram, Term
from hdmm.matrix.kronecker import Step, kron_apply
from hdmm.matrix.leaf import Dense, Identity
from hdmm.matrix.norms import stacked_norm

ENUMERABLE = 1 << 24
"""The most columns whose norms are enumerated one by one."""


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

    def apply(self, x: Array) -> Array:
        return kron_apply([_step(factor) for factor in self.factors], x, self.dtype)

    def apply_t(self, y: Array) -> Array:
        return kron_apply([_transposed_step(factor) for factor in self.factors], y, self.dtype)

    def gram(self) -> Gram:
        factors = {axis: factor.gram().factor() for axis, factor in enumerate(self.factors)}
        return Gram(self.sizes, (Term(1.0, factors),))

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
        factored = [part.factors if isinstance(part, Kron) else (part,) for part in self.parts]
        if len({tuple(factor.shape[1] for factor in factors) for factors in factored}) == 1:
            found = stacked_norm(factored, weights, p)
            if found is not None:
                return found
        if self.shape[1] <= ENUMERABLE:
            return exact(self.column_norms(p).max())
        return _total(w * part.norm_power(p) for w, part in zip(weights, self.parts, strict=True))

    def rows(self, index: Array) -> Array:
        rows = np.zeros((len(index), self.shape[1]), self.dtype)
        start = 0
        for weight, part in zip(self.weights, self.parts, strict=True):
            here = (index >= start) & (index < start + part.shape[0])
            rows[here] = _times(weight, part.rows(index[here] - start))
            start += part.shape[0]
        return rows


@final
@dataclass(frozen=True)
class Sum(Matrix):
    """A signed sum of Kronecker products of the same shape: disjunctions and negations across attributes."""

    parts: tuple[Kron, ...]
    coefficients: tuple[Number, ...]

    def __init__(self, parts: Sequence[Kron], coefficients: Sequence[Number]) -> None:
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "coefficients", tuple(coefficients))
        if not self.parts or len(self.parts) != len(self.coefficients):
            raise ValueError("a sum needs at least one part, and one coefficient for each")
        if len({(part.shape, part.sizes) for part in self.parts}) != 1:
            raise ValueError("the parts of a sum must have the same shape and the same attributes")

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*[part.dtype for part in self.parts], *[_kind(c) for c in self.coefficients])

    def apply(self, x: Array) -> Array:
        return _add(_times(c, part.apply(x)) for c, part in zip(self.coefficients, self.parts, strict=True))

    def apply_t(self, y: Array) -> Array:
        return _add(_times(c, part.apply_t(y)) for c, part in zip(self.coefficients, self.parts, strict=True))

    def gram(self) -> Gram:
        terms = []
        for c, left in zip(self.coefficients, self.parts, strict=True):
            for e, right in zip(self.coefficients, self.parts, strict=True):
                factors = {
                    axis: _cross(a, b) for axis, (a, b) in enumerate(zip(left.factors, right.factors, strict=True))
                }
                terms.append(Term(float(c) * float(e), factors))
        return Gram(self.parts[0].sizes, tuple(terms))

    def power(self, p: Norm) -> Matrix:
        return Dense(self.dense()).power(p)

    def norm_power(self, p: Norm) -> Number:
        if self.shape[0] * self.shape[1] <= ENUMERABLE:
            return exact(self.column_norms(p).max())
        # ‖a + b‖₁ ≤ ‖a‖₁ + ‖b‖₁, and ‖Σ c_k a_k‖² ≤ (Σ |c_k|)(Σ |c_k| ‖a_k‖²).
        sizes = [_absolute(c) for c in self.coefficients]
        bound = _total(c * part.norm_power(p) for c, part in zip(sizes, self.parts, strict=True))
        return bound if p == 1 else bound * _total(sizes)

    def rows(self, index: Array) -> Array:
        return _add(_times(c, part.rows(index)) for c, part in zip(self.coefficients, self.parts, strict=True))


def _step(factor: Matrix) -> Step:
    if isinstance(factor, Identity):
        return Step(*factor.shape, None)
    return Step(*factor.shape, factor.apply, factor.array if isinstance(factor, Dense) else None)


def _transposed_step(factor: Matrix) -> Step:
    rows, columns = factor.shape
    if isinstance(factor, Identity):
        return Step(columns, rows, None)
    return Step(columns, rows, factor.apply_t, factor.array.T if isinstance(factor, Dense) else None)


def _cross(left: Matrix, right: Matrix) -> DenseGram:
    return DenseGram(left.apply_t(right.dense()).astype(float))


def _absolute(value: Number) -> Number:
    return value if value >= 0 else -value


def _total(values: Iterable[Number]) -> Number:
    total: Number = 0
    for value in values:
        total = total + value
    return total


def _kind(weight: Number) -> np.dtype[Any]:
    return np.dtype(np.int64 if isinstance(weight, int) else np.float64)


def _times(weight: Number, array: Array) -> Array:
    if isinstance(weight, int) and weight == 1:
        return array
    product: Array = (float(weight) if isinstance(weight, Fraction) else weight) * array
    return product


def _add(arrays: Iterable[Array]) -> Array:
    first, *others = arrays
    total = first.copy()
    for array in others:
        total = total + array
    return total
