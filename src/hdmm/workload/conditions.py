"""SQL conditions on one attribute, decided cell by cell.

Comparisons, IN, BETWEEN, IS NULL, AND, OR, NOT and parentheses, parsed by sqlglot. The cells "other" and
"missing" satisfy no comparison, so they are in the negation of every one.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import WorkloadError
from hdmm.schema import Comparison, Domain

if TYPE_CHECKING:
    from sqlglot import exp

Mask = NDArray[np.bool_]

_SUPPORTED = "use comparisons, IN, BETWEEN, IS NULL, AND, OR, NOT and parentheses"
_MIRROR: dict[Comparison, Comparison] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def holds(condition: str, name: str, domain: Domain) -> Mask:
    """Which cells of the attribute satisfy the condition."""
    try:
        mask: Mask = _Reader(condition, name, domain).read(_parse(condition))
        return mask
    except RecursionError:
        raise WorkloadError(f"condition {condition[:60]!r}… is nested too deeply; {_SUPPORTED}") from None


@lru_cache(maxsize=1024)
def _parse(condition: str) -> exp.Expression:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        statements = sqlglot.parse(f"SELECT 1 WHERE {condition}")
    except (SqlglotError, RecursionError):
        raise WorkloadError(f"condition {condition!r} is not valid SQL; {_SUPPORTED}") from None
    given = statements[0].args if len(statements) == 1 and statements[0] is not None else {}
    where = given.get("where")
    if where is None or any(value for key, value in given.items() if key not in ("expressions", "where", "kind")):
        raise WorkloadError(f"condition {condition!r} is not one condition; {_SUPPORTED}")
    found: exp.Expression = where.this
    return found


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


class _Reader:
    def __init__(self, condition: str, name: str, domain: Domain) -> None:
        self.condition = condition
        self.name = name
        self.domain = domain

    def read(self, node: Any) -> Any:
        from sqlglot import exp

        comparisons: dict[type[Any], Comparison] = {
            exp.EQ: "=",
            exp.NEQ: "<>",
            exp.LT: "<",
            exp.LTE: "<=",
            exp.GT: ">",
            exp.GTE: ">=",
        }
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And():
                return np.logical_and.reduce([self.read(part) for part in _chain(node)])
            case exp.Or():
                return np.logical_or.reduce([self.read(part) for part in _chain(node)])
            case exp.Not():
                return ~self.read(node.this)
            case exp.Column():
                return self._bare(node)
            case exp.Boolean():
                return np.full(self.domain.size, bool(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._missing(node.this)
            case exp.In() if node.expressions:
                self._column(node.this)
                masks = [self._compare("=", self._literal(item)) for item in node.expressions]
                return np.logical_or.reduce(masks)
            case exp.Between() if not node.args.get("symmetric"):
                self._column(node.this)
                low, high = self._literal(node.args["low"]), self._literal(node.args["high"])
                return self._compare(">=", low) & self._compare("<=", high)
            case _ if type(node) in comparisons:
                operator = comparisons[type(node)]
                if isinstance(node.this, exp.Column):
                    self._column(node.this)
                    return self._compare(operator, self._literal(node.expression))
                self._column(node.expression)
                return self._compare(_MIRROR[operator], self._literal(node.this))
        raise self._refuse(f"{node.sql()!r} is not supported; {_SUPPORTED}")

    def _column(self, node: Any) -> None:
        from sqlglot import exp

        if not isinstance(node, exp.Column):
            raise self._refuse(f"{node.sql()!r} is not an attribute; compare the attribute with a value")
        if node.name != self.name and node.name.lower() != self.name.lower():
            near = get_close_matches(node.name, [self.name])
            hint = f"did you mean {self.name!r}?" if near else "give each attribute a predicate set of its own"
            raise self._refuse(f"attribute {node.name!r} is not {self.name!r}; {hint}")

    def _bare(self, node: Any) -> Mask:
        from hdmm.schema import Boolean

        self._column(node)
        if not isinstance(self.domain, Boolean):
            raise self._refuse(f"{self.name!r} alone is no condition: it is not boolean; compare it with a value")
        return self._compare("=", "true")

    def _missing(self, node: Any) -> Mask:
        self._column(node)
        if not self.domain.missing:
            raise self._refuse(f"{self.name!r} has no cell for missing values; declare it with missing: true")
        mask = np.zeros(self.domain.size, bool)
        mask[-1] = True
        return mask

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

    def _compare(self, operator: Comparison, literal: str) -> Mask:
        mask = np.zeros(self.domain.size, bool)
        try:
            mask[: self.domain.declared] = self.domain.compare(operator, literal)
        except WorkloadError as error:
            raise self._refuse(str(error)) from None
        return mask

    def _refuse(self, reason: str) -> WorkloadError:
        return WorkloadError(f"condition {self.condition!r}: {reason}")
