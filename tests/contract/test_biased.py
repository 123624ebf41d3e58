"""Every biased estimator answers all products from one table of counts, none of them negative."""

from typing import Any

import numpy as np
import pytest

from hdmm.estimators.biased import BiasedEstimator, counts_on
from hdmm.estimators.graphical import PrivatePGM, available
from hdmm.workload import Workload
from tests.contract.zoo import BIASED, dense_blocks

pytestmark = pytest.mark.parametrize(("estimator", "workload"), BIASED.values(), ids=BIASED.keys())


def fitted(estimator: BiasedEstimator[Any], workload: Workload, spread: float) -> tuple[Any, np.ndarray]:
    """What an estimator makes of measurements with noise of this standard deviation, and the true counts."""
    if isinstance(estimator, PrivatePGM) and not available():
        pytest.skip("mbi is not installed: pip install 'hdmm[pgm]'")
    rng = np.random.default_rng(5)
    x = rng.poisson(2, 24)
    blocks = dense_blocks(estimator.strategy, workload.encoded)
    answers = [block @ x + spread * rng.normal(size=len(block)) for block in blocks]
    return estimator.reconstruct(answers, [spread**2] * len(blocks)), x


def test_it_claims_no_errors_and_names_itself(estimator: BiasedEstimator[Any], workload: Workload):
    assert estimator.linear is None
    state, _ = fitted(estimator, workload, 2.0)
    assert "non-negative" in estimator.label(state) or "Private-PGM" in estimator.label(state)


def test_all_answers_are_those_of_counts_that_are_not_negative(estimator: BiasedEstimator[Any], workload: Workload):
    state, _ = fitted(estimator, workload, 2.0)
    encoded = workload.encoded
    counts = estimator.answer(counts_on(dict(enumerate(encoded.sizes))), state)
    assert counts.min() >= 0
    assert state.total == pytest.approx(counts.sum())
    for product in encoded.products:
        expected = encoded.of(product).dense() @ counts
        np.testing.assert_allclose(estimator.answer(product, state), expected, atol=1e-6)


def test_almost_exact_measurements_are_reproduced(estimator: BiasedEstimator[Any], workload: Workload):
    state, x = fitted(estimator, workload, 1e-3)
    encoded = workload.encoded
    for product in encoded.products:
        np.testing.assert_allclose(estimator.answer(product, state), encoded.of(product).dense() @ x, atol=0.2)
