"""Every matrix does what its entries, written out, do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.matrix import AllRange, Kron, Matrix, Restricted
from hdmm.matrix.intervals import interval_rows
from tests.contract.zoo import MATRICES

every = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
INTEGERS = {name: matrix for name, matrix in MATRICES.items() if matrix.dtype == np.int64}
SINGLE = {name: matrix for name, matrix in MATRICES.items() if len(matrix.gram().sizes) == 1}


def vectors(matrix: Matrix, side: int, columns: int | None = None) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(matrix.shape[side], columns) if columns else matrix.shape[side])


@every
@pytest.mark.parametrize("columns", [None, 3])
def test_apply_is_the_product(matrix: Matrix, columns: int | None):
    x = vectors(matrix, 1, columns)
    np.testing.assert_allclose(matrix.apply(x), matrix.dense() @ x, atol=1e-12)


@every
@pytest.mark.parametrize("columns", [None, 3])
def test_apply_t_is_the_product_with_the_transpose(matrix: Matrix, columns: int | None):
    y = vectors(matrix, 0, columns)
    np.testing.assert_allclose(matrix.apply_t(y), matrix.dense().T @ y, atol=1e-12)


@every
def test_the_input_is_left_alone(matrix: Matrix):
    x = vectors(matrix, 1)
    before = x.copy()
    matrix.apply(x)[:] = 0
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("matrix", INTEGERS.values(), ids=INTEGERS.keys())
@given(data=st.data())
def test_integers_stay_exact(matrix: Matrix, data: st.DataObject):
    size = matrix.shape[1]
    x = np.array(data.draw(st.lists(st.integers(0, 2**52), min_size=size, max_size=size)))
    answer = matrix.apply(x)
    assert answer.dtype == np.int64
    exact = matrix.dense().astype(object) @ x.astype(object)
    assert answer.tolist() == exact.tolist()


@every
def test_gram_is_the_product_of_the_transpose_with_the_matrix(matrix: Matrix):
    entries = matrix.dense()
    np.testing.assert_allclose(matrix.gram().dense(), entries.T @ entries, atol=1e-12)


@every
def test_gram_applies_without_being_written_out(matrix: Matrix):
    x = vectors(matrix, 1)
    entries = matrix.dense()
    np.testing.assert_allclose(matrix.gram().apply(x), entries.T @ (entries @ x), atol=1e-10)


@every
def test_the_trace_of_the_gram_is_the_squared_frobenius_norm(matrix: Matrix):
    assert matrix.gram().trace() == pytest.approx((matrix.dense().astype(float) ** 2).sum())


@pytest.mark.parametrize("matrix", SINGLE.values(), ids=SINGLE.keys())
def test_a_gram_over_one_attribute_knows_its_diagonal_and_total(matrix: Matrix):
    gram = matrix.gram()
    entries = matrix.dense().astype(float)
    np.testing.assert_allclose(gram.axis_gram().diagonal(), (entries**2).sum(axis=0))
    assert gram.axis_gram().total() == pytest.approx((entries.sum(axis=1) ** 2).sum())


@every
@pytest.mark.parametrize("p", [1, 2])
def test_column_norms(matrix: Matrix, p):
    np.testing.assert_allclose(matrix.column_norms(p), (abs(matrix.dense()) ** p).sum(axis=0))


@every
@pytest.mark.parametrize("p", [1, 2])
def test_the_norm_is_the_largest_column_and_an_integer_for_integers(matrix: Matrix, p):
    norm = matrix.norm_power(p)
    assert float(norm) == pytest.approx((abs(matrix.dense()) ** p).sum(axis=0).max())
    if matrix.dtype == np.int64:
        assert isinstance(norm, int)


@every
def test_rows_are_those_of_the_written_out_matrix(matrix: Matrix):
    index = np.arange(matrix.shape[0])[::-1]
    tolerance = 0 if matrix.dtype == np.int64 else 1e-14  # BLAS may round columns differently in another order
    np.testing.assert_allclose(matrix.rows(index), matrix.dense()[index], rtol=0, atol=tolerance)


@every
def test_it_cannot_be_changed(matrix: Matrix):
    with pytest.raises(AttributeError):
        matrix.shape = (1, 1)  # type: ignore[misc]


@pytest.mark.parametrize("matrix", SINGLE.values(), ids=SINGLE.keys())
def test_it_is_a_factor_of_products(matrix: Matrix):
    product = Kron([matrix, matrix])
    np.testing.assert_allclose(product.dense(), np.kron(matrix.dense(), matrix.dense()), atol=1e-12)


@every
def test_intervals_are_its_rows(matrix: Matrix):
    intervals = matrix.intervals()
    if intervals is not None:
        np.testing.assert_array_equal(interval_rows(*intervals, matrix.shape[1]), matrix.dense())


def test_ordered_matrices_have_intervals():
    names = {name for name, matrix in MATRICES.items() if matrix.intervals() is not None}
    assert names >= {"identity", "total", "prefix", "width", "all ranges", "padded ranges", "union on one attribute"}
    assert "one row" in names
    assert Restricted(AllRange(4), np.array([False, True, True, False])).intervals() is not None
