"""Predicate sets over one attribute: what a user combines into products.

Each set gives its matrix over the attribute's cells and a label for every predicate. The cells "other" and "missing"
are counted by Identity and Total and are in no prefix and no range. The negation ``~`` of a set includes them, except
that of a condition, which follows SQL: ``~Where("age >= 18")`` is ``Where("NOT age >= 18")``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hdmm import matrix
from hdmm.errors import TooLargeError, WorkloadError
from hdmm.matrix import Matrix
from hdmm.schema import Domain, Listed, text_of
from hdmm.text import count_text
from hdmm.workload.cells import check_cells


class Predicates(ABC):
    """A set of predicates over one attribute."""

    unnamed: ClassVar[bool] = False
    """Whether its one label is None, which fits under any column's name."""

    @abstractmethod
    def matrix(self, name: str, domain: Domain) -> Matrix:
        """One row per predicate, one column per cell; refuse what does not fit the attribute."""

    @abstractmethod
    def labels(self, name: str, domain: Domain) -> list[Any]:
        """One label per predicate: a value, a text such as ``<= 17``, or None for the total."""

    def titles(self, name: str) -> tuple[str, ...]:
        """The names of its columns in tables. Default: that of the attribute."""
        return (name,)

    def columns(self, name: str, domain: Domain) -> list[list[Any]]:
        """The labels in each of its columns. Default: one column."""
        return [self.labels(name, domain)]

    def negated(self, name: str, domain: Domain) -> Matrix:
        """The matrix of the negations of its predicates. Default: everything but the cells of each."""
        inner = self.matrix(name, domain)
        if not inner.binary:
            raise WorkloadError("~: only predicates (rows of zeros and ones) have a negation")
        return matrix.Complement(inner)

    def written(self, cells: int) -> int:
        """How many rows are written out over an attribute of this many cells, as far as known now. Default: none."""
        return 0

    def conditional(self) -> bool:
        """Whether conditions or levels define some of its predicates, which then follow no order. Default: no."""
        return False

    def __or__(self, other: Predicates) -> Union:
        return Union(_parts(self) + _parts(other))

    def __invert__(self) -> Not:
        return Not(self)


@final
@dataclass(frozen=True)
class Permuted(Predicates):
    """Predicates over the domain in another order: ``Permuted(Prefix(), order=["M", "F"])``.

    Ranges and prefixes follow that order; values are the values that they name. Conditions have no order to change.

    Arguments:
        inner: The predicate set.
        order: All values of the attribute in the new order.
    """

    inner: Predicates
    order: tuple[str, ...]

    def __init__(self, inner: Predicates, order: Iterable[Any]) -> None:
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "order", tuple(value_text(value) for value in order))

    def matrix(self, name: str, domain: Domain) -> Matrix:
        codes = [*self._codes(name, domain), *range(domain.declared, domain.size)]
        return matrix.Select(self.inner.matrix(name, self._ordered(name, domain)), np.array(codes), domain.size)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return self.inner.labels(name, self._ordered(name, domain))

    def written(self, cells: int) -> int:
        return self.inner.written(cells)

    def conditional(self) -> bool:
        return self.inner.conditional()

    def _ordered(self, name: str, domain: Domain) -> Domain:
        """The domain in the other order."""
        if self.inner.conditional():
            raise WorkloadError("order: conditions and levels do not follow an order; write them without permuted")
        codes = self._codes(name, domain)
        values = [str(domain.value(code)) for code in codes]
        labels = {value: str(domain.label(code)) for value, code in zip(values, codes, strict=True)}
        spellings: dict[str, Any] = {}
        if isinstance(domain, Listed):
            spellings = {"ignore_case": domain.ignore_case, "aliases": domain.aliases}
        return Listed(values, labels=labels, other=domain.other, missing=domain.missing, **spellings)

    def _codes(self, name: str, domain: Domain) -> list[int]:
        fits = len(self.order) == domain.declared  # checked first: the domain may have more values than memory holds
        codes = [domain.code(value) for value in self.order] if fits else []
        if not fits or sorted(codes) != list(range(domain.declared)):
            raise WorkloadError(f"order: expected each of the {domain.declared} values of {name!r} exactly once")
        return codes


@final
@dataclass(frozen=True)
class Union(Predicates):
    """Several predicate sets on one attribute, one after the other."""

    parts: tuple[Predicates, ...]

    def matrix(self, name: str, domain: Domain) -> Matrix:
        check_rows(self.written(domain.size), name, domain)
        return matrix.Stack([part.matrix(name, domain) for part in self.parts])

    def negated(self, name: str, domain: Domain) -> Matrix:
        check_rows(self.written(domain.size), name, domain)
        return matrix.Stack([part.negated(name, domain) for part in self.parts])

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [label for part in self.parts for label in part.labels(name, domain)]

    def titles(self, name: str) -> tuple[str, ...]:
        named = {part.titles(name) for part in self.parts if not part.unnamed}
        return named.pop() if len(named) == 1 else (name,)

    def columns(self, name: str, domain: Domain) -> list[list[Any]]:
        if self.titles(name) == (name,):
            return [self.labels(name, domain)]
        parts = [
            [[None]] * len(self.titles(name)) if part.unnamed else part.columns(name, domain) for part in self.parts
        ]
        return [[label for part in parts for label in part[place]] for place in range(len(parts[0]))]

    def written(self, cells: int) -> int:
        return sum(part.written(cells) for part in self.parts)

    def conditional(self) -> bool:
        return any(part.conditional() for part in self.parts)


@final
@dataclass(frozen=True)
class Not(Predicates):
    """The negation of each predicate of a set."""

    inner: Predicates

    def matrix(self, name: str, domain: Domain) -> Matrix:
        check_cells(name, domain)
        return self.inner.negated(name, domain)

    def negated(self, name: str, domain: Domain) -> Matrix:
        return self.inner.matrix(name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [f"not {'any' if label is None else label}" for label in self.inner.labels(name, domain)]

    def titles(self, name: str) -> tuple[str, ...]:
        titles = self.inner.titles(name)
        return titles if len(titles) == 1 else (name,)

    def written(self, cells: int) -> int:
        return self.inner.written(cells)

    def conditional(self) -> bool:
        return self.inner.conditional()


def zero_rows(count: int, name: str, domain: Domain) -> NDArray[np.int64]:
    """Zeros for rows that are written out; refused if they would not fit."""
    check_rows(count, name, domain)
    return np.zeros((count, domain.size), np.int64)


def check_rows(count: int, name: str, domain: Domain) -> None:
    """Refuse rows that would not fit if they were written out."""
    if count * domain.size > matrix.DENSE_LIMIT:
        raise TooLargeError(
            f"{count_text(count)} predicates over the {count_text(domain.size)} values of {name!r} are too many to "
            f"write out; about {count_text(matrix.DENSE_LIMIT // count)} values fit: declare bins or a coarser domain"
        )


def _parts(predicates: Predicates) -> tuple[Predicates, ...]:
    if not isinstance(predicates, Predicates):
        raise WorkloadError(f"{predicates!r} is not a predicate set; combine for example Identity() | Total()")
    return predicates.parts if isinstance(predicates, Union) else (predicates,)


def value_text(value: Any) -> str:
    """The text of a value that a domain compares, whether it came from Python or from a file."""
    return text_of(value).strip()
