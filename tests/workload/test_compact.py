"""Compaction finds fewer products for the same queries, and leaves the user's own products alone."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hdmm
from hdmm import paper
from hdmm.bounds import svd_bound
from hdmm.matrix import Gram
from hdmm.paper.census import person
from hdmm.schema import Boolean, Listed, Schema
from hdmm.workload import (
    AllRange,
    Custom,
    Encoded,
    Identity,
    Predicates,
    Prefix,
    Product,
    Ranges,
    Total,
    Values,
    Where,
    Width,
    Workload,
    marginals,
)

SCHEMA = Schema(a=range(4), b=Listed(["x", "y"], other=True), c=Boolean())
ANYWHERE: list[Predicates] = [Identity(), Total(), Identity() | Total(), Total() | Total()]
SETS: dict[str, list[Predicates]] = {
    "a": [
        *ANYWHERE,
        *(Where(f"a = {value}") for value in range(4)),
        Where("a >= 0"),
        Where("a > 9"),
        Identity("a > 1"),
        Values([0, 3]),
        Ranges([(0, 1), (1, 2)]),
        Prefix(),
        Prefix() | Total(),
        AllRange(),
        Width(2),
        ~Prefix(),
        ~Identity(),
        Custom([[1, 0, 0, 0], [0.5, -1, 0, 2]]),
        Custom([[2, 0, -1, 0]]),
    ],
    "b": [*ANYWHERE, Where("b = 'x'"), Where("b = 'y'"), Where("NOT b IN ('x', 'y')"), Prefix(), Values(["y", "x"])],
    "c": [*ANYWHERE, Where("c"), Where("NOT c"), ~Where("c"), Prefix()],
}
CONDITIONS = [None, None, None, "a = 1 OR c", "a = 1 OR b = 'x' OR c", "a = 2 AND c", "a <> 9 OR c"]


@st.composite
def unions(draw: st.DrawFn) -> Workload:
    """Products in any order, some of them more than once."""
    sets = st.fixed_dictionaries({}, optional={name: st.sampled_from(choices) for name, choices in SETS.items()})
    weights = st.sampled_from([Fraction(weight) for weight in ("1", "1", "1", "2", "1/2")])
    kinds = st.tuples(sets, weights, st.sampled_from(CONDITIONS))
    distinct = draw(st.lists(kinds, min_size=1, max_size=8))
    chosen = distinct + draw(st.lists(st.sampled_from(distinct), max_size=4))
    shuffled = draw(st.permutations(chosen))
    return Workload(SCHEMA, [Product(f"q{place}", *one) for place, one in enumerate(shuffled)])


def assert_same_gram(found: Encoded, expected: Encoded) -> None:
    np.testing.assert_allclose(found.gram().dense(), expected.gram().dense(), rtol=1e-12, atol=1e-9)


@settings(max_examples=25)
@given(workload=unions())
def test_the_gram_matrix_stays_the_same(workload):
    if all(product.empty for product in workload.encoded.products):
        return  # then a total stands in for what is sought
    assert_same_gram(workload.encoded.compact, workload.encoded)


@settings(max_examples=60)
@given(workload=unions())
def test_every_row_is_a_multiple_of_one_that_is_asked(workload):
    before, after = (found.matrix().dense().astype(float) for found in (workload.encoded, workload.encoded.compact))
    asked = {tuple(row) for row in np.round(before / abs(before).max(axis=1, keepdims=True, initial=1e-300), 9) + 0.0}
    found = {tuple(row) for row in np.round(after / abs(after).max(axis=1, keepdims=True, initial=1e-300), 9) + 0.0}
    nothing = {(0.0,) * before.shape[1]}
    assert found - nothing == asked - nothing or asked == nothing


@settings(max_examples=25)
@given(workload=unions())
def test_there_are_no_more_products(workload):
    assert len(workload.encoded.compact.products) <= len(workload.products)


@settings(max_examples=25)
@given(workload=unions())
def test_no_other_attributes_are_touched(workload):
    assert workload.encoded.compact.axes == workload.encoded.axes


@settings(max_examples=25)
@given(workload=unions())
def test_compacting_again_changes_nothing(workload):
    compact = workload.encoded.compact
    assert compact.compact is compact


@settings(max_examples=25)
@given(workload=unions(), data=st.data())
def test_the_order_of_the_products_does_not_matter(workload, data):
    shuffled = Workload(SCHEMA, data.draw(st.permutations(workload.products)))
    assert_same_gram(shuffled.encoded.compact, workload.encoded.compact)


@settings(max_examples=25)
@given(workload=unions())
def test_the_lower_bound_stays_the_same(workload):
    if any(not product.empty for product in workload.encoded.products):
        assert svd_bound(workload.encoded.compact.gram()) == pytest.approx(svd_bound(workload.encoded.gram()), rel=1e-5)


@settings(max_examples=10)
@given(workload=unions())
def test_the_products_of_the_user_stay_as_they_are(workload):
    before = workload.encoded.products
    names = [given.name for given in workload.products]
    plan = hdmm.select(workload, operators=[hdmm.baselines.Identity()])
    assert workload.encoded.products == before
    assert plan.errors(hdmm.Budget(epsilon="1"))["product"].to_pylist() == names


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_all_marginals_are_one_product(d):
    schema = Schema({f"a{axis}": range(2 + axis % 3) for axis in range(d)})
    products = list(marginals(schema, all=True).products)
    np.random.default_rng(d).shuffle(products)
    (found,) = Workload(schema, products).encoded.compact.products
    assert found.shape == tuple(size + 1 for size in schema.sizes)


def test_all_marginals_under_a_condition_are_one_product():
    cube = "SELECT COUNT(*) FROM t WHERE a = 1 OR c GROUP BY CUBE (a, b, c)"
    encoded = Workload(SCHEMA).add_sql("q", cube).encoded
    (found,) = encoded.compact.products
    assert found.condition is encoded.products[0].condition
    assert found.shape == (5, 4, 3)
    assert_same_gram(encoded.compact, encoded)


def test_a_cube_is_the_product_that_a_person_would_have_written():
    cube = Workload(SCHEMA).add_sql("q", "SELECT COUNT(*) FROM t GROUP BY CUBE (a, b, c)")
    written = Workload(SCHEMA).add("q", {name: Identity() | Total() for name in SCHEMA})
    assert len(cube.encoded.compact.products) == 1
    assert_same_gram(cube.encoded.compact, written.encoded)


def test_a_rollup_of_single_queries_is_three_products_at_most():
    """Any two of its sets differ on one attribute, but all three on two."""
    encoded = Workload(SCHEMA).add_sql("q", "SELECT COUNT(*) FROM t GROUP BY ROLLUP (a, b)").encoded
    assert len(encoded.compact.products) == 2
    assert_same_gram(encoded.compact, encoded)


def test_single_queries_of_a_cross_tabulation_are_one_product():
    cells = [
        f"SELECT COUNT(*) FROM t WHERE a = {a} AND b = '{b}' AND {c}"
        for a, b, c in product(range(4), "xy", ["c", "NOT c"])
    ]
    np.random.default_rng(1).shuffle(cells)
    (found,) = Workload(SCHEMA).add_sql("q", ";".join(cells)).encoded.compact.products
    assert found.shape == (4, 2, 2)
    assert [type(found.factors[axis]).__name__ for axis in (0, 2)] == ["Identity", "Identity"]


def test_a_cross_tabulation_that_lacks_one_cell_is_more_products():
    cells = [f"SELECT COUNT(*) FROM t WHERE a = {a} AND {c}" for a, c in product(range(4), ["c", "NOT c"])][1:]
    encoded = Workload(SCHEMA).add_sql("q", ";".join(cells)).encoded
    assert len(encoded.compact.products) == 2
    assert_same_gram(encoded.compact, encoded)


def test_the_order_of_the_attributes_that_gives_fewest_products_is_found():
    """Merged first along a, the attribute of more values, these cells are three products."""
    schema = Schema(a=range(4), b=range(3))
    cells = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]
    statements = [f"SELECT COUNT(*) FROM t WHERE a = {a} AND b = {b}" for a, b in cells]
    encoded = Workload(schema).add_sql("q", ";".join(statements)).encoded
    assert sorted(found.shape for found in encoded.compact.products) == [(2, 2), (2, 2)]
    assert_same_gram(encoded.compact, encoded)


def test_queries_that_are_asked_twice_count_twice():
    encoded = Workload(SCHEMA).add("p", a=Identity()).add("q", a=Identity()).encoded
    (found,) = encoded.compact.products
    np.testing.assert_array_equal(found.grams[0].dense(), 2 * np.eye(4))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"weight": 1}, {"weight": 2}),
        ({"weight": "1/2"}, {"weight": "1/3"}),
        ({"where": "a = 1 OR c"}, {}),
        ({"where": "a = 1 OR c"}, {"where": "a = 2 OR c"}),
    ],
    ids=["weights", "fractions", "one condition", "two conditions"],
)
def test_different_weights_and_conditions_are_not_mixed_up(first, second):
    encoded = Workload(SCHEMA).add("p", b=Identity(), **first).add("q", b=Total(), **second).encoded
    assert len(encoded.compact.products) == 2
    assert_same_gram(encoded.compact, encoded)


def test_weights_that_are_equal_are_merged():
    encoded = Workload(SCHEMA).add("p", b=Identity(), weight="0.5").add("q", weight="1/2").encoded
    (found,) = encoded.compact.products
    assert found.weight == Fraction(1, 2)


def test_structure_is_kept_beside_rows_that_are_written_out():
    schema = Schema(a=range(2000), c=Boolean())
    encoded = Workload(schema).add("p", a=Prefix()).add("q", a=Identity()).add("r", a=Where("a = 7")).add("s").encoded
    (found,) = encoded.compact.products
    assert found.shape == (2000 + 2000 + 1 + 1,)
    x = np.random.default_rng(0).normal(size=4000)
    np.testing.assert_allclose(encoded.compact.gram().apply(x), encoded.gram().apply(x), rtol=1e-9)


def test_one_value_is_all_values():
    encoded = Workload(Schema(a=["x"], b=range(3))).add("p", a=Identity()).add("q", b=Identity()).add("r").encoded
    assert len(encoded.compact.products) == 1
    assert_same_gram(encoded.compact, encoded)


def test_tables_have_the_names_places_and_rows_of_the_user():
    workload = (
        Workload(SCHEMA)
        .add("second half", a=Where("a >= 2"), c=Identity())
        .add("total")
        .add("first half", a=Where("a < 2"), c=Identity())
        .add("either", b=Identity(), where="a = 1 OR c")
    )
    assert len(workload.encoded.compact.products) < len(workload.products)
    plan = hdmm.select(workload, operators=[hdmm.baselines.Plain()])
    measured = tuple(np.arange(block.queries) + 100 * place for place, block in enumerate(plan.mechanism.blocks))
    release = hdmm.Release(plan, hdmm.Budget(epsilon="1"), measured)
    assert [name for name, _ in release.tables()] == ["second half", "total", "first half", "either"]
    assert release.table("first half")["a"].to_pylist() == ["a < 2"] * 2
    assert release.table("first half", estimator="local")["answer"].to_pylist() == [200, 201]
    assert release.table("either", estimator="local")["answer"].to_pylist() == [300, 301, 302]


def test_nothing_compacts_to_nothing():
    assert Workload(SCHEMA).encoded.compact.products == ()


def test_a_bound_that_is_known_stays_known_on_large_attributes():
    encoded = marginals(Schema(a=range(5000), b=range(3)), all=True).encoded
    assert svd_bound(encoded.compact.gram()) == pytest.approx(svd_bound(encoded.gram()))


def bilinear(gram: Gram, left: list[np.ndarray], right: list[np.ndarray]) -> float:
    """xᵀGy for vectors x and y that are Kronecker products."""
    return sum(
        term.coefficient
        * prod(float(x @ gram.at(term, axis).apply(y)) for axis, (x, y) in enumerate(zip(left, right, strict=True)))
        for term in gram.terms
    )


def assert_same_on_separable_vectors(found: Encoded, expected: Encoded, count: int = 4) -> None:
    rng = np.random.default_rng(9)
    for _ in range(count):
        left, right = ([rng.normal(size=size) + 0.3 for size in expected.sizes] for _ in range(2))
        value = bilinear(expected.gram(), left, right)
        assert bilinear(found.gram(), left, right) == pytest.approx(value, rel=1e-9)


@pytest.fixture(scope="module")
def national() -> Encoded:
    """The 4151 statements of SF1 in random order."""
    statements = paper.sf1_sql()
    np.random.default_rng(2).shuffle(statements)
    return Workload(person()).add_sql("SF1", ";\n".join(statements)).encoded


def test_the_census_becomes_as_few_products_as_the_paper_found_by_hand(national):
    assert len(national.products) == national.query_count == 4151
    assert len(national.compact.products) <= 32


def test_the_compacted_census_has_the_gram_matrix_of_its_tables(national):
    assert_same_on_separable_vectors(national.compact, paper.sf1().encoded)


def test_the_statements_of_the_census_have_the_gram_matrix_of_its_tables(national):
    assert_same_on_separable_vectors(national, paper.sf1().encoded, count=1)


def test_national_and_state_queries_in_any_order_become_few_products():
    """All statements of 100 queries, each national and grouped by state."""
    statements = paper.sf1_plus_sql()
    rng = np.random.default_rng(4)
    chosen = [statements[2 * place + form] for place in rng.permutation(4151)[:100] for form in (0, 1)]
    rng.shuffle(chosen)
    encoded = Workload(person(state=True)).add_sql("SF1+", ";\n".join(chosen)).encoded
    compact = encoded.compact
    assert encoded.query_count == compact.query_count == 100 * 52
    assert len(compact.products) <= 50
    assert all(found.factors[5].shape[0] == 52 for found in compact.products)
    assert_same_on_separable_vectors(compact, encoded)


def test_tables_of_marginals_of_the_same_width_are_not_made_more():
    """The pairs of many attributes have no product in common: at least one for each set of the rest."""
    schema = Schema({f"a{axis}": range(2) for axis in range(6)})
    encoded = marginals(schema, k=2).encoded
    assert len(encoded.compact.products) <= len(list(combinations(range(6), 2)))
    assert_same_gram(encoded.compact, encoded)
