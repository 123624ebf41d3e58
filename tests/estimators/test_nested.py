"""Least squares over nested boxes: its parts that only larger domains use, and which strategies it takes."""

from fractions import Fraction

import numpy as np
import pytest

import hdmm
from hdmm.estimators import nested as module
from hdmm.estimators.estimator import types_of, variances
from hdmm.estimators.least_squares import least_squares
from hdmm.estimators.nested import NestedLeastSquares, nested
from hdmm.matrix import Dense, Identity, Matrix, Partition
from hdmm.strategy import Block, Strategy


def tree(sizes, skipped=()):
    """Levels that halve all attributes; the weights are no power of anything."""
    depth = max((size - 1).bit_length() for size in sizes)
    blocks = []
    for level in set(range(depth + 1)) - set(skipped):
        factors = tuple(Partition.halved(size, level) for size in sizes)
        blocks.append(Block(tuple(range(len(sizes))), factors, Fraction(2 + level, 3)))
    return Strategy(sizes, tuple(blocks), "union")


def workload(sizes):
    schema = hdmm.Schema({f"a{place}": range(size) for place, size in enumerate(sizes)})
    asked = hdmm.Workload(schema).add("boxes", {name: hdmm.AllRange() for name in schema}).add("total")
    asked = asked.add("prefixes", a0=hdmm.Prefix(), weight=2)
    return asked if len(sizes) < 2 else asked.add("either", a1=hdmm.Prefix(), where="a0 = 1 OR a1 >= 2")


def every_variance(estimator, product, noise):
    types = types_of(estimator, product)
    found = variances(estimator, product, noise, types)
    return found[np.ix_(*[each.labels for each in types])].reshape(-1) if types else found.reshape(-1)


@pytest.mark.parametrize("skipped", [(), (0,), (1,)], ids=str)
@pytest.mark.parametrize("sizes", [(8, 4), (16,), (4, 4, 2), (5, 7), (13,), (6, 3, 2)], ids=str)
def test_variances_of_many_cells_are_exact_if_boxes_are_alike_and_bounds_otherwise(sizes, skipped, monkeypatch):
    strategy, encoded = tree(sizes, skipped), workload(sizes).encoded
    exact = NestedLeastSquares(strategy, written=True)
    monkeypatch.setattr(module, "_MAX_WRITTEN", 1)
    quick = least_squares(strategy)
    assert isinstance(quick, NestedLeastSquares)
    assert quick.bounded
    assert not quick.totals_bounded
    assert not quick.exact().bounded
    even = all(size & (size - 1) == 0 for size in sizes)
    noise = np.random.default_rng(1).uniform(1, 5, len(strategy.blocks)).tolist()
    for product in encoded.products:
        expected, found = every_variance(exact, product, noise), every_variance(quick, product, noise)
        if even:
            np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert (found >= expected * (1 - 1e-9)).all()
        assert (found <= expected * 1.25).all()
        assert quick.squared_error(product, noise) == pytest.approx(expected.sum())


def test_bounds_hold_if_noise_is_far_from_what_the_weights_say(monkeypatch):
    strategy, encoded = tree((5, 7)), workload((5, 7)).encoded
    exact = NestedLeastSquares(strategy, written=True)
    monkeypatch.setattr(module, "_MAX_WRITTEN", 1)
    quick = least_squares(strategy)
    levels = len(strategy.blocks)
    for noise in (
        [0.0] * levels,
        [0.0, *[1.0] * (levels - 1)],
        [*[1.0] * (levels - 1), 0.0],
        [1e-300, *[1.0] * (levels - 1)],
    ):
        for product in encoded.products:
            assert (
                every_variance(quick, product, noise) >= every_variance(exact, product, noise) * (1 - 1e-9) - 1e-12
            ).all()


def test_only_nested_boxes_down_to_cells_are_taken():
    halves, thirds, cells = Partition(6, (3, 6)), Partition(6, (2, 4, 6)), Identity(6)
    levels: dict[str, tuple[list[Matrix], bool]] = {
        "nested": ([halves, cells], True),
        "crossing": ([halves, thirds, cells], False),
        "without cells": ([halves, Partition(6, (3, 4, 6))], False),
        "cells alone": ([cells], False),
        "other queries": ([Dense(np.array([[1, 1, 1, 0, 0, 0]])), cells], False),
    }
    for name, (factors, taken) in levels.items():
        strategy = Strategy((6,), tuple(Block((0,), (factor,)) for factor in factors), "union")
        assert nested(strategy) == taken, name
    with pytest.raises(ValueError, match="nested boxes"):
        NestedLeastSquares(Strategy((6,), (Block((0,), (halves,)),), "union"))


def test_a_partition_covers_all_cells_in_order():
    for ends in ((), (2,), (2, 2, 4), (3, 2, 4), (0, 4), (5,)):
        with pytest.raises(ValueError, match="ends of groups"):
            Partition(4, ends)
    assert [Partition.halved(5, times).ends for times in range(4)] == [(5,), (2, 5), (1, 2, 3, 5), (1, 2, 3, 4, 5)]
