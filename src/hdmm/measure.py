"""The only door between data and noise: exact integer answers to the plan's queries, plus exact integer noise.

What goes in besides the counts is public: the plan, the budget and the cap at which counts saturate. What comes out is
noisy integers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm.data import CAP, Source, count
from hdmm.errors import BudgetError, NotSupportedError, TooLargeError
from hdmm.matrix.exact import LOW, exact_apply
from hdmm.privacy.calibrate import Calibration, NoiseKind
from hdmm.privacy.samplers import discrete_laplace, rounded_gaussian
from hdmm.strategy import Block
from hdmm.strategy.block import REACH

Answers = NDArray[Any]

_FEW = 1 << 14
"""Up to so many answers beyond 64 bits are Python's integers until noise is added; more would take too long."""


def check_measurable(plan: Plan) -> None:
    """Refuse a plan that this version cannot measure exactly."""
    if not all(block.integral for block in plan.strategy.blocks):
        raise NotSupportedError(
            "the strategy has queries with fractional coefficients, which this version cannot measure"
        )


def measure(
    plan: Plan, source: Source, noise: Calibration, *, on_progress: Callable[[str, float], None] | None = None
) -> list[Answers]:
    """Count the records for each block and answer its queries with noise.

    ``on_progress`` is told the share that is done of "counting records", then of "adding noise".
    """
    check_measurable(plan)
    blocks = plan.strategy.blocks
    names = plan.workload.schema.names
    tables = [tuple(names[axis] for axis in block.axes) for block in blocks]
    distinct = list(dict.fromkeys(tables))
    counting = None if on_progress is None else partial(on_progress, "counting records")
    counts = count(source, plan.workload.schema, distinct, unit=plan.unit, cap=CAP, on_progress=counting)
    found = dict(zip(distinct, counts, strict=True))
    del counts
    last = {table: index for index, table in enumerate(tables)}
    noisy: list[Answers] = []
    done, total = 0, sum(block.queries for block in blocks)

    def advance(part: float) -> None:
        if on_progress is not None:
            on_progress("adding noise", (done + part * block.queries) / total)

    for index, (block, table, scale) in enumerate(zip(blocks, tables, noise.scales, strict=True)):
        spare = last[table] == index
        own = found.pop(table) if spare else found[table]
        noisy.append(noisy_answers(block, own, noise.kind, scale, spare=spare, on_progress=advance))
        del own
        done += block.queries
    return noisy


def exact_answers(block: Block, counts: NDArray[np.int64]) -> Answers:
    """The block's queries on its counts, without rounding or overflow: as Python's integers where 64 bits are too few.

    Counts are at most 2^40.
    """
    _check_exact(block)

    def whole(high: Answers | None, low: Answers) -> Answers:
        return low if high is None else high.astype(object) * (1 << LOW) + low

    return exact_apply(block.matrix, block.reach, counts, whole, np.dtype(object if block.wide else np.int64))


def noisy_answers(
    block: Block,
    counts: NDArray[np.int64],
    kind: NoiseKind,
    scale: Fraction,
    *,
    spare: bool,
    on_progress: Callable[[float], None] | None = None,
) -> Answers:
    """Noise on a block's exact answers, a piece at a time: in the memory of the counts, where they can be spared.

    Where answers may need more than 64 bits the noisy sums are rounded to floats, which looks at the sums only: they
    are the same whether they came in one part or in two.
    """
    if block.wide and block.queries <= _FEW:
        return add_noise(exact_answers(block, counts), kind, scale)
    _check_exact(block)

    def noisy(high: Answers | None, low: Answers) -> Answers:
        sums = add_noise(low, kind, scale)
        if high is None:
            return sums
        rounded: Answers = (high + (sums >> LOW)) * 2.0**LOW + (sums & ((1 << LOW) - 1))
        return rounded

    dtype = np.dtype(float if block.wide else np.int64)
    spare = spare and counts.flags.c_contiguous and counts.flags.writeable
    return exact_apply(block.matrix, block.reach, counts, noisy, dtype, overwrite=spare, on_progress=on_progress)


def _check_exact(block: Block) -> None:
    if block.reach > REACH:
        raise TooLargeError("a query adds up too many cells to be answered exactly; ask for smaller products")
    if not block.integral:
        raise NotSupportedError("a block's answers are not integers")


def add_noise(answers: Answers, kind: NoiseKind, scale: Fraction) -> Answers:
    """The answers with noise. Sums beyond 64 bits are rounded to floats, which looks at the noisy sum only."""
    if not isinstance(scale, Fraction):
        raise BudgetError("a noise scale is an exact fraction")
    noise = (discrete_laplace if kind == "laplace" else rounded_gaussian)(scale, answers.size)
    if answers.dtype != object:
        return answers + noise
    noisy: Answers = (answers + noise.astype(object)).astype(float)
    return noisy
