"""Least squares with one factor of a Kronecker product: what it determines, its errors, and how answers depend on it.

FactorSolution
├── Counts      the factor is the identity: nothing to do
├── Implicit    an ordered attribute whose pseudo-inverse is never written out (`hdmm.matrix.solvable`)
└── Explicit    any other: the pseudo-inverse is written out
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np

from hdmm.estimators.inverse import covers, error, inverse_error
from hdmm.estimators.inverse import inverse as pseudo_inverse
from hdmm.estimators.row_types import (
    RowTypes,
    entry_types,
    interval_types,
    product_types,
    query_types,
    row_types,
)
from hdmm.matrix import Array, AxisGram, Identity, Matrix
from hdmm.matrix.compose import restricted
from hdmm.matrix.solvable import Solvable
from hdmm.memory.workspace import check_written


class FactorSolution(ABC):
    """Least squares with one factor A."""

    @property
    @abstractmethod
    def inverse(self) -> Matrix:
        """A⁺."""

    @abstractmethod
    def determines(self, asked: Callable[[], AxisGram]) -> bool:
        """Whether a workload with this Gram asks only what the factor's measurements determine."""

    @abstractmethod
    def error(self, gram: AxisGram) -> float:
        """tr(A⁺A⁺ᵀV): the error of a workload with Gram V at unit noise."""

    @abstractmethod
    def types(self, matrix: Matrix, masks: Array) -> RowTypes:
        """The types of the rows of W A⁺, for W restricted to each set of cells."""


def solution_of(factor: Matrix) -> FactorSolution:
    """Least squares with a factor."""
    if isinstance(factor, Identity):
        return Counts(factor)
    return Implicit(factor) if isinstance(factor, Solvable) else Explicit(factor)


@final
class Counts(FactorSolution):
    """Every cell is measured by itself."""

    def __init__(self, factor: Identity) -> None:
        self._factor = factor

    @property
    def inverse(self) -> Matrix:
        return self._factor

    def determines(self, asked: Callable[[], AxisGram]) -> bool:
        return True

    def error(self, gram: AxisGram) -> float:
        return gram.trace()

    def types(self, matrix: Matrix, masks: Array) -> RowTypes:
        return row_types(matrix, masks)


@final
class Explicit(FactorSolution):
    """The pseudo-inverse is written out."""

    def __init__(self, factor: Matrix) -> None:
        self._factor = factor

    @cached_property
    def inverse(self) -> Matrix:
        return pseudo_inverse(self._factor)

    @cached_property
    def _projection(self) -> Array:
        """A⁺A."""
        check_written(self._factor.shape[1], self._factor.shape[1])
        return self.inverse.apply(self._factor.dense().astype(float))

    def determines(self, asked: Callable[[], AxisGram]) -> bool:
        return covers(self._factor, self._projection, asked)

    def error(self, gram: AxisGram) -> float:
        return inverse_error(self.inverse, gram)

    def types(self, matrix: Matrix, masks: Array) -> RowTypes:
        entries = self.inverse.dense()
        if len(masks) == 1:
            return product_types(_within(matrix, masks), entries)
        return entry_types(np.stack([matrix.apply(mask[:, None] * entries) for mask in masks], axis=2))


@final
class Implicit(FactorSolution):
    """Nothing is written out: errors of sums over intervals come from the factor's own formulas."""

    def __init__(self, factor: Solvable) -> None:
        self._factor = factor
        self._errors: dict[AxisGram, float] = {}

    @property
    def inverse(self) -> Matrix:
        return self._factor.inverse()

    def determines(self, asked: Callable[[], AxisGram]) -> bool:
        return self._factor.determines(asked())

    def error(self, gram: AxisGram) -> float:
        if gram not in self._errors:
            self._errors[gram] = error(self._factor, gram)
        return self._errors[gram]

    def types(self, matrix: Matrix, masks: Array) -> RowTypes:
        if len(masks) > 1:
            entries = self.inverse.dense()
            return entry_types(np.stack([matrix.apply(mask[:, None] * entries) for mask in masks], axis=2))
        asked = _within(matrix, masks)
        intervals = asked.intervals()
        return query_types(asked, self.inverse) if intervals is None else interval_types(intervals, self._factor)


def _within(matrix: Matrix, masks: Array) -> Matrix:
    """A matrix that sees only the cells of the one mask."""
    return restricted(matrix, None if masks.all() else masks[0])
