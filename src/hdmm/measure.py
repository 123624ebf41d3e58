"""The only door between data and noise: exact integer answers to the plan's queries, plus exact integer noise.

What goes in besides the counts is public: the plan, the budget and the cap at which counts saturate. What comes out is
noisy integers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm.data import CAP, Source, count
from hdmm.errors import BudgetError, NotSupportedError, TooLargeError
from hdmm.privacy.calibrate import Calibration, NoiseKind
from hdmm.privacy.samplers import discrete_laplace, rounded_gaussian
from hdmm.strategy import Block
from hdmm.strategy.block import REACH

Answers = NDArray[Any]

_EXACT = 62
"""Bits that an exact answer may have."""


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
        add_noise(exact_answers(block, found[table]), noise.kind, scale)
        for block, table, scale in zip(blocks, tables, noise.scales, strict=True)
    ]


def exact_answers(block: Block, counts: NDArray[np.int64]) -> Answers:
    """The block's queries on its counts, without rounding or overflow: as Python's integers where 64 bits are too few.

    Counts are at most 2^40. Where a query could add up to more than 2^62, so few bits of the counts are taken at a time
    that it cannot. How many depends on the block alone.
    """
    if block.reach > REACH:
        raise TooLargeError("a query adds up too many cells to be answered exactly; ask for smaller products")
    if not block.integral:
        raise NotSupportedError("a block's answers are not integers")
    if not block.wide:
        answers: Answers = block.matrix.apply(counts)
        return answers
    total: Answers = np.zeros(block.queries, object)
    bits = _EXACT - block.reach.bit_length()
    for shift in range(0, CAP.bit_length(), bits):
        part = block.matrix.apply(counts >> shift & ((1 << bits) - 1))
        total = total + part.astype(object) * (1 << shift)
    return total


def add_noise(answers: Answers, kind: NoiseKind, scale: Fraction) -> Answers:
    """The answers with noise. Sums beyond 64 bits are rounded to floats, which looks at the noisy sum only."""
    if not isinstance(scale, Fraction):
        raise BudgetError("a noise scale is an exact fraction")
    noise = (discrete_laplace if kind == "laplace" else rounded_gaussian)(scale, answers.size)
    if answers.dtype != object:
        return answers + noise
    noisy: Answers = (answers + noise.astype(object)).astype(float)
    return noisy
