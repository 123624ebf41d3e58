"""Random conditions across attributes count the records for which they are true, under every strategy."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from itertools import product as combinations
from operator import contains, eq, ge, gt, le, lt, ne
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hdmm import matrix
from hdmm.accuracy.predict import accuracy
from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import Dense
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import Calibration
from hdmm.schema import Boolean, Integers, Listed, Schema
from hdmm.strategy import Block, Strategy, sensitivity
from hdmm.workload import Identity, Predicates, Prefix, Total, Where, Workload
from tests.contract.zoo import noise_for

OTHER, MISSING = "other", "missing"
FULL = Schema(a=Integers(0, 3), b=Listed(["x", "y", "z"], other=True, missing=True), c=Boolean())
VALUES: dict[str, list[Any]] = {"a": [0, 1, 2, 3], "b": ["x", "y", "z", OTHER, MISSING], "c": [False, True]}
"""The value of every cell."""
PLAIN = Schema(a=Integers(0, 3), b=Listed(["x", "y", "z"]), c=Boolean())
"""Without cells that a database has no word for."""
BUDGET = Budget(epsilon=1, delta="1e-6")
RECORDS = np.random.default_rng(5).integers(0, PLAIN.sizes, (150, 3))

Record = dict[str, Any]
Truth = Callable[[Record], bool | None]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True)
class Condition:
    """A condition as SQL, and its truth as a function of a record; None is unknown."""

    sql: str
    truth: Truth


def opposite(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def every(truths: Iterable[bool | None]) -> bool | None:
    found = list(truths)
    return False if False in found else None if None in found else True


def literal(value: Any) -> str:
    return repr(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else str(value).lower()


@st.composite
def leaves(draw: st.DrawFn, names: str = "abc") -> Condition:
    """A comparison, IN or BETWEEN on one attribute; other values differ from every declared one, and have no order."""
    name = draw(st.sampled_from(names))
    known = [value for value in VALUES[name] if value not in (OTHER, MISSING)]
    kind = draw(
        st.sampled_from(["compare", "flipped", "in", "not in", "between"] if name != "c" else ["bare", "equal"])
    )
    one, two = draw(st.sampled_from(known)), draw(st.sampled_from(known))

    def on(test: Callable[[Any], bool], *, other: bool | None = None) -> Truth:
        fixed = {OTHER: other, MISSING: None}
        return lambda record: fixed[record[name]] if record[name] in (OTHER, MISSING) else test(record[name])

    different = {"=": False, "<>": True}
    match kind:
        case "bare":
            return Condition(name, lambda record: record[name])
        case "equal":
            return Condition(f"{name} = {literal(one)}", on(lambda value: bool(value == one)))
        case "compare":
            operator = draw(st.sampled_from(list(COMPARE)))
            test = on(lambda value: COMPARE[operator](value, one), other=different.get(operator))
            return Condition(f"{name} {operator} {literal(one)}", test)
        case "flipped":
            operator = draw(st.sampled_from(list(COMPARE)))
            test = on(lambda value: COMPARE[operator](one, value), other=different.get(operator))
            return Condition(f"{literal(one)} {operator} {name}", test)
        case "between":
            return Condition(f"{name} BETWEEN {literal(one)} AND {literal(two)}", on(lambda value: one <= value <= two))
    inside = on(lambda value: value in (one, two), other=False)
    if kind == "in":
        return Condition(f"{name} IN ({literal(one)}, {literal(two)})", inside)
    return Condition(f"{name} NOT IN ({literal(one)}, {literal(two)})", lambda record: opposite(inside(record)))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 4) -> Condition:
    """AND, OR and NOT of conditions, nested to a depth."""
    kind = draw(st.sampled_from(["leaf", "not", "and", "or", "and", "or"])) if depth else "leaf"
    if kind == "leaf":
        return draw(leaves())
    if kind == "not":
        inner = draw(conditions(depth=depth - 1))
        return Condition(f"NOT ({inner.sql})", lambda record: opposite(inner.truth(record)))
    parts = draw(st.lists(conditions(depth=depth - 1), min_size=2, max_size=2 + (depth == 1)))
    sql = f" {kind.upper()} ".join(f"({part.sql})" for part in parts)
    if kind == "and":
        return Condition(sql, lambda record: every(part.truth(record) for part in parts))
    return Condition(sql, lambda record: opposite(every(opposite(part.truth(record)) for part in parts)))


@st.composite
def disjunctions(draw: st.DrawFn) -> Condition:
    """One comparison on each attribute, joined by OR: everything minus one product, where nothing always holds."""
    parts = [draw(leaves(name)) for name in "abc"]
    sql = " OR ".join(part.sql for part in parts)
    return Condition(sql, lambda record: opposite(every(opposite(part.truth(record)) for part in parts)))


@dataclass(frozen=True)
class Sets:
    """A predicate set on one attribute, and each of its predicates as a function of the value."""

    predicates: Predicates
    tests: list[Callable[[Any], bool]]


def each(name: str, schema: Schema) -> Sets:
    return Sets(Identity(), [partial(eq, kept) for kept in VALUES[name][: schema[name].size]])


SETS: dict[str, list[Sets]] = {
    "a": [
        each("a", FULL),
        Sets(Prefix(), [partial(ge, end) for end in range(4)]),
        Sets(Where("a <> 2"), [lambda value: value != 2]),
        Sets(Identity() | Total(), [*each("a", FULL).tests, lambda value: True]),
    ],
    "b": [
        each("b", FULL),
        Sets(Where("NOT b = 'x'"), [lambda value: value not in ("x", MISSING)]),
        Sets(Prefix(), [partial(contains, "xyz"[: end + 1]) for end in range(3)]),
    ],
    "c": [each("c", FULL), Sets(Where("c"), [lambda value: value])],
}


@dataclass(frozen=True)
class Asked:
    """A product as it is asked, and its rows over all records' cells by evaluating every record."""

    sets: dict[str, Predicates]
    where: str | None
    weight: Fraction
    rows: np.ndarray


def rows_of(schema: Schema, tests: dict[str, list[Callable[[Any], bool]]], truth: Truth | None) -> np.ndarray:
    names = list(schema)
    cells = list(combinations(*(VALUES[name][: schema[name].size] for name in names)))
    holds = [truth is None or truth(dict(zip(names, cell, strict=True))) is True for cell in cells]
    every = [tests.get(name, [lambda value: True]) for name in names]
    rows = [
        [
            held and all(test(value) for test, value in zip(chosen, cell, strict=True))
            for cell, held in zip(cells, holds, strict=True)
        ]
        for chosen in combinations(*every)
    ]
    return np.array(rows, np.int64)


@st.composite
def asked(draw: st.DrawFn, conjunctive: bool = False) -> Asked:
    condition = None if conjunctive else draw(conditions() | disjunctions())
    chosen = {
        name: draw(st.sampled_from(SETS[name]))
        for name in draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3))
    }
    weight = draw(st.sampled_from([Fraction(1), Fraction(3), Fraction(1, 2)]))
    truth, sql = (None, None) if condition is None else (condition.truth, condition.sql)
    rows = rows_of(FULL, {name: one.tests for name, one in chosen.items()}, truth)
    assume(rows_of(FULL, {}, truth).any())
    return Asked({name: one.predicates for name, one in chosen.items()}, sql, weight, rows)


def workload_of(products: list[Asked]) -> Workload:
    workload = Workload(FULL)
    for place, one in enumerate(products):
        workload = workload.add(f"q{place}", one.sets, weight=one.weight, where=one.where)
    return workload


MIXED = st.tuples(asked(), asked(), asked(conjunctive=True)).map(list)


@settings(max_examples=40)
@given(one=asked())
def test_a_product_counts_the_records_for_which_its_condition_is_true(one):
    encoded = workload_of([one]).encoded
    np.testing.assert_array_equal(encoded.of(encoded.products[0]).dense(), one.rows)


@settings(max_examples=20)
@given(products=MIXED)
def test_the_gram_matrix_is_that_of_the_rows_written_out(products):
    expected = sum(float(one.weight) ** 2 * one.rows.T @ one.rows for one in products)
    np.testing.assert_allclose(workload_of(products).encoded.gram().dense(), expected, atol=1e-9)


@settings(max_examples=30)
@given(condition=conditions())
def test_a_condition_that_nobody_can_satisfy_counts_nobody_and_only_such_a_one(condition):
    (product,) = Workload(FULL).add("q", where=condition.sql).encoded.products
    assert product.empty != rows_of(FULL, {}, condition.truth).any()
    assert product.queries == 1


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE person (a INTEGER, b TEXT, c BOOLEAN)")
        rows = [[VALUES[name][code] for name, code in zip("abc", record, strict=True)] for record in RECORDS.tolist()]
        connection.executemany("INSERT INTO person VALUES (?, ?, ?)", rows)
        yield connection


@settings(max_examples=30)
@given(condition=conditions(), grouped=st.lists(st.sampled_from("abc"), unique=True, max_size=2))
def test_sql_counts_what_a_database_counts(database, condition, grouped):
    sql = f"SELECT {''.join(f'{name}, ' for name in grouped)}COUNT(*) FROM person WHERE {condition.sql}"
    sql += f" GROUP BY {', '.join(grouped)}" if grouped else ""
    assume(rows_of(PLAIN, {}, condition.truth).any())  # else it is refused: see above
    workload = Workload(PLAIN).add_sql("q", sql)
    (product,) = workload.encoded.products
    counts = np.bincount(np.ravel_multi_index(tuple(RECORDS.T), PLAIN.sizes), minlength=PLAIN.cells)
    answers = workload.encoded.of(product).apply(counts)
    names = [name for name in PLAIN if name in grouped]
    labels = [workload.products[0].predicates[name].labels(name, PLAIN[name]) for name in names]
    ours = {values: count for values, count in zip(combinations(*labels), answers.tolist(), strict=True) if count}
    order = [grouped.index(name) for name in names]
    expected = {tuple(row[place] for place in order): row[-1] for row in database.execute(sql).fetchall()}
    assert ours == {values: count for values, count in expected.items() if count}


def test_what_is_asked_twice_is_answered_from_where_it_is_measured_best():
    where = "a = 1 OR b = 'x' OR c"
    workload = Workload(FULL).add("light", where=where).add("heavy", where=where, weight=3)
    estimator = local_least_squares(Strategy(FULL.sizes, blocks_of(workload), "direct"))
    assert [estimator.squared_error(product, [9.0, 1.0]) for product in workload.encoded.products] == [1, 1]


MANY = Schema({f"x{place}": range(3) for place in range(8)})


@pytest.mark.parametrize("k", range(2, 9))
def test_a_disjunction_of_k_attributes_takes_two_terms(k):
    where = " OR ".join(f"x{place} = 1" for place in range(k))
    (product,) = Workload(MANY).add("q", where=where).encoded.products
    assert product.condition is not None
    assert len(product.condition.boxes) == 2
    assert len(product.terms) == 4


@pytest.mark.parametrize("k", range(1, 9))
def test_a_conjunction_of_k_attributes_is_a_product_without_condition(k):
    where = " AND ".join(f"NOT x{place} = 1" for place in range(k))
    (product,) = Workload(MANY).add("q", where=where).encoded.products
    assert product.condition is None
    assert product.axes == tuple(range(k))


@pytest.mark.parametrize(
    ("where", "terms"),
    [
        ("NOT (x0 = 1 AND x1 = 1 AND x2 = 1)", 2),
        ("(x0 = 1 AND x1 = 1) OR (x2 = 1 AND x3 = 1)", 3),
        ("(x0 = 1 AND x1 = 2) OR (NOT x0 = 1 AND x1 = 0)", 2),
        ("(x0 = 0 AND x1 = 0) OR (x0 = 1 AND x1 = 1) OR (x0 = 2 AND x1 = 2)", 3),
        ("x0 = 1 OR (x1 = 1 AND NOT (x2 = 1 OR x0 = 1))", 2),
    ],
)
def test_few_terms_are_enough(where, terms):
    (product,) = Workload(MANY).add("q", where=where).encoded.products
    assert product.condition is not None
    assert len(product.condition.boxes) == terms


def kron_strategy(rng: np.random.Generator) -> Strategy:
    """A product of random integer factors of full rank, one of them with more rows than columns."""
    factors = []
    for size in FULL.sizes:
        entries = rng.integers(-2, 3, (size + 1, size))
        entries[:size] = np.triu(entries[:size], 1) + np.diag(rng.integers(1, 4, size))
        factors.append(Dense(entries))
    return Strategy(FULL.sizes, (Block((0, 1, 2), tuple(factors)),), "kron")


def marginal_strategy(rng: np.random.Generator) -> Strategy:
    """The full table and some random marginals beside it, of random weights."""
    sets = [(0, 1, 2), *(axes for axes in [(), (0,), (1, 2), (0, 1), (2,)] if rng.random() < 0.5)]
    blocks = [
        Block(axes, tuple(matrix.Identity(FULL.sizes[axis]) for axis in axes), Fraction(int(rng.integers(1, 5)), 2))
        for axes in sets
    ]
    return Strategy(FULL.sizes, tuple(blocks), "marginal")


def blocks_of(workload: Workload) -> tuple[Block, ...]:
    encoded = workload.encoded.products
    return tuple(Block(p.axes, tuple(p.factors.values()), p.weight, p.condition) for p in encoded)


def written_out(block: Block) -> np.ndarray:
    """A block without condition over all cells."""
    factors = dict(zip(block.axes, block.factors, strict=True))
    parts = [factors[axis].dense() if axis in factors else np.ones((1, n)) for axis, n in enumerate(FULL.sizes)]
    return reduce(np.kron, parts)


def least_squares(strategy: Strategy, noise: Calibration) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All queries of a strategy, the variance of each, and the estimator of every cell."""
    blocks = [written_out(block) for block in strategy.blocks]
    variances = np.repeat(noise.variances, [len(rows) for rows in blocks])
    queries = np.vstack(blocks)
    spread = np.sqrt(variances)
    return queries, variances, np.linalg.pinv(queries / spread[:, None], rcond=1e-10) / spread


@pytest.mark.parametrize("family", [kron_strategy, marginal_strategy])
@settings(max_examples=20)
@given(products=MIXED, seed=st.integers(0, 2**32 - 1))
def test_estimates_and_errors_are_those_of_least_squares(family, products, seed):
    rng = np.random.default_rng(seed)
    strategy, workload = family(rng), workload_of(products)
    noise = noise_for(strategy.blocks, "gaussian", BUDGET)
    queries, variances, inverse = least_squares(strategy, noise)
    estimator = local_least_squares(strategy)
    measured = queries @ rng.integers(0, 50, FULL.cells) + rng.integers(-9, 9, len(queries))
    ends = np.cumsum([block.queries for block in strategy.blocks])[:-1]
    state = estimator.reconstruct(np.split(measured, ends), noise.variances)
    for one, product in zip(products, workload.encoded.products, strict=True):
        assert estimator.supports(product)
        rows = one.rows @ inverse
        np.testing.assert_allclose(estimator.answer(product, state), rows @ measured, atol=1e-7)
        expected = rows**2 @ variances
        found = accuracy(estimator, product, noise)
        np.testing.assert_allclose(found.expand(found.stderr) ** 2, expected, rtol=1e-8, atol=1e-9)
        assert estimator.squared_error(product, noise.variances) == pytest.approx(expected.sum())


@settings(max_examples=25)
@given(products=MIXED, p=st.sampled_from([1, 2]))
def test_the_sensitivity_of_measuring_products_as_they_are_is_exact(products, p):
    columns = sum(one.weight**p * (abs(one.rows) ** p).sum(axis=0).astype(object) for one in products)
    found = sensitivity(blocks_of(workload_of(products)), p)
    assert isinstance(found, int | Fraction)
    assert found == (max(columns) or 1)


@settings(max_examples=20)
@given(products=MIXED, seed=st.integers(0, 2**32 - 1))
def test_a_product_measured_as_it_is_answers_with_its_noise(products, seed):
    workload = workload_of(products)
    strategy = Strategy(FULL.sizes, blocks_of(workload), "direct")
    estimator = local_least_squares(strategy)
    noise = noise_for(strategy.blocks, "gaussian", BUDGET)
    records = np.random.default_rng(seed).integers(0, 50, FULL.cells).reshape(FULL.sizes)
    measured = []
    for block in strategy.blocks:
        others = tuple(axis for axis in range(len(FULL)) if axis not in block.axes)
        measured.append(block.matrix.apply(records.sum(axis=others).reshape(-1)))
    state = estimator.reconstruct(measured, noise.variances)
    for one, product, own in zip(products, workload.encoded.products, noise.variances, strict=True):
        np.testing.assert_array_equal(estimator.answer(product, state), one.rows @ records.reshape(-1))
        found = accuracy(estimator, product, noise)
        (variance,) = np.unique(found.stderr**2)
        # What is asked twice may be answered from where it is measured best.
        twice = [v for v, other in zip(noise.variances, products, strict=True) if np.array_equal(other.rows, one.rows)]
        assert any(variance == pytest.approx(v) for v in twice)
        assert variance <= own * (1 + 1e-9)
        assert estimator.squared_error(product, noise.variances) == pytest.approx(len(one.rows) * variance)
