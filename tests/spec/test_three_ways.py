"""A workload written in Python, in YAML and in SQL is the same workload: its Gram matrix, its tables, its errors."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import hdmm
from hdmm.schema import Bins, Boolean, Integers, Listed, Merged, Schema
from hdmm.workload import By, Identity, Level, Where, Workload

SCHEMA = Schema(
    race=Merged(white=[False, True], black=[False, True], asian=[False, True]),
    age=Integers(
        0,
        3,
        levels={
            "age group": {"child": [(0, 1)], "adult": [2], "senior": [3]},
            "half": {"young": ["child"], "old": ["adult", "senior"]},
        },
    ),
    state=Listed(["CA", "NY"], other=True, missing=True),
    income=Bins([0, 10, 50]),
    hispanic=Boolean(),
)
SCHEMA_YAML = """\
schema:
  race: {merged: {white: boolean, black: boolean, asian: boolean}}
  age:
    min: 0
    max: 3
    levels:
      age group: {child: [[0, 1]], adult: [2], senior: [3]}
      half: {young: [child], old: [adult, senior]}
  state: {values: [CA, NY], other: true, missing: true}
  income: {bins: [0, 10, 50]}
  hispanic: boolean
workload:
"""
BUDGET = hdmm.Budget(epsilon="1")
RECORDS = np.random.default_rng(8).poisson(0.8, SCHEMA.sizes)


@dataclass(frozen=True)
class Case:
    """One workload in its three forms; its products are called q, with a suffix where there are several."""

    python: Callable[[Workload], Workload]
    yaml: str
    sql: str
    weight: int | str = 1


CASES: dict[str, Case] = {
    "the total": Case(
        lambda w: w.add("q"),
        "- {name: q}",
        "SELECT COUNT(*) FROM person",
    ),
    "one attribute": Case(
        lambda w: w.add("q", state=Identity()),
        "- {name: q, product: {state: identity}}",
        "SELECT state, COUNT(*) FROM person GROUP BY state",
    ),
    "two attributes": Case(
        lambda w: w.add("q", age=Identity(), income=Identity()),
        "- {name: q, product: {income: identity, age: identity}}",
        "SELECT COUNT(*), age, income FROM person GROUP BY income, age",
    ),
    "three attributes": Case(
        lambda w: w.add("q", race=Identity(), state=Identity(), hispanic=Identity()),
        "- {name: q, product: {race: identity, state: identity, hispanic: identity}}",
        "SELECT race, state, hispanic, COUNT(*) AS n FROM person GROUP BY race, state, hispanic",
    ),
    "a comparison": Case(
        lambda w: w.add("q", age=Where("age >= 2")),
        "- {name: q, product: {age: {where: age >= 2}}}",
        "SELECT COUNT(*) FROM person WHERE age >= 2",
    ),
    "a cut between bins": Case(
        lambda w: w.add("q", income=Where("income < 10"), age=Identity()),
        "- {name: q, product: {income: {where: income < 10}, age: identity}}",
        "SELECT age, COUNT(*) FROM person WHERE income < 10 GROUP BY age",
    ),
    "IN": Case(
        lambda w: w.add("q", state=Where("state IN ('CA', 'NY')")),
        "- {name: q, product: {state: {where: \"state IN ('CA', 'NY')\"}}}",
        "SELECT COUNT(*) FROM person WHERE state IN ('CA', 'NY')",
    ),
    "BETWEEN": Case(
        lambda w: w.add("q", age=Where("age BETWEEN 1 AND 2"), hispanic=Identity()),
        "- {name: q, product: {age: {where: age BETWEEN 1 AND 2}, hispanic: identity}}",
        "SELECT hispanic, COUNT(*) FROM person WHERE age BETWEEN 1 AND 2 GROUP BY hispanic",
    ),
    "NOT": Case(
        lambda w: w.add("q", state=Where("NOT state = 'CA'")),
        "- {name: q, product: {state: {where: \"NOT state = 'CA'\"}}}",
        "SELECT COUNT(*) FROM person WHERE NOT state = 'CA'",
    ),
    "different": Case(
        lambda w: w.add("q", state=Where("state <> 'CA'")),
        "- {name: q, product: {state: {where: \"state <> 'CA'\"}}}",
        "SELECT COUNT(*) FROM person WHERE state != 'CA'",
    ),
    "IS NULL": Case(
        lambda w: w.add("q", state=Where("state IS NULL"), race=Identity()),
        "- {name: q, product: {state: {where: state IS NULL}, race: identity}}",
        "SELECT race, COUNT(*) FROM person WHERE state IS NULL GROUP BY race",
    ),
    "grouped where it holds": Case(
        lambda w: w.add("q", age=Identity("age > 0 AND age < 3"), income=Identity()),
        "- {name: q, product: {age: {identity: age BETWEEN 1 AND 2}, income: identity}}",
        "SELECT age, income, COUNT(*) FROM person WHERE age > 0 AND age < 3 GROUP BY age, income",
    ),
    "a conjunction": Case(
        lambda w: w.add("q", age=Where("age < 3"), hispanic=Where("hispanic"), income=Identity()),
        "- {name: q, product: {age: {where: age < 3}, hispanic: {where: hispanic}, income: identity}}",
        "SELECT income, COUNT(*) FROM person WHERE (age < 3) AND hispanic GROUP BY income",
    ),
    "a disjunction": Case(
        lambda w: w.add("q", where="age >= 3 OR hispanic"),
        "- {name: q, where: age >= 3 OR hispanic}",
        "SELECT COUNT(*) FROM person WHERE age >= 3 OR hispanic",
    ),
    "a disjunction of three, grouped": Case(
        lambda w: w.add("q", state=Identity(), age=Identity(), where="age >= 3 OR hispanic OR state = 'CA'"),
        "- {name: q, product: {age: identity, state: identity}, where: \"age >= 3 OR hispanic OR state = 'CA'\"}",
        "SELECT age, state, COUNT(*) FROM person WHERE age >= 3 OR hispanic OR state = 'CA' GROUP BY age, state",
    ),
    "a negation": Case(
        lambda w: w.add("q", where="NOT (hispanic AND state = 'CA')", income=Identity()),
        "- {name: q, product: {income: identity}, where: \"NOT (hispanic AND state = 'CA')\"}",
        "SELECT income, COUNT(*) FROM person WHERE NOT (hispanic AND state = 'CA') GROUP BY income",
    ),
    "a negation beside a comparison": Case(
        lambda w: w.add("q", age=Where("age < 3"), where="NOT hispanic OR state IS NULL", race=Identity()),
        "- {name: q, product: {age: {where: age < 3}, race: identity}, where: NOT (hispanic AND state IS NOT NULL)}",
        "SELECT race, COUNT(*) FROM person WHERE age < 3 AND (NOT hispanic OR state IS NULL) GROUP BY race",
    ),
    "two conditions across attributes": Case(
        lambda w: w.add("q", where="(age > 1 OR hispanic) AND (income < 10 OR NOT state = 'NY')"),
        "- {name: q, where: \"NOT (age <= 1 AND NOT hispanic OR income >= 10 AND state = 'NY')\"}",
        "SELECT COUNT(*) FROM person WHERE (age > 1 OR hispanic) AND (income < 10 OR NOT state = 'NY')",
    ),
    "a level": Case(
        lambda w: w.add("q", age=Level("age group"), hispanic=Identity()),
        "- {name: q, product: {age: {level: age group}, hispanic: identity}}",
        'SELECT "age group", hispanic, COUNT(*) FROM person GROUP BY "age group", hispanic',
    ),
    "a level where it holds": Case(
        lambda w: w.add("q", age=Level("age group", where="age < 3")),
        "- {name: q, product: {age: {level: age group, where: age < 3}}}",
        'SELECT "age group", COUNT(*) FROM person WHERE age < 3 GROUP BY "age group"',
    ),
    "two merged parts": Case(
        lambda w: w.add("q", race=Level("white", "asian"), state=Identity()),
        "- {name: q, product: {race: {level: [white, asian]}, state: identity}}",
        "SELECT white, asian, state, COUNT(*) FROM person GROUP BY white, asian, state",
    ),
    "a condition on merged parts": Case(
        lambda w: w.add("q", race=Where("white OR NOT (black OR asian)"), age=Identity()),
        "- {name: q, product: {race: {where: white OR NOT (black OR asian)}, age: identity}}",
        "SELECT age, COUNT(*) FROM person WHERE (white OR NOT (black OR asian)) GROUP BY age",
    ),
    "a condition on a level": Case(
        lambda w: w.add("q", age=Where("\"age group\" <> 'adult'"), income=Identity()),
        "- {name: q, product: {age: {where: '\"age group\" <> ''adult'''}, income: identity}}",
        "SELECT income, COUNT(*) FROM person WHERE \"age group\" <> 'adult' GROUP BY income",
    ),
    "a condition across a level and a part": Case(
        lambda w: w.add("q", race=Level("black"), where="white OR half = 'young'"),
        "- {name: q, product: {race: {level: black}}, where: white = true OR age < 2}",
        "SELECT black, COUNT(*) FROM person WHERE white OR half = 'young' GROUP BY black",
    ),
    "the values of an expression": Case(
        lambda w: w.add("q", age=By("age // 2", where="age < 3"), hispanic=Identity()),
        "- {name: q, product: {age: {by: age // 2, where: age < 3}, hispanic: identity}}",
        "SELECT age // 2, hispanic, COUNT(*) FROM person WHERE age < 3 GROUP BY 1, 2",
    ),
    "named values of expressions": Case(
        lambda w: w.add("q", age=By(pair="age // 2", odd="age % 2")),
        "- {name: q, product: {age: {by: {pair: age // 2, odd: age % 2}}}}",
        "SELECT age // 2 AS pair, age % 2 AS odd, COUNT(*) FROM person GROUP BY pair, odd",
    ),
    "ROLLUP": Case(
        lambda w: (
            w.add("q: age group × hispanic", age=Level("age group"), hispanic=Identity())
            .add("q: age group", age=Level("age group"))
            .add("q: total")
        ),
        """\
- {name: "q: age group × hispanic", product: {age: {level: age group}, hispanic: identity}}
- {name: "q: age group", product: {age: {level: age group}}}
- {name: "q: total"}""",
        'SELECT COUNT(*) FROM person GROUP BY ROLLUP ("age group", hispanic)',
    ),
    "CUBE": Case(
        lambda w: (
            w.add("q: state × income", state=Identity(), income=Identity(), where="hispanic OR age = 0")
            .add("q: state", state=Identity(), where="hispanic OR age = 0")
            .add("q: income", income=Identity(), where="hispanic OR age = 0")
            .add("q: total", where="hispanic OR age = 0")
        ),
        """\
- {name: "q: state × income", product: {state: identity, income: identity}, where: hispanic OR age = 0}
- {name: "q: state", product: {state: identity}, where: hispanic OR age = 0}
- {name: "q: income", product: {income: identity}, where: hispanic OR age = 0}
- {name: "q: total", where: hispanic OR age = 0}""",
        "SELECT state, income, COUNT(*) FROM person WHERE hispanic OR age = 0 GROUP BY CUBE (state, income)",
    ),
    "GROUPING SETS": Case(
        lambda w: (
            w.add("q: white × black × hispanic", race=Level("white", "black"), hispanic=Identity())
            .add("q: income", income=Identity())
            .add("q: total")
        ),
        """\
- {name: "q: white × black × hispanic", product: {race: {level: [white, black]}, hispanic: identity}}
- {name: "q: income", product: {income: identity}}
- {name: "q: total"}""",
        "SELECT COUNT(*) FROM person GROUP BY GROUPING SETS ((white, black, hispanic), (income), ())",
    ),
    "weights": Case(
        lambda w: w.add("q", age=Identity(), where="white OR hispanic", weight="1/3"),
        "- {name: q, product: {age: identity}, where: white OR hispanic, weight: 1/3}",
        "SELECT age, COUNT(*) FROM person WHERE white OR hispanic GROUP BY age",
        weight="1/3",
    ),
    "several statements": Case(
        lambda w: w.add("q 1", state=Identity(), weight=3).add("q 2", where="hispanic OR NOT age = 3", weight=3),
        """\
- {name: q 1, product: {state: identity}, weight: 3}
- {name: q 2, where: hispanic OR age <> 3, weight: 3}""",
        "SELECT COUNT(*) FROM person GROUP BY state; SELECT COUNT(*) FROM person WHERE hispanic OR NOT age = 3;",
        weight=3,
    ),
}


def in_python(case: Case) -> Workload:
    return case.python(Workload(SCHEMA))


def in_sql(case: Case) -> Workload:
    return Workload(SCHEMA).add_sql("q", case.sql, weight=case.weight)


def in_yaml(case: Case, folder: Path) -> Workload:
    text = SCHEMA_YAML + "\n".join(f"  {line}" for line in case.yaml.splitlines()) + "\n"
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    return hdmm.Spec.load(folder / "spec.yaml").workload


@pytest.fixture(scope="module", params=CASES.values(), ids=list(CASES))
def plans(request, tmp_path_factory) -> list[hdmm.Plan]:
    """Each case planned in Python, in YAML and in SQL."""
    workloads = in_python(request.param), in_yaml(request.param, tmp_path_factory.mktemp("spec")), in_sql(request.param)
    return [hdmm.select(workload, operators=[hdmm.baselines.Identity()]) for workload in workloads]


def released(plan: hdmm.Plan) -> hdmm.Release:
    """A release of fixed records without noise."""
    records = np.random.default_rng(3).integers(0, 100, SCHEMA.sizes)
    measured = []
    for block in plan.mechanism.blocks:
        others = tuple(axis for axis in range(len(SCHEMA)) if axis not in block.axes)
        measured.append(block.matrix.apply(records.sum(axis=others).reshape(-1)))
    return hdmm.Release(plan, BUDGET, tuple(measured))


def assert_same_table(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    for column in expected.column_names:
        if column not in ("answer", "stderr", "low", "high"):
            assert found[column].to_pylist() == expected[column].to_pylist()
        else:
            np.testing.assert_allclose(found[column].to_numpy(), expected[column].to_numpy(), atol=1e-9)


def test_the_schema_is_the_same_in_yaml(tmp_path):
    assert in_yaml(CASES["the total"], tmp_path).schema == SCHEMA


def test_the_gram_matrix_is_the_same(plans):
    python, *others = [plan.workload for plan in plans]
    expected = python.encoded.gram().dense()
    for workload in others:
        np.testing.assert_allclose(workload.encoded.gram().dense(), expected, atol=1e-12)
        assert workload.query_count == python.query_count


def test_the_tables_are_the_same(plans):
    expected, *others = [dict(released(plan).tables()) for plan in plans]
    for found in others:
        assert list(found) == list(expected)
        for name, table in expected.items():
            assert_same_table(found[name], table)


@pytest.fixture(scope="module")
def database():
    """The records in a table: other states are XX, missing ones NULL."""
    with duckdb.connect() as connection:
        connection.execute("""
            CREATE TABLE person (
                white BOOLEAN, black BOOLEAN, asian BOOLEAN, race TEXT, age INTEGER, "age group" TEXT, half TEXT,
                state TEXT, income INTEGER, hispanic BOOLEAN
            )""")
        for place in zip(*np.nonzero(RECORDS), strict=True):
            race, age, state, income, hispanic = (int(code) for code in place)
            flags = [bool(race & 4), bool(race & 2), bool(race & 1)]
            levels = [("child", "child", "adult", "senior")[age], "young" if age < 2 else "old"]
            row = [*flags, str(race), age, *levels, ("CA", "NY", "XX", None)[state], (5, 20)[income], bool(hispanic)]
            connection.executemany(f"INSERT INTO person VALUES ({', '.join('?' * 10)})", [row] * int(RECORDS[place]))
        yield connection


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_database_counts_the_same(case, database):
    expected: list[int] = []
    for statement in filter(None, case.sql.split(";")):
        found = database.execute(statement)
        (place,) = [i for i, column in enumerate(found.description) if column[0] in ("count_star()", "n")]
        expected += [row[place] for row in found.fetchall()]
    encoded = in_sql(case).encoded
    answers = [encoded.of(product).apply(RECORDS.reshape(-1)) for product in encoded.products]
    assert sorted(np.concatenate(answers)[np.concatenate(answers) > 0].tolist()) == sorted(filter(None, expected))


def test_the_errors_are_the_same(plans):
    expected, *others = [plan.errors(BUDGET).to_pydict() for plan in plans]
    names = expected.pop("product")
    for found in others:
        assert found.pop("product") == names
        for column, values in expected.items():
            assert found[column] == pytest.approx(values)


def test_what_sql_means_is_written_as_yaml_and_read_back(plans, tmp_path):
    spec = hdmm.Spec(SCHEMA, plans[2].workload)
    spec.save(tmp_path / "spec.yaml")
    assert hdmm.Spec.load(tmp_path / "spec.yaml") == spec


def test_a_conjunction_is_the_same_as_one_condition_across_attributes():
    apart = Workload(SCHEMA).add("q", age=Where("age < 3"), hispanic=Where("hispanic"), income=Identity())
    joined = Workload(SCHEMA).add("q", income=Identity(), where="hispanic AND age < 3")
    np.testing.assert_array_equal(joined.encoded.matrix().dense(), apart.encoded.matrix().dense())
    assert [product.condition for product in joined.encoded.products] == [None]


def test_a_level_counts_only_where_its_condition_holds():
    level = Level("age group", where="age > 0 AND age < 3")
    assert level.labels("age", SCHEMA["age"]) == ["child", "adult"]
    assert level.matrix("age", SCHEMA["age"]).dense().tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("changed", ["age > 1 OR hispanic", "age >= 3 AND hispanic", "age >= 3 OR NOT hispanic"])
def test_another_condition_would_be_seen(changed):
    known, other = in_python(CASES["a disjunction"]), Workload(SCHEMA).add("q", where=changed)
    assert abs(known.encoded.gram().dense() - other.encoded.gram().dense()).max() > 0.5
