"""Random workloads: products, SQL statements and marginals, written as Python and YAML, and what each of them asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import prod
from random import Random
from typing import Any

from tests.fuzz.conditions import Condition, attributes_of, conjuncts, holds, quoted, random_condition, sql
from tests.fuzz.predicates import Predicates, code, data, random_predicates, rows
from tests.fuzz.schemas import Attribute, View, views

Schema = tuple[Attribute, ...]
_WEIGHTS = ("1",) * 8 + ("2", "3", "10", "1/3", "0.1", "1000", "1e9", "1e-9")
_MOST_QUERIES = 150


@dataclass(frozen=True)
class Product:
    """A product as a user asks for it; as SQL if it is one statement, whose predicates are groups."""

    name: str
    predicates: tuple[tuple[str, Predicates], ...]
    where: Condition | None = None
    weight: str = "1"
    statement: bool = False


@dataclass(frozen=True)
class Marginals:
    """All marginals of at most so many attributes, some of them cumulative."""

    name: str
    up_to: int
    prefix: tuple[str, ...] = ()
    weight: str = "1"


Question = Product | Marginals


def asked(questions: Sequence[Question], schema: Schema) -> list[Product]:
    """The products that the questions stand for, in order, without SQL and marginals."""
    found: list[Product] = []
    for question in questions:
        if isinstance(question, Marginals):
            names = [attribute.name for attribute in schema]
            empty = "total" if "total" not in names else "grand total"
            for way in range(question.up_to + 1):
                for some in combinations(names, way):
                    sets = tuple((n, ("prefix",) if n in question.prefix else ("identity", None)) for n in some)
                    title = " × ".join(some) or empty
                    found.append(Product(f"{question.name}: {title}", sets, None, question.weight))
        else:
            found.append(_plain(question, schema) if question.statement else question)
    return found


def _plain(question: Product, schema: Schema) -> Product:
    """A statement's product: conditions on one attribute belong to it, others are across attributes."""
    columns = views(schema)
    own: dict[str, list[Condition]] = {}
    across: list[Condition] = []
    for part in conjuncts(question.where) if question.where else []:
        names = attributes_of(part, columns)
        (own.setdefault(names.pop(), []) if len(names) == 1 else across).append(part)
    conditions = {name: parts[0] if len(parts) == 1 else ("and", tuple(parts)) for name, parts in own.items()}
    sets: dict[str, Predicates] = {name: ("where", condition) for name, condition in conditions.items()}
    for name, given in question.predicates:
        sets[name] = (*given[:-1], conditions.get(name))
    where = None if not across else across[0] if len(across) == 1 else ("and", tuple(across))
    return replace(question, predicates=tuple(sets.items()), where=where, statement=False)


def named(product: Product, schema: Schema) -> set[str]:
    """The attributes that a product asks about."""
    names = {name for name, given in product.predicates if given != ("total",)}
    return names | attributes_of(product.where, views(schema))


@lru_cache(maxsize=256)
def queries(product: Product, schema: Schema) -> tuple[tuple[Fraction, ...], ...]:
    """Each query over all cells of the schema, decided cell by cell."""
    sets = dict(product.predicates)
    columns = views(schema)
    tables = [rows(sets.get(attribute.name, ("total",)), attribute) for attribute in schema]
    sizes = [attribute.size for attribute in schema]
    kept = [1] * prod(sizes)
    if product.where is not None:
        names = [attribute.name for attribute in schema]
        kept = [holds(product.where, dict(zip(names, cells, strict=True)), columns) for cells in _grid(sizes)]
    every: list[list[Fraction]] = [[Fraction(1)]]
    for table in tables:
        every = [[a * b for a in before for b in row] for before in every for row in table]
    return tuple(tuple(entry if keep else Fraction(0) for entry, keep in zip(row, kept, strict=True)) for row in every)


def _grid(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    grid: list[tuple[int, ...]] = [()]
    for size in sizes:
        grid = [(*cells, cell) for cells in grid for cell in range(size)]
    return grid


def random_questions(rng: Random, schema: Schema) -> tuple[Question, ...]:
    """A few questions; sometimes the same twice."""
    found: list[Question] = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        found.append(random_question(rng, schema, f"q{len(found)}"))
    if rng.random() < 0.15:
        found.append(replace(rng.choice(found), name=f"q{len(found)}"))
    if rng.random() < 0.1:
        found += [Product(f"q{len(found)}", ()), Product(f"q{len(found) + 1}", ())]
    return tuple(found)


def random_question(rng: Random, schema: Schema, name: str) -> Question:
    """A legal question of not too many queries."""
    columns = views(schema)
    while True:
        kind = rng.choice(("product",) * 6 + ("sql", "sql", "marginals"))
        weight = rng.choice(_WEIGHTS)
        if kind == "marginals":
            prefix = tuple(attribute.name for attribute in schema if rng.random() < 0.25)
            question: Question = Marginals(name, rng.randint(0, min(2, len(schema))), prefix, weight)
        else:
            where = random_condition(rng, list(columns.values())) if rng.random() < 0.3 else None
            some = [attribute for attribute in schema if rng.random() < 0.6]
            make = _grouped if kind == "sql" else random_predicates
            sets = tuple((attribute.name, make(rng, attribute)) for attribute in some)
            question = Product(name, sets, where, weight, kind == "sql")
        if legal(question, schema):
            return question


def _grouped(rng: Random, attribute: Attribute) -> Predicates:
    levels = [view.domain.name for view in views((attribute,)).values()][1:]
    if levels and rng.random() < 0.4:
        return ("level", tuple(rng.sample(levels, rng.randint(1, min(2, len(levels))))), None)
    return ("identity", None)


def legal(question: Question, schema: Schema) -> bool:
    """Whether there are few queries, and some record can satisfy each condition."""
    total = 0
    for product in asked([question], schema):
        sets = dict(product.predicates)
        tables = [rows(sets[a.name], a) for a in schema if a.name in sets]
        if not all(tables):
            return False
        total += prod(len(table) for table in tables)
        if total > _MOST_QUERIES or (product.where is not None and not _possible(product, schema)):
            return False
    return True


def _possible(product: Product, schema: Schema) -> bool:
    return any(any(row) for row in queries(Product("", (), product.where), schema))


def workload_code(questions: Sequence[Question], schema: Schema, name: str = "w") -> list[str]:
    """Lines of Python that build the workload from ``schema``."""
    columns = views(schema)
    lines = [f"{name} = hdmm.Workload(schema)"]
    for question in questions:
        weight = "" if question.weight == "1" else f", weight={question.weight!r}"
        if isinstance(question, Marginals):
            some = f"hdmm.marginals(schema, up_to={question.up_to}, prefix={list(question.prefix)!r})"
            made = f"hdmm.Product(f'{question.name}: {{p.name}}', p.predicates{weight})"
            lines.append(f"{name} = {name} + hdmm.Workload(schema, [{made} for p in {some}.products])")
        elif question.statement:
            lines.append(f"{name} = {name}.add_sql({question.name!r}, {statement(question, schema)!r}{weight})")
        else:
            domains = {attribute.name: attribute for attribute in schema}
            sets = ", ".join(f"{n!r}: {code(given, domains[n], columns)}" for n, given in question.predicates)
            where = "" if question.where is None else f", where={sql(question.where, columns)!r}"
            lines.append(f"{name} = {name}.add({question.name!r}, {{{sets}}}{weight}{where})")
    return lines


def workload_data(questions: Sequence[Question], schema: Schema) -> list[Any]:
    """The workload as a spec holds it."""
    columns = views(schema)
    domains = {attribute.name: attribute for attribute in schema}
    entries: list[Any] = []
    for question in questions:
        entry: dict[str, Any] = {"name": question.name, "weight": question.weight}
        if isinstance(question, Marginals):
            entry["marginals"] = {"up_to": question.up_to, "prefix": list(question.prefix)}
        elif question.statement:
            entry["sql"] = statement(question, schema)
        else:
            entry["product"] = {n: data(given, domains[n], columns) for n, given in question.predicates}
            if question.where is not None:
                entry["where"] = sql(question.where, columns)
        entries.append(entry)
    return entries


def statement(question: Product, schema: Schema) -> str:
    """The question as SQL."""
    columns: Mapping[str, View] = views(schema)
    grouped = []
    for name, given in question.predicates:
        grouped += [quoted(level) for level in given[1]] if given[0] == "level" else [quoted(name)]
    where = "" if question.where is None else f" WHERE {sql(question.where, columns)}"
    group = f" GROUP BY {', '.join(grouped)}" if grouped else ""
    return f"SELECT {''.join(f'{column}, ' for column in grouped)}COUNT(*) FROM people{where}{group}"
