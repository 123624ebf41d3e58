"""Products are encoded by what they depend on, with all their queries in their order."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings

import hdmm
from hdmm import Custom, Identity, Prefix, Ranges, Schema, Total, Values, Where, Workload
from hdmm.workload.conditions import across
from tests.workload.test_compact import SCHEMA, unions


def written(workload: Workload) -> list[np.ndarray]:
    """The queries of every product over the full domain, straight from its predicates."""
    schema, found = workload.schema, []
    for product in workload.products:
        rows: np.ndarray = np.ones((1, 1))
        for name in schema:
            predicates = product.predicates.get(name, Total())
            rows = np.kron(rows, predicates.matrix(name, schema[name]).dense())
        if product.where is not None:
            rows = rows * across(product.where, schema).dense(schema.sizes)
        found.append(rows)
    return found


@settings(max_examples=60)
@given(workload=unions())
def test_every_query_is_the_one_that_was_asked(workload):
    for product, expected in zip(workload.encoded.products, written(workload), strict=True):
        np.testing.assert_array_equal(workload.encoded.of(product).dense(), expected)


@settings(max_examples=60)
@given(workload=unions())
def test_a_product_is_empty_just_where_it_counts_nobody(workload):
    for product, expected in zip(workload.encoded.products, written(workload), strict=True):
        assert product.empty != expected.any()
        assert product.queries == len(expected)


ALL = {
    "a range": Ranges([(0, 3)]),
    "a condition": Where("a >= 0"),
    "a negation": ~Where("a > 9"),
    "numbers": Custom([[1, 1, 1, 1]]),
    "a total twice": Total() | Total(),
    "multiples": Custom([[2, 2, 2, 2], [-1, -1, -1, -1], [0, 0, 0, 0]]),
}


@pytest.mark.parametrize("predicates", ALL.values(), ids=ALL.keys())
def test_predicates_that_count_all_values_touch_no_attribute(predicates):
    alone, beside, after = (
        Workload(SCHEMA)
        .add("alone", a=predicates)
        .add("before", a=predicates, b=Identity())
        .add("both", a=predicates, b=Prefix(), c=Total() | Total())
        .encoded.products
    )
    assert alone.axes == ()
    assert beside.axes == after.axes == (1,)
    assert alone.queries == predicates.matrix("a", SCHEMA["a"]).shape[0]
    assert after.queries == 2 * 2 * alone.queries


def test_an_attribute_of_one_value_is_never_touched():
    schema = Schema(one=["x"], two=["x", "y"])
    for predicates in (Identity(), Prefix(), Values(["x"]), ~Identity() | Total()):
        assert Workload(schema).add("q", one=predicates, two=Identity()).encoded.axes == (1,)


def test_a_condition_that_only_excludes_what_no_query_counts_makes_the_product_empty():
    either = "(a = 0 AND c) OR (a = 0 AND NOT c) OR (a = 0 AND b = 'x')"
    assert Workload(SCHEMA).add("q", a=Values([1, 2]), where=either).encoded.products[0].empty


def test_what_is_sought_leaves_out_what_counts_nobody_and_floors_weights():
    workload = Workload(SCHEMA).add("nobody", a=~Total()).add("a", a=Identity()).add("b", b=Identity(), weight="1e-9")
    a, b = workload.encoded.sought.products
    assert (a.name, b.name) == ("a", "b")
    assert a.weight == 1
    assert b.weight == pytest.approx(Fraction(1, 10**5))


def test_repeated_rows_weigh_as_often():
    workload = Workload(SCHEMA).add("twice", a=Identity(), b=Total() | Total(), weight=3)
    (sought,) = workload.encoded.sought.products
    assert sought.queries == 4
    np.testing.assert_allclose(workload.encoded.sought.gram().dense(), workload.encoded.gram().dense())


def test_where_nobody_is_counted_a_total_is_sought():
    (sought,) = Workload(SCHEMA).add("nobody", a=~Total()).encoded.sought.products
    assert sought.axes == ()
    assert not sought.empty


def test_a_bulk_of_products_is_encoded_quickly_enough_to_share_matrices():
    schema = Schema({f"a{i}": range(3) for i in range(12)})
    encoded = hdmm.marginals(schema, k=3).encoded
    assert len({id(factor) for product in encoded.products for factor in product.factors.values()}) == 12
    assert prod(encoded.products[0].shape) == 27


def test_a_negation_that_nobody_satisfies_is_exactly_zero_in_floating_point():
    matrix = (~Prefix()).matrix("a", SCHEMA["a"])
    counts = np.random.default_rng(3).normal(size=(4, 100)) * 1e6
    assert (matrix.apply(counts)[-1] == 0).all()
    np.testing.assert_allclose(matrix.apply(counts), matrix.dense() @ counts, atol=1e-6)


def test_a_condition_that_all_counted_cells_satisfy_is_none():
    either = "a = 0 OR c"
    (product,) = Workload(SCHEMA).add("q", a=Values([0]), where=either).encoded.products
    assert product.condition is None
    assert product.axes == (0,)
