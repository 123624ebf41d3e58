"""Scales that the samplers can take, and the variance of the noise that they give."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.errors import BudgetError
from hdmm.privacy.scale import MAX_SCALE, laplace_variance, round_up


@given(st.fractions(min_value=Fraction(1, 10**40), max_value=MAX_SCALE))
def test_round_up_never_lessens_the_noise_and_hardly_adds_any(scale):
    rounded = round_up(scale)
    assert scale <= rounded <= scale * (1 + Fraction(1, 2**44))
    assert rounded.numerator <= MAX_SCALE
    assert round_up(rounded) == rounded


@given(st.integers(1, 2**200), st.integers(1, 2**200))
def test_round_up_of_long_fractions(a, b):
    scale = Fraction(a, b)
    if scale <= MAX_SCALE:
        assert scale <= round_up(scale) <= scale * (1 + Fraction(1, 2**44))
    else:
        with pytest.raises(BudgetError, match="epsilon is too small"):
            round_up(scale)


def test_round_up_refuses_even_a_scale_beyond_floats():
    with pytest.raises(BudgetError, match="epsilon is too small"):
        round_up(Fraction(10**400))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1, 2)])
def test_round_up_refuses_a_scale_that_is_not_positive(scale):
    with pytest.raises(BudgetError, match="positive"):
        round_up(scale)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_variance_equals_the_sum_over_the_law(scale):
    k = np.arange(-3000, 3001)
    weight = np.exp(-np.abs(k) / float(scale))
    assert laplace_variance(scale) == pytest.approx((k**2 * weight).sum() / weight.sum(), rel=1e-12)


def test_variance_is_stable_at_both_ends():
    assert laplace_variance(2.0**45) == pytest.approx(2.0**91, rel=1e-12)
    assert laplace_variance(0.01) == pytest.approx(2 * math.exp(-100), rel=1e-12)
    assert laplace_variance(1e-6) == laplace_variance(Fraction(1, 10**400)) == 0
