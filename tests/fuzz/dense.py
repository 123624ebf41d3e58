"""What a plan measures, written out over all cells, and the exact errors of the best linear answers from it."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import exp, expm1, lcm, prod
from typing import Any

import flint
import numpy as np

_PRIME = (1 << 61) - 1
"""Ranks are decided modulo this prime: exact but for a chance of about 1e-17."""
_EXACT = 100
"""Up to this rank, normal equations are solved in ball arithmetic."""


class Dense:
    """The blocks of a plan over all cells of the schema."""

    def __init__(self, blocks: Sequence[Any], sizes: Sequence[int]) -> None:
        self.tables = [_table(block, sizes) for block in blocks]
        self.integral = all((table == np.rint(table)).all() for table in self.tables)

    @cached_property
    def _reduced(self) -> tuple[Any, list[int]]:
        """The row space modulo a prime in echelon form, and its pivots."""
        stacked = np.concatenate([table.astype(object) for table in self.tables])
        if len(stacked) > stacked.shape[1]:
            stacked = stacked.T.dot(stacked)
        rows = [[int(entry) % _PRIME for entry in row] for row in stacked]
        reduced, rank = flint.nmod_mat(rows, _PRIME).rref()
        table = [[int(reduced[i, j]) for j in range(stacked.shape[1])] for i in range(rank)]
        return table, [next(j for j, entry in enumerate(row) if entry) for row in table]

    def told(self, query: Sequence[Fraction]) -> bool:
        """Whether the measurements determine a query."""
        table, pivots = self._reduced
        scale = lcm(*(entry.denominator for entry in query))
        left = [int(entry * scale) % _PRIME for entry in query]
        factors = [left[pivot] for pivot in pivots]
        for factor, row in zip(factors, table, strict=True):
            if factor:
                left = [(a - factor * b) % _PRIME for a, b in zip(left, row, strict=True)]
        return not any(left)

    def variances(self, queries: Sequence[Sequence[Fraction]], noise: Sequence[float]) -> list[float] | None:
        """The least variance of an unbiased linear answer to each query that is told; None where it is too hard."""
        _, pivots = self._reduced
        if not pivots or not queries:
            return [0.0] * len(queries)
        if not all(noise):
            return None
        if len(pivots) > _EXACT:
            return self._floats(queries, noise, pivots)
        return self._exact(queries, noise, pivots, 600) or self._exact(queries, noise, pivots, 6000)

    def _exact(
        self, queries: Sequence[Any], noise: Sequence[float], pivots: list[int], bits: int
    ) -> list[float] | None:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            r = len(pivots)
            gram = flint.arb_mat(r, r)
            for table, variance in zip(self.tables, noise, strict=True):
                own = flint.fmpz_mat([[int(entry) for entry in row] for row in table[:, pivots]])
                gram += flint.arb_mat(own.transpose() * own) / flint.arb(variance)
            right = flint.arb_mat([[flint.arb(_fmpq(row[p])) for row in queries] for p in pivots])
            solved = gram.solve(right)
            return [
                float(sum((right[i, q] * solved[i, q] for i in range(r)), flint.arb(0))) for q in range(len(queries))
            ]
        except ZeroDivisionError:  # not enough bits
            return None
        finally:
            flint.ctx.prec = before

    def _floats(self, queries: Sequence[Any], noise: Sequence[float], pivots: list[int]) -> list[float] | None:
        gram = sum(t[:, pivots].T @ t[:, pivots] / v for t, v in zip(self.tables, noise, strict=True))
        scale = 1 / np.sqrt(np.diag(gram))
        even = gram * np.outer(scale, scale)
        if np.linalg.cond(even) > 1e7:
            return None
        right = np.array([[float(row[p]) for p in pivots] for row in queries]).T * scale[:, None]
        return (right * np.linalg.solve(even, right)).sum(axis=0).tolist()


def _table(block: Any, sizes: Sequence[int]) -> Any:
    """A block's queries over all cells: Kronecker products on its attributes, totals on the others."""
    table = np.ones((1, 1))
    for factor in block.factors:
        table = np.kron(table, np.asarray(factor.dense(), float))
    shape = [len(table), *(size if axis in block.axes else 1 for axis, size in enumerate(sizes))]
    spread = np.broadcast_to(table.reshape(shape), (len(table), *sizes))
    if block.condition is not None:
        spread = spread * _mask(block.condition, sizes)
    return spread.reshape(len(table), prod(sizes)).copy()


def _mask(condition: Any, sizes: Sequence[int]) -> Any:
    """Where a condition across attributes holds: its terms added up."""
    held = np.zeros(sizes)
    for term in condition.boxes:
        box = np.full(sizes, float(term.coefficient))
        for axis, mask in term.masks.items():
            box = box * np.asarray(mask, float).reshape([-1 if place == axis else 1 for place in range(len(sizes))])
        held += box
    return held


def _fmpq(value: Fraction) -> Any:
    return flint.fmpq(value.numerator, value.denominator)


def laplace_variance(scale: float) -> float:
    """The variance of discrete Laplace noise, P(k) ∝ e^(−|k|/scale)."""
    return 2 * exp(-1 / scale) / expm1(-1 / scale) ** 2
