"""Workloads of marginals: which sets of attributes they hold, how these are named, and the counts of the paper."""

from importlib import import_module
from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.errors import TooLargeError, WorkloadError
from hdmm.schema import Schema
from hdmm.workload import Identity, Prefix, Product, Total, Workload, marginals

PERSON = Schema(sex=["F", "M"], age=range(5), hispanic=[False, True])
ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
LOANS = (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15)
CPS = (50, 100, 7, 4, 2)


def schema_of(sizes) -> Schema:
    return Schema({f"a{i}": range(size) for i, size in enumerate(sizes)})


def names(workload: Workload) -> list[str]:
    return [product.name for product in workload.products]


def test_marginals_of_one_size_are_named_by_their_attributes() -> None:
    assert names(marginals(PERSON, k=2)) == ["sex × age", "sex × hispanic", "age × hispanic"]


def test_the_marginal_of_no_attributes_is_the_total() -> None:
    assert marginals(PERSON, k=0).products == (Product("total"),)


def test_marginals_up_to_a_size_hold_the_smaller_ones_first() -> None:
    assert names(marginals(PERSON, up_to=2)) == [
        "total", "sex", "age", "hispanic", "sex × age", "sex × hispanic", "age × hispanic"
    ]  # fmt: skip


def test_all_marginals_are_those_of_every_set() -> None:
    assert marginals(PERSON, all=True) == marginals(PERSON, up_to=3)


def test_marginals_of_few_cells_leave_out_the_large_ones() -> None:
    assert names(marginals(PERSON, max_cells=5)) == ["total", "sex", "age", "hispanic", "sex × hispanic"]


def test_a_marginal_of_exactly_so_many_cells_is_taken() -> None:
    assert "sex × age" in names(marginals(PERSON, max_cells=10))


def test_a_marginal_of_one_cell_too_many_is_left_out() -> None:
    assert "sex × age" not in names(marginals(PERSON, max_cells=9))


def test_a_limit_of_cells_goes_with_a_number_of_attributes() -> None:
    assert names(marginals(PERSON, k=2, max_cells=9)) == ["sex × hispanic"]


def test_a_limit_of_cells_goes_with_a_largest_number_of_attributes() -> None:
    assert names(marginals(PERSON, up_to=1, max_cells=4)) == ["total", "sex", "hispanic"]


def test_a_marginal_counts_each_cell() -> None:
    assert marginals(PERSON, k=2).product("sex × age").predicates == {"sex": Identity(), "age": Identity()}


def test_prefix_attributes_are_counted_cumulatively() -> None:
    assert marginals(PERSON, k=2, prefix=["age"]).product("sex × age").predicates == {
        "sex": Identity(),
        "age": Prefix(),
    }


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6), limit=st.integers(1, 60))
def test_marginals_of_few_cells_are_all_sets_that_fit(sizes: list[int], limit: int) -> None:
    schema = schema_of(sizes)
    expected = {
        " × ".join(chosen) or "total"
        for way in range(len(sizes) + 1)
        for chosen in combinations(schema.names, way)
        if prod(schema[name].size for name in chosen) <= limit
    }
    found = names(marginals(schema, max_cells=limit))
    assert (len(found), set(found)) == (len(expected), expected)


PAPER = {
    "Adult, up to 3 ways": (lambda: marginals(schema_of(ADULT), up_to=3), 470, 21_043_262),
    "Loans, small marginals": (lambda: marginals(schema_of(LOANS), max_cells=5000), 188, 279_751),
    "CPS, all marginals as one product": (
        lambda: Workload(schema_of(CPS)).add("all", {name: Identity() | Total() for name in schema_of(CPS)}),
        1,
        618_120,
    ),
    "CPS, all marginals": (lambda: marginals(schema_of(CPS), all=True), 32, 618_120),
}


@pytest.mark.parametrize(("build", "products", "queries"), PAPER.values(), ids=PAPER)
def test_a_workload_of_the_paper_has_as_many_products_and_queries(build, products: int, queries: int) -> None:
    workload = build()
    assert (len(workload.products), workload.query_count) == (products, queries)


def test_all_marginals_of_up_to_2_of_60_attributes_are_built() -> None:
    workload = marginals(schema_of([3] * 60), up_to=2)
    assert (len(workload.products), workload.query_count) == (1831, 1 + 60 * 3 + 1770 * 9)


BAD = {
    "nothing": ({}, "give exactly one of k, up_to, max_cells and all; given: none"),
    "all of nothing": ({"all": False}, "give exactly one of k, up_to, max_cells and all; given: none"),
    "two choices": ({"k": 1, "up_to": 2}, "give exactly one of .*; given: k, up_to"),
    "a size and all": ({"max_cells": 5, "all": True}, "give exactly one of .*; given: max_cells, all"),
    "more than there are": ({"k": 4}, "k=4: expected an integer from 0 to 3"),
    "up to more than there are": ({"up_to": 4}, "up_to=4: expected an integer from 0 to 3"),
    "negative": ({"k": -1}, "k=-1: expected an integer from 0 to 3"),
    "a fraction": ({"up_to": 1.5}, "up_to=1.5: expected an integer"),
    "a boolean": ({"k": True}, "k=True: expected an integer"),
    "a text": ({"k": "2"}, "k='2': expected an integer"),
    "no cells": ({"max_cells": 0}, "max_cells=0: expected an integer from 1"),
    "an unknown attribute": ({"k": 1, "prefix": ["aeg"]}, "'aeg' is not in the schema; did you mean 'age'"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_marginals_that_are_not_defined_are_refused(options, message: str) -> None:
    with pytest.raises(WorkloadError, match=f"marginals: .*{message}"):
        marginals(PERSON, **options)


def test_more_sets_than_anyone_can_use_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("hdmm.workload.marginals"), "MAX_PRODUCTS", 1000)
    with pytest.raises(TooLargeError, match="more than 1000 sets of attributes; ask for fewer, for example up_to=3"):
        marginals(schema_of([2] * 60), all=True)


def test_as_many_sets_as_can_be_used_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("hdmm.workload.marginals"), "MAX_PRODUCTS", 1024)
    assert len(marginals(schema_of([2] * 10), all=True).products) == 1024


def test_an_attribute_called_total_does_not_clash_with_the_empty_marginal() -> None:
    names = [product.name for product in marginals(Schema(total=range(2)), up_to=1).products]
    assert names == ["grand total", "total"]
