"""Private-PGM: beside non-negative least squares of the same total, written out; and refusals before anything runs."""

import numpy as np
import pytest
from scipy.optimize import nnls

import hdmm
from hdmm.errors import InputError, NotSupportedError, TooLargeError
from hdmm.estimators import graphical
from hdmm.estimators.biased import counts_on, estimated_total
from hdmm.estimators.graphical import FittedModel, PrivatePGM, available, check_tree, tree_cells
from hdmm.estimators.least_squares import least_squares, local_least_squares
from hdmm.matrix import Dense, Identity
from hdmm.memory.limit import memory_allowed
from hdmm.strategy import Block, Strategy
from tests.contract.zoo import SCHEMA, STRATEGIES, dense_blocks

needs_mbi = pytest.mark.skipif(not available(), reason="mbi is not installed: pip install 'hdmm[pgm]'")
NAMES = ["kron", "marginals", "marginals over bases", "residuals", "union", "explicit", "direct"]


def graphical_model(strategy, answers, noise):
    return PrivatePGM(least_squares(strategy)).reconstruct(answers, noise)


@needs_mbi
@pytest.mark.parametrize("name", NAMES)
def test_the_model_fits_as_well_as_any_counts_of_its_total(name):
    strategy, workload = STRATEGIES[name]
    rng = np.random.default_rng(5)
    x = rng.poisson(0.7, 24)
    blocks = dense_blocks(strategy, workload.encoded)
    noise = rng.uniform(1, 4, len(blocks)) ** 2
    answers = [block @ x + rng.normal(size=len(block)) * np.sqrt(v) for block, v in zip(blocks, noise, strict=True)]
    found = graphical_model(strategy, answers, list(noise))
    scale = np.sqrt(np.repeat(noise, [len(block) for block in blocks]))
    A, y = np.vstack(blocks) / scale[:, None], np.concatenate(answers) / scale
    expected, _ = nnls(np.vstack([A, np.full((1, 24), 1e5)]), np.append(y, 1e5 * found.total))
    got = found.answer(counts_on({0: 2, 1: 3, 2: 4}))
    assert got.min() >= 0
    assert (
        got.sum() == pytest.approx(found.total) == estimated_total(local_least_squares(strategy), answers, list(noise))
    )
    np.testing.assert_allclose(A @ got, A @ expected, atol=0.01)  # in standard errors of the noise
    for product in workload.encoded.products:
        np.testing.assert_allclose(found.answer(product), workload.encoded.of(product).dense() @ got, atol=1e-6)


@needs_mbi
def test_it_says_nothing_that_was_not_measured():
    pairs = tuple(Block(a, tuple(Identity(SCHEMA.sizes[axis]) for axis in a)) for a in [(0, 1), (1, 2)])
    strategy = Strategy(SCHEMA.sizes, pairs, "marginal")
    x = np.random.default_rng(0).poisson(20, (2, 3, 4)).astype(float)
    found = graphical_model(strategy, [x.sum(axis=2).reshape(-1), x.sum(axis=0).reshape(-1)], [0.01, 0.01])
    expected = x.sum(axis=2)[:, :, None] * x.sum(axis=0)[None] / x.sum(axis=(0, 2))[None, :, None]
    np.testing.assert_allclose(found.answer(counts_on({0: 2, 1: 3, 2: 4})), expected.reshape(-1), atol=0.02)
    np.testing.assert_allclose(found.answer(counts_on({0: 2, 2: 4})), expected.sum(axis=1).reshape(-1), atol=0.02)
    assert found.label == "Private-PGM"


@needs_mbi
def test_attributes_that_were_not_measured_are_spread_evenly():
    strategy = Strategy(SCHEMA.sizes, (Block((0,), (Identity(2),)),), "kron")
    found = graphical_model(strategy, [np.array([30, 10])], [1.0])
    np.testing.assert_allclose(found.answer(counts_on({0: 2, 2: 4})), [7.5] * 4 + [2.5] * 4, atol=1e-3)


@needs_mbi
def test_no_records_are_taken_for_one():
    strategy = Strategy(SCHEMA.sizes, (Block((0,), (Identity(2),)),), "kron")
    assert graphical_model(strategy, [np.array([-3, -5])], [1.0]).total == 1


@needs_mbi
def test_without_a_total_it_is_refused():
    strategy = Strategy(SCHEMA.sizes, (Block((0,), (Dense(np.array([[1, 0]])),)),), "kron")
    with pytest.raises(NotSupportedError, match="product 'total'"):
        graphical_model(strategy, [np.array([3])], [1.0])


def test_without_mbi_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(graphical, "available", lambda: False)
    strategy, _ = STRATEGIES["kron"]
    with pytest.raises(InputError, match=r"pip install 'hdmm\[pgm\]'"):
        graphical_model(strategy, [], [])


def test_tables_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(graphical, "MAX_TREE_CELLS", 5)
    with pytest.raises(TooLargeError, match="has 8 cells; at most 5"):
        FittedModel((2, 3, 4), 1.0, None).answer(counts_on({0: 2, 2: 4}))


@pytest.mark.parametrize(
    ("cliques", "cells"),
    [
        ([(0, 1), (1, 2), (2, 3)], 10 * 20 + 20 * 30 + 30 * 40 + 40),  # a chain: no new neighbours
        ([(0, 1), (1, 2), (2, 3), (0, 3)], 20 * 10 * 30 + 10 * 30 * 40 + 30 * 40 + 40),  # a cycle needs a chord
        ([(0, 1, 2)], 10 * 20 * 30 + 20 * 30 + 30),
        ([(), (2,)], 30),
        ([()], 0),
    ],
)
def test_the_size_of_a_junction_tree(cliques, cells):
    assert tree_cells((10, 20, 30, 40), cliques) == cells


def test_all_pairs_of_a_large_schema_are_refused_at_once():
    schema = hdmm.Schema({f"a{i}": range(10) for i in range(30)})
    pairs = hdmm.marginals(schema, k=2).encoded.products
    blocks = tuple(Block(product.axes, tuple(product.factors.values())) for product in pairs)
    with pytest.raises(TooLargeError, match="junction tree of about"):
        check_tree(Strategy(schema.sizes, blocks, "marginal"))


def test_a_tree_that_memory_does_not_hold_is_refused():
    strategy = Strategy((100, 100, 100), (Block((0, 1, 2), (Identity(100),) * 3),), "marginal")
    check_tree(strategy)
    with (
        memory_allowed(200 * 10**6),
        pytest.raises(TooLargeError, match=r"needs 259 MB .* limit is 200 MB.*memory=\"8GB\""),
    ):
        check_tree(strategy)
