"""SQL conditions read into trees: leaves, each decided on one attribute for every cell, under AND and NOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import TooLargeError, WorkloadError
from hdmm.memory.limit import memory_limit
from hdmm.memory.workspace import DENSE_LIMIT
from hdmm.numbers import shown
from hdmm.schema import Boolean, Comparison, Domain
from hdmm.text import count_text

if TYPE_CHECKING:
    from sqlglot import exp

Mask = NDArray[np.bool_]
Resolve: TypeAlias = Callable[[str], tuple[str, str | None]]
"""From a column's name to an attribute, and to one of its levels or None."""

_SUPPORTED = "use comparisons, IN, BETWEEN, IS NULL, AND, OR, NOT and parentheses"
_COMPARISONS: dict[str, Comparison] = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
"""The parser's names of comparisons."""
_MIRROR: dict[Comparison, Comparison] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_MAX_CHARACTERS = 1 << 20
"""Characters of a condition."""
_MAX_CELLS = DENSE_LIMIT
"""Cells of an attribute, and of all comparisons of a condition, whose outcomes are kept."""
_MAX_COMPARED = 1 << 30
"""Cells of all comparisons of a condition; every value of an IN is one."""
_BYTES_PER_CELL = 64
"""Bytes for each cell of an attribute while a condition on it is decided."""


@final
@dataclass(frozen=True, eq=False)
class Leaf:
    """A condition on one attribute, decided for each of its cells."""

    attribute: str
    mask: Mask


@final
@dataclass(frozen=True, eq=False)
class Conjunction:
    """Every part holds."""

    parts: tuple[Tree, ...]


@final
@dataclass(frozen=True, eq=False)
class Negation:
    """The inner condition does not hold."""

    inner: Tree


Tree: TypeAlias = Leaf | Conjunction | Negation | bool


def check_cells(name: str, domain: Domain) -> None:
    """Refuse an attribute that has too many cells to keep something for each of them."""
    most = min(memory_limit() // _BYTES_PER_CELL, _MAX_CELLS)
    if domain.size > most:
        raise TooLargeError(
            f"{name!r} has {count_text(domain.size)} values, and these predicates look at each of them; about "
            f"{count_text(most)} values fit: declare bins or a coarser domain"
        )


def read_condition(condition: str, resolve: Resolve, domains: Mapping[str, Domain]) -> Tree:
    """The tree of a condition on attributes with these domains."""
    if len(condition) > _MAX_CHARACTERS:
        raise TooLargeError(
            f"condition {shown(condition)}: at most {_MAX_CHARACTERS:,} characters are read; use ranges, levels or IN "
            "in place of long chains, or ask for its parts as products of their own"
        )
    return _Reader(condition, resolve, domains).read(_parse(condition))


def columns_of(condition: str) -> set[str]:
    """The names that a condition uses, as they are written there."""
    from sqlglot import exp

    return {node.name for node in _parse(condition).find_all(exp.Column)}


@contextmanager
def shallow(condition: str) -> Iterator[None]:
    """Refuse a condition that is nested too deeply to be read or decided."""
    try:
        yield
    except RecursionError:
        raise WorkloadError(f"condition {condition[:60]!r}… is nested too deeply; {_SUPPORTED}") from None


@lru_cache(maxsize=1024)
def _parse(condition: str) -> exp.Expression:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        statements = sqlglot.parse(f"SELECT 1 WHERE {condition}")
    except (SqlglotError, RecursionError):
        raise WorkloadError(f"condition {shown(condition)} is not valid SQL; {_SUPPORTED}") from None
    clauses = statements[0].args if len(statements) == 1 and statements[0] is not None else {}
    where = clauses.get("where")
    if where is None or any(value for key, value in clauses.items() if key not in ("expressions", "where", "kind")):
        raise WorkloadError(f"condition {shown(condition)} is not one condition; {_SUPPORTED}")
    return where.this


def _chain(node: Any) -> list[Any]:
    """The parts of a chain of ANDs or of ORs, however long."""
    parts, pending = [], [node]
    while pending:
        top = pending.pop()
        if type(top) is type(node):
            pending += [top.expression, top.this]
        else:
            parts.append(top)
    return parts


@final
class _Reader:
    """Turns the parsed condition into leaves, each decided on its attribute."""

    def __init__(self, condition: str, resolve: Resolve, domains: Mapping[str, Domain]) -> None:
        self.condition = condition
        self.resolve = resolve
        self.domains = domains
        self._kept = self._compared = 0

    def read(self, node: Any) -> Tree:
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And():
                return Conjunction(tuple(self.read(part) for part in _chain(node)))
            case exp.Or():  # by De Morgan's law
                return Negation(Conjunction(tuple(Negation(self.read(part)) for part in _chain(node))))
            case exp.Not():
                return Negation(self.read(node.this))
            case exp.Column():
                return self._bare(node)
            case exp.Boolean():
                return bool(node.this)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._missing(node.this)
            case exp.In() if node.expressions:
                values = [self._literal(item) for item in node.expressions]
                return self._leaf(node.this, lambda domain: _any(domain, values), len(values))
            case exp.Between() if not node.args.get("symmetric"):
                low, high = self._literal(node.args["low"]), self._literal(node.args["high"])
                return self._leaf(node.this, lambda domain: _compare(domain, ">=", low) & _compare(domain, "<=", high))
            case _ if type(node).__name__ in _COMPARISONS:
                operator = _COMPARISONS[type(node).__name__]
                column, value = node.this, node.expression
                if not isinstance(column, exp.Column):
                    column, value, operator = value, column, _MIRROR[operator]
                self._column(column)
                literal = self._literal(value)
                return self._leaf(column, lambda domain: _compare(domain, operator, literal))
        raise self._refuse(f"{node.sql()!r} is not supported; {_SUPPORTED}")

    def _column(self, node: Any) -> tuple[str, str | None]:
        from sqlglot import exp

        if not isinstance(node, exp.Column):
            raise self._refuse(f"{node.sql()!r} is not an attribute; compare the attribute with a value")
        try:
            return self.resolve(node.name)
        except WorkloadError as error:
            raise self._refuse(str(error)) from None

    def _leaf(self, node: Any, decide: Callable[[Domain], Mask], comparisons: int = 1) -> Leaf:
        """Decide on the attribute itself, or on its level and from there on the attribute."""
        name, level = self._column(node)
        domain = self.domains[name]
        check_cells(name, domain)
        self._kept += domain.size
        self._compared += domain.size * comparisons
        if self._kept > _MAX_CELLS or self._compared > _MAX_COMPARED:
            raise TooLargeError(
                f"condition {shown(self.condition)}: it compares {name!r}, of {count_text(domain.size)} values, too "
                f"often; about {count_text(_MAX_CELLS // domain.size)} comparisons fit: use ranges (BETWEEN) or a level"
            )
        try:
            if level is None:
                return Leaf(name, decide(domain))
            coarse = domain.levels[level]
            return Leaf(name, decide(coarse.domain)[coarse.codes])
        except WorkloadError as error:
            raise self._refuse(str(error)) from None

    def _bare(self, node: Any) -> Leaf:
        def decide(domain: Domain) -> Mask:
            if not isinstance(domain, Boolean):
                raise WorkloadError(f"{node.name!r} is not a condition: it is not boolean; compare it with a value")
            return _compare(domain, "=", "true")

        return self._leaf(node, decide)

    def _missing(self, node: Any) -> Leaf:
        def decide(domain: Domain) -> Mask:
            if not domain.missing:
                raise WorkloadError(f"{node.name!r} has no cell for missing values; declare it with missing: true")
            mask = np.zeros(domain.size, bool)
            mask[-1] = True
            return mask

        return self._leaf(node, decide)

    def _literal(self, node: Any) -> str:
        from sqlglot import exp

        if isinstance(node, exp.Literal):
            return str(node.this)
        if isinstance(node, exp.Boolean):
            return "true" if node.this else "false"
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return f"-{node.this.this}"
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            raise self._refuse(f"{node.sql()!r} is not a value; write texts in single quotes, as in '{node.name}'")
        raise self._refuse(
            f"{node.sql()!r} is not a value; compare with a number, a text in single quotes, true or false"
        )

    def _refuse(self, reason: str) -> WorkloadError:
        return WorkloadError(f"condition {shown(self.condition)}: {reason}")


def _compare(domain: Domain, operator: Comparison, literal: str) -> Mask:
    mask = np.zeros(domain.size, bool)
    mask[: domain.declared] = domain.compare(operator, literal)
    return mask


def _any(domain: Domain, literals: list[str]) -> Mask:
    mask = np.zeros(domain.size, bool)
    for literal in literals:
        mask |= _compare(domain, "=", literal)
    return mask
