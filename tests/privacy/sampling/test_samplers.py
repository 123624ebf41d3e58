"""The stream and the exact samplers: every fast decision against exact arithmetic, and the laws by statistics.

Every statistical check has a false-alarm rate of at most 1e-6 and also rejects a planted fault: noise whose scale is 2%
too small where nothing else is said.
"""

import math
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import chi2

from hdmm.errors import BudgetError, FaultError
from hdmm.privacy.sampling import gaussian, laplace, samplers, stream
from hdmm.privacy.sampling import tail_table as laws
from hdmm.privacy.sampling.samplers import discrete_laplace, rounded_gaussian
from hdmm.privacy.sampling.tail_table import TailTable, Uniform
from hdmm.privacy.scale import MAX_SCALE
from tests.audit.forks import after_forks, cloned
from tests.audit.laws import gaussian_cdf, gaussian_moments, laplace_cdf, laplace_moments
from tests.audit.statistics import LEVEL, chi_square_chance, moment_deviations

SCALES = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(2001, 2), 2**20 + Fraction(1, 3), Fraction(MAX_SCALE)]
DRAWS = 500_000
SIGMAS = 5.2  # a normal variable is further out than this with probability 2e-7, and one of three with 6e-7
FAULT = Fraction(98, 100)


# The stream


def test_the_stream_is_the_keystream_of_chacha20(monkeypatch):
    """RFC 8439, A.1, test vector 1: the zero key and nonce."""
    monkeypatch.setattr(stream, "_fresh_key", lambda: bytes(32))
    assert stream.random_bytes(16).hex() == "76b8e0ada0f13d90405d6ae55386bd28"


@pytest.mark.parametrize("count", [0, 1, 63, 65, stream.PIECE + 1])
def test_the_stream_gives_as_much_as_asked(count):
    assert len(stream.random_bytes(count)) == count


def test_words_are_uint64():
    words = stream.random_words(5)
    assert words.dtype == np.uint64
    assert words.shape == (5,)


def test_every_call_and_every_piece_has_a_fresh_key(monkeypatch):
    keys = []
    fresh = stream._fresh_key

    def noted() -> bytes:
        keys.append(fresh())
        return keys[-1]

    monkeypatch.setattr(stream, "_fresh_key", noted)
    stream.random_bytes(2 * stream.PIECE + 1)
    stream.random_bytes(1)
    assert len(set(keys)) == len(keys) == 4
    assert {len(key) for key in keys} == {32}


def test_forked_processes_have_streams_of_their_own():
    stream.random_bytes(16)
    found = after_forks(lambda: stream.random_bytes(16), 100)
    assert len(set(found)) == len(found) == 101
    assert len(set(after_forks(cloned(), 3))) == 1


# The tables against higher precision


def tails(scale):
    """Return the tables of a Laplace law, each with its exact tail, written as a sum, in mpmath."""
    tables = laplace.laplace_tables(scale)
    decay = mpmath.mpf(scale.denominator) / scale.numerator
    p = mpmath.exp(-decay)
    yield tables.nonzero, lambda i: 2 * p / (1 + p) if i == 1 else mpmath.mpf(0)
    places = len(tables.digits) - 1
    yield tables.digits[0], lambda i: mpmath.exp(-i * decay * 256**places)
    for place, table in enumerate(reversed(tables.digits[1:])):
        weights = [mpmath.exp(-d * decay * 256**place) for d in range(256)]
        yield table, lambda i, weights=weights: mpmath.fsum(weights[i:]) / mpmath.fsum(weights)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(1, 1000), Fraction(MAX_SCALE) - Fraction(1, 10**30)], ids=str)
def test_laplace_floors_are_exact(scale):
    with mpmath.workdps(120):
        for table, tail in tails(scale):
            assert [mpmath.floor(tail(i + 1) * 2**64) for i in range(table.floors.size)] == table.floors[::-1].tolist()


def test_normal_floors_are_exact():
    floors = gaussian.normal_cells().floors[::-1].tolist()
    with mpmath.workdps(120):
        expected = [
            mpmath.floor(mpmath.erfc(mpmath.mpf(i + 1) / 64 / mpmath.sqrt(2)) * 2**64) for i in range(len(floors))
        ]
    assert floors == expected


@pytest.mark.parametrize(
    "table", [gaussian.normal_cells, *(lambda s=s: laplace.laplace_tables(s).digits[0] for s in SCALES)]
)
def test_the_guide_decides_only_what_every_continuation_decides(table):
    table = table()
    first = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    last = first | np.uint64(2**48 - 1)
    low, high = (table.floors.size - np.searchsorted(table.floors, end, side="right") for end in (last, first))
    touched = np.isin(np.arange(2**16), table.floors >> np.uint64(48))
    assert np.array_equal(table.guide == -1, touched)
    assert np.array_equal(low[~touched], table.guide[~touched])
    assert np.array_equal(high[~touched], table.guide[~touched])


def test_a_word_on_a_floor_is_settled_by_more_bits(monkeypatch):
    """The word floor(tail·2**64) continued by the lowest and by the highest bits falls on both sides of the tail."""
    table = gaussian.normal_cells()
    for i in (1, 100, 500):
        word = int(table.floors[-i])
        for more, outcome in ((bytes(8), i), (b"\xff" * 8, i - 1)):
            monkeypatch.setattr(laws, "random_bytes", lambda count, more=more: more)
            assert table._settle(Uniform(word, 64)) == outcome


def test_a_table_that_cannot_be_certified_is_a_fault():
    with pytest.raises(FaultError, match="certified"):
        TailTable.of(lambda i: arb(0.5, 0.25))


@pytest.mark.parametrize("scale", [Fraction(1, 10**30), Fraction(1, 10**400)], ids=["1e-30", "1e-400"])
def test_a_tiny_scale_adds_no_noise(scale):
    assert not discrete_laplace(scale, 1000).any()
    assert not rounded_gaussian(scale, 1000).any()


# The fast decisions of the Gaussian against exact arithmetic


def corners(count):
    """Return words that include both ends."""
    return np.concatenate([stream.random_words(count), np.array([0, 1, 2**63, 2**64 - 2, 2**64 - 1], dtype=np.uint64)])


@pytest.mark.parametrize("factor", [0, 1, 2**32 - 1, 2**32, 2**63, 0xDEADBEEFCAFEBABE, 2**64 - 1])
def test_high_product_is_exact(factor):
    words = corners(1000)
    assert gaussian._high_product(words, factor).tolist() == [w * factor >> 64 for w in words.tolist()]


SIGMA_ZOO = [*SCALES, Fraction(1, 1000), Fraction(1, 10**40), Fraction(2**45 - 1, 3), Fraction(2**46 - 1, 2)]


@pytest.mark.parametrize("sigma", SIGMA_ZOO, ids=str)
def test_rounding_that_is_certain_is_right_at_both_ends(sigma):
    positions = corners(20_000)
    value, certain = gaussian._round(sigma, positions)
    assert certain.mean() > 1 - 2e-3
    for position, k in zip(positions[certain].tolist(), value[certain].tolist(), strict=True):
        assert (sigma * position / 2**60 + 1) // 2 == k
        assert (2 * k - 1) * 2**60 < sigma * (position + 1) <= (2 * k + 1) * 2**60


@pytest.mark.parametrize("sigma", SIGMA_ZOO, ids=str)
def test_the_slow_rounding_agrees_where_the_fast_one_is_certain(sigma):
    positions = stream.random_words(300)
    value, certain = gaussian._round(sigma, positions)
    for position, k in zip(positions[certain].tolist(), value[certain].tolist(), strict=True):
        assert gaussian._rounded(sigma, position >> 55, Uniform(position % 2**55, 55)) == k


def test_fast_acceptance_is_never_wrong():
    """Tests as close to the bound as 32 bits can be, and further off by every power of two."""
    cell = np.tile(np.arange(512), 8)
    place = stream.random_words(cell.size) >> np.uint64(9)
    place[:512], place[512:1024] = 0, 2**55 - 1
    with mpmath.workdps(40):
        v = [mpmath.mpf(w) / 2**55 for w in place.tolist()]
        bound = [mpmath.exp(-(c + x / 2) * x / 4096) * 2**32 for c, x in zip(cell.tolist(), v, strict=True)]
        decided = 0
        for offset in [0, 1, *(s * 2**e for e in range(1, 24, 2) for s in (-1, 1))]:
            test = np.array([min(max(int(b) + offset, 0), 2**32 - 1) for b in bound], dtype=np.uint32)
            accepted, rejected = gaussian._accept(cell, place, test)
            assert not np.any(accepted & rejected)
            for i in np.flatnonzero(accepted):
                assert test[i] + 1 < bound[i] - 2.0**-18  # the place's own width moves the bound by less than this
            for i in np.flatnonzero(rejected):
                assert test[i] > bound[i]
            decided += int(np.count_nonzero(accepted | rejected))
    assert decided > 40_000


def test_the_slow_acceptance_agrees_where_the_fast_one_is_certain():
    cell = np.abs(rounded_gaussian(Fraction(64), 2000))
    place, test = (
        stream.random_words(2000) >> np.uint64(9),
        (stream.random_words(2000) >> np.uint64(32)).astype(np.uint32),
    )
    test[:1000] |= np.uint32(0xF8000000)  # near the bound
    accepted, rejected = gaussian._accept(cell, place, test)
    assert accepted.any()
    assert rejected.any()
    for i in np.flatnonzero(accepted | rejected):
        slow = gaussian._accepted(int(cell[i]), Uniform(int(place[i]), 55), Uniform(int(test[i]), 32))
        assert slow == accepted[i]


@pytest.mark.parametrize("test", [0.93, 0.95])  # on both sides of exp(-t) at the middle of the cell, 0.94
@pytest.mark.parametrize(("more", "accepted"), [(bytes(8), True), (b"\xff" * 8, False)], ids=["low", "high"])
def test_a_place_that_is_not_known_is_drawn_before_it_decides(test, more, accepted, monkeypatch):
    monkeypatch.setattr(laws, "random_bytes", lambda count: more)
    assert gaussian._accepted(511, Uniform(0, 0), Uniform(int(test * 2**16), 16)) == accepted


def test_few_values_need_the_slow_path(monkeypatch):
    slow = []
    finish = gaussian._finish

    def counted(*given):
        slow.append(1)
        return finish(*given)

    monkeypatch.setattr(gaussian, "_finish", counted)
    rounded_gaussian(Fraction(MAX_SCALE), DRAWS)
    assert 0 < len(slow) < 1e-4 * DRAWS + 40  # 3·2**-15 of them at the largest sigma: 46 on average


# The laws


LAWS = {discrete_laplace: laplace_cdf, rounded_gaussian: gaussian_cdf}


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("sampler", LAWS)
def test_draws_follow_their_law(sampler, scale):
    cdf = LAWS[sampler](scale)
    assert chi_square_chance(sampler(scale, DRAWS), cdf, scale) > LEVEL
    assert chi_square_chance(sampler(scale * FAULT, DRAWS), cdf, scale) < LEVEL


@pytest.mark.parametrize("scale", SCALES[1:], ids=str)
def test_mean_variance_and_signs_of_the_laplace(scale):
    exact = laplace_moments(scale)
    assert max(moment_deviations(discrete_laplace(scale, DRAWS), *exact)) < SIGMAS
    assert moment_deviations(discrete_laplace(scale * FAULT, DRAWS), *exact)[1] > SIGMAS


@pytest.mark.parametrize("sigma", SCALES[1:], ids=str)
def test_mean_variance_and_signs_of_the_gaussian(sigma):
    exact = gaussian_moments(sigma)
    assert max(moment_deviations(rounded_gaussian(sigma, DRAWS), *exact)) < SIGMAS
    assert moment_deviations(rounded_gaussian(sigma * FAULT, DRAWS), *exact)[1] > SIGMAS


def test_low_digits_of_the_laplace_follow_their_law():
    scale = Fraction(2001, 2)
    draws = discrete_laplace(scale, DRAWS)
    observed = np.bincount((np.abs(draws[draws != 0]) - 1) & 255, minlength=256)
    weights = np.exp(-np.arange(256) / float(scale))
    for law, fits in ((weights, True), (np.ones(256), False)):
        expected = law / law.sum() * observed.sum()
        assert (np.sum((observed - expected) ** 2 / expected) < chi2.isf(1e-6, 255)) == fits


def slope(count=8_000_000):
    """Return by how many standard errors the places in the cells lean less towards zero than the normal law does."""
    x = np.abs(rounded_gaussian(Fraction(2**30), count)) / 2.0**30
    cell = np.floor(x * 64)
    # E[place - 1/2 | cell] is -middle/64/12, and E[middle²] is 1, both up to 1e-4 of themselves
    total = np.sum((x * 64 - cell - 0.5) * (cell + 0.5) / 64)
    return (total + count / 64 / 12) / math.sqrt(count / 12)


def test_places_in_a_cell_lean_towards_zero(monkeypatch):
    assert abs(slope()) < SIGMAS
    everything = lambda cell, place, test: (np.ones(cell.size, dtype=bool), np.zeros(cell.size, dtype=bool))  # noqa: E731
    monkeypatch.setattr(gaussian, "_accept", everything)
    assert slope() > SIGMAS


def test_draws_are_independent_within_and_between_calls():
    for sampler in LAWS:
        first, second = sampler(Fraction(10), DRAWS).astype(float), sampler(Fraction(10), DRAWS)
        spread = np.mean(first**2) * math.sqrt(DRAWS)
        assert abs(np.sum(first * second)) / spread < SIGMAS
        assert abs(np.sum(first[1:] * first[:-1])) / spread < SIGMAS
        assert abs(np.sum(first * first)) / spread > SIGMAS  # reused noise


# The slow path, forced


@pytest.fixture
def widths(monkeypatch):
    """Let tables look at this many bits before they go to the slow path."""

    def look_at(coarse, fine):
        monkeypatch.setattr(laws, "_COARSE", coarse)
        monkeypatch.setattr(laws, "_FINE", fine)
        forget()

    def forget():
        laplace.laplace_tables.cache_clear()
        gaussian.normal_cells.cache_clear()

    yield look_at
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(
    ("bits", "draws", "fault"), [((0, 0), 6_000, 0.8), ((6, 12), 50_000, 0.93)], ids=["all", "some"]
)
@pytest.mark.parametrize("scale", [Fraction(7, 2), Fraction(2001, 2)], ids=str)
def test_the_slow_path_has_the_law_of_the_laplace(scale, bits, draws, fault, widths):
    widths(*bits)
    values = discrete_laplace(scale, draws)
    assert chi_square_chance(values, laplace_cdf(scale), scale, 20) > LEVEL
    assert chi_square_chance(values, laplace_cdf(scale / Fraction(fault)), scale, 20) < LEVEL


@pytest.mark.parametrize("sigma", [Fraction(7, 2), Fraction(MAX_SCALE)], ids=str)
def test_the_slow_path_has_the_law_of_the_gaussian(sigma, widths, monkeypatch):
    widths(0, 0)
    monkeypatch.setattr(gaussian, "_MARGIN", 2.0)
    values = rounded_gaussian(sigma, 10_000)
    assert chi_square_chance(values, gaussian_cdf(sigma), sigma, 20) > LEVEL
    assert chi_square_chance(values, gaussian_cdf(sigma / Fraction(0.9)), sigma, 20) < LEVEL


def test_a_normal_beyond_the_fast_cells_is_finished_exactly(monkeypatch):
    """A uniform just below erfc(9/√2) gives |N| just above 9, and rounding finds it."""
    with ctx.workprec(300):
        floor = ((arb(9) / arb(2).sqrt()).erfc() * 2**128).floor().unique_fmpz()
    assert floor is not None
    word = int(floor)
    table = gaussian.normal_cells()
    assert table._settle(Uniform(word - 1, 128)) == 9 * 64
    assert table._settle(Uniform(word + 1, 128)) == 9 * 64 - 1
    monkeypatch.setattr(TailTable, "draw", lambda self, count: np.full(count, 9 * 64))
    draws = np.abs(rounded_gaussian(Fraction(64 * 1000), 1000))
    assert draws.min() >= 9 * 64_000
    assert 9 * 64_000 + 900 < draws.max() <= 9 * 64_000 + 1000


# The edges


@pytest.mark.parametrize("count", [0, 1, 2, 3, samplers._BLOCK + 1])
@pytest.mark.parametrize("sampler", LAWS)
def test_draws_are_int64_and_as_many_as_asked(sampler, count):
    draws = sampler(Fraction(3), count)
    assert draws.dtype == np.int64
    assert draws.shape == (count,)


@pytest.mark.parametrize("sampler", LAWS)
def test_the_largest_scale_stays_exact_in_floats(sampler):
    draws = sampler(Fraction(MAX_SCALE), 100_000)
    assert np.abs(draws).max() < 2**53
    assert np.any(draws % 2 == 1)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**45 + 1), Fraction(10**20, 7)], ids=str)
@pytest.mark.parametrize("sampler", LAWS)
def test_a_scale_that_cannot_be_sampled_is_refused(sampler, scale):
    with pytest.raises(BudgetError, match=f"={scale}: "):
        sampler(scale, 1)


@pytest.mark.parametrize("sampler", LAWS)
def test_working_memory_is_bounded(sampler):
    sampler(Fraction(1000), 1)
    tracemalloc.start()
    draws = sampler(Fraction(1000), 2_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < draws.nbytes + 2**23


def test_a_stuck_source_is_a_fault(monkeypatch):
    monkeypatch.setattr(laws, "random_bytes", bytes)
    with pytest.raises(FaultError, match="random source appears broken"):
        gaussian.normal_cells()._settle(Uniform(0, 64))


def test_a_place_that_is_never_accepted_is_a_fault(monkeypatch):
    monkeypatch.setattr(gaussian, "_accepted", lambda *given: False)
    with pytest.raises(FaultError, match="random source appears broken"):
        gaussian._finish(Fraction(1), 3, Uniform(0, 0), Uniform(0, 0))
    nothing = lambda cell, place, test: (np.zeros(cell.size, dtype=bool), np.ones(cell.size, dtype=bool))  # noqa: E731
    monkeypatch.setattr(gaussian, "_accept", nothing)
    with pytest.raises(FaultError, match="random source appears broken"):
        rounded_gaussian(Fraction(1), 10)
