"""The only door between data and noise: exact integer answers to the plan's queries, plus exact integer noise.

What goes in besides the counts is public: the plan, the budget and the cap at which counts saturate. What comes out is
noisy integers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm.data import CAP, Source, count
from hdmm.errors import BudgetError, NotSupportedError, TooLargeError
from hdmm.privacy.calibrate import Calibration, NoiseKind
from hdmm.privacy.samplers import discrete_laplace, rounded_gaussian
from hdmm.strategy import Block
from hdmm.strategy.block import REACH

Answers = NDArray[np.int64]

_EXACT = 1 << 62
_SPLIT = 20
_WIDE = 1 << 41
"""Up to such a high part the sum of both parts and the noise stays within 63 bits."""


def check_measurable(plan: Plan) -> None:
    """Refuse a plan that this version cannot measure exactly."""
    if not all(block.integral for block in plan.strategy.blocks):
        raise NotSupportedError(
            "the strategy has queries with fractional coefficients, which this version cannot measure"
        )


def measure(
    plan: Plan, source: Source, noise: Calibration, *, on_progress: Callable[[float], None] | None = None
) -> list[Answers]:
    """Count the records for each block and answer its queries with noise."""
    check_measurable(plan)
    blocks = plan.strategy.blocks
    names = plan.workload.schema.names
    tables = [tuple(names[axis] for axis in block.axes) for block in blocks]
    distinct = list(dict.fromkeys(tables))
    counts = count(source, plan.workload.schema, distinct, cap=CAP, on_progress=on_progress)
    found = dict(zip(distinct, counts, strict=True))
    return [
        add_noise(*exact_answers(block, found[table]), noise.kind, scale)
        for block, table, scale in zip(blocks, tables, noise.scales, strict=True)
    ]


def exact_answers(block: Block, counts: Answers) -> tuple[Answers, Answers]:
    """The block's queries on its counts without rounding or overflow, as high·2^20 + low.

    Counts are at most 2^40 and a query adds up at most 2^41 of one, so that neither part leaves 63 bits. Which way is
    taken depends on the block alone.
    """
    if block.reach > REACH:
        raise TooLargeError("a query adds up too many cells to be answered exactly; ask for smaller products")
    parts = [counts] if block.reach * CAP <= _EXACT else [counts >> _SPLIT, counts & ((1 << _SPLIT) - 1)]
    answers = [block.matrix.apply(part) for part in parts]
    if any(answer.dtype != np.int64 for answer in answers):
        raise NotSupportedError("a block's answers are not integers")
    return (np.zeros_like(answers[0]), answers[0]) if len(parts) == 1 else (answers[0], answers[1])


def add_noise(high: Answers, low: Answers, kind: NoiseKind, scale: Fraction) -> Answers:
    """The answers with noise; what would leave ±2^62 stops there, which is known only of the noisy sum."""
    if not isinstance(scale, Fraction):
        raise BudgetError("a noise scale is an exact fraction")
    low = low + (discrete_laplace if kind == "laplace" else rounded_gaussian)(scale, low.size)
    noisy = (np.clip(high, -_WIDE, _WIDE) << _SPLIT) + low
    for place in np.flatnonzero(abs(high) >= _WIDE):  # beyond what there are people
        noisy[place] = max(-_EXACT, min(_EXACT, (int(high[place]) << _SPLIT) + int(low[place])))
    stopped: Answers = np.clip(noisy, -_EXACT, _EXACT)
    return stopped
