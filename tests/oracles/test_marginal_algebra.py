"""The algebra of marginals against matrices written out; tests are named after the paper's labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hdmm.errors import TooLargeError
from hdmm.matrix import AllRange, Identity, Kron, Prefix, Stack, Total
from tests.oracles.marginal_algebra import MarginalGram, characteristic, marginal_matrix, multiplicity

SIZES = (3, 2, 4)
WEIGHTS = arrays(float, 8, elements=st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.0]))


def c_matrix(place: int) -> np.ndarray:
    """C(a), the first attribute being the most significant bit."""
    product: np.ndarray = np.ones((1, 1))
    for axis, n in enumerate(SIZES):
        inside = place >> (len(SIZES) - 1 - axis) & 1
        product = np.kron(product, np.eye(n) if inside else np.ones((n, n)))
    return product


def dense(gram: MarginalGram) -> np.ndarray:
    return np.sum([weight * c_matrix(place) for place, weight in enumerate(gram.weights.reshape(-1))], axis=0)


@given(WEIGHTS)
def test_prop_marggram(u):
    if not u.any():
        return
    matrix = marginal_matrix(SIZES, u).dense()
    np.testing.assert_allclose(matrix.T @ matrix, dense(MarginalGram.of_weights(SIZES, u**2)))


@given(WEIGHTS)
def test_prop_marginal_sensitivity(u):
    if not u.any():
        return
    matrix = marginal_matrix(SIZES, u)
    assert float(matrix.norm_power(1)) == pytest.approx(np.sum(u))
    assert float(matrix.norm_power(2)) == pytest.approx(np.sum(u**2))


@pytest.mark.parametrize("a", range(8))
@pytest.mark.parametrize("b", range(8))
def test_thm_margmult_of_single_marginals(a, b):
    c = characteristic(SIZES).reshape(-1)
    np.testing.assert_allclose(c_matrix(a) @ c_matrix(b), c[a | b] * c_matrix(a & b))


@given(WEIGHTS, WEIGHTS)
def test_thm_margmult(u, v):
    product = MarginalGram.of_weights(SIZES, u) @ MarginalGram.of_weights(SIZES, v)
    expected = dense(MarginalGram.of_weights(SIZES, u)) @ dense(MarginalGram.of_weights(SIZES, v))
    np.testing.assert_allclose(dense(product), expected, atol=1e-8)


@given(WEIGHTS)
def test_thm_marginv(u):
    """Singular ones included: the eigenvalues are inverted, which gives the Moore–Penrose inverse.

    See docs/math.md, section 12.
    """
    gram = MarginalGram.of_weights(SIZES, u)
    np.testing.assert_allclose(dense(gram.inverse()), np.linalg.pinv(dense(gram), rcond=1e-12), atol=1e-9)


@given(WEIGHTS)
def test_thm_eigmarg(w):
    gram = MarginalGram.of_weights(SIZES, w)
    found = np.repeat(gram.eigenvalues.reshape(-1), multiplicity(SIZES).reshape(-1).astype(int))
    np.testing.assert_allclose(np.sort(found), np.linalg.eigvalsh(dense(gram)), atol=1e-9)


@given(WEIGHTS)
def test_weights_and_eigenvalues_are_one_transform_apart(w):
    np.testing.assert_allclose(MarginalGram.of_weights(SIZES, w).weights.reshape(-1), w, atol=1e-12)


@given(WEIGHTS)
def test_thm_margapprox(u):
    workload = Stack(
        [
            Kron([Prefix(3), Total(2), AllRange(4)]),
            Kron([Identity(3), Identity(2), Total(4)]),
            Kron([Total(3), Prefix(2), Prefix(4)]),
        ],
        [2, 1, 1],
    )
    gram, entries = MarginalGram.of_weights(SIZES, u), workload.dense()
    approximation = MarginalGram.approximate(workload.gram())
    assert (gram @ approximation).trace() == pytest.approx(np.trace(dense(gram) @ (entries.T @ entries)), abs=1e-6)


@given(WEIGHTS)
def test_the_sum_of_kronecker_products_is_the_same_matrix(w):
    gram = MarginalGram.of_weights(SIZES, w)
    np.testing.assert_allclose(gram.gram().dense(), dense(gram))
    assert gram.trace() == pytest.approx(np.trace(dense(gram)))


def test_twenty_attributes_are_inverted():
    sizes = (10,) * 20
    weights = np.random.default_rng(0).random(2**20)
    gram = MarginalGram.of_weights(sizes, weights)
    both = gram @ gram.inverse()
    np.testing.assert_allclose(both.eigenvalues, 1, rtol=1e-12)


def test_too_many_attributes_are_refused():
    with pytest.raises(TooLargeError, match=r"2\^25 marginals"):
        MarginalGram.of_weights((2,) * 25, np.ones(1))


def test_a_wrong_number_of_weights_is_refused():
    with pytest.raises(ValueError, match="expected 8 weights for 3 attributes"):
        MarginalGram.of_weights(SIZES, np.ones(7))
