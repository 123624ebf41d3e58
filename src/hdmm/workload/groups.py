"""Predicate sets of groups of values: the groups of levels, and the values of SQL expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from hdmm import matrix
from hdmm.errors import WorkloadError, nearest
from hdmm.matrix import Matrix
from hdmm.schema import RESERVED, Domain
from hdmm.schema.domain import Codes
from hdmm.schema.levels import level_names
from hdmm.syntax import either, given
from hdmm.workload.cells import Computed
from hdmm.workload.conditions import expression_cells
from hdmm.workload.predicates import Predicates, zero_rows
from hdmm.workload.scalars import Other, Value
from hdmm.workload.values import satisfied


@final
@dataclass(frozen=True)
class Level(Predicates):
    """Each group of a level that the schema declares: ``Level("age group")``. Of several levels, each combination.

    With ``where``, only the values that satisfy an SQL condition on the attribute are counted.

    Arguments:
        names: One level or several.
        where: An SQL condition on the attribute: only the values that satisfy it are counted.
    """

    names: tuple[str, ...]
    where: str | None

    def __init__(self, *names: str, where: str | None = None) -> None:
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            named = either(python="Level('age group')", spec="level: age group")
            raise WorkloadError(f"{given('level', repr(names))}: expected the names of levels, for example {named}")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "where", where)

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return self._groups(name, domain).matrix(name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return self._groups(name, domain).joined(self.names)

    def titles(self, name: str) -> tuple[str, ...]:
        return (name,) if set(self.names) & set(RESERVED) else self.names

    def columns(self, name: str, domain: Domain) -> list[list[Any]]:
        groups = self._groups(name, domain)
        return groups.columns() if self.titles(name) == self.names else [groups.joined(self.names)]

    def conditional(self) -> bool:
        return True

    def _groups(self, name: str, domain: Domain) -> _Groups:
        return _grouped(name, domain, [_level_key(name, domain, level) for level in self.names], self.where)


@final
@dataclass(frozen=True)
class By(Predicates):
    """Each value of an SQL expression on the attribute: ``By("age / 10")``, ``By(decade="age / 10")``.

    A keyword names the column of tables; without one the expression itself does. Of several expressions, each
    combination of their values that occurs is a group. Groups come in the order of their first values. The label of the
    group whose value is NULL is "missing".

    Arguments:
        expressions: Expressions on the attribute and its levels: arithmetic, functions, CASE; or a mapping from columns
            to expressions, for names that are not identifiers.
        where: An SQL condition on the attribute: only the values that satisfy it are counted.
        columns: Expressions by the names of their columns.
    """

    expressions: tuple[tuple[str, str], ...]
    """Pairs of a column's name and an expression."""
    where: str | None

    def __init__(self, *expressions: str | Mapping[str, str], where: str | None = None, **columns: str) -> None:
        named: list[tuple[str, str]] = []
        for entry in expressions:
            named += entry.items() if isinstance(entry, Mapping) else [(entry, entry)]
        named += columns.items()
        if not named or not all(isinstance(part, str) for pair in named for part in pair):
            raise WorkloadError(f"by={expressions!r}: expected SQL expressions as texts, for example By('age / 10')")
        if len(dict(named)) < len(named):
            raise WorkloadError(f"by={expressions!r}: two expressions have one column; give each a name of its own")
        object.__setattr__(self, "expressions", tuple(named))
        object.__setattr__(self, "where", where)

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return self._groups(name, domain).matrix(name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        return self._groups(name, domain).joined(self.titles(name))

    def titles(self, name: str) -> tuple[str, ...]:
        return tuple(title for title, _ in self.expressions)

    def columns(self, name: str, domain: Domain) -> list[list[Any]]:
        return self._groups(name, domain).columns()

    def conditional(self) -> bool:
        return True

    def _groups(self, name: str, domain: Domain) -> _Groups:
        return _grouped(name, domain, [_key(name, domain, text) for _, text in self.expressions], self.where)


@final
@dataclass(frozen=True, eq=False)
class _Key:
    """What cells are grouped by: the code of every cell, and the label of every code."""

    codes: Codes
    labels: Sequence[Any]


@final
@dataclass(frozen=True, eq=False)
class _Groups:
    """The group of every cell, −1 for those that are not counted, and for every group its code in each key."""

    cells: Codes
    groups: Sequence[tuple[int, ...]]
    keys: Sequence[_Key]

    def matrix(self, name: str, domain: Domain) -> Matrix:
        counted = np.flatnonzero(self.cells >= 0)
        if len(counted) == len(self.groups):  # each cell is a group
            order = counted[np.argsort(self.cells[counted])]
            if len(order) == domain.size and (order == np.arange(domain.size)).all():
                return matrix.Identity(domain.size)
            return matrix.Select(matrix.Identity(len(order)), order, domain.size)
        spans = self._spans
        if spans is not None and matrix.many_cells(domain.size):
            return matrix.sums_over(*spans, domain.size)
        rows = zero_rows(len(self.groups), name, domain)
        rows[self.cells[counted], counted] = 1
        return matrix.Dense(rows)

    @property
    def _spans(self) -> tuple[Codes, Codes] | None:
        """The first and the last cell of every group; None if some group is not an interval of cells."""
        counted = np.flatnonzero(self.cells >= 0)
        groups = self.cells[counted]
        lows, highs = np.full(len(self.groups), len(self.cells)), np.full(len(self.groups), -1)
        np.minimum.at(lows, groups, counted)
        np.maximum.at(highs, groups, counted)
        sizes = np.bincount(groups, minlength=len(self.groups))
        return (lows, highs) if (highs - lows + 1 == sizes).all() else None

    def columns(self) -> list[list[Any]]:
        return [[key.labels[codes[place]] for codes in self.groups] for place, key in enumerate(self.keys)]

    def joined(self, titles: Sequence[str]) -> list[Any]:
        """One label for each group."""
        columns = self.columns()
        if len(columns) == 1:
            return columns[0]
        pairs = zip(*columns, strict=True)
        return [", ".join(f"{title}={label}" for title, label in zip(titles, row, strict=True)) for row in pairs]


def _grouped(name: str, domain: Domain, keys: Sequence[_Key], where: str | None) -> _Groups:
    codes = np.stack([key.codes for key in keys])
    counted = np.ones(domain.size, bool) if where is None else satisfied(where, name, domain)
    groups, which = np.unique(codes[:, counted], axis=1, return_inverse=True)
    cells = np.full(domain.size, -1, np.int64)
    cells[counted] = which.reshape(-1)
    return _Groups(cells, [tuple(group) for group in groups.T.tolist()], keys)


def _level_key(name: str, domain: Domain, level: str) -> _Key:
    meanings = level_names(name, domain)
    if level not in meanings:
        raise WorkloadError(f"{name!r} has no level {level!r}{nearest(level, domain.levels)}")
    groups = domain.levels[meanings[level]]
    return _Key(groups.codes, groups.domain.labels())


def _key(name: str, domain: Domain, expression: str) -> _Key:
    operand = expression_cells(expression, name, domain)
    if not isinstance(operand, Computed):
        if operand.level is not None:
            return _level_key(name, domain, operand.level)
        return _Key(np.arange(domain.size), domain.labels())
    numbers: dict[Value, int] = {}
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in operand.values], np.int64)
    return _Key(codes, _labels(list(numbers), expression))


def _labels(values: Sequence[Value], expression: str) -> list[Any]:
    whole = all(value.denominator == 1 for value in values if isinstance(value, Fraction))
    labels = [_label(value, whole=whole) for value in values]
    if len(set(labels)) < len(labels):
        raise WorkloadError(
            f"expression {expression!r}: 'missing' is the label of NULL, and 'other' that of other values; choose "
            "other texts, or write ELSE for what is left"
        )
    return labels


def _label(value: Value, *, whole: bool) -> Any:
    match value:
        case None:
            return "missing"
        case Other():
            return "other"
        case Fraction():
            return int(value) if whole else float(value)
    return value
