"""Least squares with a factor that is not written out is that with the same factor written out."""

import numpy as np
import pytest

from hdmm.estimators.factor import Explicit, Implicit, solution_of
from hdmm.matrix import AllRange, Dense, Haar, Identity, Prefix, Restricted, Select, Solvable, Stack, Total, Tree, Width
from hdmm.matrix.axis_gram import DenseGram, SumGram

N = 13
FACTORS: dict[str, Solvable] = {
    "binary": Tree.balanced(N, 2),
    "without root": Tree.balanced(N, 4, root=False),
    "weighted": Tree([np.array([N]), np.ones(N)], [np.array([3]), 1 + np.arange(N)]),
    "wavelet": Haar(N),
}
SHUFFLED = np.random.default_rng(3).permutation(N)
QUERIES = {
    "identity": Identity(N),
    "total": Total(N),
    "prefix": Prefix(N),
    "width": Width(N, 4),
    "all ranges": AllRange(N),
    "padded": Select(AllRange(N - 3), np.arange(N - 3) + 1, N),
    "shuffled": Select(AllRange(N), SHUFFLED, N),
    "restricted": Restricted(AllRange(N), np.arange(N) > 4),
    "with holes": Restricted(AllRange(N), np.arange(N) % 3 > 0),
    "union": Stack([Identity(N), Total(N)]),
    "weighted union": Stack([Identity(N), Prefix(N)], [2, 1]),
    "any": Dense(np.random.default_rng(3).integers(-2, 3, (5, N))),
    "nobody": Dense(np.zeros((1, N), np.int64)),
}
every = pytest.mark.parametrize("factor", FACTORS.values(), ids=FACTORS.keys())
asked = pytest.mark.parametrize("queries", QUERIES.values(), ids=QUERIES.keys())


@every
@asked
def test_errors_are_those_of_the_factor_written_out(factor, queries):
    gram = queries.axis_gram()
    expected = Explicit(Dense(factor.dense())).error(gram)
    assert solution_of(factor).error(gram) == pytest.approx(expected, rel=1e-9)


@every
def test_errors_of_sums_of_grams_are_those_of_the_factor_written_out(factor):
    sums = SumGram(((2.0, Prefix(N).axis_gram()), (0.5, AllRange(N).axis_gram())))
    for gram in (sums, DenseGram(sums.dense())):
        assert Implicit(factor).error(gram) == pytest.approx(Explicit(Dense(factor.dense())).error(gram), rel=1e-9)


@every
@asked
@pytest.mark.parametrize(
    "masks", [np.ones((1, N), bool), np.arange(N)[None] > 2, np.arange(N) % np.array([[1], [2]]) == 0]
)
def test_rows_weigh_the_measurements_as_with_the_factor_written_out(factor, queries, masks):
    inverse = np.linalg.pinv(factor.dense().astype(float))
    types = solution_of(factor).types(queries, masks)
    entries = np.stack([(queries.dense() * mask) @ inverse for mask in masks], axis=2)
    for label, row in zip(types.labels, entries, strict=True):
        kind = types.some(label, label + 1)
        for power in (2, 4, 6):
            read = (kind.counts[0] * (abs(kind.values[0]) ** power).T).sum(axis=1)
            np.testing.assert_allclose(read, (abs(row) ** power).sum(axis=0), rtol=1e-9, atol=1e-12)
        if len(masks) == 1:
            sizes = abs(row[:, 0])
            expected = [*((sizes**p).sum() for p in (2, 4, 6)), sizes.max()]
            moments = [kind.moment(2)[0], kind.moment(4)[0], kind.moment(6)[0], kind.moment("largest")[0]]
            np.testing.assert_allclose(moments, expected, rtol=1e-9, atol=1e-12)


@every
@asked
def test_a_factor_of_full_rank_determines_everything(factor, queries):
    assert solution_of(factor).determines(queries.axis_gram)


def test_a_shuffled_workload_is_not_determined_by_pairs_of_neighbours():
    pairs = Tree([np.array([4]), np.array([2, 2])], [np.array([1]), np.array([1, 1])])
    assert solution_of(pairs).determines(pairs.axis_gram)
    assert not solution_of(pairs).determines(Select(pairs, np.array([0, 2, 1, 3]), 4).axis_gram)


def test_the_identity_needs_no_hierarchy():
    assert solution_of(Identity(4)).error(Prefix(4).axis_gram()) == 10
