"""Gaussian selection on random small unions of products, beside the certified optimum over all cells."""

import numpy as np
import pytest

import hdmm
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.matrix.axis_gram import DenseGram
from hdmm.operators.opt0.gaussian import opt0_gaussian

KINDS = [
    hdmm.Identity(),
    hdmm.Prefix(),
    hdmm.AllRange(),
    hdmm.Width(2),
    hdmm.Identity() | hdmm.Total(),
]


def random_union(seed: int) -> hdmm.Workload:
    random = np.random.default_rng(seed)
    names = [f"a{i}" for i in range(random.integers(2, 4))]
    workload = hdmm.Workload(hdmm.Schema({name: range(int(random.integers(2, 7))) for name in names}))
    for number in range(random.integers(2, 5)):
        chosen = [name for name in names if random.random() < 0.6] or names[:1]
        sets = {name: KINDS[random.integers(len(KINDS))] for name in chosen}
        workload = workload.add(f"p{number}", sets, weight=int(random.integers(1, 4)))
    return workload


@pytest.mark.parametrize("seed", range(30))
def test_it_is_close_to_the_optimum_and_never_below_it(seed):
    workload = random_union(seed)
    best = opt0_gaussian(DenseGram(workload.encoded.gram().dense()), tolerance=1e-4, iterations=2000)
    plan = hdmm.select(workload, "gaussian")
    found = loss(plan.mechanism.strategy, workload.encoded, 2)
    assert best.bound is not None
    assert best.bound * (1 - 1e-9) <= found <= 1.01**2 * best.bound
    assert plan.certificate == pytest.approx(found / best.bound - 1, abs=2e-3)
