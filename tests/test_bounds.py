"""The SVD bound is that of the singular values, and it factorises."""

import numpy as np
import pytest

from hdmm.bounds import svd_bound
from hdmm.matrix import Matrix, Width
from hdmm.schema import Schema
from hdmm.workload import AllRange, Identity, Prefix, Total, Where, Workload
from tests.contract.zoo import MATRICES


def explicit(matrix: Matrix) -> float:
    values = np.linalg.svd(matrix.dense().astype(float), compute_uv=False)
    return float(values.sum() ** 2 / matrix.shape[1])


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
def test_it_is_the_squared_sum_of_singular_values_over_the_cells(matrix: Matrix):
    assert svd_bound(matrix.gram()) == pytest.approx(explicit(matrix), rel=1e-6)


def test_thm_svd_bound_decomposition():
    sets = {"a": Prefix(), "b": AllRange(), "c": Identity() | Total()}
    sizes = {"a": range(60), "b": range(50), "c": range(40)}
    parts = [svd_bound(Workload(Schema({n: sizes[n]})).add("w", {n: sets[n]}).encoded.gram()) for n in sets]
    assert svd_bound(Workload(Schema(sizes)).add("w", sets).encoded.gram()) == pytest.approx(np.prod(np.array(parts)))


def test_attributes_of_one_cell_count():
    schema = Schema(a=range(4), b=range(1), c=range(3))
    workload = Workload(schema).add("twice", a=Identity(), b=Identity() | Total()).add("c", c=Identity() | Total())
    assert svd_bound(workload.encoded.gram()) == pytest.approx(explicit(workload.encoded.matrix()))


def test_a_large_union_has_no_bound_yet():
    schema = Schema(a=range(100), b=range(100))
    workload = Workload(schema).add("p", a=Prefix()).add("q", b=Prefix())
    assert svd_bound(workload.encoded.gram()) is None


def test_rounding_does_not_lift_the_bound():
    schema = Schema(a=range(2000))
    workload = Workload(schema).add("once", a=Total()).add("again", a=Where("a >= 0"), weight=3)
    bound = svd_bound(workload.encoded.gram())
    assert bound is not None
    assert bound <= 10


MARGINALS = [
    lambda w: w.add("a", a=Identity()).add("b", b=Identity(), weight=2).add("t"),
    lambda w: w.add("ab", a=Identity(), b=Identity()).add("bc", b=Identity() | Total(), c=Identity()),
    lambda w: w.add("abc", a=Identity(), b=Identity(), c=Identity()).add("c", c=Identity() | Total(), weight=3),
]


@pytest.mark.parametrize("build", MARGINALS)
def test_thm_margsvdb(build):
    """The closed form for unions of marginals, with the multiplicities of the errata."""
    workload = build(Workload(Schema(a=range(3), b=range(4), c=range(5))))
    assert svd_bound(workload.encoded.gram()) == pytest.approx(explicit(workload.encoded.matrix()), rel=1e-9)


@pytest.mark.parametrize(("n", "width"), [(10, 3), (10, 8), (33, 32), (64, 1)])
def test_the_band_of_a_width_has_its_singular_values(n, width):
    matrix = Width(n, width)
    assert svd_bound(matrix.gram()) == pytest.approx(explicit(matrix), rel=1e-9)
