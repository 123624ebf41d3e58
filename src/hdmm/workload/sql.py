"""Counting queries in SQL: ``SELECT …, COUNT(*) FROM t WHERE … GROUP BY …`` as products.

Grouped attributes become Identity, grouped levels Level and grouped expressions By; conditions on one attribute become
Where, conditions across attributes restrict the product; GROUPING SETS, ROLLUP and CUBE become one product for each
set. Every group of the domain is answered, even without records: which groups are empty is private.
"""

from __future__ import annotations

from typing import Any

from hdmm.errors import TooLargeError, WorkloadError
from hdmm.numbers import shown
from hdmm.schema import Schema
from hdmm.workload.dialect import brief, parse, sql
from hdmm.workload.grouping import Grouping, check_sets
from hdmm.workload.predicates import Predicates
from hdmm.workload.products import Product, Weight
from hdmm.workload.selected import Selected, read_selected
from hdmm.workload.values import Where

SUPPORTED = "SELECT [columns,] COUNT(*) FROM name [WHERE conditions] [GROUP BY columns]"
_CLAUSES = {
    "joins": ("JOIN", "join the tables in a view, and release that"),
    "laterals": ("LATERAL", "join the tables in a view, and release that"),
    "having": ("HAVING", "leave it out, since every group is answered, and filter the table"),
    "limit": ("LIMIT", "leave it out, since every group is answered, and sort and cut the table"),
    "offset": ("OFFSET", "leave it out, since every group is answered, and sort and cut the table"),
    "distinct": ("DISTINCT", "leave it out: GROUP BY gives every group once"),
    "with_": ("WITH", "make a view of it, and release that"),
    "windows": ("WINDOW", "ask for the counts, and compute the rest from the table"),
    "qualify": ("QUALIFY", "leave it out, since every group is answered, and filter the table"),
}
_USED = ("expressions", "from_", "where", "group", "order", "kind")
_MAX_CHARACTERS = 1 << 22
"""Characters of all statements together: tens of thousands of statements."""


def read_sql(schema: Schema, name: str, text: str, weight: Weight = 1) -> list[Product]:
    """The products that one or more statements ask for; of several, each is named after what it groups by."""
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str):
        raise WorkloadError(f"sql={shown(text)}: expected text; write {SUPPORTED}")
    if len(text) > _MAX_CHARACTERS:
        raise TooLargeError(
            f"sql={shown(text)}: at most {_MAX_CHARACTERS:,} characters are read at once; add the statements in parts"
        )
    try:
        statements = [statement for statement in parse(text) if statement is not None]
    except (SqlglotError, RecursionError):
        raise WorkloadError(f"this is not valid SQL; write {SUPPORTED}") from None
    if not statements:
        raise WorkloadError(f"there is no statement; write {SUPPORTED}")
    check_sets(statements)
    products: list[Product] = []
    try:
        for place, statement in enumerate(statements, 1):
            numbered = name if len(statements) == 1 else f"{name} {place}"
            products += _products(schema, numbered, statement, weight)
    except RecursionError:
        raise WorkloadError("the statement is nested too deeply; ask for its parts as products of their own") from None
    return products


def _products(schema: Schema, name: str, statement: Any, weight: Weight) -> list[Product]:
    _check_statement(statement)
    selected = read_selected(schema, statement.expressions)
    grouping = Grouping(schema, selected, statement.args.get("group"))
    grouping.check_selected()
    grouping.check_order(statement.args.get("order"))
    conditions, across = _conditions(schema, statement.args.get("where"), selected)
    products = []
    for columns in grouping.sets:
        predicates: dict[str, Predicates] = {attribute: Where(text) for attribute, text in conditions.items()}
        predicates |= grouping.predicates(columns, conditions)
        title = name if len(grouping.sets) == 1 else f"{name}: {grouping.suffix(columns)}"
        products.append(Product(title, predicates, weight, across))
    return products


def _check_statement(statement: Any) -> None:
    """Refuse what is not a SELECT from one table."""
    from sqlglot import exp

    if isinstance(statement, exp.SetOperation):
        kind = type(statement).__name__.upper()
        raise WorkloadError(f"{kind} is not supported; write the statements one after the other, separated by ;")
    if not isinstance(statement, exp.Select):
        raise WorkloadError(f"only SELECT is supported; write {SUPPORTED}")
    for key, value in statement.args.items():
        if value and key not in _USED:
            clause, remedy = _CLAUSES.get(key, (key.rstrip("_").upper(), f"write {SUPPORTED}"))
            raise WorkloadError(f"{clause} is not supported; {remedy}")
    source = statement.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or not isinstance(source.this.this, exp.Identifier):
        raise WorkloadError(
            "FROM must name the records; sub-queries are not supported: make a view, and release that; write "
            + SUPPORTED
        )
    extra = [key for key, value in source.this.args.items() if value and key not in ("this", "db", "catalog", "alias")]
    if extra:
        raise WorkloadError(f"FROM {brief(source.this)} is not supported; name the records alone; write {SUPPORTED}")


def _conditions(schema: Schema, where: Any, selected: Selected) -> tuple[dict[str, str], str | None]:
    """The parts of a chain of ANDs: for each attribute the condition on it, and the condition across attributes."""
    from sqlglot import exp

    single: dict[str, list[str]] = {}
    across: list[str] = []
    pending = [*reversed(selected.conditions), *([] if where is None else [where.this])]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Paren):
            pending.append(node.this)
        elif isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            if node.find(exp.Query) is not None:
                raise WorkloadError(
                    f"WHERE {brief(node)}: sub-queries are not supported; write the values, or make a view"
                )
            names = {schema.resolve(column.name)[0] for column in node.find_all(exp.Column)}
            (single.setdefault(names.pop(), []) if len(names) == 1 else across).append(sql(node))
    return {name: _joined(texts) for name, texts in single.items()}, _joined(across) if across else None


def _joined(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else " AND ".join(f"({text})" for text in texts)
