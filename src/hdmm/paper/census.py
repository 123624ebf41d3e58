"""The census workloads SF1 and SF1+: tables P1 to PCT12O of the 2010 Summary File 1, written out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import combinations, pairwise, product
from operator import or_

from hdmm.schema import Merged, Schema
from hdmm.workload import Identity, Predicates, Product, Ranges, Total, Union, Values, Where, Workload

_FLAGS = ("white", "black", "native", "asian", "pacific", "other")
_CUTS = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85, 115)
_STATES = 51

AGE1 = Ranges([(low, high - 1) for low, high in pairwise(_CUTS)])
AGE3 = Ranges([(year, year) for year in range(100)] + [(100, 104), (105, 109), (110, 114)])
ADULT = Where("age >= 18")


def _alone(flag: str) -> str:
    return f"{flag} AND NOT ({' OR '.join(other for other in _FLAGS if other != flag)})"


def _several(least: int, most: int = 6) -> str:
    return f"race IN ({', '.join(repr(value) for value in _COMBINATIONS if least <= value.count('+') + 1 <= most)})"


_COMBINATIONS = ["+".join(chosen) for count in range(1, 7) for chosen in combinations(_FLAGS, count)]
_TWO_OR_NONE = f"NOT ({' OR '.join(f'({_alone(flag)})' for flag in _FLAGS)})"
RACE1: Predicates = reduce(or_, [Where(condition) for condition in (*map(_alone, _FLAGS), _TWO_OR_NONE)])
RACE2: Predicates = reduce(
    or_, [Values(_COMBINATIONS), *(Where(_several(k, k)) for k in range(1, 7)), Where(_several(2))]
)


def person(*, state: bool = False) -> Schema:
    """The Person relation: the six race flags are merged into one attribute of 64 values."""
    attributes: dict[str, object] = {
        "sex": ["M", "F"],
        "hispanic": [False, True],
        "race": Merged({flag: [False, True] for flag in _FLAGS}),
        "relationship": range(17),
        "age": range(115),
    }
    return Schema(attributes | ({"state": range(_STATES)} if state else {}))


def sf1() -> Workload:
    """The 4151 national queries."""
    return Workload(person(), [Product(name, sets) for name, sets in _tables()])


def sf1_plus() -> Workload:
    """The national queries, and the same for each of the 51 states."""
    both = Identity() | Total()
    return Workload(person(state=True), [Product(name, sets | {"state": both}) for name, sets in _tables()])


def sf1_sql() -> list[str]:
    """The 4151 national queries, one SQL statement each."""
    return [f"SELECT COUNT(*) FROM person{where}" for where in _wheres()]


def sf1_plus_sql() -> list[str]:
    """8302 SQL statements: each national query, and the same grouped by state."""
    forms = ("SELECT COUNT(*) FROM person{}", "SELECT state, COUNT(*) FROM person{} GROUP BY state")
    return [form.format(where) for where in _wheres() for form in forms]


def _wheres() -> Iterator[str]:
    """The WHERE clause of every national query."""
    schema = person()
    for _, sets in _tables():
        for chosen in product(*(_conditions(predicates, name, schema) for name, predicates in sets.items())):
            conditions = [f"({condition})" for condition in chosen if condition is not None]
            yield f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _conditions(predicates: Predicates, name: str, schema: Schema) -> list[str | None]:
    """Each predicate of a set as an SQL condition; None if it holds for everybody."""
    match predicates:
        case Total():
            return [None]
        case Where():
            return [predicates.condition]
        case Identity():
            return [f"{name} = {value!r}" for value in schema[name].labels()]
        case Values():
            return [f"{name} = {value!r}" for value in predicates.values]
        case Ranges():
            return [f"{name} BETWEEN {low} AND {high}" for low, high in predicates.ranges]
        case Union():
            return [condition for part in predicates.parts for condition in _conditions(part, name, schema)]
    raise TypeError(f"{type(predicates).__name__} is in no table")


def _tables() -> list[tuple[str, dict[str, Predicates]]]:
    hispanic, other = Where("hispanic"), Where("NOT hispanic")
    tables: list[tuple[str, dict[str, Predicates]]] = [
        ("P1", {}),
        ("P3", {"race": RACE1 | Total()}),
        ("P4", {"hispanic": Identity() | Total()}),
        ("P5", {"hispanic": Identity(), "race": RACE1 | Total()}),
        ("P5 total", {}),
    ]
    for suffix, among in (("", {}), (" adults", {"age": ADULT})):
        races, origins = ("P10", "P11") if suffix else ("P8", "P9")
        tables += [
            (races, {"race": RACE2 | Total(), **among}),
            (origins, {"hispanic": Identity() | Total(), **among}),
            (f"{origins} races", {"hispanic": other, "race": RACE2, **among}),
        ]
    groups: dict[str, dict[str, Predicates]] = {"": {}, "A-G": {"race": RACE1}, "H": {"hispanic": hispanic}}
    white: dict[str, Predicates] = {"race": Where(_alone("white")), "hispanic": other}
    for table, ages, more in (
        ("P12", AGE1, {"I": white}),
        ("PCT12", AGE3, {"I-O": {"race": RACE1, "hispanic": other}}),
    ):
        for letters, group in (groups | more).items():
            tables += [
                (f"{table}{letters}", {"sex": Identity(), "age": ages | Total(), **group}),
                (f"{table}{letters} total", dict(group)),
            ]
    return tables
