"""Pyramids of hats: entries as they are defined, least squares and its errors those of the pseudo-inverse."""

import numpy as np
import pytest

from hdmm.errors import ArtefactError
from hdmm.matrix import AllRange, Hats, Prefix, Width
from hdmm.matrix.hats import MAX_RATIO
from hdmm.matrix.pyramid import knots
from hdmm.plans.factors import HatsData, array_text, factor_data, read_factor

SHAPES = [
    (1, (1,)),
    (5, (5,)),
    (5, (2, 4)),
    (7, (1, 3)),
    (9, (3, 18)),
    (13, (2, 4)),
    (30, (3,)),
    (50, (2, 4, 8, 16)),
    (61, (2, 6, 18)),
    (64, (4, 16)),
    (100, (3, 9, 27, 81)),
]
shapes = pytest.mark.parametrize(("n", "spacings"), SHAPES)


def hats(n: int, spacings: tuple[int, ...], scale: int = 1 << 10) -> Hats:
    """A pyramid of any heights, some of them zero."""
    random = np.random.default_rng(n)
    most = scale // (2 * len(spacings))
    heights = [random.integers(0, most, knots(n, spacing)) for spacing in spacings]
    return Hats(n, spacings, [np.where(random.random(len(level)) < 0.1, 0, level) for level in heights], scale)


def inverse(matrix: Hats) -> np.ndarray:
    return np.linalg.pinv(matrix.dense().astype(float))


@shapes
def test_entries_are_the_nearest_integers_to_those_of_hats(n, spacings):
    matrix = hats(n, spacings)
    middles, rows = np.arange(n) + 0.5, []
    for spacing, heights in zip(spacings, matrix.heights, strict=True):
        for knot, height in enumerate(heights.tolist()):
            rows.append(height * np.maximum(0, 1 - abs(middles - knot * spacing) / spacing))
    entries = matrix.dense()
    assert abs(entries[n:] - np.array(rows)).max() <= 0.5 + 1e-9
    assert np.count_nonzero(entries[:n] - np.diag(np.diagonal(entries))) == 0
    assert (entries.sum(axis=0) == matrix.scale).all()


@shapes
def test_the_inverse_is_the_pseudo_inverse(n, spacings):
    matrix = hats(n, spacings)
    expected = inverse(matrix)
    np.testing.assert_allclose(matrix.solve(np.eye(len(expected.T))), expected, atol=1e-15)
    np.testing.assert_allclose(matrix.solve_t(np.eye(n)).T, expected, atol=1e-15)


@shapes
def test_variances_of_all_intervals_are_those_of_the_rows_written_out(n, spacings):
    matrix = hats(n, spacings)
    lows, highs = (ends.reshape(-1) for ends in np.indices((n, n)))  # those that end before they begin are empty
    rows = (lows[:, None] <= np.arange(n)) & (np.arange(n) <= highs[:, None])
    expected = ((rows @ inverse(matrix)) ** 2).sum(axis=1)
    np.testing.assert_allclose(matrix.interval_variances(lows, highs), expected, rtol=1e-10)
    np.testing.assert_allclose(matrix.interval_moments(lows, highs)[:, 0], expected, rtol=1e-10)


@shapes
def test_other_moments_are_bounds(n, spacings):
    matrix = hats(n, spacings)
    lows, highs = (ends.reshape(-1) for ends in np.indices((n, n)))
    rows = (lows[:, None] <= np.arange(n)) & (np.arange(n) <= highs[:, None])
    sizes = abs(rows @ inverse(matrix))
    exact = np.stack([*((sizes**p).sum(axis=1) for p in (2, 4, 6)), sizes.max(axis=1)], axis=1)
    assert (matrix.interval_moments(lows, highs) >= exact * (1 - 1e-9)).all()


def smooth(n: int, spacings: tuple[int, ...]) -> Hats:
    """A pyramid as they are used: one column in a few goes to the cells, the rest to all levels alike."""
    share = 1 / (1.4 * len(spacings))
    return Hats(n, spacings, [np.full(knots(n, spacing), share) for spacing in spacings]).rounded(14, 1)


def test_bounds_of_moments_are_near_where_hats_are_smooth():
    matrix = smooth(3000, (12, 180))
    highs = np.arange(3000)
    sizes = abs(matrix.solve_t(np.triu(np.ones((3000, 3000)))))
    bounds = matrix.interval_moments(np.zeros(3000, np.int64), highs)
    share = bounds[:, 1] / bounds[:, 0] ** 2
    exact = (sizes**4).sum(axis=0) / bounds[:, 0] ** 2
    assert np.median(share / exact) < 1.5
    assert np.quantile(share, 0.99) < 0.3


def test_moments_do_not_depend_on_how_many_intervals_are_computed_at_a_time(monkeypatch):
    matrix = hats(61, (2, 6, 18))
    lows, highs = np.triu_indices(61)
    whole = matrix.interval_moments(lows, highs)
    monkeypatch.setattr("hdmm.matrix.hat_moments._INTERVALS", 7)
    np.testing.assert_allclose(matrix.interval_moments(lows, highs), whole, rtol=1e-12)


def test_pieces_of_cells_do_not_matter(monkeypatch):
    expected = hats(61, (2, 6, 18)).interval_variances(np.zeros(61, np.int64), np.arange(61))
    monkeypatch.setattr("hdmm.matrix.hat_solution._CELLS", 5)
    again = hats(61, (2, 6, 18)).interval_variances(np.zeros(61, np.int64), np.arange(61))
    np.testing.assert_allclose(again, expected, rtol=1e-13)


@shapes
def test_the_largest_difference_of_two_columns(n, spacings):
    matrix = hats(n, spacings)
    entries = matrix.dense()
    assert matrix.difference_norm(1) == max(abs(entries - entries[:, [cell]]).sum(axis=0).max() for cell in range(n))
    assert matrix.difference_norm(2) is None


@pytest.mark.parametrize("bits", [8, 12, 16])
def test_rounded_columns_sum_to_a_power_of_two(bits: int):
    real = Hats(50, (3, 15), [np.full(18, 0.3), np.linspace(0.05, 0.4, 5)])
    rounded = real.rounded(bits, 1)
    assert rounded.column_norms(1).tolist() == [2**bits] * 50
    assert abs(rounded.dense()[50:] - 2**bits * real.dense()[50:]).max() <= 1
    with pytest.raises(ValueError, match="not equal lengths"):
        real.rounded(bits, 2)


def test_every_workload_is_determined():
    assert all(hats(13, (2, 4)).determines(of.axis_gram()) for of in (Prefix(13), AllRange(13), Width(13, 4)))


def test_a_file_holds_spacings_and_heights():
    matrix = hats(61, (2, 6, 18))
    data = factor_data(matrix)
    assert isinstance(data, HatsData)
    again = read_factor(data, 61)
    assert isinstance(again, Hats)
    np.testing.assert_array_equal(again.dense(), matrix.dense())
    assert factor_data(again) == data
    with pytest.raises(ValueError, match="more cells than any attribute"):
        read_factor(data, 60)


HEIGHTS = np.array([3, 14, 2, 0, 9, 7, 20, 11, 31, 5])
"""Of a pyramid of nine cells with spacings 2 and 4."""


@pytest.mark.parametrize(
    "changed",
    [
        {"cells": 11},
        {"cells": 0},
        {"cells": -9},
        {"cells": 1 << 62},
        {"spacings": []},
        {"spacings": [2, 3]},
        {"spacings": [4, 2]},
        {"spacings": [0, 4]},
        {"spacings": [2, 2]},
        {"spacings": [2, -4]},
        {"spacings": [2, 4, 8]},
        {"spacings": [2, 1 << 70]},
        {"spacings": [1] * 9},
        {"heights": -HEIGHTS},
        {"heights": HEIGHTS + (1 << 40)},
        {"heights": HEIGHTS.astype(float)},
        {"heights": HEIGHTS[:, None]},
        {"heights": HEIGHTS + 40},
        {"scale": 0},
        {"scale": 20},
        {"scale": 1 << 40},
    ],
    ids=str,
)
def test_a_factor_of_a_plan_file_that_is_no_pyramid_is_refused(changed):
    stated = {"cells": 9, "spacings": [2, 4], "heights": HEIGHTS, "scale": 100} | changed
    stated["heights"] = array_text(stated["heights"])
    with pytest.raises((ValueError, ArtefactError)):
        read_factor(HatsData(**stated), 1 << 63)


def test_a_level_of_too_many_blocks_is_refused():
    with pytest.raises(ValueError, match="coarsest level"):
        Hats(1000, (1,), [np.zeros(1001, np.int64)], 10)
    with pytest.raises(ValueError, match=f"2 to {MAX_RATIO} times"):
        Hats(1000, (1, 100), [np.zeros(1001, np.int64), np.zeros(11, np.int64)], 10)
