"""SQL against DuckDB: random conditions and groups, decided by hdmm on cells and by DuckDB on the rows themselves.

Row i has the weight 2^i, so that a sum of weights says exactly which rows were counted. What hdmm cannot know about
the values in the cell "other" counts as unknown; in DuckDB's text these values are replaced by NULL there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import numpy as np

import hdmm
from hdmm.errors import TooLargeError, WorkloadError
from tests.fuzz.sql_grammar import Column, condition, duck, key, ours, written

_ROWS = 50
PER_TABLE = 20
"""Statements that one table is asked."""


@dataclass(frozen=True)
class Difference:
    """A statement that hdmm and DuckDB count differently, or that hdmm refuses."""

    seed: int
    sql: str
    translated: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.sql}\n  in DuckDB: {self.translated}\n  {self.found}\n  not {self.expected}"


@dataclass
class Tally:
    """How many statements agreed, how many hdmm refuses as it should, and which differ."""

    compared: int = 0
    skipped: int = 0
    differences: list[Difference] = field(default_factory=list)


def random_columns(rng: Random) -> list[Column]:
    """One to three attributes, one of them perhaps with a level."""
    names = rng.sample(("age", "state", "flag", "income", "education-num", "Home Town"), rng.choice((1, 2, 2, 3)))
    columns: list[Column] = []
    for name in names:
        column = _random_column(rng, name)
        columns.append(column)
        if column.kind in ("integers", "listed") and rng.random() < 0.3:
            columns.append(column.level(rng))
    return columns


def _random_column(rng: Random, name: str) -> Column:
    kind = rng.choice(("listed", "listed", "integers", "integers", "boolean", "bins"))
    missing, other = rng.random() < 0.6, kind != "boolean" and rng.random() < 0.35
    match kind:
        case "listed":
            texts = ("CA", "ca", "NY", "x_y", "100%", "it's", "Ab c", "ünï", "b", "B", "7", "10", "abc")
            values: Sequence[Any] = rng.sample(texts, rng.randint(1, 6))
            if rng.random() < 0.2:
                values = [str(number) for number in rng.sample(range(-5, 30), rng.randint(1, 6))]
            if rng.random() < 0.5:
                values = sorted(values)
        case "integers":
            low = rng.choice((0, 0, 1, -7, 18))
            values = range(low, low + rng.choice((1, 3, 8, 20)))
        case "boolean":
            values = (False, True)
        case _:
            values = sorted(rng.sample((-5, 0, 1, 10, 15, 100, 1000), rng.randint(2, 5)))
    return Column(name, name, kind, tuple(values), missing, other)


def schema_of(columns: Sequence[Column]) -> hdmm.Schema:
    """The schema as hdmm has it."""
    levels = {column.attribute: {column.name: dict(column.groups)} for column in columns if column.groups}
    domains: dict[str, Any] = {}
    for column in columns:
        options: dict[str, Any] = {"missing": column.missing, "other": column.other}
        if column.attribute in levels and not column.groups:
            options["levels"] = {
                name: {group: [(member, member) for member in members] for group, members in groups.items()}
                for name, groups in levels[column.attribute].items()
            }
        match column.kind:
            case "listed" if not column.groups:
                domains[column.name] = hdmm.Listed(column.values, **options)
            case "integers":
                domains[column.name] = hdmm.Integers(column.values[0], column.values[-1], **options)
            case "boolean":
                domains[column.name] = hdmm.Boolean(missing=column.missing)
            case "bins":
                domains[column.name] = hdmm.Bins(column.values, **options)
    return hdmm.Schema(domains)


@dataclass(frozen=True)
class Table:
    """Rows as cells for hdmm and as values for DuckDB, each with its weight."""

    columns: Sequence[Column]
    schema: hdmm.Schema
    counts: np.ndarray
    connection: duckdb.DuckDBPyConnection

    @staticmethod
    def random(rng: Random) -> "Table":
        columns = random_columns(rng)
        schema = schema_of(columns)
        counts = np.zeros(schema.cells, np.int64)
        rows = []
        for place in range(_ROWS):
            cells = {name: rng.randrange(domain.size) for name, domain in schema.items()}
            counts[np.ravel_multi_index(tuple(cells.values()), schema.sizes)] += 1 << place
            raw = {column.attribute: column.raw(rng, cells[column.name]) for column in columns if not column.groups}
            rows.append([*(raw[c.name] if not c.groups else c.group_of(raw[c.attribute]) for c in columns), 1 << place])
        connection = duckdb.connect()
        types = ", ".join(f"{written(column.name)} {column.type}" for column in columns)
        connection.execute(f"CREATE TABLE t ({types}, weight BIGINT)")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * (len(columns) + 1))})", rows)
        return Table(columns, schema, counts, connection)

    def asked(self, rng: Random) -> "Question":
        """A random question."""
        where = condition(rng, self.columns, rng.choice((0, 1, 1, 2, 3)))
        certain = [column for column in self.columns if not column.other]
        group = key(rng, rng.choice(certain)) if certain and rng.random() < 0.3 else None
        count, counted = "COUNT(*)", ""
        match rng.choice(("all", "all", "one", "column", "value", "filter")):
            case "one":
                count = "COUNT(1)"
            case "column":
                name = written(rng.choice(self.columns).name)
                count, counted = f"COUNT({name})", f" FILTER (WHERE {name} IS NOT NULL)"
            case "value" if certain:
                value = key(rng, rng.choice(certain))
                count, counted = f"COUNT({ours(value)})", f" FILTER (WHERE ({duck(value)}) IS NOT NULL)"
            case "filter":
                more = condition(rng, self.columns, 1)
                count, counted = f"COUNT(*) FILTER (WHERE {ours(more)})", f" FILTER (WHERE {duck(more)})"
        if group is None:
            sql = f"SELECT {count} FROM t WHERE {ours(where)}"
            alone = ours(where) if count in ("COUNT(*)", "COUNT(1)") and rng.random() < 0.5 else None
            return Question(sql, f"SELECT SUM(weight){counted} FROM t WHERE {duck(where)}", alone)
        sql = f"SELECT {ours(group)} AS g, {count} AS n FROM t WHERE {ours(where)} GROUP BY 1 ORDER BY n DESC"
        return Question(sql, f"SELECT {duck(group)}, SUM(weight){counted} FROM t WHERE {duck(where)} GROUP BY 1")

    def ours(self, question: "Question") -> dict[str, int]:
        """What hdmm counts: weights by group, None for the only one."""
        workload = hdmm.Workload(self.schema)
        if question.where is not None:
            workload = workload.add("q", where=question.where)
        else:
            workload = workload.add_sql("q", question.sql)
        answers = [int(answer) for answer in workload.encoded.of(workload.encoded.products[0]).apply(self.counts)]
        grouped = [
            chosen.columns(name, self.schema[name])[0]
            for name, chosen in workload.products[0].predicates.items()
            if chosen.titles(name) == ("g",)
        ]
        labels = grouped[0] if grouped else [None]
        return {_plain(label): answer for label, answer in zip(labels, answers, strict=True) if answer}

    def theirs(self, translated: str) -> dict[str, int]:
        """What DuckDB counts."""
        rows = self.connection.execute(translated).fetchall()
        if len(rows[0]) == 1 if rows else False:
            return {_plain(None): int(rows[0][0])} if rows[0][0] else {}
        labelled = [("missing" if label is None else label, weight) for label, weight in rows]
        return {_plain(label): int(weight) for label, weight in labelled if weight}


@dataclass(frozen=True)
class Question:
    """A statement as hdmm reads it and as DuckDB does; with ``where``, hdmm is asked by a product's condition."""

    sql: str
    translated: str
    where: str | None = None


def _plain(label: Any) -> str:
    """A label as both write it."""
    if label is None or isinstance(label, (bool, str)):
        return str(label)
    number = Fraction(label)
    return str(number.numerator if number.denominator == 1 else float(number))


def campaign(seeds: Iterable[int]) -> Tally:
    """Compare twenty statements on a random table for each seed."""
    tally = Tally()
    for seed in seeds:
        rng = Random(seed)
        table = Table.random(rng)
        with table.connection:
            for _ in range(PER_TABLE):
                _compare(tally, seed, table, table.asked(rng))
    return tally


def _compare(tally: Tally, seed: int, table: Table, question: Question) -> None:
    expected = table.theirs(question.translated)
    try:
        found: Any = table.ours(question)
    except TooLargeError:
        tally.skipped += 1
        return
    except WorkloadError as error:
        nobody = "no value of" in str(error) and not expected
        if nobody or "declare it with missing: true" in str(error):
            tally.skipped += 1
            return
        found = f"{type(error).__name__}: {error}"
    tally.compared += 1
    if found != expected:
        tally.differences.append(Difference(seed, question.sql, question.translated, str(found), str(expected)))
