"""The only door between data and noise: exact integer answers to the plan's queries, plus exact integer noise.

What goes in besides the counts is public: the plan, the budget and the cap at which counts saturate. What comes out is
noisy integers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm.data import CAP, Source, count
from hdmm.errors import BudgetError, NotSupportedError, TooLargeError
from hdmm.privacy.calibrate import Calibration
from hdmm.privacy.noise import discrete_laplace
from hdmm.strategy import Block

Answers = NDArray[np.int64]

_EXACT = 1 << 62


def check_measurable(plan: Plan) -> None:
    """Refuse a plan that this version cannot measure exactly."""
    if plan.noise != "laplace":
        raise NotSupportedError(
            'noise="gaussian": this version predicts Gaussian plans but releases Laplace ones only; '
            'plan with noise="laplace"'
        )
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
    cap = min(_cap(block) for block in blocks)
    counts = count(source, plan.workload.schema, distinct, cap=cap, on_progress=on_progress)
    found = dict(zip(distinct, counts, strict=True))
    return [
        _add_noise(exact_answers(block, found[table]), scale)
        for block, table, scale in zip(blocks, tables, noise.scales, strict=True)
    ]


def exact_answers(block: Block, counts: Answers) -> Answers:
    """The block's queries on its counts, in integers without rounding or overflow."""
    answers: Answers = block.matrix.apply(counts)
    if answers.dtype != np.int64:
        raise NotSupportedError("a block's answers are not integers")
    return answers


def _add_noise(answers: Answers, scale: Any) -> Answers:
    if not isinstance(scale, Fraction):
        raise BudgetError("a Laplace scale is an exact fraction")
    return answers + discrete_laplace(scale, answers.size)


def _cap(block: Block) -> int:
    """Where counts must saturate so that no answer can overflow, whatever the records are."""
    largest = prod(int(f.power(1).apply(np.ones(f.shape[1], np.int64)).max()) for f in block.factors)
    cap = min(CAP, _EXACT // max(largest, 1))
    if cap < 1 << 32:
        raise TooLargeError("a query adds up too many cells to be answered exactly; ask for smaller products")
    return cap
