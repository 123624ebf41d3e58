"""Marginals over bases that are not written out."""

import numpy as np
import pytest

from hdmm.estimators.estimator import types_of
from hdmm.estimators.least_squares import least_squares
from tests.contract.zoo import STRATEGIES

STRATEGY, WORKLOAD = STRATEGIES["marginals over folded convolutions"]


@pytest.mark.parametrize("product", WORKLOAD.encoded.products, ids=lambda product: product.name)
def test_moments_of_rows_that_are_not_written_out_are_upper_bounds_and_squares_exact(product, monkeypatch):
    estimator = least_squares(STRATEGY)
    product = product.total
    types = types_of(estimator, product)
    noise = [1.0, 2.0, 0.5, 3.0, 1.5]
    exact = list(estimator.coefficients(product, types, noise))
    monkeypatch.setattr("hdmm.estimators.marginal._MAX_WRITTEN", 0)
    bounds = list(estimator.coefficients(product, types, noise))
    for one, other in zip(exact, bounds, strict=True):
        np.testing.assert_allclose(other.power_sum(2), one.power_sum(2), atol=1e-15)
        for power in (4, 6):
            assert (other.power_sum(power) >= one.power_sum(power) * (1 - 1e-9)).all()
        assert (other.largest() >= one.largest() * (1 - 1e-9)).all()
        place = tuple(len(row) - 1 for row in types)
        for mine, theirs in zip(one.at(place), other.at(place), strict=True):
            np.testing.assert_allclose(np.sort(mine), np.sort(theirs))
