"""Whether noise suffices: how much one unit changes the measurements, and what a budget allows."""

from collections.abc import Sequence
from math import erfc, exp, sqrt
from typing import Any

import numpy as np


def change(tables: Sequence[Any], noise: Any, rows: int, replaced: bool) -> float:
    """The largest change by a unit over the noise: the sum of |Δ|/scale, or the root of the sum of (Δ/σ)²."""
    power = 1 if noise.kind == "laplace" else 2
    columns = np.concatenate([t / float(s) for t, s in zip(tables, noise.scales, strict=True)]).T
    columns = np.unique(np.concatenate([columns, np.zeros((1, columns.shape[1]))]), axis=0)
    others = columns if replaced else np.zeros((1, columns.shape[1]))
    largest = max(float((abs(columns - other) ** power).sum(axis=1).max()) for other in others)
    return rows * largest ** (1 / power)


def enough(needed: float, budget: Any) -> bool:
    """Whether a budget allows this change over the noise (for Gaussian noise: Balle and Wang 2018, theorem 8)."""
    if budget.delta is None:
        return needed <= float(budget.epsilon if budget.rho is None else sqrt(2 * budget.rho)) * (1 + 1e-9)
    if needed == 0:
        return True
    epsilon, middle = float(budget.epsilon), float(budget.epsilon) / needed
    upper = erfc((middle - needed / 2) / sqrt(2)) / 2
    lower = exp(epsilon) * erfc((middle + needed / 2) / sqrt(2)) / 2
    return upper - lower <= float(budget.delta) * (1 + 1e-6)
