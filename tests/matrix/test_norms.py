"""The largest column norm of a stack is exact, whatever the weights, without enumerating its columns."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hdmm.matrix import AllRange, Dense, Identity, Kron, Matrix, Prefix, Stack, Total
from hdmm.matrix.norms import stacked_norm

SIZES = (3, 2, 4)
LEAVES = st.sampled_from(["identity", "total", "prefix", "ranges", "dense"])


def leaf(kind: str, n: int, seed: int):
    entries = np.random.default_rng(seed).integers(-2, 3, (2, n))
    return {"identity": Identity(n), "total": Total(n), "prefix": Prefix(n), "ranges": AllRange(n)}.get(
        kind, Dense(entries)
    )


@given(
    parts=st.lists(st.tuples(LEAVES, LEAVES, LEAVES), min_size=1, max_size=4),
    weights=st.lists(st.fractions(Fraction(1, 4), 3, max_denominator=6), min_size=4, max_size=4),
    p=st.sampled_from([1, 2]),
    seed=st.integers(0, 50),
)
def test_the_norm_of_a_weighted_stack_is_exact(parts, weights, p, seed):
    matrices = [Kron(leaf(kind, n, seed) for kind, n in zip(kinds, SIZES, strict=True)) for kinds in parts]
    chosen = weights[: len(matrices)]
    columns = sum(
        w**p * (abs(m.dense()) ** p).sum(axis=0).astype(object) for w, m in zip(chosen, matrices, strict=True)
    )
    norm = Stack(matrices, chosen).norm_power(p)
    assert isinstance(norm, int | Fraction)
    assert norm == max(columns)


def test_the_maxima_of_parts_in_different_columns_do_not_add():
    first, second = Dense(np.array([[5, 0, 0]])), Dense(np.array([[0, 0, 4]]))
    assert Stack([Kron([first, Identity(2)]), Kron([second, Identity(2)])]).norm_power(1) == 5


def test_a_domain_that_fits_no_memory_has_an_exact_norm():
    factors = [Identity(1000), Prefix(1000), Total(1000)]
    parts = [Kron(factors * 4), Kron(factors[::-1] * 4)]
    assert Stack(parts).norm_power(1) == 1000**4 * 2


def test_norms_beyond_64_bits_are_exact():
    """Sixteen bits for each of seven attributes, and classes that are all dominated by one."""
    factor = Dense(np.array([[2**16, 2**15], [2**16 - 1, 3]]))
    for p in (1, 2):
        largest = factor.norm_power(p)
        for weight in (1, 3, Fraction(1, 7)):
            parts: list[list[Matrix]] = [[factor] * 7, [factor] * 6 + [Total(2)]]
            expected = weight * largest**7 + 2 * largest**6
            assert stacked_norm(parts, [weight, 2], p) == expected
            assert stacked_norm(parts[:1], [weight], p) == weight * largest**7


def test_norms_beyond_64_bits_are_the_largest_over_all_columns():
    uneven = Dense(np.array([[2**16, 0], [0, 2**16], [0, 1]]))
    other = Dense(np.array([[5, 2**16], [2**16, 0]]))
    parts: list[list[Matrix]] = [[*[uneven] * 3, *[other] * 4], [*[uneven] * 3, *[other] * 3, Total(2)]]
    norms = [[[sum(int(e) ** 2 for e in column) for column in f.dense().T] for f in part] for part in parts]
    expected = max(
        sum(prod(norm[cell] for norm, cell in zip(part, place, strict=True)) for part in norms)
        for place in product((0, 1), repeat=7)
    )
    assert stacked_norm(parts, [1, 1], 2) == expected
    assert expected > 2**64
