"""Our samplers beside opendp's, which share no code with them: the same laws, by two-sample χ² tests.

Each test has a false-alarm rate of 1e-6, and noise of ours whose scale is 3% too small is caught but for a chance of
about that. The law of opendp's discrete Gaussian is another one than ours; its Gaussian on floats, which are multiples
of 2**-20, is ours after rounding, but for a difference that millions of draws could not show.
"""

from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2_contingency

from hdmm.privacy.sampling.samplers import discrete_laplace, rounded_gaussian

OURS = 2_000_000
LEVELS = [0.004, 0.02, 0.08, 0.25, 0.5, 0.75, 0.92, 0.98, 0.996]
"""Where draws are cut into bins: few of them, and closer in the tails, which tell most about the scale."""
FAULT = Fraction(97, 100)
FALSE_ALARM = 1e-6


def oracle_laplace(scale, count=160_000):
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    return np.array(dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64), scale=float(scale))([0] * count))


def oracle_gaussian(scale, count=80_000):
    domain = dp.vector_domain(dp.atom_domain(T=dp.f64, nan=False), size=count)
    measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), scale=float(scale), k=-20)
    return np.rint(measurement([0.0] * count)).astype(np.int64)


LAWS = [
    (sampler, scale, oracle)
    for sampler, oracle in ((discrete_laplace, oracle_laplace), (rounded_gaussian, oracle_gaussian))
    for scale in (Fraction(1), Fraction(2001, 2))
]


@pytest.fixture(scope="module", params=LAWS, ids=lambda law: f"{law[0].__name__}-{law[1]}")
def law(request):
    """Our sampler, the scale, and the oracle's draws at that scale: they take long, and serve two tests."""
    sampler, scale, oracle = request.param
    dp.enable_features("contrib")
    return sampler, scale, oracle(scale)


def p_value(ours, theirs):
    """The probability of counts as different as these, or more, if both samples are of one law."""
    edges = np.unique(np.quantile(theirs, LEVELS, method="nearest"))
    counts = [np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1) for sample in (ours, theirs)]
    return chi2_contingency(counts, correction=False).pvalue


def test_our_noise_has_the_law_of_the_oracle(law):
    sampler, scale, theirs = law
    assert p_value(sampler(scale, OURS), theirs) > FALSE_ALARM


def test_noise_that_is_a_little_too_small_is_caught(law):
    sampler, scale, theirs = law
    assert p_value(sampler(scale * FAULT, OURS), theirs) <= FALSE_ALARM
