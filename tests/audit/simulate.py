"""Many releases of one plan at once: real noise on exact answers."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

import hdmm
from hdmm.measure import exact_answers
from hdmm.privacy.calibrate import NoiseKind

Noisy = Callable[[np.ndarray, NoiseKind, Fraction], np.ndarray]
"""The answers with noise, as `measure.add_noise` gives them."""


@cache
def counts(sizes: tuple[int, ...]) -> np.ndarray:
    """Some made-up counts over all cells."""
    return np.random.default_rng(4).poisson(30, sizes)


def exact(plan: hdmm.Plan, table: np.ndarray) -> list[np.ndarray]:
    """The exact answers of every block to a table of counts over all cells."""
    found = []
    for block in plan.mechanism.blocks:
        others = tuple(axis for axis in range(table.ndim) if axis not in block.axes)
        found.append(exact_answers(block, table.sum(axis=others).reshape(-1)))
    return found


def releases(plan: hdmm.Plan, budget: hdmm.Budget, table: np.ndarray, count: int, noisy: Noisy) -> np.ndarray:
    """The noisy answers of all blocks side by side, one row for every release."""
    noise = plan.mechanism.calibrate(budget)
    parts = [
        noisy(np.tile(answers, count), noise.kind, scale).reshape(count, -1)
        for answers, scale in zip(exact(plan, table), noise.scales, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def by_query(plan: hdmm.Plan, scales: Sequence[Fraction]) -> np.ndarray:
    """The scale of the noise on every query, side by side."""
    pairs = zip(plan.mechanism.blocks, scales, strict=True)
    return np.concatenate([np.full(block.queries, float(scale)) for block, scale in pairs])
