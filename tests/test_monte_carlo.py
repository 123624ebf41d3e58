"""Estimators on a larger mixed workload, simulated: unbiased, and every answer scatters as predicted."""

from math import sqrt

import numpy as np
import pytest

import hdmm
from hdmm import operators
from hdmm.estimators.estimator import types_of, variances
from hdmm.estimators.least_squares import local_least_squares
from hdmm.optimise.descent import Effort

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(30), race=range(5), hispanic=[False, True])
MIXED = (
    hdmm.Workload(SCHEMA)
    .add("prefixes", sex=hdmm.Identity(), age=hdmm.Prefix(), weight=2)
    .add("ranges", age=hdmm.Ranges([(0, 9), (5, 20), (10, 29)]), race=hdmm.Identity() | hdmm.Total())
    .add("each", race=hdmm.Identity(), hispanic=hdmm.Identity(), weight="0.5")
    .add("either", race=hdmm.Identity(), where="hispanic OR age >= 18")
    .add("exactly one", sex=hdmm.Identity(), where="(hispanic AND race < 2) OR (NOT hispanic AND race >= 3)", weight=3)
    .add("total")
)
CASES = [
    (operators.Residual(), 2),
    (operators.Symmetric(), 2),
    (operators.MarginalPlus(), 1),
    (operators.MarginalPlus(), 2),
    (operators.Union(), 1),
    (operators.Union(), 2),
    (operators.Kron(), 2),
]


@pytest.mark.parametrize(("operator", "norm"), CASES, ids=[f"{operator.name}, {norm}" for operator, norm in CASES])
def test_answers_are_unbiased_and_scatter_as_predicted(operator, norm):
    encoded, runs = MIXED.encoded, 1000
    strategy = operator.propose(encoded, norm, Effort(restarts=1)).strategy
    noise = strategy.unit_noise(norm)
    estimator = local_least_squares(strategy)
    random = np.random.default_rng(11)
    counts = random.poisson(3, encoded.sizes)
    exact = []
    for block in strategy.blocks:
        others = tuple(axis for axis in range(len(encoded.sizes)) if axis not in block.axes)
        exact.append(block.matrix.apply(counts.sum(axis=others).reshape(-1)))
    sums = {product: np.zeros((2, product.queries)) for product in encoded.products}
    for _ in range(runs):
        answers = []
        for truth, variance in zip(exact, noise, strict=True):
            scale = sqrt(variance / 2) if norm == 1 else sqrt(variance)
            answers.append(truth + (random.laplace if norm == 1 else random.normal)(scale=scale, size=len(truth)))
        state = estimator.reconstruct(answers, noise)
        for product, total in sums.items():
            error = estimator.answer(product, state) - encoded.of(product).apply(counts.reshape(-1))
            total += np.stack([error, error**2])
    ratios, shifts = [], []
    for product, (first, second) in sums.items():
        types = types_of(estimator, product)
        predicted = variances(estimator, product, noise, types)
        predicted = predicted[np.ix_(*[one.labels for one in types])].reshape(-1) if types else predicted
        ratios.append(second / runs / predicted)
        shifts.append(first / runs / np.sqrt(predicted / runs))
    ratio, shift = np.concatenate(ratios), np.concatenate(shifts)
    spread = sqrt((5 if norm == 1 else 2) / runs)
    assert abs(shift).max() < 5
    assert abs(ratio - 1).max() < 5.5 * spread
    assert abs(ratio.mean() - 1) < 2 * spread
