"""Audit: no neighbour changes the exact answers by more than the sensitivity that noise is calibrated to."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

import hdmm
from hdmm.matrix import Norm
from hdmm.measure import exact_answers
from hdmm.privacy.calibrate import root_above
from hdmm.strategy import Block
from hdmm.strategy.sensitivity import Change
from tests.audit.random_strategies import FAMILIES
from tests.audit.replay import Replay, replay
from tests.audit.verdict import Audit, Verdict

Declare = Callable[[hdmm.Unit, Sequence[Block], Norm], Change]
"""By how much a unit can change the answers of some blocks, and whether some neighbour does."""


@cache
def replayed(family: str, number: int) -> Replay:
    """One random plan of a family, replayed."""
    return replay(FAMILIES[family].plan(number), np.random.default_rng(number))


def wrong(found: Replay, declare: Declare = hdmm.Unit.change) -> bool:
    """Whether some neighbour exceeds what is declared, or all were tried and none reaches what is said to be exact.

    Queries that count nobody are declared to change by one a row.
    """
    if found.spent > 1:
        return True
    unit = found.plan.unit
    for p, worst in found.worst.items():
        declared = declare(unit, found.plan.mechanism.blocks, p)
        if worst > declared.power or (found.everyone and declared.exact and declared.power != (worst or unit.rows**p)):
            return True
    return False


def run(family: str) -> Callable[[Declare, int], Verdict]:
    """Random plans of one family against a function that declares their sensitivity."""

    def audit(declare: Declare, strategies: int) -> Verdict:
        found = sum(wrong(replayed(family, number), declare) for number in range(strategies))
        return Verdict("wrong sensitivities", found, "<=", 0)

    return audit


def heaviest_block(unit: hdmm.Unit, blocks: Sequence[Block], p: Norm) -> Change:
    """The fault: blocks are taken for alternatives, as if a person were in one of them only."""
    return max((unit.change([block], p) for block in blocks), key=lambda change: change.power)


def first_cell(unit: hdmm.Unit, blocks: Sequence[Block], p: Norm) -> Change:
    """The fault: the first cell is taken for all."""
    shares = (b.weight**p * sum(abs(int(a)) ** p for a in exact_answers(b, _first(b))) for b in blocks)
    return Change(unit.rows**p * sum(shares), False)


def _first(block: Block) -> np.ndarray:
    return np.eye(1, block.matrix.shape[1], dtype=np.int64)[0]


def other_norm(unit: hdmm.Unit, blocks: Sequence[Block], p: Norm) -> Change:
    """The fault: the length of the change where its absolute sum is due."""
    length = unit.change(blocks, 2)
    return Change(root_above(Fraction(length.power)), False) if p == 1 else length


def in_floats(unit: hdmm.Unit, blocks: Sequence[Block], p: Norm) -> Change:
    """The fault: rounded by floating point, up or down, by a part in 10¹⁶."""
    return Change(Fraction(float(unit.change(blocks, p).power)), False)


def one_row(unit: hdmm.Unit, blocks: Sequence[Block], p: Norm) -> Change:
    """The fault: a person is taken to have one row, added or removed, whatever the unit says."""
    return hdmm.Unit().change(blocks, p)


ANY = {"first cell only": first_cell, "wrong norm": other_norm, "another unit": one_row}
SEVERAL = {"heaviest block only": heaviest_block, "rounded floats": in_floats}

AUDITS = [
    Audit(
        f"neighbours of {family} strategies",
        run(family),
        hdmm.Unit.change,
        ANY if family in ("Kronecker", "explicit", "hierarchies") else ANY | SEVERAL,
        300,
        12,
        "strategies",
    )
    for family in FAMILIES
]
