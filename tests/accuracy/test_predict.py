"""Standard errors and margins, computed for all answers at once, are those of each answer's own noise."""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import hdmm
from hdmm import baselines
from hdmm.accuracy.margins import margin
from hdmm.accuracy.predict import accuracy
from hdmm.estimators import estimator as estimators
from hdmm.estimators.estimator import LinearEstimator
from hdmm.privacy.budget import Budget
from hdmm.workload import Workload
from tests.contract.test_estimator import matrices
from tests.contract.zoo import ESTIMATORS, noise_for

every = pytest.mark.parametrize(("estimator", "workload"), ESTIMATORS.values(), ids=ESTIMATORS.keys())


@every
@pytest.mark.parametrize("epsilon", ["0.01", "9"])
def test_the_margin_of_every_answer_is_that_of_its_row_of_the_estimator(
    estimator: LinearEstimator[Any], workload: Workload, epsilon
):
    noise = noise_for(estimator.blocks, "laplace", Budget(epsilon))
    scales = np.repeat([float(scale) for scale in noise.scales], [block.queries for block in estimator.blocks])
    variances = np.repeat(noise.variances, [block.queries for block in estimator.blocks])
    rows = matrices(estimator, workload, list(noise.variances))
    for product, matrix in zip(workload.encoded.products, rows, strict=True):
        found = accuracy(estimator, product, noise)
        np.testing.assert_allclose(found.expand(found.stderr), np.sqrt(matrix**2 @ variances), rtol=1e-9)
        expected = [margin(scales, np.round(row, 12), 1) for row in matrix]
        np.testing.assert_allclose(found.expand(found.margin), expected, rtol=0.004)


@every
def test_gaussian_margins_are_normal(estimator: LinearEstimator[Any], workload: Workload):
    noise = noise_for(estimator.blocks, "gaussian", Budget("0.1", "1e-6"))
    for product in workload.encoded.products:
        found = accuracy(estimator, product, noise)
        np.testing.assert_allclose(found.margin, 1.959964 * found.stderr, rtol=1e-6)


@pytest.mark.parametrize("rho", ["0.5", "0.12", "0.04", "0.008"])
def test_gaussian_margins_are_the_least_that_hold_where_steps_show(rho):
    """Of single counts and of sums of three: one step less covers hardly enough, by the exact law of rounded noise."""
    workload = hdmm.Workload(hdmm.Schema(x=range(6))).add("one", x=hdmm.Identity())
    workload = workload.add("three", x=hdmm.Ranges([(0, 2)]))
    plan = hdmm.select(workload, "gaussian", operators=[hdmm.baselines.Identity()])
    sigma = float(plan.mechanism.calibrate(Budget(rho=rho)).scales[0])
    reach = 200
    law = np.diff(norm.cdf((np.arange(-reach, reach + 2) - 0.5) / sigma))
    for name, terms in (("one", 1), ("three", 3)):
        whole = law
        for _ in range(terms - 1):
            whole = np.convolve(whole, law)
        middle = len(whole) // 2
        margin = int(plan.accuracy(name, Budget(rho=rho)).margin.max())
        covered = whole[middle - margin : middle + margin + 1].sum()
        assert covered >= 0.9495
        assert covered - 2 * whole[middle + margin] < 0.952


@every
def test_the_pieces_in_which_types_are_handled_do_not_matter(
    estimator: LinearEstimator[Any], workload: Workload, monkeypatch
):
    noise = noise_for(estimator.blocks, "laplace", Budget("1"))
    whole = [accuracy(estimator, product, noise) for product in workload.encoded.products]
    monkeypatch.setattr(estimators, "MAX_COEFFICIENTS", 1)
    for product, expected in zip(workload.encoded.products, whole, strict=True):
        found = accuracy(estimator, product, noise)
        np.testing.assert_allclose(found.margin, expected.margin, rtol=1e-11)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-11)


def test_the_squared_error_is_that_of_all_answers_together():
    estimator, workload = ESTIMATORS["marginals"]
    noise = noise_for(estimator.blocks, "laplace", Budget("1"))
    for product in workload.encoded.products:
        found = accuracy(estimator, product, noise)
        total = float(np.sum(found.expand(found.stderr) ** 2))
        assert sqrt(total) == pytest.approx(sqrt(estimator.squared_error(product, noise.variances)))


@pytest.mark.parametrize("size", [1e-14, 1e-11, 1.0, 1e9])
def test_the_size_of_the_coefficients_does_not_matter(size):
    import hdmm

    workload = hdmm.Workload(hdmm.Schema(a=range(3))).add("c", a=hdmm.Custom([[size, 0.3 * size, 0]]))
    (row,) = hdmm.select(workload).errors(Budget("1")).to_pylist()
    assert row["stderr_max"] == pytest.approx(row["rmse"])
    assert 1.9 < row["margin95"] / row["stderr_max"] < 2.2


def test_gaussian_margins_hold_where_noise_is_rounded_to_few_integers():
    """The law of a sum of rounded noises, written out: no false alarms. A single one has the least margin there is."""
    schema = hdmm.Schema(a=range(4))
    w = hdmm.Workload(schema).add("cells", a=hdmm.Identity()).add("prefixes", a=hdmm.Prefix())
    plan = hdmm.select(w, "gaussian", operators=[baselines.Identity()])
    k = np.arange(-60, 61)
    for sigma in np.geomspace(0.1, 7.9, 90).tolist():
        budget = hdmm.Budget(rho=Fraction(1 / (2 * sigma**2)))
        scale = float(plan.mechanism.calibrate(budget).scales[0])
        one = ndtr((k + 0.5) / scale) - ndtr((k - 0.5) / scale)
        for level in (0.5, 0.9, 0.95, 0.99, 0.9999):
            cells, prefixes = (plan.accuracy(name, budget, level) for name in ("cells", "prefixes"))
            total = np.ones(1)
            for reach in prefixes.expand(prefixes.margin):
                total = np.convolve(total, one)
                assert covered(total, reach) >= level - 1e-12
            (reach,) = set(cells.expand(cells.margin).tolist())
            assert reach == int(reach)
            assert reach == 0 or covered(one, reach - 1) < level


def covered(law, margin):
    """The probability that an integer with this law, symmetric about its middle, is within a margin."""
    middle, steps = len(law) // 2, int(margin)
    return law[max(middle - steps, 0) : middle + steps + 1].sum()
