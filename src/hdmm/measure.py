"""Where data meets noise, and the only place: exact integer answers to the plan's queries, plus exact integer noise.

The path of the data, from top to bottom: :func:`measure` counts the records of every block; :func:`noisy_answers`
answers the block's queries exactly, piece by piece, and passes each piece to :func:`add_noise`; that draws the noise.
What goes in besides the counts is public: the plan, the budget and the cap at which counts saturate. What comes out is
noisy integers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm.data import CAP, Source, count
from hdmm.errors import BudgetError, NotSupportedError, TooLargeError
from hdmm.matrix.exact import LOW_BITS, Exact, exact_map
from hdmm.plans import Plan
from hdmm.privacy.calibrate import Calibration, NoiseKind
from hdmm.privacy.sampling.samplers import discrete_laplace, rounded_gaussian
from hdmm.progress import OnProgress, stage
from hdmm.strategy import Block
from hdmm.strategy.block import REACH

Answers = NDArray[Any]

_MAX_PYTHON_INTEGERS = 1 << 14
"""Largest number of answers computed as Python integers when 64 bits are too few; beyond that it would be too slow."""


def check_measurable(plan: Plan) -> None:
    """Refuse a plan that this version cannot measure exactly."""
    if not all(block.integral for block in plan.mechanism.blocks):
        raise NotSupportedError(
            "the strategy has queries with fractional coefficients, which this version cannot measure"
        )


def measure(plan: Plan, source: Source, noise: Calibration, *, on_progress: OnProgress | None = None) -> list[Answers]:
    """Count the records for each block and answer its queries with noise.

    ``on_progress`` hears of "counting records", then of "adding noise".
    """
    check_measurable(plan)  # again, because this is where it must hold
    blocks = plan.mechanism.blocks
    names = plan.workload.schema.names
    tables = [tuple(names[axis] for axis in block.axes) for block in blocks]
    distinct = list(dict.fromkeys(tables))
    counting = stage(on_progress, "counting records")
    counts = count(source, plan.workload.schema, distinct, unit=plan.unit, cap=CAP, on_progress=counting)
    by_table = dict(zip(distinct, counts, strict=True))
    del counts
    last = {table: index for index, table in enumerate(tables)}
    noisy: list[Answers] = []
    done, total = 0, plan.mechanism.strategy.queries
    report = stage(on_progress, "adding noise")
    for index, (block, table, scale) in enumerate(zip(blocks, tables, noise.scales, strict=True)):
        spare = last[table] == index  # nobody needs these counts again: their memory may hold the answers
        block_counts = by_table.pop(table) if spare else by_table[table]

        def advance(part: float, block: Block = block, done: int = done) -> None:
            report((done + part * block.queries) / total)

        noisy.append(noisy_answers(block, block_counts, noise.kind, scale, spare=spare, on_progress=advance))
        del block_counts
        done += block.queries
    return noisy


def noisy_answers(
    block: Block,
    counts: NDArray[np.int64],
    kind: NoiseKind,
    scale: Fraction,
    *,
    spare: bool,
    on_progress: Callable[[float], None] | None = None,
) -> Answers:
    """A block's exact answers with noise, a piece at a time: in the memory of the counts, if they can be spared.

    If answers may need more than 64 bits, the noisy sums are rounded to floats. That looks at the sums only: they are
    the same whether they came in one part or in two.
    """
    if block.wide and block.queries <= _MAX_PYTHON_INTEGERS:
        return add_noise(exact_answers(block, counts), kind, scale)
    _check_exact(block)

    def noisy(exact: Exact) -> Answers:
        sums = add_noise(exact.low, kind, scale)
        if exact.high is None:
            return sums
        return (exact.high + (sums >> LOW_BITS)) * 2.0**LOW_BITS + (sums & ((1 << LOW_BITS) - 1))

    dtype = np.dtype(float if block.wide else np.int64)
    spare = spare and counts.flags.c_contiguous and counts.flags.writeable
    return exact_map(noisy, block.matrix, block.reach, counts, dtype, overwrite=spare, on_progress=on_progress)


def add_noise(answers: Answers, kind: NoiseKind, scale: Fraction) -> Answers:
    """The answers with noise. Sums beyond 64 bits are rounded to floats, which looks at the noisy sum only."""
    if not isinstance(scale, Fraction):
        raise BudgetError("a noise scale is an exact fraction")
    noise = (discrete_laplace if kind == "laplace" else rounded_gaussian)(scale, answers.size)
    if answers.dtype != object:
        return answers + noise
    return (answers + noise.astype(object)).astype(float)


def exact_answers(block: Block, counts: NDArray[np.int64]) -> Answers:
    """The block's queries on its counts, without rounding or overflow: as Python integers if 64 bits are too few.

    Counts are at most 2^40.
    """
    _check_exact(block)
    dtype = np.dtype(object if block.wide else np.int64)
    return exact_map(Exact.whole, block.matrix, block.reach, counts, dtype)


def _check_exact(block: Block) -> None:
    if block.reach > REACH:
        raise TooLargeError("a query adds up too many cells to be answered exactly; ask for smaller products")
    if not block.integral:
        raise NotSupportedError("a block's answers are not integers")
