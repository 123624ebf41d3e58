"""Algorithm 2 agrees with the Kronecker product written out, in whatever pieces it works, and in one buffer."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm import parallel as threads
from hdmm.matrix import Dense, Identity, Kron, Prefix, Total, kronecker
from hdmm.matrix.intervals import running_sums

SHAPES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=4)


@given(shapes=SHAPES, piece=st.integers(1, 200), columns=st.sampled_from([None, 1, 3]), seed=st.integers(0, 100))
def test_any_shapes_in_any_pieces(shapes, piece, columns, seed):
    rng = np.random.default_rng(seed)
    factors = [rng.integers(-4, 5, shape) for shape in shapes]
    expected = np.ones((1, 1), int)
    for factor in factors:
        expected = np.kron(expected, factor)
    size = expected.shape[1]
    x = rng.integers(-9, 9, size if columns is None else (size, columns))
    before = kronecker.PIECE
    try:
        kronecker.PIECE = piece
        np.testing.assert_array_equal(Kron([Dense(factor) for factor in factors]).apply(x), expected @ x)
    finally:
        kronecker.PIECE = before


@pytest.mark.parametrize(
    "factor", [Dense(np.random.default_rng(0).normal(size=(16, 16))), Prefix(16)], ids=["dense", "prefix"]
)
def test_only_the_input_and_one_buffer_are_alive(factor, monkeypatch):
    monkeypatch.setattr(kronecker, "PIECE", 1 << 12)
    product = Kron([factor] * 5)
    tracemalloc.start()
    x = np.ones(16**5)
    product.apply(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.1 * x.nbytes


@given(shapes=SHAPES, piece=st.integers(1, 200), seed=st.integers(0, 100))
def test_in_place_of_its_input_and_in_several_threads(shapes, piece, seed):
    rng = np.random.default_rng(seed)
    product = Kron([Dense(rng.integers(-4, 5, shape)) for shape in shapes])
    x = rng.integers(-9, 9, product.shape[1])
    expected = product.dense() @ x
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kronecker, "PIECE", piece)
        patch.setattr(threads, "MAX_SERIAL", 0)
        room = np.zeros(max(x.size, kronecker.work_size(product.steps)), np.int64)
        room[: x.size] = x
        found = kronecker.kron_into(product.steps, room[: x.size], room.view(float))
        assert found.tolist() == expected.tolist()


def test_a_shrinking_product_keeps_no_large_buffer():
    answer = Kron([Total(50), Identity(4), Total(50)]).apply(np.ones(10_000))
    assert answer.base is None or answer.base.size <= 2 * answer.size


def test_a_vector_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="expected 12"):
        Kron([Identity(3), Prefix(4)]).apply(np.ones(11))


@pytest.mark.parametrize("columns", [1, 255, 256, 1000])
def test_running_sums_are_cumulative(columns):
    x = np.random.default_rng(1).integers(0, 9, (7, columns))
    np.testing.assert_array_equal(running_sums(x), np.cumsum(x, axis=0))
