"""DataCube: the paper's numbers, the greedy cover by brute force, and least squares written out."""

from itertools import combinations
from math import prod, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hdmm
from hdmm.baselines import DataCube
from hdmm.baselines.data_cube import greedy_cover
from hdmm.estimators.estimator import loss
from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import Norm
from hdmm.paper import workloads
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import gaussian_sigma
from tests.baselines.dense import dense_loss, strategy_rows, workload_rows
from tests.operators.proposals import proposed, reason_aside

SCHEMA = hdmm.Schema(a=range(2), b=range(3), c=range(4))
VARIANCE: dict[Norm, float] = {1: 2.0, 2: gaussian_sigma(Budget(1, "1e-6")) ** 2}


@pytest.mark.parametrize(
    ("build", "chosen", "laplace", "gaussian"),
    [
        (workloads.cps_marginals, 8, 18.49, 19.53),
        (workloads.adult_marginals, 364, 494.06, 77.36),
        (workloads.loans_small, 83, 113.98, 37.37),
    ],
    ids=["CPS", "Adult", "Loans"],
)
def test_its_errors_are_those_of_the_paper(build, chosen, laplace, gaussian):
    encoded = build().encoded
    printed_errors: dict[Norm, float] = {1: laplace, 2: gaussian}
    for norm, printed in printed_errors.items():
        strategy = proposed(DataCube(), encoded, norm).strategy
        assert len(strategy.blocks) == chosen
        squared = VARIANCE[norm] * loss(local_least_squares(strategy), encoded, norm)
        assert sqrt(squared / encoded.query_count) == pytest.approx(printed, abs=0.005)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("build", [{"all": True}, {"k": 2}, {"up_to": 2}, {"max_cells": 8}], ids=str)
def test_the_loss_is_that_of_least_squares_written_out(build, norm):
    workload = hdmm.marginals(SCHEMA, **build)
    strategy = proposed(DataCube(), workload.encoded, norm).strategy
    expected = dense_loss(strategy_rows(strategy, workload), workload_rows(workload), norm)
    assert loss(local_least_squares(strategy), workload.encoded, norm) == pytest.approx(expected)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=4), st.data())
def test_the_cover_is_greedy(sizes, data):
    axes = range(len(sizes))
    every = [subset for count in range(len(sizes) + 1) for subset in combinations(axes, count)]
    asked = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    chosen = greedy_cover(asked, sizes)
    ordered = sorted(asked, key=lambda subset: [axis in subset for axis in axes])
    left = set(asked)
    for marginal in chosen:
        gains = [len(left & covered(one, asked, sizes)) for one in ordered]
        assert ordered[int(np.argmax(gains))] == marginal
        left -= covered(marginal, asked, sizes)
    assert not left


def covered(marginal, asked, sizes):
    return {
        other
        for other in asked
        if set(other) <= set(marginal) and prod(sizes[i] for i in set(marginal) - set(other)) <= len(asked)
    }


WRITTEN = {
    "one by one": hdmm.Values([0]) | hdmm.Values([1, 2]),
    "permuted": hdmm.Permuted(hdmm.Identity(), [2, 0, 1]),
    "twice": hdmm.Identity() | hdmm.Identity(),
    "all but one": ~hdmm.Identity() | hdmm.Identity(),
    "by expression": hdmm.By("b * 2"),
}


@pytest.mark.parametrize("cells", WRITTEN.values(), ids=WRITTEN.keys())
def test_marginals_are_known_whatever_way_they_are_written(cells):
    each = hdmm.Identity() | hdmm.Total()
    blocks = [
        proposed(DataCube(), hdmm.Workload(SCHEMA).add("x", a=each, b=b | hdmm.Total()).encoded, 1).strategy.blocks
        for b in (hdmm.Identity(), cells)
    ]
    assert blocks[0] == blocks[1]


def test_single_cells_of_different_products_are_a_marginal_together():
    workload = hdmm.Workload(SCHEMA)
    for value in range(3):
        workload = workload.add(f"b = {value}", b=hdmm.Values([value]))
    assert [block.axes for block in proposed(DataCube(), workload.encoded, 1).strategy.blocks] == [(1,)]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"b": hdmm.Prefix()}, "the product 'x' asks about prefixes of 'b'; it takes marginals: Identity and Total"),
        ({"c": hdmm.Width(2)}, "the product 'x' asks about ranges of 'c'; it takes marginals: Identity and Total"),
        ({"c": hdmm.Total() | hdmm.AllRange()}, "the product 'x' asks about ranges of 'c'; it takes marginals"),
        ({"c": hdmm.Permuted(hdmm.Prefix(), [1, 0, 3, 2])}, "the product 'x' asks about prefixes of 'c'; it takes"),
        ({"c": hdmm.Values([1, 2])}, "the product 'x' asks about some values or groups of 'c'; it takes marginals"),
        ({"c": hdmm.Custom([[1, -1, 1, -1]])}, "the product 'x' asks about some values or groups of 'c'; it takes"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_refusal_names_the_product_and_the_attribute(asked, reason):
    workload = hdmm.marginals(SCHEMA, k=1).add("x", asked)
    assert reason_aside(DataCube(), workload.encoded, 1).startswith(reason)


def test_differences_are_no_marginal():
    """The Gram of nI − 11ᵀ is aI − b11ᵀ: its rows say nothing about the total."""
    workload = hdmm.Workload(SCHEMA).add("x", a=hdmm.Custom([[1, -1], [-1, 1]]))
    assert "'a'" in reason_aside(DataCube(), workload.encoded, 2)


def test_conditions_are_for_others():
    workload = hdmm.Workload(SCHEMA).add("x", a=hdmm.Identity(), where="a = 1 OR b = 2")
    assert reason_aside(DataCube(), workload.encoded, 1).startswith("the product 'x' has a condition across attributes")


def test_a_large_attribute_is_known_by_its_structure_alone():
    schema = hdmm.Schema(a=range(5000), b=range(2))
    workload = hdmm.Workload(schema).add("cells", a=hdmm.Identity(), b=hdmm.Identity())
    assert [block.axes for block in proposed(DataCube(), workload.encoded, 1).strategy.blocks] == [(0, 1)]
    assert "ranges of 'a'" in reason_aside(DataCube(), workload.add("x", a=hdmm.Width(9)).encoded, 1)


def test_too_many_marginals_are_refused():
    schema = hdmm.Schema({f"a{i}": range(2) for i in range(15)})
    workload = hdmm.Workload(schema).add("all", {name: hdmm.Identity() | hdmm.Total() for name in schema})
    assert reason_aside(DataCube(), workload.encoded, 1) == "the product 'all' asks for more than 16,384 marginals"
    reason = reason_aside(DataCube(), hdmm.marginals(schema, k=7).encoded, 1)
    assert reason == "the workload asks for 6,435 marginals; at most 4,096 are compared"


def test_wide_marginals_are_refused():
    schema = hdmm.Schema({f"a{i}": range(2) for i in range(11)})
    assert reason_aside(DataCube(), hdmm.marginals(schema, k=11).encoded, 1).startswith("a marginal has 11 attributes")
