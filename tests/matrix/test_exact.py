"""Exact answers by floating-point products: equal to Python's integers, in whatever pieces, also in place."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm import parallel as threads
from hdmm.matrix import AllRange, Dense, Identity, Kron, Matrix, Prefix, Total, kronecker
from hdmm.matrix.exact import INTEGER_BITS, LOW_BITS, Exact, exact_map, reach_of, slab_size

KINDS = st.sampled_from(["identity", "total", "small", "large", "prefix"])
CAP = 2**40


def make(kind: str, rows: int, columns: int, rng: np.random.Generator) -> Matrix:
    if kind == "small":
        return Dense(rng.integers(-9, 10, (rows, columns)))
    if kind == "large":
        return Dense(rng.integers(-(2**16), 2**16, (rows, columns)))
    leaves: dict[str, Callable[[int], Matrix]] = {"identity": Identity, "total": Total, "prefix": Prefix}
    return leaves[kind](columns)


@given(
    shapes=st.lists(st.tuples(KINDS, st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=4),
    bits=st.integers(0, 40),
    piece=st.integers(1, 300),
    few=st.sampled_from([0, 10**9]),
    overwrite=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_any_factors_in_any_pieces(shapes, bits, piece, few, overwrite, seed):
    rng = np.random.default_rng(seed)
    matrix = Kron(make(kind, rows, columns, rng) for kind, rows, columns in shapes)
    reach = int(np.prod([reach_of(factor) for factor in matrix.factors], dtype=object))
    if reach > 2**57:
        return
    counts = rng.integers(0, 2**bits + 1, matrix.shape[1])
    expected = matrix.dense().astype(object) @ counts.astype(object)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kronecker, "PIECE", piece)
        patch.setattr(threads, "MAX_SERIAL", few)
        found = exact_map(Exact.whole, matrix, reach, counts.copy(), np.dtype(object), overwrite=overwrite)
        assert found.tolist() == expected.tolist()
        if reach * int(counts.max()) <= 2**INTEGER_BITS:
            used = counts.copy()
            found = exact_map(Exact.whole, matrix, reach, used, np.dtype(np.int64), overwrite=overwrite)
            assert found.tolist() == expected.tolist()
            assert overwrite or (used == counts).all()


@pytest.mark.parametrize("top", [1, 2**22, CAP])
@pytest.mark.parametrize("rows", [3, 4, 5])
def test_in_place_of_the_counts_where_nothing_grows(rows, top):
    factor = Dense(np.random.default_rng(0).integers(-(2**10), 2**10, (rows, 4)))
    matrix = Kron([factor] * 3)
    counts = np.random.default_rng(1).integers(0, top + 1, 64)
    kept = counts.copy()

    def rounded(exact):
        return exact.low if exact.high is None else exact.high * 2.0**LOW_BITS + exact.low

    found = exact_map(rounded, matrix, reach_of(factor) ** 3, counts, np.dtype(float), overwrite=True)
    expected = (matrix.dense().astype(object) @ kept.astype(object)).astype(float)
    assert found.tolist() == expected.tolist()
    assert np.shares_memory(found, counts) == (rows <= 4)


def test_functions_with_answers_beyond_64_bits():
    matrix = Kron([AllRange(5), Dense(np.full((1, 4), 2**16)), AllRange(3)])
    counts = np.full(60, CAP)
    reach = 5 * 3 * 2**18
    found = exact_map(Exact.whole, matrix, reach * 2**20, counts, np.dtype(object))
    assert found.tolist() == (matrix.dense().astype(object) @ counts.astype(object)).tolist()


def test_slabs_are_larger_where_less_fits_before_them(monkeypatch):
    monkeypatch.setattr(kronecker, "PIECE", 8)
    factor = Dense(np.full((4, 4), 2**9))
    sizes = [slab_size([factor] * 4, 2**bits) for bits in (0, 10, 20, 40)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_progress_rises_to_one(monkeypatch):
    monkeypatch.setattr(kronecker, "PIECE", 8)
    told: list[float] = []
    factor = Dense(np.random.default_rng(0).integers(-(2**12), 2**12, (4, 4)))
    matrix, counts = Kron([factor] * 4), np.full(256, 9)
    exact_map(Exact.whole, matrix, reach_of(factor) ** 4, counts, np.dtype(object), on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    assert len(told) > 4
