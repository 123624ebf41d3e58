"""The SELECT list of a counting query: its columns with their aliases, and what it counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from hdmm.errors import WorkloadError
from hdmm.schema import Schema
from hdmm.workload.dialect import brief, sql

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
"""Names that need no quotes, unless they are words of SQL."""


@final
@dataclass(frozen=True)
class Asked:
    """A column that is selected or grouped by: an attribute, a level, or an expression on one attribute."""

    attribute: str
    level: str | None
    """The level that it is, None if it is an attribute or an expression."""
    expression: str
    """It as SQL, the same however it was written."""
    title: str = field(compare=False)
    """What it is called without an alias."""
    plain: bool
    """Whether it is an attribute or a level."""


@final
@dataclass(frozen=True)
class Selected:
    """What is selected; the place of the count is None."""

    columns: Sequence[Asked | None]
    aliases: dict[str, int]
    """The places that have names of their own."""
    conditions: Sequence[Any]
    """Conditions that the count adds to WHERE."""
    count: str
    """The count as SQL."""


def read_selected(schema: Schema, expressions: Sequence[Any]) -> Selected:
    """The columns that are selected, and the count."""
    from sqlglot import exp

    columns: list[Asked | None] = []
    aliases: dict[str, int] = {}
    conditions: list[Any] = []
    count = ""
    for place, expression in enumerate(expressions):
        node = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(expression, exp.Alias):
            if expression.alias in aliases:
                raise WorkloadError(f"two columns are called {expression.alias!r}; give each a name of its own")
            aliases[expression.alias] = place
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, (exp.Count, exp.CountIf, exp.Filter)):
            if count:
                raise WorkloadError("two counts are selected; write a statement for each, separated by ;")
            conditions, count = _counted(node), sql(node)
            columns.append(None)
        else:
            columns.append(asked(schema, node, "SELECT"))
    if not count:
        raise WorkloadError("nothing is counted; select COUNT(*) beside the columns")
    return Selected(columns, aliases, conditions, count)


def _counted(node: Any) -> list[Any]:
    """The conditions on the records that are counted."""
    from sqlglot import exp

    if isinstance(node, exp.Filter):
        if not isinstance(node.this, (exp.Count, exp.CountIf)):
            raise WorkloadError(_refusal(node.this))
        return [*_counted(node.this), node.expression.this]
    if isinstance(node, exp.CountIf):
        return [node.this]
    what = node.this
    if isinstance(what, exp.Distinct):
        raise WorkloadError(
            f"{brief(node)}: only records are counted, not different values; select COUNT(*), and group by the column"
        )
    if node.expressions or what is None or isinstance(what, exp.Null):
        raise WorkloadError(f"{brief(node)} is not supported; select COUNT(*), or COUNT of one column")
    if isinstance(what, (exp.Star, exp.Literal, exp.Boolean)):
        return []
    value = what.copy() if isinstance(what, exp.Column) else exp.Paren(this=what.copy())
    return [exp.Not(this=exp.Is(this=value, expression=exp.Null()))]


def asked(schema: Schema, node: Any, clause: str) -> Asked:
    """The column that a node of SELECT or GROUP BY stands for."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Star) or node.find(exp.Star, exp.Window, exp.AggFunc, exp.Query) is not None:
        raise WorkloadError(_refusal(node))
    if isinstance(node, exp.Column):
        attribute, level = schema.resolve(node.name)
        named = attribute if level is None else schema.level_name(attribute, level)
        return Asked(attribute, level and named, _quoted(named), named, True)

    def resolved(part: Any) -> Any:
        if not isinstance(part, exp.Column):
            return part
        attribute, level = schema.resolve(part.name)
        named = attribute if level is None else schema.level_name(attribute, level)
        return exp.column(exp.to_identifier(named, quoted=not _NAME.fullmatch(named)))

    found = {schema.resolve(column.name)[0] for column in node.find_all(exp.Column)}
    names = sorted(found, key=schema.axis)
    if not names:
        raise WorkloadError(f"{clause} {brief(node)}: it is the same for all records; leave it out")
    if len(names) > 1:
        raise WorkloadError(
            f"{clause} {brief(node)}: it is about {' and '.join(map(repr, names))}; group by an expression on each, or "
            "merge them into one attribute"
        )
    expression = sql(node.transform(resolved))
    return Asked(names[0], None, expression, expression, False)


def _quoted(name: str) -> str:
    from sqlglot import exp

    return sql(exp.to_identifier(name, quoted=not _NAME.fullmatch(name)))


def _refusal(node: Any) -> str:
    from sqlglot import exp

    text = brief(node)
    if isinstance(node, exp.Star) or node.find(exp.AggFunc, exp.Window, exp.Query) is None:
        return f"{text} is not supported; name the columns, and group by them"
    if node.find(exp.Query) is not None:
        return f"{text}: sub-queries are not supported; make a view, and release that"
    if node.find(exp.Window) is not None:
        return f"{text}: window functions are not supported; ask for the counts, and compute the rest from the table"
    if node.find(exp.Count) is not None:
        return f"{text} is not supported; select COUNT(*) alone, and compute the rest from the table"
    if isinstance(node, exp.Sum) and isinstance(node.this, (exp.Case, exp.If)):
        return f"{text}: only counts are answered; select COUNT(*) FILTER (WHERE …)"
    return f"{text}: only counts are answered; select COUNT(*), with a WHERE or GROUP BY on the column"
