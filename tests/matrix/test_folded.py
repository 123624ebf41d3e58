"""Folded convolutions against the same matrices written out."""

import numpy as np
import pytest

from hdmm.matrix import Folded
from hdmm.matrix.convolution import cyclic
from hdmm.matrix.folded_variances import FoldedVariances
from hdmm.matrix.fourier import Basis, at_sums, folded, kernel, period, transform, weights_of, wrap

_RNG = np.random.default_rng(5)
both = pytest.mark.parametrize("basis", ["sine", "cosine"])
sizes = pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 33])


def written(basis: Basis, weights: np.ndarray) -> np.ndarray:
    """F·diag(weights)·F."""
    waves = transform(basis, np.eye(len(weights)))
    return waves @ np.diag(weights) @ waves


def integers(basis: Basis, n: int) -> Folded:
    """A strategy for n cells in integers, its columns a few thousand long."""
    values = kernel(basis, np.arange(n, 0, -1.0) ** 0.5 + 1)
    norms = Folded(basis, values, np.ones(n)).norms
    return Folded(basis, values, 1 / np.sqrt(norms)).rounded(10, 2)


@both
@sizes
def test_a_wave_is_its_own_inverse(basis: Basis, n: int):
    waves = transform(basis, np.eye(n))
    np.testing.assert_allclose(waves @ waves, np.eye(n), atol=1e-14)


@both
@sizes
def test_a_kernel_is_a_matrix_of_differences_and_sums(basis: Basis, n: int):
    weights = _RNG.uniform(0.5, 2, n)
    values = kernel(basis, weights)
    sums, cells = at_sums(basis, values), np.arange(n)
    entries = values[abs(cells[:, None] - cells)] + sums[cells[:, None] + cells]
    np.testing.assert_allclose(entries, written(basis, weights), atol=1e-14)
    np.testing.assert_allclose(weights_of(basis, values), weights)


@both
@sizes
def test_a_product_is_a_convolution_over_a_period(basis: Basis, n: int):
    matrix = integers(basis, n)
    x = _RNG.integers(0, 1000, n)
    start = 1 if basis == "sine" else 0
    convolved = cyclic(period(basis, matrix.values), folded(basis, x), wrap(basis))[start : start + n]
    assert (convolved * matrix.scales[0] == (matrix.dense() / matrix.scales * matrix.scales[0]) @ x).all()


def test_products_that_64_bits_do_not_hold_are_noticed():
    with pytest.raises(OverflowError):
        cyclic(np.array([1 << 40, 0]), np.array([1 << 40, 0]), 1)


@both
@sizes
def test_integers_have_exact_products_and_norms(basis: Basis, n: int):
    matrix = integers(basis, n)
    entries = matrix.dense().astype(object)
    x = _RNG.integers(0, 1 << 20, n)
    assert matrix.apply(x).tolist() == (entries @ x).tolist()
    assert matrix.apply_t(x).tolist() == (entries.T @ x).tolist()
    assert matrix.column_norms(2).tolist() == (entries**2).sum(axis=0).tolist()
    assert matrix.reach >= abs(entries).sum(axis=1).max()


@both
@sizes
def test_least_squares_is_the_inverse(basis: Basis, n: int):
    matrix = integers(basis, n)
    inverse = np.linalg.inv(matrix.dense().astype(float))
    y = _RNG.normal(size=(n, 3))
    np.testing.assert_allclose(matrix.solve(y), inverse @ y, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(matrix.solve_t(y), inverse.T @ y, rtol=1e-9, atol=1e-12)


@both
@sizes
def test_rounding_keeps_columns_as_long_as_they_are(basis: Basis, n: int):
    matrix = integers(basis, n)
    bits = 2 ** (10 + matrix.extra_bits)
    lengths = np.sqrt(matrix.column_norms(2).astype(float)) / bits
    assert (lengths <= 1).all()
    assert (lengths > 0.999).all()


@both
@sizes
def test_the_variance_of_every_interval_in_every_way(basis: Basis, n: int):
    weights, u = _RNG.uniform(0.1, 2, n), _RNG.uniform(0.5, 2, n)
    covariance = u[:, None] * written(basis, weights) * u
    lows, highs = np.triu_indices(n)
    true = np.array([covariance[low : high + 1, low : high + 1].sum() for low, high in zip(lows, highs, strict=True)])
    variances = FoldedVariances(basis, kernel(basis, weights), u)
    np.testing.assert_allclose(variances.of(lows, highs), true)
    np.testing.assert_allclose(variances._prefixes, true[lows == 0])
    np.testing.assert_allclose(variances._by_transforms(lows, highs), true)
    for length in range(1, n + 1):
        of_length = highs - lows == length - 1
        np.testing.assert_allclose(variances._by_pairs(lows[of_length], length), true[of_length])
        np.testing.assert_allclose(variances._sliding(length), true[of_length])


def test_empty_intervals_have_no_variance():
    assert integers("sine", 4).interval_moments(np.array([2]), np.array([1])).tolist() == [[0, 0, 0, 0]]


@both
def test_many_moments_are_upper_bounds_and_variances_exact(basis: Basis, monkeypatch):
    matrix = integers(basis, 30)
    lows, highs = np.triu_indices(30)
    exact = matrix.interval_moments(lows, highs)
    monkeypatch.setattr("hdmm.matrix.folded._MAX_WEIGHTS", 0)
    bounds = matrix.interval_moments(lows, highs)
    np.testing.assert_allclose(bounds[:, 0], exact[:, 0])
    assert (bounds >= exact * (1 - 1e-9)).all()


@both
@sizes
def test_no_two_columns_point_away_from_each_other(basis: Basis, n: int):
    matrix = integers(basis, n)
    overlaps = matrix.dense().T @ matrix.dense()
    assert matrix.least_overlap(2) <= overlaps.min()
    falling = Folded(basis, kernel(basis, 1 / np.arange(1.0, n + 1)), np.ones(n)).rounded(12, 2)
    assert falling.least_overlap(2) == 0 <= (falling.dense().T @ falling.dense()).min()


@pytest.mark.parametrize(
    ("values", "scales"),
    [
        (np.array([3, 1, 0]), np.array([1, 1])),
        (np.array([3, 1, 0, 0]), np.array([1, 0])),
        (np.array([3, 1, 0, 0]), np.array([1.0, 2.0])),
        (np.array([1, 1, 1, 1]), np.array([1, 1])),
        (np.array([1 << 40, 1, 0, 0]), np.array([1, 1])),
        (np.array([1 << 25, 1, 0, 0]), np.array([1, 1 << 20])),
        (np.array([3.0, np.nan, 0, 0]), np.array([1.0, 2.0])),
        (np.zeros((2, 2)), np.array([1.0])),
    ],
)
def test_what_is_no_strategy_is_refused(values: np.ndarray, scales: np.ndarray):
    with pytest.raises(ValueError, match=r"fold|kernel"):
        Folded("sine", values, scales)
