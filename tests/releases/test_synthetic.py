"""Synthetic records: real labels, the tables of their estimate, the same ones for the same seed."""

import numpy as np
import pytest

import hdmm
from hdmm.errors import InputError, NotSupportedError, TooLargeError
from hdmm.estimators.graphical import available
from hdmm.matrix import Identity
from hdmm.plans import Goal, Mechanism, Plan
from hdmm.releases import synthetic
from hdmm.releases.estimates import Estimates
from hdmm.releases.synthetic import NOTE, synthesize
from hdmm.strategy import Block, Strategy

needs_mbi = pytest.mark.skipif(not available(), reason="mbi is not installed: pip install 'hdmm[pgm]'")
SCHEMA = hdmm.Schema(
    sex=["F", "M"], age=range(3), income=hdmm.Bins([0, 10, 50]), state=hdmm.Listed(["CA"], other=True), unseen=[1, 2]
)
X = np.random.default_rng(3).poisson(60, (2, 3, 2, 2)).astype(float)
PAIRS = [(0, 1), (1, 2), (2, 3)]
STRATEGY = Strategy(
    SCHEMA.sizes, tuple(Block(a, tuple(Identity(SCHEMA.sizes[axis]) for axis in a)) for a in PAIRS), "marginal"
)
ANSWERS = [X.sum(axis=tuple(axis for axis in range(4) if axis not in a)).reshape(-1) for a in PAIRS]
PLAN = Plan(hdmm.Workload(SCHEMA), Mechanism(STRATEGY, "gaussian", hdmm.Unit()), Goal(), "by hand")


def measured(answers):
    return Estimates(PLAN, hdmm.Budget(rho="1"), tuple(answers))


sources = pytest.mark.parametrize(
    "source", [pytest.param("Private-PGM", marks=needs_mbi), "non-negative least squares"]
)


def made(monkeypatch, source, **given):
    monkeypatch.setattr(synthetic, "available", lambda: source == "Private-PGM")
    return synthesize(measured(ANSWERS), **given)


@sources
def test_rows_have_labels_and_the_tables_that_were_measured(monkeypatch, source):
    table = made(monkeypatch, source, seed=1)
    assert table.schema.metadata == {b"hdmm.estimator": source.encode(), b"hdmm.note": NOTE.encode()}
    assert table.column_names == list(SCHEMA)
    assert table.num_rows == X.sum()
    labels = [domain.labels() for domain in SCHEMA.values()]
    assert table["age"].type == "int64"
    codes = [[own.index(value) for value in table[name].to_pylist()] for own, name in zip(labels, SCHEMA, strict=True)]
    for axes, answers in zip(PAIRS, ANSWERS, strict=True):
        sizes = [SCHEMA.sizes[axis] for axis in axes]
        found = np.bincount(np.ravel_multi_index([codes[axis] for axis in axes], sizes), minlength=len(answers))
        assert abs(found - answers).max() <= 12  # of about 100 each
    assert 0.4 < np.mean(codes[4]) < 0.6, "what was not measured is spread evenly"


@sources
def test_the_same_seed_gives_the_same_rows_and_leaves_other_random_numbers_alone(monkeypatch, source):
    np.random.seed(9)
    expected = np.random.uniform()
    np.random.seed(9)
    one = made(monkeypatch, source, rows=50, seed=4)
    assert np.random.uniform() == expected
    assert made(monkeypatch, source, rows=50, seed=4) == one
    assert made(monkeypatch, source, rows=50, seed=5) != one
    assert made(monkeypatch, source, rows=50) != one
    assert one.num_rows == 50


@sources
def test_no_rows_are_a_table_with_its_columns(monkeypatch, source):
    table = made(monkeypatch, source, rows=0)
    assert table.num_rows == 0
    assert table.column_names == list(SCHEMA)


def test_rows_of_a_vector_that_holds_nobody_are_spread_evenly(monkeypatch):
    monkeypatch.setattr(synthetic, "available", lambda: False)
    table = synthesize(measured([-answers for answers in ANSWERS]), rows=24)
    assert table["sex"].to_pylist().count("F") == 12


@pytest.mark.parametrize("given", [{"rows": -1}, {"rows": True}, {"rows": 2.5}, {"seed": -3}, {"seed": "x"}])
def test_bad_numbers_are_refused(given):
    with pytest.raises(InputError, match="expected an integer from 0"):
        synthesize(measured(ANSWERS), **given)


def test_too_many_rows_are_refused(monkeypatch):
    with pytest.raises(TooLargeError, match="ask for fewer rows"):
        made(monkeypatch, "non-negative least squares", rows=10**12)


def test_where_neither_source_fits_it_says_why(monkeypatch):
    monkeypatch.setattr(synthetic, "MAX_CELLS", 2)
    with pytest.raises(NotSupportedError, match=r"pip install 'hdmm\[pgm\]'"):
        made(monkeypatch, "non-negative least squares")

    def too_large(strategy):
        raise TooLargeError("junction tree")

    monkeypatch.setattr(synthetic, "check_tree", too_large)
    with pytest.raises(TooLargeError, match="too large for either"):
        made(monkeypatch, "Private-PGM")
