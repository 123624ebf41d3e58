"""The statistics of the audits: they are what they say where all is well, and small where it is not."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from tests.audit.laws import laplace_cdf
from tests.audit.statistics import (
    chi_square_chance,
    clopper_pearson,
    mean_chance,
    normal_chance,
    spread_chance,
    squares_chance,
    together,
)


@pytest.mark.parametrize("hits", [1, 7, 500, 999])
def test_bounds_on_a_probability_are_exact(hits):
    low, high = clopper_pearson(hits, 1000, 1e-6)
    assert binom.sf(hits - 1, 1000, low) == pytest.approx(1e-6)
    assert binom.cdf(hits, 1000, high) == pytest.approx(1e-6)


def test_bounds_on_what_never_or_always_happened():
    assert clopper_pearson(0, 10, 1e-6)[0] == 0
    assert clopper_pearson(10, 10, 1e-6)[1] == 1


def test_several_statistics_are_weighed_together():
    assert together([0.5, 1e-4, 0.2]) == pytest.approx(3e-4)
    assert normal_chance(np.array([0.1, -4.0])) == pytest.approx(2 * 6.334e-5, rel=1e-3)


def test_the_mean_of_skewed_values_is_off_as_rarely_as_stated():
    """One in a hundred of 4,000 means, ten times over: 4 are expected, and 14 or more have a chance of 1e-4."""
    values = np.random.default_rng(6).laplace(scale=0.5**0.5, size=(4_000, 1_000)) ** 2
    assert sum(mean_chance(row, 1.0) < 0.01 for row in values) < 14
    assert mean_chance(values.reshape(-1) * 1.01, 1.0) < 1e-6


@pytest.mark.parametrize("terms", [1, 2, 8])
def test_the_bound_on_a_mean_square_holds_for_sums_of_laplace_variables(terms):
    random = np.random.default_rng(terms)
    errors = random.laplace(scale=(0.5 / terms) ** 0.5, size=(terms, 4_000, 500)).sum(axis=0)
    ratios = np.sort((errors**2).mean(axis=1))
    for ratio, tail in ((ratios[-40], 0.01), (ratios[-4], 0.001), (ratios[40], 0.01), (ratios[4], 0.001)):
        assert spread_chance(ratio, 500) > tail
    assert spread_chance(1.3, 6_000) < 1e-9 * 1.1
    assert spread_chance(0.7, 6_000) < 1e-9


@pytest.mark.parametrize("eigenvalues", [[1.0], [0.5, 0.3, 0.2], [0.01] * 100], ids=len)
def test_the_bound_on_a_sum_of_squares_holds_for_correlated_errors(eigenvalues):
    """At most one in a hundred of 4,000 means below 0.01: 40, and 70 or more have a chance below 1e-5."""
    squares = np.random.default_rng(8).normal(size=(4_000, 20, len(eigenvalues))) ** 2
    ratios = (squares @ eigenvalues).mean(axis=1)
    assert sum(squares_chance(ratio, np.array(eigenvalues), 20) < 0.01 for ratio in ratios) < 70


@pytest.mark.parametrize("ratio", [1.1, 0.9])
def test_a_sum_of_squares_that_is_off_by_a_tenth_is_told(ratio):
    """Of 10,000 squares in all, seven standard deviations: a normal tail is 1.5e-12."""
    assert 1e-12 < squares_chance(ratio, np.full(100, 0.01), 100) < 1e-9


def test_draws_of_another_law_are_told_apart():
    p = np.exp(-1 / 3)
    random = np.random.default_rng(3)
    draws = random.geometric(1 - p, 100_000) - random.geometric(1 - p, 100_000)
    assert chi_square_chance(draws, laplace_cdf(Fraction(3)), Fraction(3)) > 1e-6
    assert chi_square_chance(draws, laplace_cdf(Fraction(31, 10)), Fraction(3)) < 1e-6
