"""Worked examples and theorems of the paper, named after their labels; its tables are checked in test_check."""

import numpy as np
import pytest

from hdmm import baselines, marginals
from hdmm.estimators.as_measured import AsMeasured
from hdmm.estimators.estimator import loss as estimator_loss
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.schema import Schema
from hdmm.workload import AllRange, Identity, Prefix, Where, Workload
from tests.operators.proposals import proposed

EXAMPLE = marginals(Schema(a=range(2), b=range(5), c=range(50), d=range(100)), k=2).encoded


def test_table_margexample_workload():
    strategy = proposed(baselines.Marginals(), EXAMPLE, 1).strategy
    assert loss(strategy, EXAMPLE, 1) == pytest.approx(206_964, abs=0.5)


def test_table_margexample_identity():
    strategy = proposed(baselines.Identity(), EXAMPLE, 1).strategy
    assert loss(strategy, EXAMPLE, 1) == pytest.approx(300_000, abs=0.5)


def test_prop_error0_the_plain_mechanism_costs_the_squared_norm_for_each_query():
    strategy = proposed(baselines.Plain(), EXAMPLE, 1).strategy
    assert estimator_loss(AsMeasured(strategy), EXAMPLE, 1) == 36 * EXAMPLE.query_count


def test_ex_groupby_is_a_product():
    """SELECT sex, age, COUNT(*) WHERE hispanic GROUP BY sex, age holds 2 × 115 counting queries."""
    person = Schema(sex=["F", "M"], age=range(115), hispanic=[False, True])
    product = {"sex": Identity(), "age": Identity(), "hispanic": Where("hispanic")}
    assert Workload(person).add("q", product).query_count == 2 * 115


def test_thm_kron_sens_norms_multiply():
    encoded = Workload(Schema(a=range(4), b=range(6))).add("w", a=Prefix(), b=AllRange()).encoded
    kron = encoded.of(encoded.products[0])
    assert kron.norm_power(1) == 4 * 12
    assert kron.norm_power(2) == 4 * 12


def test_thm_implicit_a_product_of_predicate_sets_is_a_kronecker_product():
    encoded = Workload(Schema(a=range(3), b=range(4))).add("w", a=Prefix(), b=AllRange()).encoded
    expected = np.kron(np.tril(np.ones((3, 3))), encoded.products[0].factors[1].dense())
    np.testing.assert_array_equal(encoded.of(encoded.products[0]).dense(), expected)


def test_thm_err_decomp_the_error_of_a_product_factorises():
    encoded = Workload(Schema(a=range(3), b=range(4))).add("w", a=Prefix(), b=AllRange()).encoded
    parts = [
        Workload(Schema(a=range(3))).add("w", a=Prefix()).encoded,
        Workload(Schema(b=range(4))).add("w", b=AllRange()).encoded,
    ]
    losses = [loss(proposed(baselines.Identity(), part, 1).strategy, part, 1) for part in parts]
    assert loss(proposed(baselines.Identity(), encoded, 1).strategy, encoded, 1) == pytest.approx(losses[0] * losses[1])
