"""Random SQL conditions: a tree that is written as SQL, and decided for a record from its own description.

A condition is a tuple: ``("cmp", column, operator, value)``, ``("in", column, values)``,
``("between", column, low, high)``, ``("null", column)``, ``("bare", column)``, ``("and", parts)``, ``("or", parts)``,
``("not", inner)`` or ``("const", truth)``.
A value is the number of a cell where the column's values are texts, else the text of a number.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from random import Random
from typing import Any

from tests.fuzz.schemas import Attribute, View

Condition = tuple[Any, ...]
_COMPARE = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def holds(condition: Condition, cells: Mapping[str, int], columns: Mapping[str, View]) -> bool:
    """Whether a record satisfies a condition; ``cells`` are those of its attributes."""
    return truth(condition, cells, columns) is True


def truth(condition: Condition, cells: Mapping[str, int], columns: Mapping[str, View]) -> bool | None:
    """Whether a condition is true or false for a record, or None if that is unknown."""
    match condition:
        case ("and", parts):
            return _every([truth(part, cells, columns) for part in parts])
        case ("or", parts):
            return _opposite(_every([_opposite(truth(part, cells, columns)) for part in parts]))
        case ("not", inner):
            return _opposite(truth(inner, cells, columns))
        case ("const", value):
            return value
    view = columns[condition[1]]
    cell = view.cells[cells[view.attribute]]
    match condition:
        case ("cmp", _, operator, value):
            return _compared(view.domain, cell, operator, value)
        case ("in", _, values):
            return _opposite(_every([_compared(view.domain, cell, "<>", value) for value in values]))
        case ("between", _, low, high):
            return _every([_compared(view.domain, cell, ">=", low), _compared(view.domain, cell, "<=", high)])
        case ("bare", _):
            return _compared(view.domain, cell, "=", 1)
    return cell == view.domain.size - 1


def _every(truths: Sequence[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def _compared(domain: Attribute, cell: int, operator: str, value: Any) -> bool | None:
    if domain.missing and cell == domain.size - 1:
        return None
    if cell >= domain.declared:  # other values differ from the declared ones, and are in no order
        declared = domain.kind != "bins" and (domain.kind != "integers" or value in domain.labels())
        return operator == "<>" if declared and operator in ("=", "<>") else None
    match domain.kind:
        case "integers":
            return _COMPARE[operator](Decimal(int(domain.values[0]) + cell), Decimal(value))
        case "bins":  # at an edge, all values of a bin agree: any inner one decides
            low, high = Decimal(domain.values[cell]), Decimal(domain.values[cell + 1])
            return _COMPARE[operator]((low + high) / 2, Decimal(value))
    return _COMPARE[operator](cell, value)


def attributes_of(condition: Condition | None, columns: Mapping[str, View]) -> set[str]:
    """The attributes that a condition names."""
    if condition is None:
        return set()
    if condition[0] in ("and", "or"):
        return set().union(*(attributes_of(part, columns) for part in condition[1]))
    if condition[0] == "not":
        return attributes_of(condition[1], columns)
    return set() if condition[0] == "const" else {columns[condition[1]].attribute}


def conjuncts(condition: Condition) -> list[Condition]:
    """The parts of a chain of ANDs."""
    return [own for part in condition[1] for own in conjuncts(part)] if condition[0] == "and" else [condition]


def sql(condition: Condition, columns: Mapping[str, View]) -> str:
    """The condition as SQL."""
    match condition:
        case ("and" | "or", parts):
            return f" {condition[0].upper()} ".join(f"({sql(part, columns)})" for part in parts)
        case ("not", inner):
            return f"NOT ({sql(inner, columns)})"
        case ("const", truth):
            return "TRUE" if truth else "FALSE"
    name, domain = quoted(condition[1]), columns[condition[1]].domain
    match condition:
        case ("cmp", _, operator, value):
            return f"{name} {operator} {_literal(domain, value)}"
        case ("in", _, values):
            return f"{name} IN ({', '.join(_literal(domain, value) for value in values)})"
        case ("between", _, low, high):
            return f"{name} BETWEEN {_literal(domain, low)} AND {_literal(domain, high)}"
        case ("bare", _):
            return name
    return f"{name} IS NULL"


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return name if re.fullmatch(r"[a-z][a-z0-9]*", name) else f'"{name}"'


def _literal(domain: Attribute, value: Any) -> str:
    if domain.kind in ("integers", "bins"):
        return str(value)
    text = domain.labels()[value]
    if domain.kind == "boolean":
        return text.lower()
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def random_condition(rng: Random, columns: Sequence[View], depth: int = 2) -> Condition:
    """A legal condition on some columns, true or not."""
    if depth and rng.random() < 0.55:
        kind = rng.choice(("and", "or", "or", "not"))
        if kind == "not":
            return ("not", random_condition(rng, columns, depth - 1))
        return (kind, tuple(random_condition(rng, columns, depth - 1) for _ in range(rng.choice((2, 2, 3)))))
    if rng.random() < 0.02:
        return ("const", rng.random() < 0.8)
    view = rng.choice(columns)
    domain, name = view.domain, view.domain.name
    if domain.missing and rng.random() < 0.3:
        return ("null", name)
    match domain.kind:
        case "boolean":
            return rng.choice((("bare", name), ("cmp", name, rng.choice(("=", "<>")), rng.randrange(2))))
        case "merged":
            return ("cmp", name, rng.choice(("=", "<>")), rng.randrange(domain.declared))
        case "bins":
            return _on_bins(rng, domain)
    return _on_ordered(rng, domain)


def _on_ordered(rng: Random, domain: Attribute) -> Condition:
    def value() -> Any:
        if domain.kind in ("listed", "dates", "times"):
            return rng.randrange(domain.declared)
        low, high = map(int, domain.values)
        return rng.choice(
            (str(rng.randint(low, high)), str(rng.randint(low, high)), str(low - 1), str(high + 5), f"{low}.5")
        )

    match rng.choice(("cmp", "cmp", "in", "between")):
        case "in":
            return ("in", domain.name, tuple(value() for _ in range(rng.randint(1, 3))))
        case "between":
            return ("between", domain.name, value(), value())
    return ("cmp", domain.name, rng.choice(tuple(_COMPARE)), value())


def _on_bins(rng: Random, domain: Attribute) -> Condition:
    edges = domain.values
    inner = edges[:-1] if domain.closed else edges
    match rng.choice(("cmp", "cmp", "cmp", "between", "beyond")):
        case "between":
            return ("between", domain.name, rng.choice(inner), edges[-1])
        case "beyond":
            return ("cmp", domain.name, rng.choice(tuple(_COMPARE)), rng.choice(("-1000", "99999.5")))
    return ("cmp", domain.name, rng.choice(("<", ">=")), rng.choice(inner))
