"""Counting queries in SQL: ``SELECT …, COUNT(*) FROM t WHERE … GROUP BY …`` as products.

Grouped attributes become Identity and grouped levels Level; conditions on one attribute become Where, conditions across
attributes restrict the product; GROUPING SETS, ROLLUP and CUBE become one product for each set. Every group of the
domain is answered, even without records: which groups are empty is private.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from hdmm.errors import TooLargeError, WorkloadError
from hdmm.numbers import shown
from hdmm.schema import Schema
from hdmm.workload.predicates import Predicates
from hdmm.workload.products import MAX_PRODUCTS, Product, Weight
from hdmm.workload.values import Identity, Level, Where

_SUPPORTED = "SELECT [columns,] COUNT(*) FROM name [WHERE conditions] [GROUP BY columns]"
_CLAUSES = {
    "joins": "JOIN",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "DISTINCT",
    "with_": "WITH",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
}
_USED = ("expressions", "from_", "where", "group")
_GROUPINGS = ("grouping_sets", "rollup", "cube")
_MAX_CHARACTERS = 1 << 22
"""Characters of all statements together: tens of thousands of statements."""
_MAX_COLUMNS = 1 << 23
"""Columns of all grouping sets together."""


def read_sql(schema: Schema, name: str, text: str, weight: Weight = 1) -> list[Product]:
    """The products that one or more statements ask for; of several, each is named after what it groups by."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str):
        raise WorkloadError(f"sql={shown(text)}: expected text; write {_SUPPORTED}")
    if len(text) > _MAX_CHARACTERS:
        raise TooLargeError(
            f"sql={shown(text)}: at most {_MAX_CHARACTERS:,} characters are read at once; add the statements in parts"
        )
    try:
        statements = [statement for statement in sqlglot.parse(text) if statement is not None]
    except (SqlglotError, RecursionError):
        raise WorkloadError(f"this is not valid SQL; write {_SUPPORTED}") from None
    if not statements:
        raise WorkloadError(f"there is no statement; write {_SUPPORTED}")
    _check_sets(statements)
    products: list[Product] = []
    for place, statement in enumerate(statements, 1):
        numbered = name if len(statements) == 1 else f"{name} {place}"
        products += _products(schema, numbered, statement, weight)
    return products


def _products(schema: Schema, name: str, statement: Any, weight: Weight) -> list[Product]:
    from sqlglot import exp

    if not isinstance(statement, exp.Select):
        raise WorkloadError(f"only SELECT is supported; write {_SUPPORTED}")
    for key, value in statement.args.items():
        if value and key not in _USED and key != "kind":
            clause = _CLAUSES.get(key, key.rstrip("_").upper())
            raise WorkloadError(f"{clause} is not supported; write {_SUPPORTED}")
    source = statement.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        raise WorkloadError(f"FROM must name the records; sub-queries are not supported; write {_SUPPORTED}")
    selected = _selected(schema, statement)
    sets = _grouping_sets(schema, statement.args.get("group"))
    for column in selected:
        if not any(column in chosen for chosen in sets):
            raise WorkloadError(f"{column!r} is selected but not grouped; add it to GROUP BY, or leave it out")
    conditions, across = _conditions(schema, statement.args.get("where"))
    products = []
    for chosen in sets:
        predicates: dict[str, Predicates] = {attribute: Where(text) for attribute, text in conditions.items()}
        predicates |= _grouped(schema, chosen, conditions)
        suffix = " × ".join(sorted(chosen, key=lambda column: schema.axis(schema.resolve(column)[0]))) or "total"
        products.append(Product(name if len(sets) == 1 else f"{name}: {suffix}", predicates, weight, across))
    return products


def _grouped(schema: Schema, columns: tuple[str, ...], conditions: dict[str, str]) -> dict[str, Predicates]:
    """The predicate sets of the grouped columns, each counting only what satisfies the condition on its attribute."""
    levels: dict[str, list[str]] = {}
    for column in columns:
        attribute, level = schema.resolve(column)
        levels.setdefault(attribute, []).extend([] if level is None else [level])
    for attribute, names in levels.items():
        if names and attribute in columns:
            raise WorkloadError(
                f"GROUP BY {names[0]!r} beside {attribute!r}: the values of {attribute!r} are finer; keep one of them"
            )
    return {
        attribute: Level(*names, where=conditions.get(attribute)) if names else Identity(conditions.get(attribute))
        for attribute, names in levels.items()
    }


def _selected(schema: Schema, statement: Any) -> list[str]:
    """The columns that are selected beside the count."""
    from sqlglot import exp

    columns, counts = [], 0
    for expression in statement.expressions:
        node = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            counts += 1
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            columns.append(_attribute(schema, node))
        else:
            raise WorkloadError(f"{node.sql()} is not supported; select columns and COUNT(*)")
    if counts != 1:
        raise WorkloadError(f"a counting query selects COUNT(*) once; write {_SUPPORTED}")
    return columns


def _grouping_sets(schema: Schema, group: Any) -> list[tuple[str, ...]]:
    """The sets of attributes that are grouped by: one without GROUPING SETS, ROLLUP and CUBE."""
    from sqlglot import exp

    if group is None:
        return [()]
    if any(value for key, value in group.args.items() if key not in ("expressions", *_GROUPINGS)):
        raise WorkloadError("GROUP BY ALL is not supported; name the columns")
    nodes = _grouped_by(group)
    if any(isinstance(node, (exp.Rollup, exp.Cube)) and not node.expressions for node in nodes):
        raise WorkloadError("WITH ROLLUP and WITH CUBE are not supported; write ROLLUP (…) or CUBE (…)")
    parts: list[list[tuple[str, ...]]] = []
    for node in nodes:
        match node:
            case exp.GroupingSets():
                parts.append([_columns(schema, item) for item in node.expressions])
            case exp.Rollup():
                columns = [_columns(schema, item) for item in node.expressions]
                parts.append([sum(columns[:count], ()) for count in range(len(columns), -1, -1)])
            case exp.Cube():
                columns = [_columns(schema, item) for item in node.expressions]
                counts = range(len(columns), -1, -1)
                parts.append([sum(chosen, ()) for count in counts for chosen in combinations(columns, count)])
            case _:
                parts.append([_columns(schema, node)])
    sets = [tuple(dict.fromkeys(sum(choice, ()))) for choice in product(*parts)]
    return list({frozenset(chosen): chosen for chosen in reversed(sets)}.values())[::-1]


def _grouped_by(group: Any) -> list[Any]:
    """The expressions of a GROUP BY.

    Some versions of the parser keep ROLLUP, CUBE and GROUPING SETS beside the columns, others among them.
    """
    return [*group.expressions, *(node for key in _GROUPINGS for node in group.args.get(key) or [])]


def _check_sets(statements: list[Any]) -> None:
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


def _columns(schema: Schema, node: Any) -> tuple[str, ...]:
    from sqlglot import exp

    match node:
        case exp.Column():
            return (_attribute(schema, node),)
        case exp.Paren():
            return _columns(schema, node.this)
        case exp.Tuple():
            return tuple(name for item in node.expressions for name in _columns(schema, item))
    raise WorkloadError(f"GROUP BY {node.sql()} is not supported; name the columns")


def _conditions(schema: Schema, where: Any) -> tuple[dict[str, str], str | None]:
    """The parts of a chain of ANDs: for each attribute the condition on it, and the condition across attributes."""
    from sqlglot import exp

    single: dict[str, list[str]] = {}
    across: list[str] = []
    pending = [] if where is None else [where.this]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Paren):
            pending.append(node.this)
        elif isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            if node.find(exp.Select) is not None:
                raise WorkloadError(f"WHERE {node.sql()}: sub-queries are not supported")
            names = {schema.resolve(column.name)[0] for column in node.find_all(exp.Column)}
            (single.setdefault(names.pop(), []) if len(names) == 1 else across).append(node.sql())
    return {name: _joined(texts) for name, texts in single.items()}, _joined(across) if across else None


def _joined(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else " AND ".join(f"({text})" for text in texts)


def _attribute(schema: Schema, column: Any) -> str:
    """The attribute or level that a column means."""
    attribute, level = schema.resolve(column.name)
    return attribute if level is None else schema.level_name(attribute, level)
