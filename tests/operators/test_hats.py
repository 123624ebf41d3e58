"""The search for pyramids of hats: exact errors and slopes, and better than what else there is for many cells."""

from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm.estimators.inverse import error
from hdmm.matrix import AxisGram, Hats
from hdmm.matrix.axis_gram import AllRangeGram, IdentityGram, OnesGram, PrefixGram, RowsGram, SumGram, WidthGram
from hdmm.matrix.partition import Partition, PartitionGram
from hdmm.matrix.pyramid import knots
from hdmm.operators.opt0.hat_demand import HatDemand
from hdmm.operators.opt0.hat_gradient import error_and_gradient
from hdmm.operators.opt0.hat_shapes import PREFIXES, RANGES, Normalised, exponents, likely_spacings
from hdmm.operators.opt0.hats import opt0_hats
from hdmm.optimise.descent import Effort

SHAPES = [(13, (2, 4)), (30, (3,)), (61, (2, 6, 18)), (50, (2, 4, 8, 16))]
shapes = pytest.mark.parametrize(("n", "spacings"), SHAPES)


def hats(n: int, spacings: tuple[int, ...]) -> Hats:
    random = np.random.default_rng(n)
    return Hats(n, spacings, [random.random(knots(n, spacing)) * 0.6 / len(spacings) for spacing in spacings])


def grams(n: int) -> list[AxisGram]:
    mixed = SumGram(((1.0, AllRangeGram(n)), (7.0, IdentityGram(n)), (3.0, OnesGram(n))))
    rows = RowsGram(np.random.default_rng(2).normal(size=(2, n)))
    levels = SumGram(((1.0, PartitionGram(Partition(n, (5, 9, n)))), (2.0, WidthGram(n, 4)), (0.5, PrefixGram(n))))
    return [PrefixGram(n), mixed, SumGram(((1.0, PrefixGram(n)), (1.0, rows))), levels]


@shapes
def test_errors_are_those_of_the_inverse_written_out(n, spacings):
    matrix = hats(n, spacings)
    entries = matrix.dense()
    inverse = np.linalg.inv(entries.T @ entries)
    for gram in grams(n):
        expected = pytest.approx(float(np.sum(inverse * gram.dense())), rel=1e-9)
        assert error(matrix, gram) == expected
        assert HatDemand(gram).error(matrix) == expected


@shapes
def test_slopes_are_those_of_small_differences(n, spacings):
    matrix = hats(n, spacings)
    for gram in grams(n)[:3]:
        demand = HatDemand(gram)
        value, slopes = error_and_gradient(demand, matrix)
        assert value == pytest.approx(demand.error(matrix), rel=1e-9)
        for level, heights in enumerate(matrix.heights):
            for number in range(len(heights)):
                reached = []
                for step in (1e-5, -1e-5):
                    levels = [np.array(other) for other in matrix.heights]
                    levels[level][number] += step
                    reached.append(demand.error(Hats(n, spacings, levels)))
                expected = (reached[0] - reached[1]) / 2e-5
                assert slopes[level][number] == pytest.approx(expected, rel=1e-4, abs=1e-5 * value)


def test_slopes_of_raw_heights_are_those_of_small_differences():
    n, spacings = 200, (3, 15, 60)
    normalised = Normalised(n, spacings)
    raw = np.exp(exponents(n, spacings) @ PREFIXES.numbers(n, spacings))
    weights = np.random.default_rng(1).normal(size=len(raw))

    def value(point: np.ndarray) -> float:
        matrix = normalised.matrix(point)
        assert matrix is not None
        return float(weights @ np.concatenate(matrix.heights))

    expected = [(value(raw + step) - value(raw - step)) / 2e-6 for step in np.eye(len(raw)) * 1e-6]
    np.testing.assert_allclose(normalised.slopes(raw, weights), expected, atol=1e-7)


@pytest.mark.parametrize("profile", [PREFIXES, RANGES])
@pytest.mark.parametrize("n", [1024, 1031, 4999, 11_000, 36_525, 86_400, 1 << 20, 1_000_003])
def test_every_size_has_spacings_that_waste_little(n, profile):
    found = likely_spacings(n, profile, 8)
    assert len(found) == 8
    for spacings in found:
        assert (knots(n, spacings[-1]) - 1) * spacings[-1] <= 1.05 * n
        raw = np.exp(exponents(n, spacings) @ profile.numbers(n, spacings))
        assert n > 40_000 or Normalised(n, spacings).matrix(raw) is not None


@pytest.mark.parametrize(
    ("gram", "queries", "most"),
    [
        (PrefixGram(1024), 1024, 9.70),
        (AllRangeGram(1024), 1024 * 1025 / 2, 11.20),
        (PrefixGram(4099), 4099, 12.30),
        (AllRangeGram(4099), 4099 * 4100 / 2, 14.35),
    ],
    ids=["1024 prefixes", "1024 ranges", "4099 prefixes", "4099 ranges"],
)
def test_errors_are_near_those_of_dense_strategies(gram, queries, most):
    solution = opt0_hats(gram, effort=Effort())
    assert solution is not None
    assert sqrt(2 * solution.error / queries) < most


def test_the_best_so_far_is_never_lost():
    gram = PrefixGram(1500)
    first = opt0_hats(gram, effort=Effort(quick=True))
    assert first is not None
    assert isinstance(first.matrix, Hats)
    again = opt0_hats(gram, effort=Effort(restarts=0), start=first.matrix)
    assert again is not None
    assert again.error <= first.error


SIZE = 12_000


def of(*products: dict[str, hdmm.workload.Predicates]) -> hdmm.Workload:
    workload = hdmm.Workload(hdmm.Schema(day=range(SIZE), sex=["F", "M"]))
    for number, product in enumerate(products):
        workload = workload.add(f"q{number}", product)
    return workload


MONTHS = hdmm.Ranges([(low, low + 29) for low in range(0, SIZE - 30, 30)])


@pytest.mark.parametrize(
    "workload",
    [
        of({"day": hdmm.Width(365)}),
        of({"day": MONTHS}, {"day": hdmm.Prefix()}),
        of({"day": hdmm.Prefix(), "sex": hdmm.Identity()}),
        of({"day": hdmm.Identity()}, {"day": hdmm.Prefix(), "sex": hdmm.Identity()}),
    ],
    ids=["windows", "months and prefixes", "a product", "cells and prefixes"],
)
def test_large_attributes_are_planned_with_hats(workload, tmp_path):
    plan = hdmm.select(workload, operators=[hdmm.operators.Kron(restarts=0)])
    factors = plan.mechanism.blocks[0].factors
    assert any(isinstance(factor, Hats) and factor.dtype.kind == "i" for factor in factors)
    budget = hdmm.Budget("1")
    identity = hdmm.select(workload, operators=[hdmm.baselines.Identity()])
    assert plan.rmse(budget) < 0.7 * identity.rmse(budget)
    plan.save(tmp_path / "first.plan")
    loaded = hdmm.Plan.load(tmp_path / "first.plan")
    assert loaded.rmse(budget) == plan.rmse(budget)
    assert loaded.errors(budget).equals(plan.errors(budget))
