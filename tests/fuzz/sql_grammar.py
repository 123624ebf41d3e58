"""Random SQL over columns of a table, as a tree that is written twice: for hdmm, and for DuckDB.

A node holds both texts and its type: "integer", "decimal", "text" or "truth". The texts differ if the two read SQL
differently: ``/`` of integers is ``//`` in DuckDB, listed values are compared by their place in the list, and DuckDB
sees NULL in place of an "other" value if hdmm cannot decide what is asked of it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

OTHERS = {"integers": (-999, 4444), "listed": ("zzz", "QQ"), "bins": (-77777.0, 88888.5)}
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Column:
    """A column of the table: an attribute, or a level of one if it has groups."""

    name: str
    attribute: str
    kind: str
    values: tuple[Any, ...]
    missing: bool
    other: bool
    groups: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @property
    def type(self) -> str:
        """Its type in DuckDB."""
        return {"listed": "VARCHAR", "integers": "INTEGER", "boolean": "BOOLEAN", "bins": "DOUBLE"}[self.kind]

    def level(self, rng: Random) -> "Column":
        """A level of the attribute, of one to three groups."""
        groups: dict[str, list[Any]] = {}
        for place, value in enumerate(self.values):
            groups.setdefault(f"G{rng.randrange(min(3, place + 1))}", []).append(value)
        members = tuple((name, tuple(group)) for name, group in groups.items())
        return replace(self, name=f"{self.name} group", kind="listed", values=tuple(groups), groups=members)

    def raw(self, rng: Random, cell: int) -> Any:
        """A value that falls into a cell."""
        declared = len(self.values) - (self.kind == "bins")
        if cell < declared:
            if self.kind == "bins":
                low, high = self.values[cell : cell + 2]
                return rng.choice((low, low + (high - low) / 2, low + (high - low) / 4))
            return self.values[cell]
        return None if self.missing and cell == declared + self.other else rng.choice(OTHERS[self.kind])

    def group_of(self, value: Any) -> Any:
        """The group of an attribute's value."""
        if value is None:
            return None
        return next((name for name, members in self.groups if value in members), "no group")

    @property
    def decided(self) -> str:
        """The column in DuckDB with NULL in place of other values."""
        name = written(self.name)
        if not self.other:
            return name
        if self.kind == "bins":
            return f"(CASE WHEN {name} >= {self.values[0]} AND {name} < {self.values[-1]} THEN {name} END)"
        inside = ", ".join(literal(value) for value in self.values)
        return f"(CASE WHEN {name} IN ({inside}) THEN {name} END)"

    @property
    def place(self) -> str:
        """The place of a listed value in DuckDB."""
        cases = " ".join(f"WHEN {literal(value)} THEN {place}" for place, value in enumerate(self.values))
        return f"(CASE {written(self.name)} {cases} END)"


@dataclass(frozen=True)
class Node:
    """SQL as hdmm and as DuckDB read it."""

    ours: str
    duck: str
    type: str

    def inside(self) -> "Node":
        """In parentheses."""
        return Node(f"({self.ours})", f"({self.duck})", self.type)


def ours(node: Node) -> str:
    """The text for hdmm."""
    return node.ours


def duck(node: Node) -> str:
    """The text for DuckDB."""
    return node.duck


def written(name: str) -> str:
    """A name as SQL wants it."""
    return name if re.fullmatch(r"[a-z]+", name) else f'"{name}"'


def literal(value: Any) -> str:
    """A value as SQL wants it."""
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    return str(value)


def joined(template: str, type: str, *nodes: Node) -> Node:
    """A text made of others; braces stand for these."""
    return Node(template.format(*(n.ours for n in nodes)), template.format(*(n.duck for n in nodes)), type)


def condition(rng: Random, columns: Sequence[Column], depth: int) -> Node:
    """A random condition."""
    if depth and rng.random() < 0.8:
        inner = condition(rng, columns, depth - 1).inside()
        match rng.choice(("and", "or", "and", "or", "not", "is")):
            case "not":
                return joined("NOT {}", "truth", inner)
            case "is":
                test = rng.choice(("TRUE", "FALSE", "NULL", "NOT TRUE", "NOT FALSE", "NOT NULL"))
                return joined(f"{{}} IS {test}", "truth", inner)
            case word:
                return joined(f"{{}} {word.upper()} {{}}", "truth", inner, condition(rng, columns, depth - 1).inside())
    column = rng.choice(columns)
    if rng.random() < 0.05:
        return _same(rng.choice(("1 = 1", "TRUE", "2 < 1", "NULL = 1", "'a' <> 'b'", "3 IN (1, NULL)", "NULL IS NULL")))
    if rng.random() < 0.12:
        return _on_null(rng, column)
    match column.kind:
        case "boolean":
            return _on_boolean(rng, column)
        case "bins":
            return _on_bins(rng, column)
        case "integers":
            return _on_numbers(rng, column) if rng.random() < 0.6 else _plain(rng, column)
    return _on_texts(rng, column) if rng.random() < 0.6 else _plain(rng, column)


def _same(text: str, type: str = "truth") -> Node:
    return Node(text, text, type)


def _on_null(rng: Random, column: Column) -> Node:
    name = written(column.name)
    if column.missing and rng.random() < 0.5:
        return _same(f"{name} IS NULL")
    return _same(rng.choice((f"{name} IS NOT NULL", f"{name} IS NOT DISTINCT FROM NULL", f"{name} = NULL")))


def _on_boolean(rng: Random, column: Column) -> Node:
    name = written(column.name)
    tests = ("{}", "NOT {}", "{} = TRUE", "{} <> true", "{} IS NOT TRUE", "{} IS FALSE", "{} IS DISTINCT FROM TRUE")
    more = ("COALESCE({}, FALSE)", "{} IN (TRUE, NULL)", "CASE WHEN {} THEN FALSE ELSE TRUE END")
    unknown = ("{} IS UNKNOWN",) if column.missing else ()
    return _same(rng.choice((*tests, *more, *unknown)).format(name))


def _on_bins(rng: Random, column: Column) -> Node:
    name, edge = written(column.name), rng.choice(column.values)
    low, high = sorted((rng.choice(column.values), column.values[-1]))
    texts = (f"{{}} < {edge}", f"{{}} >= {edge}", f"{edge} > {{}}", f"{{}} >= {low} AND {{}} < {high}")
    case = f"CASE WHEN {{}} < {edge} THEN 'low' WHEN {{}} >= {edge} THEN 'high' END = 'low'"
    text = rng.choice((*texts, f"{{}} <> {high + 0.5}", f"{{}} = {high + 7}", case, f"{{}} BETWEEN {low} AND {high}"))
    return Node(text.format(*[name] * 2), text.format(*[column.decided] * 2), "truth")


def _plain(rng: Random, column: Column) -> Node:
    """A comparison of the column itself."""
    values = [rng.choice(column.values) for _ in range(3)]
    if column.kind == "integers" and rng.random() < 0.4:
        values = [rng.choice((value, value + 1000, value - 1000, value + 0.5)) for value in values]
    one, low, high = values
    name = written(column.name)
    match rng.choice(("=", "order", "in", "between", "distinct", "symmetric")):
        case "=":
            return _equal(rng, column, one)
        case "order":
            operator = rng.choice(_OPERATORS[2:])
            pair = _ordered(column, one)
            return Node(f"{name} {operator} {literal(one)}", f"{pair[0]} {operator} {pair[1]}", "truth")
        case "in":
            null = rng.random() < 0.2
            parts = [f"{_equals(column, value)} = {literal(value)}" for value in values] + ["NULL"] * null
            items = ", ".join([*map(literal, values), *["NULL"] * null])
            negated = rng.choice(("", "NOT "))
            return Node(f"{name} {negated}IN ({items})", f"{negated}({' OR '.join(parts)})", "truth")
        case "between":
            (value, least), (_, most) = _ordered(column, low), _ordered(column, high)
            word = rng.choice(("BETWEEN", "NOT BETWEEN"))
            text = f"{name} {word} {literal(low)} AND {literal(high)}"
            return Node(text, f"{value} {word} {least} AND {most}", "truth")
        case "symmetric":
            (value, least), (_, most) = _ordered(column, low), _ordered(column, high)
            text = f"{name} BETWEEN SYMMETRIC {literal(low)} AND {literal(high)}"
            both = f"({value} BETWEEN {least} AND {most} OR {value} BETWEEN {most} AND {least})"
            return Node(text, both, "truth")
    word = rng.choice(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
    declared = column.kind != "integers" or one in column.values or not column.other
    if not declared:  # what hdmm cannot decide of other values stays unknown
        return _equal(rng, column, one)
    return _same(f"{name} {word} {literal(one)}")


def _equal(rng: Random, column: Column, value: Any) -> Node:
    operator = rng.choice(("=", "<>", "!="))
    text = f"{literal(value)}"
    return Node(f"{written(column.name)} {operator} {text}", f"{_equals(column, value)} {operator} {text}", "truth")


def _equals(column: Column, value: Any) -> str:
    """The column in DuckDB for a comparison with = that hdmm decides for other values only if it is declared."""
    return written(column.name) if value in column.values else column.decided


def _ordered(column: Column, value: Any) -> tuple[str, str]:
    """The column and a value in DuckDB, for a comparison by order."""
    if column.kind == "integers":
        return column.decided, literal(value)
    if not column.other and list(column.values) == sorted(column.values):
        return written(column.name), literal(value)
    return column.place, str(column.values.index(value))


def _on_numbers(rng: Random, column: Column) -> Node:
    """A comparison of something computed from integers."""
    node = numeric(rng, column, rng.choice((1, 2, 3)))
    match rng.choice(("cmp", "cmp", "cmp", "flipped", "in", "between", "null", "two")):
        case "cmp":
            return joined(f"{{}} {rng.choice(_OPERATORS)} {_number(rng)}", "truth", node)
        case "flipped":
            return joined(f"{_number(rng)} {rng.choice(_OPERATORS)} {{}}", "truth", node)
        case "in":
            items = [_number(rng), _number(rng), *["NULL"] * (rng.random() < 0.2)]
            return joined(f"{{}} {rng.choice(('', 'NOT '))}IN ({', '.join(items)})", "truth", node)
        case "between":
            return joined(f"{{}} BETWEEN {_number(rng)} AND {_number(rng)}", "truth", node)
        case "null" if not column.other:
            return joined(f"({{}}) IS {rng.choice(('', 'NOT '))}NULL", "truth", node)
    return joined(f"{{}} {rng.choice(_OPERATORS)} {{}}", "truth", node, numeric(rng, column, 1))


def _number(rng: Random) -> str:
    return rng.choice((str(rng.randint(-5, 30)), str(rng.randint(-5, 30)), f"{rng.randint(-5, 20)}.5", "2 + 3", "-(4)"))


def numeric(rng: Random, column: Column, depth: int) -> Node:
    """A number computed from a column of integers."""
    if not depth:
        return Node(written(column.name), column.decided, "integer")
    inner = numeric(rng, column, depth - 1)
    count = str(rng.choice((1, 2, 3, 5, 7, 10, -2)))
    match rng.choice(("+", "-", "*", "/", "//", "%", "neg", "call", "floor", "case", "decimal", "value")):
        case "+" | "-" | "*" as operator:
            other = rng.choice((_same(f"{count}", "integer"), numeric(rng, column, 0)))
            sides = (inner, other) if rng.random() < 0.7 else (other, inner)
            if rng.random() < 0.2:  # without parentheses: what binds first is part of the question
                tail = rng.choice(("% 3", "* 2", "- 1"))
                return joined(f"({{}} {operator} {{}} {tail})", inner.type, *sides)
            return joined(f"({{}} {operator} {{}})", inner.type, *sides)
        case "/":
            whole = inner.type == "integer"
            if not whole:
                return joined("({} / 4)", "decimal", inner)
            template = f"({{}} {{slash}} {count})" if rng.random() < 0.8 else f"({count} {{slash}} {{}})"
            texts = [template.replace("{slash}", slash).format(text) for slash, text in
                     (("/", inner.ours), ("//", inner.duck))]  # fmt: skip
            return Node(texts[0], texts[1], "integer")
        case "//" if inner.type == "integer":
            return joined(f"({{}} // {count})", "integer", inner)
        case "%":
            return joined(rng.choice((f"({{}} % {count})", f"MOD({{}}, {count})")), inner.type, inner)
        case "neg":
            return joined("(-{})", inner.type, inner)
        case "call":
            call = rng.choice(("ABS({})", "ROUND({})", "ROUND({}, -1)", "SIGN({})"))
            return joined(call, "integer" if call == "SIGN({})" else inner.type, inner)
        case "floor":
            half = joined("({} / 2.0)", "decimal", inner)
            return joined(
                rng.choice(("FLOOR({})", "CEIL({})", "ROUND({})", "FLOOR({}) * 10")), "decimal", half
            ).inside()
        case "decimal":
            return joined(rng.choice(("({} / 4.0)", "({} * 0.5)", "({} + 1.25)")), "decimal", inner)
        case "case":
            test = _plain(rng, column)
            template = rng.choice((f"CASE WHEN {{}} THEN {count} ELSE {{}} END", f"CASE WHEN {{}} THEN {count} END"))
            if column.other:
                template = f"CASE WHEN {{}} THEN {count} ELSE 4 END"
            return joined(f"({template})", inner.type if "{} END" in template else "integer", test, inner)
        case "value" if not column.other:
            return joined(rng.choice((f"COALESCE({{}}, {count})", f"NULLIF({{}}, {count})")), inner.type, inner)
    return inner


def _on_texts(rng: Random, column: Column) -> Node:
    """A comparison of something computed from texts."""
    node = textual(rng, column, rng.choice((0, 1, 2)))
    value = rng.choice((*column.values, "ca", "B", "A"))
    match rng.choice(("like", "like", "=", "in", "length")):
        case "like":
            word = rng.choice(("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"))
            return joined(f"{{}} {word} {literal(_pattern(rng, value))}", "truth", node)
        case "in":
            items = ", ".join(literal(item) for item in (value, rng.choice(column.values)))
            return joined(f"LOWER({{}}) IN ({items})", "truth", node)
        case "length":
            return joined(f"LENGTH({{}}) {rng.choice(_OPERATORS)} {rng.randint(1, 4)}", "truth", node)
    if node.ours == written(column.name):
        return _plain(rng, column)
    return joined(f"{{}} {rng.choice(('=', '<>'))} {literal(value)}", "truth", node)


def _pattern(rng: Random, value: str) -> str:
    letters = [rng.choice((letter, letter, letter, "_", "%")) for letter in value]
    return rng.choice(("", "%")) + "".join(letters) + rng.choice(("", "%"))


def textual(rng: Random, column: Column, depth: int) -> Node:
    """A text computed from a column of listed values."""
    if not depth:
        return Node(written(column.name), column.decided, "text")
    inner = textual(rng, column, depth - 1)
    calls = [
        "LOWER({})",
        "UPPER({})",
        "TRIM({})",
        "LEFT({}, 2)",
        "RIGHT({}, 1)",
        "SUBSTRING({}, 2, 2)",
        "SUBSTR({}, 2)",
    ]
    calls += ["({} || 'x')", "TRIM({}, 'aB')", "LTRIM({}, 'C')"]
    if not column.other:
        calls += ["COALESCE({}, 'none')", "NULLIF(LOWER({}), 'b')"]
    if rng.random() < 0.2:
        test = _plain(rng, column)
        return joined("(CASE WHEN {} THEN 'yes' ELSE 'no' END)", "text", test)
    return joined(rng.choice(calls), "text", inner)


def key(rng: Random, column: Column) -> Node:
    """Something to group by."""
    match column.kind:
        case "integers":
            return rng.choice((numeric(rng, column, rng.choice((0, 1, 2))), _plain(rng, column)))
        case "listed":
            return rng.choice((textual(rng, column, rng.choice((0, 1, 2))), _plain(rng, column)))
        case "boolean":
            return _same(written(column.name), "truth")
    test = _on_bins(rng, column)
    return joined("CASE WHEN {} THEN 'yes' ELSE 'no' END", "text", test)
