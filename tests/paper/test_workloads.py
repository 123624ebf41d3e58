"""The paper's workloads have the sizes that it states."""

from typing import Any

import pytest

from hdmm import paper
from hdmm.paper.census import AGE1, AGE3, RACE1, RACE2, person

SIZES = {
    "sf1": (4151, 500_480),
    "sf1_plus": (215_852, 25_524_480),
    "cps_marginals": (618_120, 280_000),
    "cps_prefix": (600_000, 280_000),
    "adult_marginals": (21_043_262, None),
    "loans_small": (279_751, None),
    "loans_small_prefix": (279_751, None),
}


@pytest.mark.parametrize(("name", "queries", "cells"), [(name, *sizes) for name, sizes in SIZES.items()])
def test_queries_and_cells(name, queries, cells):
    workload = getattr(paper, name)()
    assert workload.query_count == queries
    assert cells is None or workload.schema.cells == cells


def test_the_census_tables_are_few_products():
    assert len(paper.sf1().products) == 27
    assert len(paper.adult_marginals().products) == 470
    assert len(paper.loans_small().products) == 188


@pytest.mark.parametrize(
    ("sets", "attribute", "rows", "counted"),
    [(RACE1, "race", 7, {1}), (RACE2, "race", 70, {0, 2, 3}), (AGE1, "age", 23, {1}), (AGE3, "age", 103, {1})],
    ids=["race1", "race2", "age1", "age3"],
)
def test_how_often_each_value_is_counted(sets, attribute, rows, counted):
    """race1 counts everybody once; race2 a race, its number of races, and two or more."""
    matrix = sets.matrix(attribute, person()[attribute]).dense()
    assert len(matrix) == rows
    assert set(matrix.sum(axis=0).tolist()) == counted


@pytest.mark.parametrize(
    ("kind", "queries"), [("all-range", 2080), ("prefix", 64), ("width32", 33), ("permuted", 2080)]
)
def test_one_attribute(kind, queries):
    assert paper.one_d(kind, 64).query_count == queries


def test_an_unknown_kind_is_refused_with_the_nearest():
    misspelt: Any = "allrange"
    with pytest.raises(Exception, match="did you mean 'all-range'"):
        paper.one_d(misspelt, 64)
