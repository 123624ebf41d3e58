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
from hdmm.matrix import Dense, Identity, Total
from hdmm.privacy.calibrate import Calibration, NoiseKind
from hdmm.privacy.samplers import discrete_laplace, rounded_gaussian
from hdmm.strategy import Block
from hdmm.strategy.block import REACH

Answers = NDArray[Any]

_BITS = {"f": 53, "i": 62}
"""Bits within which numbers are exact: as floats, with which matrices multiply fast, and as integers."""
_FEWEST = 4
"""Bits of a count that are worth a product of its own."""


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
    counts = count(source, plan.workload.schema, distinct, unit=plan.unit, cap=CAP, on_progress=on_progress)
    found = dict(zip(distinct, counts, strict=True))
    return [
        add_noise(exact_answers(block, found[table]), noise.kind, scale)
        for block, table, scale in zip(blocks, tables, noise.scales, strict=True)
    ]


def exact_answers(block: Block, counts: NDArray[np.int64]) -> Answers:
    """The block's queries on its counts, without rounding or overflow: as Python's integers where 64 bits are too few.

    Counts are at most 2^40. So few of their bits are taken at a time that no query can add up to more than is exact:
    2^53 in floating point, for factors that are written out, else 2^62. Whether the higher bits are there at all is all
    that depends on the counts, and changes nothing but the time.
    """
    if block.reach > REACH:
        raise TooLargeError("a query adds up too many cells to be answered exactly; ask for smaller products")
    if not block.integral:
        raise NotSupportedError("a block's answers are not integers")
    dtype = np.dtype(float if _multiplied(block) else np.int64)
    bits = _BITS[dtype.kind] - block.reach.bit_length()
    matrix, kind = block.matrix, np.dtype(object if block.wide else np.int64)
    if int(counts.max(initial=0)) >> bits == 0:
        answers: Answers = matrix.apply(counts.astype(dtype, copy=False)).astype(np.int64, copy=False)
        return answers.astype(kind, copy=False)
    total: Answers = np.zeros(block.queries, kind)
    for shift in range(0, int(counts.max()).bit_length(), bits):
        part = matrix.apply((counts >> shift & ((1 << bits) - 1)).astype(dtype, copy=False))
        total += part.astype(np.int64, copy=False).astype(kind, copy=False) * (1 << shift)
    return total


def _multiplied(block: Block) -> bool:
    """Whether the answers are plain sums of products, all of which floats hold exactly if they hold the largest.

    Others, such as ranges, are differences of running sums, which may be larger than any answer.
    """
    plain = block.condition is None and all(isinstance(factor, (Dense, Identity, Total)) for factor in block.factors)
    return plain and block.reach.bit_length() <= _BITS["f"] - _FEWEST


def add_noise(answers: Answers, kind: NoiseKind, scale: Fraction) -> Answers:
    """The answers with noise. Sums beyond 64 bits are rounded to floats, which looks at the noisy sum only."""
    if not isinstance(scale, Fraction):
        raise BudgetError("a noise scale is an exact fraction")
    noise = (discrete_laplace if kind == "laplace" else rounded_gaussian)(scale, answers.size)
    if answers.dtype != object:
        return answers + noise
    noisy: Answers = (answers + noise.astype(object)).astype(float)
    return noisy
