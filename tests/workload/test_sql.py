"""SQL counts what a database counts; what is not a count is refused with what to write instead."""

import duckdb
import numpy as np
import pytest

import hdmm
from hdmm.errors import WorkloadError

SCHEMA = hdmm.Schema({"sex": ["F", "M"], "age": range(8), "hispanic": [False, True], "home-state": ["CA", "NY", "TX"]})
ROWS = np.random.default_rng(5).integers(0, SCHEMA.sizes, (200, 4))


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE person (sex TEXT, age INTEGER, hispanic BOOLEAN, "home-state" TEXT)')
        labels = [SCHEMA[name].labels() for name in SCHEMA]
        rows = [[labels[place][code] for place, code in enumerate(row)] for row in ROWS.tolist()]
        connection.executemany("INSERT INTO person VALUES (?, ?, ?, ?)", rows)
        yield connection


def ours(sql: str) -> dict[tuple, int]:
    """The answers to every product, by the values of its grouped attributes; groups of nobody left out."""
    workload = hdmm.Workload(SCHEMA).add_sql("q", sql)
    counts = np.bincount(np.ravel_multi_index(tuple(ROWS.T), SCHEMA.sizes), minlength=SCHEMA.cells)
    answers: dict[tuple, int] = {}
    for product, code in zip(workload.products, workload.encoded.products, strict=True):
        grouped = {name: given for name, given in product.predicates.items() if isinstance(given, hdmm.Identity)}
        axes = [name for name in SCHEMA if name in product.predicates]
        labels = [given.labels(n, SCHEMA[n]) if (given := grouped.get(n)) else [None] for n in axes]
        table = workload.encoded.of(code).apply(counts).reshape([len(values) for values in labels])
        for place in np.ndindex(*table.shape):
            values = {name: labels[i][place[i]] for i, name in enumerate(axes)}
            if table[place]:
                answers[tuple(values.get(name) for name in SCHEMA)] = int(table[place])
    return answers


COUNTS = [
    "SELECT COUNT(*) FROM person",
    "SELECT sex, COUNT(*) FROM person GROUP BY sex",
    "SELECT age, sex, COUNT(*) AS n FROM person WHERE hispanic GROUP BY sex, age",
    "SELECT COUNT(*) FROM person WHERE age >= 3 AND sex = 'F'",
    "SELECT COUNT(*) FROM person WHERE (age < 2 OR age BETWEEN 5 AND 6) AND NOT hispanic",
    "SELECT sex, COUNT(*) FROM person WHERE sex IN ('F') AND age <> 4 GROUP BY sex",
    "SELECT age, COUNT(*) FROM person WHERE age > 2 AND (age < 7 AND sex = 'M') GROUP BY age",
    "SELECT sex, age, COUNT(*) FROM person GROUP BY GROUPING SETS ((sex, age), (sex), ())",
    "SELECT sex, age, COUNT(*) FROM person GROUP BY ROLLUP (sex, age)",
    "SELECT sex, age, hispanic, COUNT(*) FROM person GROUP BY sex, CUBE (age, hispanic)",
    "SELECT sex, age, hispanic, COUNT(*) FROM person GROUP BY CUBE ((sex, age), hispanic)",
    'SELECT "home-state", COUNT(*) FROM person WHERE "home-state" <> \'CA\' GROUP BY "home-state"',
    "SELECT SEX, COUNT(*) FROM person WHERE Age > 3 GROUP BY Sex",
    "SELECT p.sex, COUNT(*) FROM person AS p WHERE p.age = 1 GROUP BY p.sex",
]


@pytest.mark.parametrize("sql", COUNTS)
def test_it_counts_what_a_database_counts(sql, database):
    found = database.execute(sql)
    names = [column[0].lower() for column in found.description]
    expected = {}
    for row in found.fetchall():
        values = dict(zip(names, row, strict=True))
        key = tuple(values.get(name) for name in SCHEMA)
        expected[key] = next(value for name, value in values.items() if name not in SCHEMA)
    assert ours(sql) == {key: count for key, count in expected.items() if count}


def test_products_of_grouping_sets_are_named_by_what_they_group():
    workload = hdmm.Workload(SCHEMA).add_sql("q", "SELECT COUNT(*) FROM t GROUP BY ROLLUP (age, sex)")
    assert [product.name for product in workload.products] == ["q: sex × age", "q: age", "q: total"]


def test_several_statements_are_numbered():
    workload = hdmm.Workload(SCHEMA).add_sql(
        "q", "SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t WHERE hispanic;", weight=3
    )
    assert [product.name for product in workload.products] == ["q 1", "q 2"]
    assert all(product.weight == 3 for product in workload.products)


REFUSED = {
    "SELECT SUM(age) FROM t": r"SUM\(age\) is not supported; select columns and COUNT\(\*\)",
    "SELECT COUNT(age) FROM t": r"COUNT\(age\) is not supported",
    "SELECT sex FROM t GROUP BY sex": r"selects COUNT\(\*\) once",
    "SELECT * FROM t": r"\* is not supported",
    "SELECT COUNT(*) FROM t JOIN u ON TRUE": "JOIN is not supported; write SELECT",
    "SELECT COUNT(*) FROM t, u": "JOIN is not supported",
    "SELECT COUNT(*) FROM (SELECT 1)": "sub-queries are not supported",
    "SELECT COUNT(*)": "FROM must name the records",
    "SELECT COUNT(*) FROM t WHERE age > (SELECT 1)": "sub-queries are not supported",
    "SELECT COUNT(*) FROM t GROUP BY sex HAVING COUNT(*) > 1": "HAVING is not supported",
    "SELECT COUNT(*) FROM t ORDER BY 1": "ORDER BY is not supported",
    "SELECT COUNT(*) FROM t LIMIT 1": "LIMIT is not supported",
    "SELECT DISTINCT sex, COUNT(*) FROM t": "DISTINCT is not supported",
    "WITH a AS (SELECT 1) SELECT COUNT(*) FROM t": "WITH is not supported",
    "SELECT sex, COUNT(*) FROM t": "'sex' is selected but not grouped",
    "SELECT sex, COUNT(*) FROM t GROUP BY 1": "GROUP BY 1 is not supported; name the columns",
    "SELECT sex, COUNT(*) FROM t GROUP BY ALL": "GROUP BY ALL is not supported",
    "SELECT COUNT(*) FROM t WHERE agee = 1": "'agee' is not in the schema; did you mean 'age'",
    "SELECT COUNT(*) FROM t WHERE sex = 'X'": "value 'X' is not in the domain",
    "SELECT COUNT(*) FROM t WHERE age + 1 = 2": "not an attribute",
    "SELECT sex, COUNT(*) FROM t WHERE age > 99 GROUP BY age, sex": "no value of 'age' satisfies it",
    "DELETE FROM t": "only SELECT is supported",
    "SELECT (": "not valid SQL",
    "": "there is no statement",
}


@pytest.mark.parametrize(("sql", "message"), REFUSED.items())
def test_what_is_not_a_count_is_refused(sql, message):
    with pytest.raises(WorkloadError, match=message):
        hdmm.Workload(SCHEMA).add_sql("q", sql)


def test_the_refusal_names_the_product():
    with pytest.raises(WorkloadError, match="product 'q': "):
        hdmm.Workload(SCHEMA).add_sql("q", "DELETE FROM t")


def test_a_spec_reads_sql_and_writes_what_it_means(tmp_path):
    path = tmp_path / "spec.yaml"
    sql = "SELECT sex, age, COUNT(*) FROM t WHERE age > 2 AND hispanic GROUP BY sex, age"
    schema = "schema: {sex: [F, M], age: {min: 0, max: 7}, hispanic: boolean}"
    path.write_text(f"{schema}\nworkload:\n  - {{name: q, sql: '{sql}'}}\n")
    spec = hdmm.Spec.load(path)
    assert spec.workload == hdmm.Workload(spec.schema).add_sql("q", sql)
    spec.save(tmp_path / "again.yaml")
    assert hdmm.Spec.load(tmp_path / "again.yaml") == spec


def test_a_mistake_in_sql_is_shown_with_its_line(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("schema: {sex: [F, M]}\nworkload:\n  - name: q\n    sql: SELECT SUM(sex) FROM t\n")
    with pytest.raises(hdmm.errors.SpecError, match=r"line 4: workload\[1\]\.sql: SUM\(sex\) is not supported"):
        hdmm.Spec.load(path)
