"""Fourier: parities written out, least squares by brute force, and what it refuses."""

from math import prod

import numpy as np
import pytest

import hdmm
from hdmm.baselines import Fourier, Marginals
from hdmm.estimators.estimator import loss
from hdmm.estimators.least_squares import local_least_squares
from tests.baselines.dense import dense_loss, strategy_rows, workload_rows
from tests.operators.proposals import proposed, reason_aside

SCHEMA = hdmm.Schema(a=["x", "y"], b=[False, True], c=range(2), d=range(1), e=range(5))
BINARY = ["a", "b", "c"]


def marginals(*sets):
    workload = hdmm.Workload(SCHEMA)
    for names in sets:
        workload = workload.add(" × ".join(names) or "total", {name: hdmm.Identity() for name in names})
    return workload


WORKLOADS = {
    "pairs": marginals(["a", "b"], ["a", "c"], ["b", "c"]),
    "a table": marginals(BINARY),
    "with a constant": marginals(["a", "d"], ["b"]),
    "one product": hdmm.Workload(SCHEMA).add("all", {name: hdmm.Identity() | hdmm.Total() for name in BINARY}),
    "weighted": marginals(["a", "b"]).add("c", c=hdmm.Identity(), weight=3).add("total"),
    "total": hdmm.Workload(SCHEMA).add("total"),
}
every = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())


@every
def test_it_measures_the_parities_of_all_subsets_that_marginals_need(workload):
    strategy = proposed(Fourier(), workload.encoded, 1).strategy
    cells = np.stack(np.unravel_index(np.arange(prod(SCHEMA.sizes)), SCHEMA.sizes))
    expected = {tuple((1 - 2 * (cells[list(block.axes)].sum(axis=0) % 2)).tolist()) for block in strategy.blocks}
    rows = strategy_rows(strategy, workload)
    assert {tuple(row) for row in rows.astype(int).tolist()} == expected
    assert len(rows) == len(expected) == np.linalg.matrix_rank(workload_rows(workload))


@every
@pytest.mark.parametrize("norm", [1, 2])
def test_the_loss_is_that_of_least_squares_written_out(workload, norm):
    strategy = proposed(Fourier(), workload.encoded, norm).strategy
    expected = dense_loss(strategy_rows(strategy, workload), workload_rows(workload), norm)
    assert loss(local_least_squares(strategy), workload.encoded, norm) == pytest.approx(expected)


@pytest.mark.parametrize("norm", [1, 2])
def test_with_all_subsets_of_marginals_asked_it_errs_as_the_marginals_do(norm):
    """Then both measure as many queries per record; the traces of the workload over either Gram are equal, too."""
    schema = hdmm.Schema({f"a{i}": range(2) for i in range(6)})
    encoded = hdmm.marginals(schema, up_to=3).encoded
    losses = [
        loss(local_least_squares(proposed(o, encoded, norm).strategy), encoded, norm) for o in (Fourier(), Marginals())
    ]
    assert losses[0] == pytest.approx(losses[1])


def test_other_attributes_are_named():
    workload = marginals(["a"], ["a", "e"])
    assert reason_aside(Fourier(), workload.encoded, 1) == "'e' has 5 cells; it takes attributes of two"


def test_a_boolean_that_may_be_missing_has_three_cells():
    schema = hdmm.Schema(a=hdmm.Boolean(missing=True)) if hasattr(hdmm, "Boolean") else None
    if schema is None:
        schema = hdmm.Schema(a=hdmm.Listed(["x", "y"], missing=True))
    workload = hdmm.Workload(schema).add("a", a=hdmm.Identity())
    assert reason_aside(Fourier(), workload.encoded, 1) == "'a' has 3 cells; it takes attributes of two"


def test_single_values_are_no_marginal():
    workload = hdmm.Workload(SCHEMA).add("some", a=hdmm.Where("a = 'x'"))
    assert reason_aside(Fourier(), workload.encoded, 1).startswith("the product 'some' asks about some values")


def test_too_many_queries_are_refused():
    schema = hdmm.Schema({f"a{i}": range(2) for i in range(15)})
    assert "32,768" in reason_aside(Fourier(), hdmm.marginals(schema, k=15).encoded, 1)


def test_many_attributes_are_planned():
    schema = hdmm.Schema({f"a{i}": range(2) for i in range(100)})
    encoded = hdmm.marginals(schema, k=2).encoded
    strategy = proposed(Fourier(), encoded, 2).strategy
    assert len(strategy.blocks) == 1 + 100 + 4950
    estimator = local_least_squares(strategy)
    assert all(estimator.supports(product) for product in encoded.products)
