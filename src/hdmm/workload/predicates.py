"""Predicate sets over one attribute: what a user combines into products.

Each set gives its matrix over the attribute's cells and a label for every predicate. The cells "other" and "missing"
are counted by Identity and Total and are in no prefix, range or comparison; a negation includes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm import matrix
from hdmm.errors import TooLargeError, WorkloadError, is_integer, nearest
from hdmm.matrix import Matrix
from hdmm.numbers import shown
from hdmm.schema import Bins, Domain, Listed, text_of
from hdmm.text import count_text
from hdmm.workload.clauses import check_cells
from hdmm.workload.conditions import holds

_LARGEST = 1 << 53


class Predicates(ABC):
    """A set of predicates over one attribute."""

    @abstractmethod
    def matrix(self, name: str, domain: Domain) -> Matrix:
        """One row per predicate, one column per cell; refuse what does not fit the attribute."""

    @abstractmethod
    def labels(self, name: str, domain: Domain) -> list[Any]:
        """One label per predicate: a value, a text such as ``<= 17``, or None for the total."""

    @property
    def written(self) -> int:
        """How many of its rows are written out, cell by cell, as far as that is known without the attribute."""
        return _written(self)

    def __or__(self, other: Predicates) -> Union:
        return Union(_parts(self) + _parts(other))

    def __invert__(self) -> Not:
        return Not(self)


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
        labels = domain.labels()
        return labels if self.where is None else [labels[cell] for cell in self._cells(name, domain).tolist()]

    def _cells(self, name: str, domain: Domain) -> NDArray[np.int64]:
        return np.flatnonzero(_satisfied(self.where, name, domain))


@final
@dataclass(frozen=True)
class Level(Predicates):
    """Each group of a level that the schema declares: ``Level("age group")``. Of several levels, each combination.

    With ``where``, only the values that satisfy an SQL condition on the attribute are counted.
    """

    names: tuple[str, ...]
    where: str | None

    def __init__(self, *names: str, where: str | None = None) -> None:
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise WorkloadError(f"level={names!r}: expected the names of levels, for example Level('age group')")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "where", where)

    def matrix(self, name: str, domain: Domain) -> Matrix:
        codes, groups = self._groups(name, domain)
        rows = _rows(len(groups), name, domain)
        seen = codes >= 0
        rows[codes[seen], np.flatnonzero(seen)] = 1
        return matrix.Dense(rows)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        _, groups = self._groups(name, domain)
        every = [domain.levels[level].domain.labels() for level in self.names]
        if len(every) == 1:
            return [every[0][group] for (group,) in groups]
        named = [[f"{level}={label}" for label in labels] for level, labels in zip(self.names, every, strict=True)]
        return [", ".join(labels[code] for labels, code in zip(named, group, strict=True)) for group in groups]

    def _groups(self, name: str, domain: Domain) -> tuple[NDArray[np.int64], list[tuple[int, ...]]]:
        """The group of every cell, -1 for those that are not counted, and what each group is on every level."""
        for level in self.names:
            if level not in domain.levels:
                raise WorkloadError(f"{name!r} has no level {level!r}{nearest(level, domain.levels)}")
        codes = np.stack([domain.levels[level].codes for level in self.names])
        counted = np.ones(domain.size, bool) if self.where is None else _satisfied(self.where, name, domain)
        groups, which = np.unique(codes[:, counted], axis=1, return_inverse=True)
        cells = np.full(domain.size, -1, np.int64)
        cells[counted] = which.reshape(-1)
        return cells, [tuple(group) for group in groups.T.tolist()]


@final
@dataclass(frozen=True)
class Total(Predicates):
    """All values together."""

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return matrix.Total(domain.size)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [None]


@final
@dataclass(frozen=True)
class Prefix(Predicates):
    """Everything up to each value, in the domain's order."""

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return _declared(matrix.Prefix(domain.declared), name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        if isinstance(domain, Bins):
            return [f"{_end(domain, code)} {domain.edges[code + 1]:f}" for code in range(domain.declared)]
        return [f"<= {domain.value(code)}" for code in range(domain.declared)]


@final
@dataclass(frozen=True)
class AllRange(Predicates):
    """Every range of values, in the domain's order."""

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return _declared(matrix.AllRange(domain.declared), name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        lows, highs = np.triu_indices(domain.declared)
        return _range_labels(domain, lows, highs)


@final
@dataclass(frozen=True)
class Width(Predicates):
    """Every range of ``width`` neighbouring values."""

    width: int

    def matrix(self, name: str, domain: Domain) -> Matrix:
        if not is_integer(self.width) or not 1 <= self.width <= domain.declared:
            raise WorkloadError(
                f"width={shown(self.width)}: expected an integer from 1 to {domain.declared}, the size of {name!r}"
            )
        return _declared(matrix.Width(domain.declared, self.width), name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        lows = np.arange(domain.declared - self.width + 1)
        return _range_labels(domain, lows, lows + self.width - 1)


@final
@dataclass(frozen=True)
class Ranges(Predicates):
    """The given ranges, both ends included; for bins, from edge to edge."""

    ranges: tuple[tuple[str, str], ...]

    def __init__(self, ranges: Iterable[Sequence[Any]]) -> None:
        given = list(ranges)
        if not given or any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in given):
            raise WorkloadError(f"ranges={shown(given)}: expected pairs, for example Ranges([(0, 17), (18, 64)])")
        object.__setattr__(self, "ranges", tuple((_text(low), _text(high)) for low, high in given))

    def matrix(self, name: str, domain: Domain) -> Matrix:
        rows = _rows(len(self.ranges), name, domain)
        for row, (first, last) in zip(rows, self._spans(domain), strict=True):
            row[first : last + 1] = 1
        return matrix.Dense(rows)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        spans = np.array(self._spans(domain))
        return _range_labels(domain, spans[:, 0], spans[:, 1])

    def _spans(self, domain: Domain) -> list[tuple[int, int]]:
        return [domain.span(low, high) for low, high in self.ranges]


@final
@dataclass(frozen=True)
class Values(Predicates):
    """Each of the given values by itself."""

    values: tuple[str, ...]

    def __init__(self, values: Iterable[Any]) -> None:
        given = tuple(_text(value) for value in values) if not isinstance(values, str) else ()
        if not given:
            raise WorkloadError(f"values={shown(values)}: expected a list of values, for example Values(['CA', 'NY'])")
        object.__setattr__(self, "values", given)

    def matrix(self, name: str, domain: Domain) -> Matrix:
        rows = _rows(len(self.values), name, domain)
        rows[np.arange(len(self.values)), [domain.code(value) for value in self.values]] = 1
        return matrix.Dense(rows)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        labels = domain.labels()
        return [labels[domain.code(value)] for value in self.values]


@final
@dataclass(frozen=True)
class Where(Predicates):
    """One predicate: an SQL condition on the attribute, for example ``Where("age >= 18")``."""

    condition: str

    def matrix(self, name: str, domain: Domain) -> Matrix:
        if not isinstance(self.condition, str):
            raise WorkloadError(f"where={self.condition!r}: expected an SQL condition as text, for example 'age >= 18'")
        rows = _rows(1, name, domain)
        rows[0] = holds(self.condition, name, domain)
        return matrix.Dense(rows)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [self.condition]


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
        if sizes.max() > _LARGEST:
            raise WorkloadError("custom: numbers beyond ±2^53 are refused; scale the table and use a weight")
        if sizes.min(initial=1.0, where=sizes > 0) < 1 / _LARGEST:
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


@final
@dataclass(frozen=True)
class Permuted(Predicates):
    """Predicates over the domain in another order: ``Permuted(Prefix(), order=["M", "F"])``.

    Ranges and prefixes follow that order; values are the values that they name. Conditions have no order to change.
    """

    inner: Predicates
    order: tuple[str, ...]

    def __init__(self, inner: Predicates, order: Iterable[Any]) -> None:
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "order", tuple(_text(value) for value in order))

    def matrix(self, name: str, domain: Domain) -> Matrix:
        codes = [*self._codes(name, domain), *range(domain.declared, domain.size)]
        return matrix.Select(self.inner.matrix(name, self._ordered(name, domain)), np.array(codes), domain.size)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return self.inner.labels(name, self._ordered(name, domain))

    def _ordered(self, name: str, domain: Domain) -> Domain:
        """The domain in the other order."""
        if _conditional(self.inner):
            raise WorkloadError("order: conditions and levels do not follow an order; write them without permuted")
        codes = self._codes(name, domain)
        return Listed([domain.value(code) for code in codes], other=domain.other, missing=domain.missing)

    def _codes(self, name: str, domain: Domain) -> list[int]:
        fits = len(self.order) == domain.declared  # asked first: the domain may have more values than memory holds
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
        _check_rows(self.written, name, domain)
        return matrix.Stack([part.matrix(name, domain) for part in self.parts])

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [label for part in self.parts for label in part.labels(name, domain)]


@final
@dataclass(frozen=True)
class Not(Predicates):
    """The negation of each predicate of a set."""

    inner: Predicates

    def matrix(self, name: str, domain: Domain) -> Matrix:
        check_cells(name, domain)
        inner = self.inner.matrix(name, domain)
        if not inner.binary:
            raise WorkloadError("~: only predicates (rows of zeros and ones) have a negation")
        return matrix.Complement(inner)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return [f"not {'any' if label is None else label}" for label in self.inner.labels(name, domain)]


def _written(predicates: Predicates) -> int:
    match predicates:
        case Ranges():
            return len(predicates.ranges)
        case Values():
            return len(predicates.values)
        case Custom():
            return len(predicates.rows)
        case Union():
            return sum(_written(part) for part in predicates.parts)
        case Not() | Permuted():
            return _written(predicates.inner)
    return int(isinstance(predicates, Where))


def _conditional(predicates: Predicates) -> bool:
    """Whether a set is given by conditions or levels."""
    match predicates:
        case Union():
            return any(_conditional(part) for part in predicates.parts)
        case Not() | Permuted():
            return _conditional(predicates.inner)
        case Identity():
            return predicates.where is not None
    return isinstance(predicates, (Where, Level))


def _satisfied(condition: str | None, name: str, domain: Domain) -> NDArray[np.bool_]:
    """The cells that satisfy a condition; refused where there are none."""
    if not isinstance(condition, str):
        raise WorkloadError(f"where={condition!r}: expected an SQL condition as text, for example 'age >= 18'")
    mask = holds(condition, name, domain)
    if not mask.any():
        raise WorkloadError(f"condition {condition!r}: no value of {name!r} satisfies it")
    return mask


def _text(value: Any) -> str:
    """A value as the text that a domain knows it by, whether it came from Python or from a file."""
    return text_of(value).strip()


def _parts(predicates: Predicates) -> tuple[Predicates, ...]:
    if not isinstance(predicates, Predicates):
        raise WorkloadError(f"{predicates!r} is not a predicate set; combine for example Identity() | Total()")
    return predicates.parts if isinstance(predicates, Union) else (predicates,)


def _rows(count: int, name: str, domain: Domain) -> NDArray[np.int64]:
    """Room for rows that are written out; refused where they would not fit."""
    _check_rows(count, name, domain)
    return np.zeros((count, domain.size), np.int64)


def _check_rows(count: int, name: str, domain: Domain) -> None:
    if count * domain.size > matrix.DENSE_LIMIT:
        raise TooLargeError(
            f"{count_text(count)} predicates over the {count_text(domain.size)} values of {name!r} are too many to "
            f"write out; about {count_text(matrix.DENSE_LIMIT // count)} values fit: declare bins or a coarser domain"
        )


def _declared(inner: Matrix, name: str, domain: Domain) -> Matrix:
    """Extend over the cells "other" and "missing", which are in no prefix or range."""
    if domain.size == domain.declared:
        return inner
    check_cells(name, domain)
    return matrix.Select(inner, np.arange(domain.declared), domain.size)


def _end(domain: Bins, code: int) -> str:
    return "<=" if domain.closed and code == domain.declared - 1 else "<"


def _range_labels(domain: Domain, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> list[str]:
    if isinstance(domain, Bins):
        edges = [f"{edge:f}" for edge in domain.edges]
        close = {code: "]" if _end(domain, code) == "<=" else ")" for code in range(domain.declared)}
        return [
            f"[{edges[low]}, {edges[high + 1]}{close[high]}"
            for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        ]
    values = [str(domain.value(code)) for code in range(domain.declared)]
    return [
        values[low] if low == high else f"{values[low]}..{values[high]}"
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
    ]
