"""GROUP BY: the sets of columns that are grouped by, and their predicate sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, TypeAlias, final

from hdmm.errors import TooLargeError, WorkloadError
from hdmm.numbers import shown
from hdmm.schema import Schema
from hdmm.workload.dialect import brief, sql
from hdmm.workload.groups import By, Level
from hdmm.workload.predicates import Predicates
from hdmm.workload.products import MAX_PRODUCTS
from hdmm.workload.selected import Asked, Selected, asked
from hdmm.workload.values import Identity

Columns: TypeAlias = tuple[Asked, ...]

_GROUPINGS = ("grouping_sets", "rollup", "cube")
_MAX_COLUMNS = 1 << 23
"""Columns of all grouping sets together."""


@final
class Grouping:
    """The sets of columns that a statement groups by: one without GROUPING SETS, ROLLUP and CUBE."""

    def __init__(self, schema: Schema, selected: Selected, group: Any) -> None:
        self._schema = schema
        self._selected = selected
        self._titles = {selected.columns[place]: alias for alias, place in selected.aliases.items()}
        self.sets = self._read(group)

    def _read(self, group: Any) -> list[Columns]:
        from sqlglot import exp

        if group is None:
            return [()]
        if group.args.get("totals") or group.args.get("all") is False:
            raise WorkloadError("GROUP BY DISTINCT and WITH TOTALS are not supported; name the columns")
        nodes = _grouped_by(group)
        if any(isinstance(node, (exp.Rollup, exp.Cube)) and not node.expressions for node in nodes):
            raise WorkloadError("WITH ROLLUP and WITH CUBE are not supported; write ROLLUP (…) or CUBE (…)")
        parts: list[list[Columns]] = []
        if group.args.get("all"):
            parts.append([tuple(column for column in self._selected.columns if column is not None)])
        for node in nodes:
            match node:
                case exp.GroupingSets():
                    parts.append([self._columns(item) for item in node.expressions])
                case exp.Rollup():
                    columns = [self._columns(item) for item in node.expressions]
                    parts.append([sum(columns[:count], ()) for count in range(len(columns), -1, -1)])
                case exp.Cube():
                    columns = [self._columns(item) for item in node.expressions]
                    counts = range(len(columns), -1, -1)
                    parts.append([sum(chosen, ()) for count in counts for chosen in combinations(columns, count)])
                case _:
                    parts.append([self._columns(node)])
        sets = [tuple(dict.fromkeys(sum(choice, ()))) for choice in product(*parts)]
        return list({frozenset(chosen): chosen for chosen in reversed(sets)}.values())[::-1]

    def _columns(self, node: Any) -> Columns:
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self._columns(node.this)
            case exp.Tuple():
                return tuple(column for item in node.expressions for column in self._columns(item))
            case exp.GroupingSets() | exp.Rollup() | exp.Cube():
                raise WorkloadError(
                    f"GROUP BY {brief(node)} inside another is not supported; write its sets one by one"
                )
        column = self._named(node, "GROUP BY")
        if column is None:
            raise WorkloadError(f"GROUP BY {brief(node)}: that is the count; group by columns")
        return (column,)

    def _named(self, node: Any, clause: str) -> Asked | None:
        """The column of a position, an alias, a name or an expression; None if it is the count."""
        from sqlglot import exp

        columns, aliases = self._selected.columns, self._selected.aliases
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this) if str(node.this).isdecimal() and len(str(node.this)) < 6 else 0
            if not 1 <= place <= len(columns):
                raise WorkloadError(f"{clause} {node.this}: positions go from 1 to {len(columns)}; name the columns")
            return columns[place - 1]
        if isinstance(node, exp.Column) and not node.table:
            try:
                self._schema.resolve(node.name)
            except WorkloadError:
                place = {alias.lower(): place for alias, place in aliases.items()}.get(node.name.lower(), -1)
                if place >= 0:
                    return columns[place]
                raise
        return asked(self._schema, node, clause)

    def check_selected(self) -> None:
        """Refuse a column that is selected and not grouped by."""
        for column in self._selected.columns:
            if column is not None and not any(column in chosen for chosen in self.sets):
                raise WorkloadError(
                    f"{shown(column.title)} is selected but not grouped; add it to GROUP BY, or leave it out"
                )

    def check_order(self, order: Any) -> None:
        """Tables have an order of their own; refuse to order by what is not in the query."""
        for item in [] if order is None else order.expressions:
            if sql(item.this) in (self._selected.count, "ALL"):
                continue
            column = self._named(item.this, "ORDER BY")
            if column is not None and not any(column in chosen for chosen in self.sets):
                raise WorkloadError(
                    f"ORDER BY {shown(column.title)}: it is not in the query; leave it out: tables have a fixed order"
                )

    def suffix(self, columns: Columns) -> str:
        """What a product of one of several sets is called."""
        ordered = sorted(columns, key=lambda column: self._schema.axis(column.attribute))
        return " × ".join(self._titles.get(column, column.title) for column in ordered) or "total"

    def predicates(self, columns: Columns, conditions: Mapping[str, str]) -> dict[str, Predicates]:
        """The predicate sets of grouped columns, each counting only what satisfies the condition on its attribute."""
        grouped: dict[str, list[Asked]] = {}
        for column in columns:
            grouped.setdefault(column.attribute, []).append(column)
        return {name: self._set(own, conditions.get(name)) for name, own in grouped.items()}

    def _set(self, columns: Sequence[Asked], where: str | None) -> Predicates:
        titles = [self._titles.get(column, column.title) for column in columns]
        if titles == [column.title for column in columns]:
            if len(columns) == 1 and columns[0].plain and columns[0].level is None:
                return Identity(where)
            levels = [column.level for column in columns if column.level is not None]
            if len(levels) == len(columns):
                return Level(*levels, where=where)
        if len(set(titles)) < len(titles):
            raise WorkloadError(f"two columns are called {titles[0]!r}; give each a name of its own (AS …)")
        expressions = [column.expression for column in columns]
        return By(dict(zip(titles, expressions, strict=True)), where=where)


def _grouped_by(group: Any) -> list[Any]:
    """The expressions of a GROUP BY.

    Some versions of the parser keep ROLLUP, CUBE and GROUPING SETS beside the columns, others among them.
    """
    return [*group.expressions, *(node for key in _GROUPINGS for node in group.args.get(key) or [])]


def check_sets(statements: list[Any]) -> None:
    """Refuse more grouping sets than there may be products, before any is made."""
    from sqlglot import exp

    sets = columns = 0
    for statement in statements:
        group = statement.args.get("group")
        count, wide = 1, 1
        for node in [] if group is None else _grouped_by(group):
            listed = len(node.expressions) if isinstance(node, (exp.GroupingSets, exp.Rollup, exp.Cube)) else 1
            if isinstance(node, exp.Cube):
                count *= 1 << min(listed, MAX_PRODUCTS.bit_length())
            else:
                count *= listed + isinstance(node, exp.Rollup)
            wide += listed
            count = min(count, MAX_PRODUCTS + 1)
        sets, columns = sets + count, columns + count * wide
        if sets > MAX_PRODUCTS or columns > _MAX_COLUMNS:
            raise TooLargeError(
                f"GROUP BY asks for more than {MAX_PRODUCTS:,} sets of columns, or for very long ones, each a table "
                f"of its own; a CUBE of {MAX_PRODUCTS.bit_length() - 1} columns fits: group by fewer columns at once"
            )
