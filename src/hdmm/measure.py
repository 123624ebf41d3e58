"""Where data meets noise, and the only place: exact integer answers to the plan's queries, plus exact integer noise.

Read it from top to bottom, as the data goes: :func:`measure` counts the records for every block, :func:`noisy_answers`
computes a block's exact answers piece by piece, and :func:`add_noise` adds noise to each piece before it is stored.
Everything else that goes in is public: the plan, the budget, and the cap at which counts saturate. Only noisy integers
come out.
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

    ``on_progress`` is called for the stages "counting records" and "adding noise".
    """
    check_measurable(plan)  # again, because this is where it must hold
    schema, blocks = plan.workload.schema, plan.mechanism.blocks
    tables = [tuple(schema.names[axis] for axis in block.axes) for block in blocks]
    distinct = list(dict.fromkeys(tables))
    counting, adding = stage(on_progress, "counting records"), stage(on_progress, "adding noise")
    counts = count(source, plan.counted, distinct, unit=plan.unit, cap=CAP, on_progress=counting)
    by_table = dict(zip(distinct, counts, strict=True))
    del counts  # so that a table's memory is free once its last block is answered
    last_block = {table: index for index, table in enumerate(tables)}
    answers: list[Answers] = []
    done, total = 0, plan.mechanism.strategy.queries
    for index, (block, table, scale) in enumerate(zip(blocks, tables, noise.scales, strict=True)):
        spare = index == last_block[table]

        def advance(part: float, block: Block = block, done: int = done) -> None:
            adding((done + part * block.queries) / total)

        block_counts = by_table.pop(table) if spare else by_table[table]
        answers.append(noisy_answers(block, block_counts, noise.kind, scale, spare=spare, on_progress=advance))
        done += block.queries
    return answers


def noisy_answers(
    block: Block,
    counts: NDArray[np.int64],
    kind: NoiseKind,
    scale: Fraction,
    *,
    spare: bool,
    on_progress: Callable[[float], None] | None = None,
) -> Answers:
    """A block's exact answers plus noise. If ``spare``, the counts are not needed again and may be overwritten.

    If answers may need more than 64 bits, the noisy sums are rounded to floats. The rounding depends on the sums alone,
    not on whether the exact answers came as one integer or as a high and a low part.
    """
    if block.wide and block.queries <= _MAX_PYTHON_INTEGERS:
        return add_noise(exact_answers(block, counts), kind, scale)
    _check_exact(block)

    def with_noise(exact: Exact) -> Answers:
        sums = add_noise(exact.low, kind, scale)
        if exact.high is None:
            return sums
        return (exact.high + (sums >> LOW_BITS)) * 2.0**LOW_BITS + (sums & ((1 << LOW_BITS) - 1))

    dtype = np.dtype(float if block.wide else np.int64)
    overwrite = spare and counts.flags.c_contiguous and counts.flags.writeable
    return exact_map(with_noise, block.matrix, block.reach, counts, dtype, overwrite=overwrite, on_progress=on_progress)


def add_noise(answers: Answers, kind: NoiseKind, scale: Fraction) -> Answers:
    """The answers plus noise. Python integers are rounded to floats after the noise was added, never before."""
    if not isinstance(scale, Fraction):
        raise BudgetError("a noise scale is an exact fraction")
    noise = (discrete_laplace if kind == "laplace" else rounded_gaussian)(scale, answers.size)
    if answers.dtype != object:
        return answers + noise
    return (answers + noise.astype(object)).astype(float)


def exact_answers(block: Block, counts: NDArray[np.int64]) -> Answers:
    """The exact answers to a block's queries, as Python integers if 64 bits are too few. Counts are at most 2^40."""
    _check_exact(block)
    dtype = np.dtype(object if block.wide else np.int64)
    return exact_map(Exact.whole, block.matrix, block.reach, counts, dtype)


def _check_exact(block: Block) -> None:
    if block.reach > REACH:
        raise TooLargeError("a query adds up too many cells to be answered exactly; ask for smaller products")
    if not block.integral:
        raise NotSupportedError("a block's answers are not integers")
