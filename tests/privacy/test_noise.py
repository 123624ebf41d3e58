"""The sampler: its exact law by enumeration, and its output by statistics.

Every statistical check has a false-alarm rate of at most 1e-6 and also rejects noise whose scale is 2% too small.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from hdmm.errors import BudgetError, FaultError
from hdmm.privacy import noise
from hdmm.privacy.noise import NUMERATOR_LIMIT, discrete_laplace, laplace_variance, round_up

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(10), Fraction(1000, 7)]
DRAWS = 1_000_000
SIGMAS = 5  # a normal variable is further out than this with probability 6e-7
FAULT = Fraction(98, 100)


class MoreNeededError(Exception):
    pass


def outcomes(run, monkeypatch, cutoff):
    """Run on every sequence of uniform integers; return each outcome's exact probability, and what was cut off."""
    found: dict[object, Fraction] = {}
    unresolved = Fraction(0)
    pending: list[tuple[list[int], Fraction]] = [([], Fraction(1))]
    while pending:
        script, probability = pending.pop()
        rest = iter(script)

        def scripted(n, count, rest=rest):
            assert count <= 1
            if count == 0 or n == 1:
                return np.zeros(count, dtype=np.int64)
            try:
                return np.array([next(rest)])
            except StopIteration:
                raise MoreNeededError(n) from None

        monkeypatch.setattr(noise, "_uniform", scripted)
        try:
            outcome = run()
        except MoreNeededError as needed:
            n = needed.args[0]
            if probability < cutoff:
                unresolved += probability
            else:
                pending.extend(([*script, i], probability / n) for i in range(n))
        else:
            found[outcome] = found.get(outcome, Fraction(0)) + probability
    return found, unresolved


@pytest.mark.parametrize("gamma", [(0, 1), (1, 1), (1, 2), (2, 3), (3, 7)])
def test_bernoulli_exp_has_exactly_its_probability(gamma, monkeypatch):
    u, t = gamma
    found, unresolved = outcomes(lambda: bool(noise._bernoulli_exp(np.array([u]), t)[0]), monkeypatch, 1e-7)
    assert unresolved < 1e-4
    assert found[True] - 1e-12 <= math.exp(-u / t) <= found[True] + unresolved + 1e-12


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3, 2)], ids=str)
def test_a_proposal_has_exactly_the_law_of_the_discrete_laplace(scale, monkeypatch):
    t, p = scale.numerator, math.exp(-1 / scale)
    found, unresolved = outcomes(lambda: tuple(noise._proposals(scale, 1).tolist()), monkeypatch, 1e-5)
    assert unresolved < 0.025
    kept = (1 - math.exp(-1)) / (t * -math.expm1(-1 / t))  # the probability that u is accepted
    for k in range(4):
        exact = kept * (1 - p) * p**k / 2
        assert found[(k,)] <= exact <= found[(k,)] + unresolved
        assert found[(k,)] == found[(-k,)]


def feed(words, dtype, monkeypatch):
    """Let the operating system give these words, once each."""
    stream = iter(np.array(words, dtype=dtype))
    size = np.dtype(dtype).itemsize
    monkeypatch.setattr(noise, "_random_bytes", lambda n: b"".join(next(stream).tobytes() for _ in range(n // size)))


@pytest.mark.parametrize("n", [2, 3, 7, 100, 256])
def test_uniform_gives_every_remainder_equally_often(n, monkeypatch):
    feed(range(2**16), "<u2", monkeypatch)
    accepted = 2**16 // n * n
    assert set(np.bincount(noise._uniform(n, accepted)).tolist()) == {accepted // n}


@pytest.mark.parametrize(("n", "bits"), [(257, 32), (2**24 - 1, 32), (2**24 + 1, 64), (2**45, 64), (2**45 - 1, 64)])
def test_uniform_rejects_the_words_beyond_the_last_full_round(n, bits, monkeypatch):
    last = 2**bits // n * n - 1
    words = [word for word in (2**bits - 1, last + 1, last, 0, n + 1) if word < 2**bits]
    feed(words, f"<u{bits // 8}", monkeypatch)
    expected = [word % n for word in words if word <= last]
    assert noise._uniform(n, len(expected)).tolist() == expected


def chi_square(draws, scale):
    """Return Pearson's statistic over bins of at least 2% of the draws, and its threshold."""
    p = math.exp(-1 / scale)
    edge = math.ceil(30 * scale) + 1
    support = np.arange(-edge, edge + 1)
    pmf = (1 - p) / (1 + p) * p ** np.abs(support).astype(float)
    bins = np.zeros(support.size, dtype=int)
    mass = 0.0
    for i in range(1, support.size):
        mass += pmf[i - 1]
        full = mass >= 0.02 and pmf[i:].sum() >= 0.02
        bins[i] = bins[i - 1] + full
        mass = 0.0 if full else mass
    expected = np.bincount(bins, weights=pmf) * draws.size
    observed = np.bincount(bins[np.clip(draws, -edge, edge) + edge], minlength=expected.size)
    return np.sum((observed - expected) ** 2 / expected), chi2.isf(1e-6, expected.size - 1)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_follow_the_discrete_laplace(scale):
    statistic, threshold = chi_square(discrete_laplace(scale, DRAWS), scale)
    assert statistic < threshold


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_chi_square_rejects_too_little_noise(scale):
    statistic, threshold = chi_square(discrete_laplace(scale * FAULT, DRAWS), scale)
    assert statistic > threshold


def moments(draws, scale):
    """Return how many standard errors the mean, the variance and the share of signs are off."""
    v = laplace_variance(scale)
    x = draws.astype(float)
    mean = x.mean() / math.sqrt(v / x.size)
    variance = (np.mean(x**2) - v) / math.sqrt((v + 5 * v**2) / x.size)  # fourth moment v + 6v²
    signs = np.sign(x).sum() / math.sqrt(np.count_nonzero(x))
    return abs(mean), abs(variance), abs(signs)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(NUMERATOR_LIMIT)], ids=str)
def test_mean_variance_and_signs(scale):
    assert max(moments(discrete_laplace(scale, DRAWS), scale)) < SIGMAS


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_variance_of_too_little_noise_is_rejected(scale):
    assert moments(discrete_laplace(scale * FAULT, DRAWS), scale)[1] > SIGMAS


def correlation(x, y, scale):
    return abs(np.sum(x.astype(float) * y)) / laplace_variance(scale) / math.sqrt(x.size)


def test_draws_are_independent_within_and_between_calls():
    scale = Fraction(10)
    first, second = discrete_laplace(scale, 200_000), discrete_laplace(scale, 200_000)
    assert correlation(first, second, scale) < SIGMAS
    assert correlation(first[1:], first[:-1], scale) < SIGMAS
    assert correlation(first, first, scale) > SIGMAS  # reused noise


@pytest.mark.parametrize("count", [0, 1, 2, noise._BLOCK + 1])
def test_draws_are_int64_and_as_many_as_asked(count):
    draws = discrete_laplace(Fraction(3), count)
    assert draws.dtype == np.int64
    assert draws.shape == (count,)


def test_the_largest_scale_stays_exact_in_floats():
    draws = discrete_laplace(Fraction(NUMERATOR_LIMIT), 100_000)
    assert np.abs(draws).max() < 2**53
    assert np.any(draws % 2 == 1)


@pytest.mark.parametrize("scale", [Fraction(1, 10**30), Fraction(7, 10**20), Fraction(1, 1000)], ids=str)
def test_a_tiny_scale_adds_no_noise(scale):
    assert not discrete_laplace(scale, 1000).any()


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**45 + 1), Fraction(10**20, 7)], ids=str)
def test_a_scale_that_cannot_be_sampled_is_refused(scale):
    with pytest.raises(BudgetError, match=f"scale={scale}"):
        discrete_laplace(scale, 1)


def test_a_stuck_source_is_a_fault(monkeypatch):
    monkeypatch.setattr(noise, "_random_bytes", bytes)
    monkeypatch.setattr(noise, "_ROUNDS", 100)
    with pytest.raises(FaultError, match="random numbers"):
        discrete_laplace(Fraction(7, 2), 1)


@given(st.fractions(min_value=Fraction(1, 10**40), max_value=NUMERATOR_LIMIT))
def test_round_up_never_lessens_the_noise_and_hardly_adds_any(scale):
    rounded = round_up(scale)
    assert scale <= rounded <= scale * (1 + Fraction(1, 2**44))
    assert rounded.numerator <= NUMERATOR_LIMIT
    assert round_up(rounded) == rounded


@given(st.integers(1, 2**200), st.integers(1, 2**200))
def test_round_up_of_long_fractions(a, b):
    scale = Fraction(a, b)
    if scale <= NUMERATOR_LIMIT:
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
