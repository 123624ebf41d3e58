"""Random predicate sets on one attribute: a tree that is written as Python and YAML, and as rows over the cells.

A set is a tuple: ``("identity", condition)``, ``("total",)``, ``("prefix",)``, ``("all_range",)``, ``("width", k)``,
``("ranges", pairs)``, ``("values", cells)``, ``("level", names, condition)``, ``("where", condition)``,
``("by", condition)``, ``("custom", rows)``, ``("not", inner)``, ``("union", parts)`` or ``("permuted", inner, order)``.
Cells are numbers; entries of custom rows are texts of decimals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from tests.fuzz.conditions import Condition, attributes_of, holds, random_condition, sql
from tests.fuzz.schemas import Attribute, View, views_of

Predicates = tuple[Any, ...]
Row = list[Fraction]
_WORDS = {"total": "Total", "prefix": "Prefix", "all_range": "AllRange"}


def rows(predicates: Predicates, domain: Attribute) -> list[Row]:
    """What each predicate is on every cell."""
    every = range(domain.size)
    declared = range(domain.declared)
    match predicates:
        case ("identity", condition):
            return [_row(domain, [cell]) for cell in _satisfying(condition, domain)]
        case ("total",):
            return [_row(domain, every)]
        case ("prefix",):
            return [_row(domain, range(last + 1)) for last in declared]
        case ("all_range",):
            return [_row(domain, range(first, last + 1)) for first in declared for last in declared[first:]]
        case ("width", width):
            return [_row(domain, range(first, first + width)) for first in declared[: domain.declared - width + 1]]
        case ("ranges", pairs):
            return [_row(domain, range(first, last + 1)) for first, last in pairs]
        case ("values", cells):
            return [_row(domain, [cell]) for cell in cells]
        case ("level", names, condition):
            return [_row(domain, cells) for _, cells in groups(names, condition, domain)]
        case ("where", condition):
            return [_row(domain, _satisfying(condition, domain))]
        case ("by", condition):
            chosen = _satisfying(condition, domain)
            parts = sorted(part for part in (chosen, [cell for cell in every if cell not in chosen]) if part)
            return [_row(domain, part) for part in parts]
        case ("custom", table):
            return [[Fraction(entry) for entry in row] for row in table]
        case ("not", inner):
            return negated(inner, domain)
        case ("union", parts):
            return [row for part in parts for row in rows(part, domain)]
    _, inner, order = predicates
    places = {cell: place for place, cell in enumerate(order)}
    return [[row[places.get(cell, cell)] for cell in every] for row in rows(inner, reordered(domain, order))]


def negated(predicates: Predicates, domain: Attribute) -> list[Row]:
    """The negation of each predicate: that of a condition by SQL's logic, else everything but its cells."""
    match predicates:
        case ("where", condition):
            return [_row(domain, _satisfying(("not", condition), domain))]
        case ("union", parts):
            return [row for part in parts for row in negated(part, domain)]
        case ("not", inner):
            return rows(inner, domain)
    return [[1 - entry for entry in row] for row in rows(predicates, domain)]


def groups(names: Sequence[str], condition: Condition | None, domain: Attribute) -> list[tuple[Any, list[int]]]:
    """The groups that some cell falls into, in order, each with its cells that satisfy the condition."""
    levels = {view.domain.name: view for view in views_of(domain)}
    found: dict[tuple[int, ...], list[int]] = {}
    for cell in _satisfying(condition, domain):
        found.setdefault(tuple(levels[name].cells[cell] for name in names), []).append(cell)
    return sorted(found.items())


def reordered(domain: Attribute, order: Sequence[int]) -> Attribute:
    """The domain with its values in another order; they are texts then."""
    labels = domain.labels()
    return Attribute(
        domain.name, "listed", tuple(labels[cell] for cell in order), other=domain.other, missing=domain.missing
    )


def _row(domain: Attribute, cells: Any) -> Row:
    inside = set(cells)
    return [Fraction(cell in inside) for cell in range(domain.size)]


def _satisfying(condition: Condition | None, domain: Attribute) -> list[int]:
    columns = {view.domain.name: view for view in views_of(domain)}
    every = range(domain.size)
    return [cell for cell in every if condition is None or holds(condition, {domain.name: cell}, columns)]


def code(predicates: Predicates, domain: Attribute, columns: Mapping[str, View]) -> str:
    """The set as Python."""
    labels = domain.labels()
    match predicates:
        case ("identity", condition):
            return f"hdmm.Identity({'' if condition is None else repr(sql(condition, columns))})"
        case (word,):
            return f"hdmm.{_WORDS[word]}()"
        case ("width", width):
            return f"hdmm.Width({width})"
        case ("ranges", pairs):
            return f"hdmm.Ranges({[tuple(_ends(pair, domain)) for pair in pairs]!r})"
        case ("values", cells):
            return f"hdmm.Values({[labels[cell] for cell in cells]!r})"
        case ("level", names, condition):
            where = "" if condition is None else f", where={sql(condition, columns)!r}"
            return f"hdmm.Level({', '.join(map(repr, names))}{where})"
        case ("where", condition):
            return f"hdmm.Where({sql(condition, columns)!r})"
        case ("by", condition):
            return f"hdmm.By({_by(condition, columns)!r})"
        case ("custom", table):
            numbers = ["[" + ", ".join(row) + "]" for row in table]
            return f"hdmm.Custom([{', '.join(numbers)}])"
        case ("not", inner):
            return f"~{code(inner, domain, columns)}"
        case ("union", parts):
            return f"({' | '.join(code(part, domain, columns) for part in parts)})"
    _, inner, order = predicates
    inside = code(inner, reordered(domain, order), columns)
    return f"hdmm.Permuted({inside}, order={[labels[cell] for cell in order]!r})"


def data(predicates: Predicates, domain: Attribute, columns: Mapping[str, View]) -> Any:
    """The set as a spec holds it."""
    labels = domain.labels()
    match predicates:
        case ("identity", None):
            return "identity"
        case (word,):
            return word
        case ("identity" | "where", condition):
            return {predicates[0]: sql(condition, columns)}
        case ("width", width):
            return {"width": width}
        case ("ranges", pairs):
            return {"ranges": [_ends(pair, domain) for pair in pairs]}
        case ("values", cells):
            return {"values": [labels[cell] for cell in cells]}
        case ("level", names, condition):
            return {"level": list(names)} | ({} if condition is None else {"where": sql(condition, columns)})
        case ("by", condition):
            return {"by": _by(condition, columns)}
        case ("custom", table):
            return {"custom": [list(row) for row in table]}
        case ("not", inner):
            return {"not": data(inner, domain, columns)}
        case ("union", parts):
            return [data(part, domain, columns) for part in parts]
    _, inner, order = predicates
    return {"permuted": data(inner, reordered(domain, order), columns), "order": [labels[cell] for cell in order]}


def _by(condition: Condition, columns: Mapping[str, View]) -> str:
    return f"CASE WHEN {sql(condition, columns)} THEN 'yes' ELSE 'no' END"


def _ends(pair: Sequence[int], domain: Attribute) -> list[str]:
    first, last = pair
    if domain.kind == "bins":
        return [domain.values[first], domain.values[last + 1]]
    return [domain.labels()[first], domain.labels()[last]]


def random_predicates(rng: Random, domain: Attribute, depth: int = 2, *, plain: bool = False) -> Predicates:
    """A legal set; ``plain`` ones have no conditions and no levels."""
    if depth and rng.random() < 0.3:
        match rng.choice(("not", "union", "union", "permuted")):
            case "not":
                inner = random_predicates(rng, domain, depth - 1, plain=plain)
                return ("not", inner) if binary(rows(inner, domain)) else inner
            case "union":
                parts = tuple(
                    random_predicates(rng, domain, depth - 1, plain=plain) for _ in range(rng.choice((2, 2, 3)))
                )
                return ("union", parts)
            case _:
                order = list(range(domain.declared))
                rng.shuffle(order)
                other = reordered(domain, order)
                return ("permuted", random_predicates(rng, other, depth - 1, plain=True), tuple(order))
    kinds = ["identity", "identity", "total", "prefix", "all_range", "width", "ranges", "values", "custom"]
    if not plain:
        kinds += ["where", "where", "identity where", "level", "level", "by"]
    return _simple(rng, domain, rng.choice(kinds))


def _simple(rng: Random, domain: Attribute, kind: str) -> Predicates:
    declared = domain.declared
    columns = list(views_of(replace(domain)))
    match kind:
        case "identity":
            return ("identity", None)
        case "total" | "prefix":
            return (kind,)
        case "all_range":
            return (kind,) if declared <= 8 else ("prefix",)
        case "width":
            return (kind, rng.randint(1, declared))
        case "ranges":
            return (kind, tuple(tuple(sorted(rng.choices(range(declared), k=2))) for _ in range(rng.randint(1, 3))))
        case "values":
            return (kind, tuple(rng.choices(range(declared), k=rng.randint(1, 3))))
        case "custom":
            entries = rng.choice(
                (("0", "1"), ("0", "0", "1", "-1"), ("0", "1", "2", "-3"), ("0", "0.5", "0.1", "-1.25"), ("0",))
            )
            return (
                kind,
                tuple(tuple(rng.choice(entries) for _ in range(domain.size)) for _ in range(rng.randint(1, 3))),
            )
        case "by":
            condition = random_condition(rng, columns, rng.choice((0, 1)))
            about = attributes_of(condition, {view.domain.name: view for view in columns})
            return (kind, condition) if about else ("prefix",)
        case "where":
            return (kind, random_condition(rng, columns, rng.choice((0, 0, 1, 2))))
        case "identity where":
            condition = random_condition(rng, columns, rng.choice((0, 1)))
            return ("identity", condition if _satisfying(condition, domain) else None)
    levels = [view.domain.name for view in columns[1:]]
    if not levels:
        return ("prefix",)
    names = tuple(rng.sample(levels, rng.randint(1, min(2, len(levels)))))
    chosen = random_condition(rng, columns, 1) if rng.random() < 0.3 else None
    return ("level", names, chosen if _satisfying(chosen, domain) else None)


def binary(table: Sequence[Row]) -> bool:
    """Whether all entries are zero or one."""
    return all(entry in (0, 1) for row in table for entry in row)
