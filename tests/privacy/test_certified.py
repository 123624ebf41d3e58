"""σ is verified, roots are rounded up, and rounded noise has the variance that is predicted."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import certified_sigma, gaussian_sigma, leaks_at_most, root_above, rounded_variance
from hdmm.privacy.sampling.samplers import rounded_gaussian

BUDGETS = [("1", "1e-6"), ("0.01", "1e-9"), ("8", "1e-5"), ("500", "1e-90"), ("0.000001", "0.5"), ("1e-20", "1e-6")]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_sigma_of_a_budget_is_proved_and_hardly_more_than_needed(epsilon, delta):
    budget = Budget(epsilon, delta)
    assert budget.epsilon is not None
    assert budget.delta is not None
    sigma = certified_sigma(budget)
    assert leaks_at_most(sigma, budget.epsilon, budget.delta)
    assert not leaks_at_most(sigma * Fraction(10**9 - 1, 10**9), budget.epsilon, budget.delta)
    assert float(sigma) == pytest.approx(gaussian_sigma(budget), rel=1e-9)


@pytest.mark.parametrize("rho", ["0.5", "1e-9", "0.3333", "1000"])
def test_the_sigma_of_rho_keeps_it(rho):
    sigma = certified_sigma(Budget(rho=rho))
    assert 0 <= Fraction(rho) - 1 / (2 * sigma**2) <= Fraction(rho) / 2**58


@given(st.fractions(min_value=Fraction(1, 10**60), max_value=10**60))
def test_roots_are_not_below_and_hardly_above(value):
    root = root_above(value)
    assert value <= root**2 <= value * (1 + Fraction(1, 2**58))


@pytest.mark.parametrize("sigma", [0.05, 0.3, 0.7, 0.999, 1.0, 2.5, 40.0])
def test_the_variance_of_rounded_noise_is_that_of_its_law(sigma):
    k = np.arange(-500, 501)
    law = norm.cdf((k + 0.5) / sigma) - norm.cdf((k - 0.5) / sigma)
    assert rounded_variance(sigma) == pytest.approx(float((k**2 * law).sum()), rel=2e-7)


@pytest.mark.parametrize("sigma", [Fraction(2, 5), Fraction(7, 3), Fraction(1000)])
def test_draws_have_that_variance(sigma):
    drawn = rounded_gaussian(sigma, 200_000).astype(float)
    variance = rounded_variance(float(sigma))
    spread = sqrt(((drawn**2 - variance) ** 2).mean() / len(drawn))
    assert abs((drawn**2).mean() - variance) < 5.5 * spread
    assert abs(drawn.mean()) < 5.5 * sqrt(variance / len(drawn))
