"""Ranks and pseudo-inverses: the same on every processor, and exact for integers."""

import numpy as np
import pytest

from hdmm.matrix.rank import exact_rank, pseudo_inverse, rank


def of_rank(count: int, n: int, seed: int) -> np.ndarray:
    """Integers of a known rank: a product of two matrices whose first columns and rows are triangular."""
    rng = np.random.default_rng(seed)
    left = np.concatenate([np.eye(count, dtype=np.int64), rng.integers(-3, 4, (n - count, count))])
    return left @ np.concatenate([np.eye(count, dtype=np.int64), rng.integers(-3, 4, (count, n - count))], axis=1)


@pytest.mark.parametrize("count", [1, 3, 7, 8])
@pytest.mark.parametrize("seed", range(5))
def test_the_rank_of_integers_is_exact(count, seed):
    entries = of_rank(count, 8, seed)
    assert rank(entries) == exact_rank(entries) == count


@pytest.mark.parametrize("power", [16, 20, 30])
def test_a_direction_too_small_for_floating_point_counts_if_entries_are_integers(power):
    entries = np.array([[2**power, 2**power], [2**power, 2**power + 1]])
    assert rank(entries) == 2
    assert rank(np.array([[2**power, 2**power], [2**power, 2**power]])) == 1


def test_a_last_bit_does_not_decide_the_rank():
    entries = np.array([[0.1, 0.2, 0.3], [0.2, 0.4, 0.6], [1.0, 1.0, 1.0]])
    for change in (-1, 0, 1):
        moved = entries.copy()
        moved[1, 2] = np.nextafter(0.6, 0.6 + change) if change else 0.6
        assert rank(moved) == 2
        np.testing.assert_allclose(pseudo_inverse(moved), np.linalg.pinv(entries, rcond=1e-9), atol=1e-12)


def test_nothing_has_rank_zero():
    assert rank(np.zeros((2, 3), np.int64)) == rank(np.zeros((2, 3))) == 0
    np.testing.assert_array_equal(pseudo_inverse(np.zeros((2, 3))), np.zeros((3, 2)))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_the_pseudo_inverse_is_that_of_moore_and_penrose(shape):
    A = np.random.default_rng(1).integers(-3, 4, shape)
    A[-1] = A[0] + A[1]
    inverse = pseudo_inverse(A)
    np.testing.assert_allclose(A @ inverse @ A, A, atol=1e-9)
    np.testing.assert_allclose(inverse @ A @ inverse, inverse, atol=1e-9)
    np.testing.assert_allclose((A @ inverse).T, A @ inverse, atol=1e-9)
    np.testing.assert_allclose((inverse @ A).T, inverse @ A, atol=1e-9)
