"""What a replaced record changes is the largest difference of two columns, or an upper bound that says so."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdmm.matrix import AllRange, Dense, Identity, Kron, Prefix, Spiked, Total
from hdmm.strategy import Block
from hdmm.strategy.replacement import change_by_replacing
from hdmm.strategy.sensitivity import change_by_adding
from tests.contract.zoo import STRATEGIES, dense_blocks

SIZES = (3, 2, 4)
LEAVES = ["identity", "total", "prefix", "ranges", "deviations", "counts", "signed"]


def leaf(kind: str, n: int, seed: int):
    rng = np.random.default_rng(seed)
    return {
        "identity": Identity(n),
        "total": Total(n),
        "prefix": Prefix(n),
        "ranges": AllRange(n),
        "deviations": Spiked.centred(n),
        "counts": Dense(rng.integers(0, 4, (3, n))),
        "signed": Dense(rng.integers(-3, 4, (3, n))),
    }[kind]


def largest(queries: np.ndarray, p: int):
    """Over all pairs of columns, and over all columns: one of the two records may be outside the domain."""
    columns = [*queries.T, np.zeros(len(queries), object)]
    return max(sum(abs(entry) ** p for entry in one - other) for one in columns for other in columns)


def queries_of(blocks: list[Block], sizes: tuple[int, ...]) -> np.ndarray:
    rows = []
    for block in blocks:
        factors = dict(zip(block.axes, block.factors, strict=True))
        whole = Kron([factors.get(axis, Total(n)) for axis, n in enumerate(sizes)]).dense()
        rows.append(whole.astype(object) * block.weight)
    return np.vstack(rows)


@st.composite
def some_blocks(draw):
    blocks = []
    for _ in range(draw(st.integers(1, 3))):
        axes = tuple(sorted(draw(st.sets(st.integers(0, 2)))))
        factors = tuple(leaf(draw(st.sampled_from(LEAVES)), SIZES[a], draw(st.integers(0, 20))) for a in axes)
        blocks.append(Block(axes, factors, draw(st.fractions(Fraction(1, 4), 3, max_denominator=6))))
    return blocks


@settings(max_examples=40)
@given(blocks=some_blocks(), p=st.sampled_from([1, 2]))
def test_it_is_the_largest_difference_or_an_upper_bound_that_says_so(blocks, p):
    found = change_by_replacing(blocks, p)
    true = largest(queries_of(blocks, SIZES), p)
    assert found.power >= true
    if found.exact:
        assert found.power == true
    assert change_by_adding(blocks, p).power <= found.power <= 2**p * change_by_adding(blocks, p).power


@settings(max_examples=40)
@given(blocks=some_blocks())
def test_it_is_exact_under_the_euclidean_norm(blocks):
    assert change_by_replacing(blocks, 2).exact


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_family_is_bounded(name, p):
    strategy, workload = STRATEGIES[name]
    dense = dense_blocks(strategy, workload.encoded)
    weights = [block.weight for block in strategy.blocks]
    if any(block.dtype.kind != "i" for block in dense):
        pytest.skip("not a strategy of integers")
    queries = np.vstack([block.astype(object) * weight for block, weight in zip(dense, weights, strict=True)])
    found = change_by_replacing(strategy.blocks, p)
    true = largest(queries, p)
    assert found.power == true if found.exact else found.power >= true


def test_marginals_change_twice_but_for_the_count_of_all():
    blocks = [Block((), ()), Block((0,), (Identity(3),), Fraction(2)), Block((0, 1), (Identity(3), Identity(2)))]
    assert change_by_replacing(blocks, 1) == (6, True)
    assert change_by_replacing(blocks, 2) == (10, True)
    assert change_by_replacing(blocks[:1], 1) == (1, True), "a record may be replaced by one that is not counted"


def test_an_attribute_with_one_value_changes_nothing():
    assert change_by_replacing([Block((0,), (Identity(1),))], 1) == (1, True)


def test_deviations_of_many_attributes_are_bounded_block_by_block():
    """Ten thousand blocks: every two columns of deviations overlap a little below 0."""
    n = 5
    centred = Spiked.centred(n)
    blocks = [Block((a, b), (centred, centred)) for a in range(150) for b in range(a + 1, 150)]
    norm = n * (n - 1)
    found = change_by_replacing(blocks, 2)
    assert not found.exact
    assert found.power == len(blocks) * 2 * (norm**2 + norm * n)


def test_large_attributes_have_the_bound_of_two_columns():
    wide = Dense(np.ones((1, 5000), np.int64) * 3)
    found = change_by_replacing([Block((0,), (wide,))], 1)
    assert (found.power, found.exact) == (6, False)


def test_the_exact_change_of_an_optimised_factor_is_below_twice_its_norm():
    rng = np.random.default_rng(3)
    entries = np.vstack([np.diag(rng.integers(5, 9, 6)), rng.integers(1, 4, (2, 6))])
    found = change_by_replacing([Block((0,), (Dense(entries),))], 1)
    assert (found.power, found.exact) == (largest(entries.astype(object), 1), True)
    assert found.power < 2 * change_by_adding([Block((0,), (Dense(entries),))], 1).power
