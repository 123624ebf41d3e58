"""Many releases of one plan at once: real noise on exact answers, and the plan's own estimates from them.

Estimates are linear in the measurements. So it is enough to ask the strategy once what it makes of each measurement
alone, and then to multiply; the first few releases are also estimated one by one.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

import hdmm
from hdmm.measure import exact_answers

Noisy = Callable[[np.ndarray, str, Fraction], np.ndarray]
"""The answers with noise, as `measure.add_noise` gives them."""

_AT_ONCE = 1 << 23
_CHECKED = 3


@cache
def counts(sizes: tuple[int, ...]) -> np.ndarray:
    """Some made-up counts over all cells."""
    return np.random.default_rng(4).poisson(30, sizes)


def exact(plan: hdmm.Plan, table: np.ndarray) -> list[np.ndarray]:
    """The exact answers of every block to a table of counts over all cells."""
    found = []
    for block in plan.strategy.blocks:
        others = tuple(axis for axis in range(table.ndim) if axis not in block.axes)
        found.append(exact_answers(block, table.sum(axis=others).reshape(-1)))
    return found


def releases(plan: hdmm.Plan, budget: hdmm.Budget, table: np.ndarray, count: int, noisy: Noisy) -> np.ndarray:
    """The noisy answers of all blocks side by side, one row for every release."""
    noise = plan.calibrate(budget)
    parts = [
        noisy(np.tile(answers, count), noise.kind, scale).reshape(count, -1)
        for answers, scale in zip(exact(plan, table), noise.scales, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def by_query(plan: hdmm.Plan, scales: Sequence[Fraction]) -> np.ndarray:
    """The scale of the noise on every query, side by side."""
    pairs = zip(plan.strategy.blocks, scales, strict=True)
    return np.concatenate([np.full(block.queries, float(scale)) for block, scale in pairs])


def errors(plan: hdmm.Plan, budget: hdmm.Budget, count: int, noisy: Noisy) -> dict[str, np.ndarray]:
    """The errors of the answers to every product, one row for every release."""
    table, encoded = counts(plan.workload.schema.sizes), plan.workload.encoded
    true = [encoded.of(product).apply(table.reshape(-1)) for product in encoded.products]
    ends = np.cumsum([block.queries for block in plan.strategy.blocks])
    noise = plan.calibrate(budget).variances

    def answer(measured: np.ndarray) -> np.ndarray:
        state = plan.strategy.reconstruct(np.split(measured, ends[:-1]), noise)
        return np.concatenate([plan.strategy.answer(product, state) for product in encoded.products])

    estimator = np.stack([answer(unit) for unit in np.eye(ends[-1])])
    found = []
    step = max(_CHECKED, _AT_ONCE // int(ends[-1]))
    for start in range(0, count, step):
        measured = releases(plan, budget, table, min(step, count - start), noisy)
        estimated = measured @ estimator
        for one, answers in zip(measured[:_CHECKED], estimated[:_CHECKED], strict=True):
            np.testing.assert_allclose(answer(one), answers, rtol=1e-9, atol=1e-6)
        found.append(estimated - np.concatenate(true))
    names = [product.name for product in plan.workload.products]
    parts = np.split(np.concatenate(found), np.cumsum([len(one) for one in true])[:-1], axis=1)
    return dict(zip(names, parts, strict=True))
