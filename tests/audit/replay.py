"""Neighbouring data through `measure` with the noise left out: by how much one person changes the exact answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product
from math import lcm, prod
from unittest import mock

import numpy as np
import pyarrow as pa

import hdmm
from hdmm import measure as measuring
from hdmm.data.chunked import Chunk, Chunked
from hdmm.data.tally import Records
from hdmm.matrix import Norm
from hdmm.privacy.calibrate import certified_sigma
from hdmm.schema import Schema

Cell = tuple[int, ...]
Rows = tuple[Cell, ...]
"""The records of one person."""

BUDGETS = {"laplace": hdmm.Budget(epsilon="0.7"), "gaussian": hdmm.Budget("0.7", "1e-5")}
ALL = 64
"""Cells are all tried where they are at most so many; otherwise some of them are."""
SOME = 12


@dataclass(frozen=True)
class Held(Chunked):
    """Records in memory: those of one person, and of others with one each."""

    person: Rows
    others: Rows
    names: tuple[str, ...]
    """The attributes of the records; a plan may read some of them only."""

    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        """Every column is there."""

    def chunks(self, schema: Schema, id: str | None = None) -> Iterator[Chunk]:
        records = np.array([*self.others, *self.person], np.int64).reshape(-1, len(self.names))
        codes = {name: records[:, self.names.index(name)] for name in schema.names}
        owners = [*(f"other {number}" for number in range(len(self.others))), *["the person"] * len(self.person)]
        people = None if id is None else pa.array(owners, pa.string())
        yield Chunk(lambda: Records(len(records), codes, people), 1.0)


def neighbours(unit: hdmm.Unit, cells: Sequence[Cell], random: np.random.Generator) -> Iterator[tuple[Rows, Rows]]:
    """What one person's records may be before and after; the worst is that all are in one cell, or go to one other.

    A record with values outside the schema, which is not counted, may replace another. Where people are told apart, a
    person may have more records than are counted.
    """
    many = unit.rows if unit.id is None else unit.rows + 2
    mixed = tuple(cells[place] for place in random.integers(len(cells), size=many))
    if unit.neighbours == "add-remove":
        yield from (((), (cell,) * many) for cell in cells)
        yield (), mixed
        return
    nowhere = tuple(-1 for _ in cells[0])
    yield from (((nowhere,) * many, (cell,) * many) for cell in cells)
    yield from (((one,) * many, (other,) * many) for one, other in combinations(cells, 2))
    yield (cells[0],) * many, mixed


@dataclass(frozen=True)
class Replay:
    """What the worst neighbour does to a plan's answers."""

    plan: hdmm.Plan
    worst: dict[Norm, Fraction]
    """The largest change of all blocks' answers, each times its weight: absolute sum, and squared length."""
    spent: Fraction
    """The largest privacy loss at the noise that the plan calibrates, as a share of what the budget allows."""
    everyone: bool
    """Whether every cell was tried."""


def replay(plan: hdmm.Plan, random: np.random.Generator) -> Replay:
    """Measure the neighbours of some random records, and take the differences."""
    sizes, blocks = plan.workload.schema.sizes, plan.mechanism.blocks
    everyone = prod(sizes) <= ALL
    cells = list(product(*map(range, sizes))) if everyone else _rows(random.integers(0, sizes, (SOME, len(sizes))))
    others = tuple(_rows(random.integers(0, sizes, (3, len(sizes)))))
    noise = plan.mechanism.calibrate(BUDGETS[plan.noise])
    pairs = list(neighbours(plan.unit, cells, random))
    people = {person: place for place, person in enumerate(dict.fromkeys(chain.from_iterable(pairs)))}
    names = plan.workload.schema.names
    with mock.patch.object(measuring, "add_noise", lambda exact, kind, scale: exact):
        measured = [measuring.measure(plan, Held(person, others, names), noise) for person in people]
    before, after = ([people[pair[side]] for pair in pairs] for side in (0, 1))
    sums: dict[Norm, list[np.ndarray]] = {1: [], 2: []}
    for answers in zip(*measured, strict=True):
        table = np.stack(answers)
        change = table[after] - table[before]
        for p, found in sums.items():
            found.append(_powers(change, p))
    worst = {p: _largest([block.weight**p for block in blocks], own) for p, own in sums.items()}
    return Replay(plan, worst, _spent(plan, noise.scales, sums), everyone)


def _powers(change: np.ndarray, p: Norm) -> np.ndarray:
    """For every pair of neighbours the sum of the changes' sizes to a power, as integers of any length."""
    fits = change.dtype != object and change.shape[1] < 2**10 and abs(change).max(initial=0) < 2**26
    return (abs(change if fits else change.astype(object)) ** p).sum(axis=1).astype(object)


def _largest(weights: Sequence[Fraction], sums: Sequence[np.ndarray]) -> Fraction:
    """The largest weighted sum over the blocks of any pair of neighbours."""
    scale = lcm(*(weight.denominator for weight in weights))
    totals = [int(weight * scale) * own for weight, own in zip(weights, sums, strict=True)]
    return Fraction(max(np.sum(totals, axis=0)), scale)


def _spent(plan: hdmm.Plan, scales: Sequence[Fraction], sums: dict[Norm, list[np.ndarray]]) -> Fraction:
    """The largest Σ‖Δ_b‖₁/scale_b over ε, or Σ‖Δ_b‖²/σ_b² times the σ² of sensitivity one."""
    budget = BUDGETS[plan.noise]
    if plan.noise == "laplace":
        assert budget.epsilon is not None
        return _largest([1 / scale for scale in scales], sums[1]) / budget.epsilon
    return _largest([1 / scale**2 for scale in scales], sums[2]) * certified_sigma(budget) ** 2


def _rows(codes: np.ndarray) -> list[Cell]:
    return [tuple(row) for row in codes.tolist()]
