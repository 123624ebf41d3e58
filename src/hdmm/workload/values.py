"""Predicate sets of values, conditions and numbers, whatever the domain's order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm import matrix
from hdmm.errors import WorkloadError
from hdmm.matrix import Matrix
from hdmm.numbers import shown
from hdmm.schema import Domain
from hdmm.syntax import either, given
from hdmm.workload.conditions import truths
from hdmm.workload.predicates import Predicates, check_rows, value_text
from hdmm.workload.truth import Mask, Truth

_MAX_NUMBER = 1 << 53
"""The largest number of a Custom table; floats hold larger integers only roughly."""


@final
@dataclass(frozen=True)
class Identity(Predicates):
    """Each value by itself; with ``where``, each value that satisfies an SQL condition on the attribute."""

    where: str | None = None

    def matrix(self, name: str, domain: Domain) -> Matrix:
        if self.where is None:
            return matrix.Identity(domain.size)
        cells = self._cells(name, domain)
        return matrix.Select(matrix.Identity(len(cells)), cells, domain.size)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return domain.labels() if self.where is None else domain.labels_of(self._cells(name, domain))

    def conditional(self) -> bool:
        return self.where is not None

    def _cells(self, name: str, domain: Domain) -> NDArray[np.int64]:
        return np.flatnonzero(satisfied(self.where, name, domain))


@final
@dataclass(frozen=True)
class Total(Predicates):
    """All values together."""

    unnamed = True

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return matrix.Total(domain.size)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [None]


@final
@dataclass(frozen=True)
class Values(Predicates):
    """Each of the given values by itself."""

    values: tuple[str, ...]

    def __init__(self, values: Iterable[Any]) -> None:
        texts = tuple(value_text(value) for value in values) if not isinstance(values, str) else ()
        if not texts:
            listed = either(python="Values(['CA', 'NY'])", spec="values: [CA, NY]")
            raise WorkloadError(f"{given('values', shown(values))}: expected a list of values, for example {listed}")
        object.__setattr__(self, "values", texts)

    def matrix(self, name: str, domain: Domain) -> Matrix:
        check_rows(self.written(domain.size), name, domain)
        codes = np.array([domain.code(value) for value in self.values])
        return matrix.sums_over(codes, codes, domain.size)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return domain.labels_of(np.array([domain.code(value) for value in self.values]))

    def written(self, cells: int) -> int:
        return 0 if matrix.many_cells(cells) else len(self.values)


@final
@dataclass(frozen=True)
class Where(Predicates):
    """One predicate: an SQL condition on the attribute, for example ``Where("age >= 18")``."""

    condition: str

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return matrix.sum_over(_truths(self.condition, name, domain) > 0)

    def negated(self, name: str, domain: Domain) -> Matrix:
        return matrix.sum_over(_truths(self.condition, name, domain) < 0)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [self.condition]

    def written(self, cells: int) -> int:
        return 1

    def conditional(self) -> bool:
        return True


@final
@dataclass(frozen=True)
class Custom(Predicates):
    """Any queries over the attribute, one row each: an array with a column for every cell."""

    rows: tuple[tuple[int | float, ...], ...]

    def __init__(self, array: Any) -> None:
        try:
            rows = np.atleast_2d(np.asarray(array))
        except ValueError:
            rows = np.empty(0)
        if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "buif" or not np.isfinite(rows).all():
            raise WorkloadError("custom: expected a table of finite numbers, one row per query and one column per cell")
        sizes = abs(rows.astype(float))
        if sizes.max() > _MAX_NUMBER:
            raise WorkloadError("custom: numbers beyond ±2^53 are refused; scale the table and use a weight")
        if sizes.min(initial=1.0, where=sizes > 0) < 1 / _MAX_NUMBER:
            raise WorkloadError("custom: numbers below 2^-53, but not 0, are refused; scale the table and use a weight")
        if rows.dtype.kind == "f" and (rows == np.rint(rows)).all():
            rows = rows.astype(np.int64)
        object.__setattr__(self, "rows", tuple(tuple(row) for row in (rows + 0).tolist()))

    def matrix(self, name: str, domain: Domain) -> Matrix:
        if len(self.rows[0]) != domain.size:
            raise WorkloadError(
                f"custom: the table has {len(self.rows[0])} columns, but {name!r} has {domain.size} cells"
            )
        rows = np.array(self.rows)
        return matrix.Dense(rows.astype(float) if abs(rows).max() > matrix.MAX_ENTRY else rows)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [f"query {row + 1}" for row in range(len(self.rows))]

    def written(self, cells: int) -> int:
        return len(self.rows)


def _truths(condition: object, name: str, domain: Domain) -> Truth:
    """The truth value of a condition in every cell."""
    if not isinstance(condition, str):
        raise WorkloadError(f"where={condition!r}: expected an SQL condition as text, for example 'age >= 18'")
    return truths(condition, name, domain)


def satisfied(condition: str | None, name: str, domain: Domain) -> Mask:
    """The cells that satisfy a condition; refused if there are none."""
    mask = _truths(condition, name, domain) > 0
    if not mask.any():
        raise WorkloadError(f"condition {condition!r}: no value of {name!r} satisfies it")
    return mask
