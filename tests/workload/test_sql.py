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
    "SELECT sex, COUNT(1) FROM person WHERE 1 = 1 GROUP BY 1 ORDER BY 2 DESC, sex",
    "SELECT age, sex, COUNT(*) AS n FROM person GROUP BY ALL ORDER BY n",
    "SELECT sex, COUNT(age) FROM person GROUP BY sex",
    "SELECT sex, COUNT(CASE WHEN age > 3 THEN 1 END) FROM person GROUP BY sex",
    "SELECT sex, COUNT(*) FILTER (WHERE age > 3) FROM person WHERE hispanic GROUP BY sex",
    "SELECT sex, COUNT_IF(age > 3) FROM person GROUP BY sex",
    "SELECT COUNT(*) FROM person WHERE LOWER(sex) = 'f' AND \"home-state\" LIKE '_Y'",
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


GROUPED = {
    "arithmetic": ("SELECT age / 3, COUNT(*) FROM t GROUP BY age / 3", {"age / 3": [0, 1, 2]}),
    "arithmetic by its place": ("SELECT age % 3, COUNT(*) FROM t GROUP BY 1", {"age % 3": [0, 1, 2]}),
    "an alias": ("SELECT age / 3 AS third, COUNT(*) FROM t GROUP BY third", {"third": [0, 1, 2]}),
    "an alias of an attribute": ("SELECT sex AS gender, COUNT(*) FROM t GROUP BY sex", {"gender": ["F", "M"]}),
    "an attribute before an alias": ("SELECT sex AS s, COUNT(*) AS age FROM t GROUP BY s, age % 4 / 2", {
        "s": ["F", "F", "M", "M"], "(age % 4) / 2": [0, 1, 0, 1]
    }),
    "CASE": (
        "SELECT CASE WHEN age < 2 THEN 'low' WHEN age < 5 THEN 'middle' ELSE 'high' END AS level, COUNT(*) FROM t "
        "GROUP BY 1",
        {"level": ["low", "middle", "high"]},
    ),
    "CASE without ELSE": (
        "SELECT CASE WHEN age < 2 THEN 'low' END AS level, COUNT(*) FROM t GROUP BY level",
        {"level": ["low", "missing"]},
    ),
    "a condition": ("SELECT age >= 2, COUNT(*) FROM t GROUP BY age >= 2", {"age >= 2": [False, True]}),
    "decimals": ("SELECT age / 4.0 AS q, COUNT(*) FROM t WHERE age < 3 GROUP BY q", {"q": [0, 0.25, 0.5]}),
    "whole decimals": ("SELECT FLOOR(age / 4.0) * 4 AS q, COUNT(*) FROM t GROUP BY q", {"q": [0, 4]}),
    "texts": ("SELECT LOWER(sex) AS s, COUNT(*) FROM t GROUP BY 1", {"s": ["f", "m"]}),
    "one attribute in two ways": (
        "SELECT age / 4 AS half, age % 2 AS odd, COUNT(*) FROM t GROUP BY half, odd",
        {"half": [0, 0, 1, 1], "odd": [0, 1, 0, 1]},
    ),
    "an attribute beside what is coarser": (
        "SELECT age, age / 2, COUNT(*) FROM t WHERE age >= 5 GROUP BY age, age / 2",
        {"age": [5, 6, 7], "age / 2": [2, 3, 3]},
    ),
    "names however they are written": ("SELECT AGE/3, COUNT(*) FROM t GROUP BY t.age / 3", {"age / 3": [0, 1, 2]}),
    "backticks": ("SELECT `home-state`, COUNT(*) FROM t GROUP BY `home-state`", {"home-state": ["CA", "NY", "TX"]}),
}  # fmt: skip


def columns_of(sql: str, schema: hdmm.Schema = SCHEMA) -> dict[str, list]:
    """The labels of the table of a statement, column by column, without the answers."""
    plan = hdmm.select(hdmm.Workload(schema).add_sql("q", sql), operators=[hdmm.baselines.Identity()])
    measured = tuple(np.zeros(block.queries, np.int64) for block in plan.mechanism.blocks)
    table = hdmm.Release(plan, hdmm.Budget(epsilon="1"), measured).table("q")
    names = [name for name in table.column_names if name not in ("answer", "stderr", "low", "high")]
    return {name: table[name].to_pylist() for name in names}


@pytest.mark.parametrize(("sql", "columns"), GROUPED.values(), ids=GROUPED)
def test_a_table_has_the_columns_and_groups_that_were_asked_for(sql, columns):
    assert columns_of(sql) == columns


EXTRA = hdmm.Schema(
    age=hdmm.Integers(0, 3, other=True, missing=True, levels={"age group": {"low": [0, 1], "high": [2, 3]}}),
    sex=["F", "M"],
)


def test_a_level_keeps_its_name_as_its_column():
    sql = 'SELECT "age group", COUNT(*) FROM t GROUP BY "age group"'
    assert columns_of(sql, EXTRA) == {"age group": ["low", "high", "other", "missing"]}


def test_other_and_missing_values_are_groups_of_an_expression():
    sql = "SELECT age / 2 AS half, COUNT(*) FROM t GROUP BY half"
    assert columns_of(sql, EXTRA) == {"half": ["0", "1", "other", "missing"]}


def test_count_of_a_column_leaves_out_what_is_missing():
    workload = hdmm.Workload(EXTRA).add_sql("q", "SELECT COUNT(age) FROM t")
    (product,) = workload.encoded.products
    assert workload.encoded.of(product).dense().tolist() == [[1] * 10 + [0] * 2]


def test_a_level_that_is_named_like_a_column_of_answers_has_the_column_of_its_attribute():
    schema = hdmm.Schema(age=hdmm.Integers(0, 1, levels={"low": {"x": [0], "y": [1]}}))
    assert columns_of("SELECT low, COUNT(*) FROM t GROUP BY low", schema) == {"age": ["x", "y"]}


REFUSED = {
    "SELECT SUM(age) FROM t": r"SUM\(age\): only counts are answered; select COUNT\(\*\)",
    "SELECT AVG(age), COUNT(*) FROM t": r"AVG\(age\): only counts are answered",
    "SELECT SUM(age) FILTER (WHERE age > 1) FROM t": r"SUM\(age\): only counts are answered",
    "SELECT COUNT(DISTINCT age) FROM t": "only records are counted, not different values",
    "SELECT COUNT(NULL) FROM t": r"COUNT\(NULL\) is not supported; select COUNT\(\*\)",
    "SELECT COUNT(age, sex) FROM t": "or COUNT of one column",
    "SELECT COUNT(*), COUNT(age) FROM t": "two counts are selected; write a statement for each",
    "SELECT COUNT(*) + 1 FROM t": r"select COUNT\(\*\) alone, and compute the rest from the table",
    "SELECT COUNT(*) OVER () FROM t": "window functions are not supported; ask for the counts",
    "SELECT sex FROM t GROUP BY sex": r"nothing is counted; select COUNT\(\*\) beside the columns",
    "SELECT * FROM t": r"\* is not supported; name the columns",
    "SELECT (SELECT 1), COUNT(*) FROM t": "sub-queries are not supported; make a view",
    "SELECT 'x', COUNT(*) FROM t": "it is the same for all records; leave it out",
    "SELECT age AS a, sex AS a, COUNT(*) FROM t GROUP BY 1, 2": "two columns are called 'a'",
    "SELECT sex AS age, age, COUNT(*) FROM t GROUP BY 1, 2": "two columns 'age'; name one of them otherwise",
    "SELECT sex AS answer, COUNT(*) FROM t GROUP BY sex": "two columns 'answer'; name one of them otherwise",
    "SELECT COUNT(*) FROM t JOIN u ON TRUE": "JOIN is not supported; join the tables in a view",
    "SELECT COUNT(*) FROM t, u": "JOIN is not supported; join the tables in a view",
    "SELECT COUNT(*) FROM (SELECT 1)": "sub-queries are not supported: make a view",
    "SELECT COUNT(*) FROM read_csv('x')": "FROM must name the records",
    "SELECT COUNT(*) FROM t TABLESAMPLE (10 PERCENT)": "name the records alone",
    "SELECT COUNT(*)": "FROM must name the records",
    "SELECT COUNT(*) FROM t WHERE age > (SELECT 1)": "sub-queries are not supported; write the values",
    "SELECT COUNT(*) FROM t GROUP BY sex HAVING COUNT(*) > 1": "HAVING is not supported; leave it out",
    "SELECT COUNT(*) FROM t ORDER BY age": "ORDER BY 'age': it is not in the query; leave it out",
    "SELECT COUNT(*) FROM t ORDER BY 2": "ORDER BY 2: positions go from 1 to 1",
    "SELECT COUNT(*) FROM t LIMIT 1": "LIMIT is not supported; leave it out, since every group is answered, and sort",
    "SELECT DISTINCT sex, COUNT(*) FROM t": "DISTINCT is not supported; leave it out",
    "WITH a AS (SELECT 1) SELECT COUNT(*) FROM t": "WITH is not supported; make a view of it",
    "SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM u": "UNION is not supported; write the statements one after",
    "SELECT sex, COUNT(*) FROM t": "'sex' is selected but not grouped",
    "SELECT age / 2, COUNT(*) FROM t GROUP BY age": "'age / 2' is selected but not grouped",
    "SELECT sex, COUNT(*) FROM t GROUP BY 3": "GROUP BY 3: positions go from 1 to 2; name the columns",
    "SELECT sex, COUNT(*) FROM t GROUP BY 2": "GROUP BY 2: that is the count; group by columns",
    "SELECT COUNT(*) FROM t GROUP BY frob(age)": "not a function that hdmm knows; use ABS",
    "SELECT COUNT(*) FROM t GROUP BY SUM(age)": "only counts are answered",
    "SELECT COUNT(*) FROM t GROUP BY CASE WHEN sex = 'F' THEN age END": "it is about 'sex' and 'age'; group",
    "SELECT COUNT(*) FROM t GROUP BY CASE WHEN age > 9 THEN 'a' WHEN age > 5 THEN 'missing' END": "label of NULL",
    "SELECT COUNT(*) FROM t WHERE agee = 1": "'agee' is not in the schema; did you mean 'age'",
    "SELECT COUNT(*) FROM t WHERE sex = 'X'": "value 'X' is not in the domain",
    "SELECT COUNT(*) FROM t WHERE age = sex": "'age' and 'sex' are attributes of their own",
    "SELECT sex, COUNT(*) FROM t WHERE age > 99 GROUP BY age, sex": "no value of 'age' satisfies it",
    "SELECT age / 2, COUNT(*) FROM t WHERE age > 99 GROUP BY 1": "no value of 'age' satisfies it",
    "SELECT SUM(CASE WHEN age > 3 THEN 1 ELSE 0 END) FROM t": r"select COUNT\(\*\) FILTER \(WHERE",
    'SELECT COUNT(*) FROM t WHERE "home-state" = "CA"': "as a value of 'home-state' it is written in single quotes",
    "SELECT COUNT(*) FROM t WHERE home-state = 'CA'": 'write a name with such signs in double quotes: "home-state"',
    "SELECT COUNT(*) FROM t WHERE GREATEST(age, 3) = 3": "is not supported; use CASE WHEN",
    "SELECT COUNT(*) FROM t WHERE starts_with(sex, 'F')": "is not supported; use LIKE",
    "SELECT WIDTH_BUCKET(age, 0, 8, 4), COUNT(*) FROM t GROUP BY 1": "use arithmetic such as age / 10",
    "DELETE FROM t": "only SELECT is supported",
    "SELECT (": "not valid SQL",
    "": "there is no statement",
}


@pytest.mark.parametrize(("sql", "message"), REFUSED.items())
def test_what_is_not_a_count_is_refused(sql, message):
    with pytest.raises(WorkloadError, match=message):
        hdmm.Workload(SCHEMA).add_sql("q", sql)


LABELS = {
    "age NOT IN (1, 2)": "age NOT IN (1, 2)",
    "NOT age IN (1, 2)": "age NOT IN (1, 2)",
    "t.age NOT BETWEEN 1 AND 2": "age NOT BETWEEN 1 AND 2",
    "age IS NOT NULL": "age IS NOT NULL",
    "(age > 1) IS NOT TRUE": "(age > 1) IS NOT TRUE",
    "NOT age = 1": "NOT age = 1",
}


@pytest.mark.parametrize(("condition", "label"), LABELS.items())
def test_a_condition_is_labelled_as_people_write_it(condition, label):
    (product,) = hdmm.Workload(SCHEMA).add_sql("q", f"SELECT COUNT(*) FROM t WHERE {condition}").products
    assert product.predicates["age"].labels("age", SCHEMA["age"]) == [label]


def test_a_date_is_labelled_as_it_was_written():
    schema = hdmm.Schema(day=hdmm.Dates("2021-01-01", "2021-12-31"))
    (product,) = hdmm.Workload(schema).add_sql("q", "SELECT COUNT(*) FROM t WHERE day > DATE '2021-03-01'").products
    assert product.predicates["day"].labels("day", schema["day"]) == ["day > DATE '2021-03-01'"]


def test_a_function_that_cannot_be_written_prints_nothing(caplog):
    schema = hdmm.Schema(day=hdmm.Dates("2021-01-01", "2021-12-31"))
    with pytest.raises(WorkloadError):
        hdmm.Workload(schema).add_sql("q", "SELECT to_char(day, 'YYYY-MM'), COUNT(*) FROM t GROUP BY 1")
    assert caplog.records == []


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
    with pytest.raises(
        hdmm.errors.SpecError, match=r"line 4: workload\[1\]\.sql: SUM\(sex\): only counts are answered"
    ):
        hdmm.Spec.load(path)
