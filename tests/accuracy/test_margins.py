"""Margins of error: against exact convolution, against simulation, and against a normal interval, which is wrong."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdmm.accuracy import margins as intervals
from hdmm.accuracy.margins import cumulants, expansion_bound, margin, normal_margin, simultaneous, worst_margin
from hdmm.errors import InputError
from hdmm.privacy.scale import laplace_variance


def law(scales, coefficients, counts):
    """Return P(S = -R), …, P(S = R) for integer coefficients, by convolution."""
    pmf = np.ones(1)
    for scale, coefficient, count in zip(scales, coefficients, counts, strict=True):
        p = math.exp(-1 / scale)
        edge = math.ceil(40 * scale)
        one = np.zeros(2 * edge * abs(coefficient) + 1)
        one[:: abs(coefficient)] = (1 - p) / (1 + p) * p ** np.abs(np.arange(-edge, edge + 1.0))
        for _ in range(count):
            pmf = np.convolve(pmf, one)
    return pmf


def coverage(pmf, m):
    centre = pmf.size // 2
    return float(pmf[centre - int(m) : centre + int(m) + 1].sum())


INTEGER_CASES = [
    ([0.1], [1], [1]),
    ([0.4], [1], [1]),
    ([3.0], [1], [1]),
    ([50.0], [-1], [1]),
    ([1.0], [1], [2]),
    ([7.0], [3], [2]),
    ([2.5], [1], [3]),
    ([0.1], [1], [10]),
    ([4.0], [1], [10]),
    ([2.0, 5.0], [1, -1], [2, 1]),
    ([0.2, 9.0], [2, 1], [1, 2]),
    ([1.0, 1.0, 1.0], [1, 2, 3], [1, 1, 1]),
    ([3.0, 0.5], [4, 6], [4, 6]),
    ([0.3, 0.6], [1, -5], [5, 5]),
]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("case", INTEGER_CASES, ids=str)
def test_on_a_lattice_the_margin_is_the_smallest_that_covers(case, level):
    pmf = law(*case)
    m = margin(case[0], case[1], case[2], level)
    assert m == int(m)
    assert coverage(pmf, m) >= level
    assert m == 0 or coverage(pmf, m - 1) < level


def test_equal_coefficients_give_a_multiple_of_their_size():
    for coefficient in (3, 0.37, -2.5):
        assert margin(4.0, coefficient, 5) == abs(coefficient) * margin(4.0, 1, 5)


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e9])
def test_a_fine_lattice_is_solved_to_the_unit(scale):
    q, r = -math.expm1(-1 / scale), -math.expm1(-2 / scale)  # 1-p and 1-p²

    def outside(m):  # P(X + Y = k) = (1-p)⁴/(1-p²)² · p^k · (k + (1+p²)/(1-p²)), summed over k > m and doubled
        return 2 * q**3 / r**2 * math.exp(-(m + 1) / scale) * ((m + 1) + (1 - q) / q + (2 - r) / r)

    m = margin(scale, 1, 2)
    assert outside(m) <= 0.05 < outside(m - 1)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("case", [case for case in INTEGER_CASES if case[0][-1] > 1 and sum(case[2]) > 1], ids=str)
def test_the_smoothed_series_agrees_with_the_exact_lattice(case, level):
    terms = intervals._Sum.of(*case)
    exact = margin(case[0], case[1], case[2], level)
    assert exact < intervals._smoothed(terms, level) <= 1.01 * exact


@pytest.mark.parametrize("point", range(2, 12))
def test_the_smoothed_series_covers_even_when_an_atom_almost_reaches_the_level(point):
    case = ([1.0, 1.0], [1, 2], [1, 1])
    level = coverage(law(*case), point) + 1e-9
    assert intervals._smoothed(intervals._Sum.of(*case), level) >= point + 1


def test_rare_large_terms_do_not_blur_the_margin():
    terms = intervals._Sum.of([0.25, 5.0], [300, 1], 1)  # 300 times something that is zero with probability 0.964
    exact = intervals._lattice(terms, 0.95)
    assert exact is not None
    assert exact <= intervals._smoothed(terms, 0.95) <= 1.008 * exact
    assert margin([0.05, 5.0, 5.0], [1e6 + 0.3, 1, 0.7], 1) == pytest.approx(margin(5.0, [1, 0.7], 1), rel=1e-3)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.95, 0.99, 0.9999])
def test_many_terms_agree_with_the_exact_lattice(level):
    quick = 0
    for count in (30, 60, 100, 300, 1000):
        terms = intervals._Sum.of([3000.0, 1000.0], 1, [count, count])
        expansion = intervals._cornish_fisher(terms, level)
        if expansion is not None:
            quick += 1
            exact = intervals._lattice(terms, level)
            assert exact is not None
            assert exact <= expansion <= 1.001 * exact
    assert quick


def test_the_expansion_allows_for_a_lattice():
    for count in range(350, 450, 5):
        terms = intervals._Sum.of(2.0, 1, count)
        expansion, exact = intervals._cornish_fisher(terms, 0.95), intervals._lattice(terms, 0.95)
        assert expansion is not None
        assert exact is not None
        assert exact <= expansion <= exact + 1.1  # less would not always reach the next lattice point


def simulated(scales, coefficients, counts, draws=2_000_000):
    """Return draws of S: the difference of two geometric variables is discrete Laplace."""
    rng = np.random.default_rng(7)
    total = np.zeros(draws)
    for scale, coefficient, count in zip(scales, coefficients, counts, strict=True):
        for _ in range(count):
            q = -math.expm1(-1 / scale)
            total += coefficient * (rng.geometric(q, draws) - rng.geometric(q, draws))
    return total


@pytest.mark.parametrize(
    "case",
    [
        ([10.0, 10.0], [1.0, 0.61803], [1, 1]),
        ([1000.0, 3.0], [0.013, -1.7], [1, 1]),
        ([20.0, 50.0, 80.0], [0.31, 0.12, -0.27], [1, 2, 1]),
        ([5.0] * 6, [0.11, -0.23, 0.37, 0.51, -0.71, 0.93], [1] * 6),
    ],
    ids=str,
)
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_real_coefficients_cover_what_they_claim(case, level):
    # With 2e6 draws the standard error is at most 2.2e-4; the seed is fixed, so that there are no false alarms.
    covered = np.mean(np.abs(simulated(*case)) <= margin(case[0], case[1], case[2], level))
    assert level - 0.0015 <= covered <= level + 0.01


@pytest.mark.parametrize("case", [([0.3] * 3, [0.3, 0.7, 1.1], [3, 2, 1]), ([0.1, 2.0], [7.3, 0.9], [4, 1])], ids=str)
def test_coarse_noise_with_real_coefficients_covers(case):
    assert np.mean(np.abs(simulated(*case)) <= margin(*case)) >= 0.95 - 0.0015


def test_noise_that_is_mostly_zero_needs_no_margin():
    assert margin(0.1, [0.3, 0.7], 1) == 0
    assert margin(0.01, 1.5, 1000) == 0


@pytest.mark.parametrize("scale", [100.0, 1e4, 1e8])
def test_one_laplace_variable_is_not_normal(scale):
    m = margin(scale, 1, 1)
    assert m == pytest.approx(scale * math.log(20), abs=2)
    normal = normal_margin(math.sqrt(laplace_variance(scale)))
    assert 1 - math.exp(-normal / scale) < 0.94  # the fault that this module exists to avoid
    at_half = normal_margin(math.sqrt(laplace_variance(scale)), 0.5)
    assert at_half > 1.3 * margin(scale, 1, 1, 0.5)


@pytest.mark.parametrize("coefficients", [1.0, np.linspace(0.5, 1.5, 400)], ids=["equal", "unequal"])
def test_many_terms_become_normal(coefficients):
    counts = 1e15
    stderr = math.sqrt(laplace_variance(20.0) * counts * np.sum(np.square(coefficients)))
    assert margin(20.0, coefficients, counts) == pytest.approx(normal_margin(stderr), rel=1e-5)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.2, 500), st.floats(0.001, 3), st.integers(1, 4)), min_size=1, max_size=4),
    st.sampled_from([0.5, 0.9, 0.95]),
)
def test_a_multiplicity_is_a_repeated_coefficient(terms, level):
    scales, coefficients, counts = zip(*terms, strict=True)
    together = margin(scales, coefficients, counts, level)
    apart = margin(np.repeat(scales, counts), np.repeat(coefficients, counts), 1, level)
    assert together == pytest.approx(apart, rel=1e-9)


@pytest.mark.parametrize("case", [(3, 1, 1), (3, 1, 4), ([3, 8], [0.3, 1.1], [2, 1]), (30, np.linspace(1, 2, 200), 1)])
def test_a_higher_level_needs_a_larger_margin(case):
    margins = [margin(case[0], case[1], case[2], level) for level in (0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.999999)]
    assert margins == sorted(margins)
    assert margins[0] < margins[-1]


def test_margins_scale_with_the_coefficients():
    assert margin([5, 9], [0.2, 0.7], 1) == pytest.approx(margin([5, 9], [20, 70.0], 1) / 100, rel=0.01)
    assert margin([5, 9], [2e-9, 7.1e-9], 1) == pytest.approx(1e-9 * margin([5, 9], [2, 7.1], 1), rel=1e-6)


def test_no_terms_no_margin():
    assert margin([], [], []) == 0
    assert margin([3.0, 4.0], [0, 0.0], 1) == 0
    assert margin(3.0, [1, 2], 0) == 0


def test_coefficients_that_are_rounding_errors_do_not_count():
    assert margin(3.0, [1, 1, 1e-17, 5e-324], 1) == margin(3.0, 1, 2)


def test_normal_margin():
    assert normal_margin(2.0) == pytest.approx(2 * 1.959963984540054)
    assert normal_margin(1.0, 0.99) == pytest.approx(2.5758293035489)


@pytest.mark.parametrize("level", [0, 1, 1.5, -1, math.nan, 1 - 1e-11])
def test_an_impossible_level_is_refused(level):
    with pytest.raises(InputError, match="level="):
        margin(1.0, 1, 1, level)
    with pytest.raises(InputError, match="level="):
        normal_margin(1.0, level)


WORST_LEVELS = [0.3, 0.5, 0.8, 0.85, 0.9, 0.902, 0.906, 0.908, 0.91, 0.92, 0.93, 0.95, 0.99, 0.999, 1 - 1e-6]


@pytest.mark.parametrize("level", WORST_LEVELS)
def test_no_sum_of_the_worst_family_is_beyond_the_worst_margin(level):
    """k equal terms and a smaller one: where the proof has the largest quantile of all sums."""
    scale = 1e5
    bound = float(worst_margin(1.0, math.inf, level))
    largest = 0.0
    for ratio in [*np.linspace(1, 4, 61), *np.linspace(4, 12, 41), 20, 50, 100]:
        k = math.floor(ratio)
        shares = [1 / ratio] * k + ([1 - k / ratio] if ratio > k else [])
        found = margin(scale, np.sqrt(shares), 1, level) / (math.sqrt(2) * scale)
        largest = max(largest, found)
        assert found <= bound
    assert largest >= 0.985 * bound


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=12), st.sampled_from([0.5, 0.9, 0.907, 0.95, 0.99]))
@settings(max_examples=60)
def test_no_other_sum_is_either(sizes, level):
    scale = 1e5
    stderr = math.sqrt(2) * scale * math.sqrt(sum(size**2 for size in sizes))
    assert margin(scale, sizes, 1, level) <= 1.004 * worst_margin(stderr, 2 * scale**2, level)  # margins are 0.3% above


def bounded(sizes: np.ndarray, level: float) -> float:
    """The bound of the expansion for terms of these sizes and standard deviation 1."""
    variance = 1e16  # of noise so fine that its steps do not show
    two, four, six = cumulants(variance)
    second, fourth, sixth = two * np.sum(sizes**2), four * np.sum(sizes**4), six * np.sum(sizes**6)
    return float(expansion_bound(second, fourth, sixth, sizes.max(), level)) / 1e8


def probability(sizes: np.ndarray, half_width: float) -> float:
    """P(|S| ≤ m) for Laplace terms of these sizes and standard deviation 1, by a Fourier series of a long period."""
    period = 40 * float(np.sqrt(np.sum(sizes**2)))
    t = np.pi / period * np.arange(1, 1 << 15)
    phi = np.exp(-np.log1p((np.multiply.outer(t, sizes) ** 2) / 2).sum(axis=1))
    return float((half_width + 2 * np.sum(np.sin(t * half_width) / t * phi)) / period)


FEW_TERMS = [
    *(np.ones(count) for count in (4, 6, 9, 14, 25)),
    *(0.5 ** (np.arange(40) / rate) for rate in (1.5, 3, 6)),
    *(
        np.append(np.full(large, math.sqrt(share / large)), np.full(60, math.sqrt((1 - share) / 60)))
        for share in (0.1, 0.3, 0.6)
        for large in (1, 3)
    ),
    *(np.random.default_rng(seed).uniform(size=3 + 2 * seed) ** 3 for seed in range(12)),
]


@pytest.mark.parametrize("level", [0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-5])
def test_the_expansion_of_few_terms_is_a_bound(level):
    tried = 0
    for sizes in FEW_TERMS:
        bound = bounded(sizes, level)
        if math.isfinite(bound):
            tried += 1
            assert probability(sizes, bound) >= level - 1e-7
    assert tried > 3


@pytest.mark.parametrize("level", [0.95, 0.99])
def test_the_bound_is_near_if_no_term_is_large(level):
    sizes = 0.5 ** (np.arange(40) / 6)
    assert level < probability(sizes, bounded(sizes, level)) < level + (1 - level) / 10


def test_the_expansion_bounds_sums_whose_higher_moments_are_smaller():
    for level in (0.3, 0.8, 0.95, 0.999):
        few, many = bounded(np.ones(14), level), bounded(np.ones(40), level)
        assert few / math.sqrt(14) >= many / math.sqrt(40)


@pytest.mark.parametrize("scale", [0.5, 1, 3, 10, 100])
@pytest.mark.parametrize("sizes", [[1], [1, 1], [1, 1, 1, 1, 1], [4, 1, 1], [8, 4, 2, 1], [1] * 20])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_steps_of_discrete_noise_are_within_the_worst_margin(scale, sizes, level):
    variance = laplace_variance(scale)
    stderr = math.sqrt(variance * sum(size**2 for size in sizes))
    assert margin(scale, sizes, 1, level) <= worst_margin(stderr, variance, level)


@pytest.mark.parametrize("outside", [1e-6, 1e-8, 1e-9, 2e-10])
def test_levels_for_very_many_answers_together(outside):
    """One term has a closed form; of several, the tail is between those of a normal law and Chernoff's bound."""
    level = 1 - outside
    scale = 50.0
    assert margin(scale, 1, 1, level) == pytest.approx(scale * math.log(1 / outside), rel=0.01)
    for case in (([50.0], [1.0], [2]), ([50.0, 20.0], [1.0, 0.3], [1, 4]), ([50.0], [1.0], [3000])):
        terms = intervals._Sum.of(*case)
        found = margin(*case, level)
        assert intervals._quantile(outside) * terms.stderr * 0.999 <= found <= terms.reach(outside)


def test_intervals_that_hold_together_share_what_is_left():
    assert simultaneous(0.95, 1) == pytest.approx(0.95)
    assert simultaneous(0.9, 1000) == pytest.approx(0.9999)
    with pytest.raises(InputError, match="simultaneous"):
        simultaneous(0.95, 10**10)
    with pytest.raises(InputError, match="level="):
        simultaneous(1.0, 10)
