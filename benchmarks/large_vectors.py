"""MEASURE and RECONSTRUCT on large vectors of counts: time, and memory beside its estimate.

For domains of five attributes of c cells each, a Kronecker strategy for all prefixes, optimised and rounded to
integers, and marginals on up to three attributes, measured from the full vector. The first table has the seconds of
copying the vector once per axis (`copy()`, in pieces of 256 MB, and "moved" without allocating anything), of the exact
answers, of measuring (exact answers and noise), of the estimate, and of two tables answered from it; exact answers and
the estimate also as multiples of the copies, which for Kronecker products should be at most 3. Small cases are the
quickest of several runs. The second table has the peak memory of whole releases from a small file beside what
`hdmm.plans.footprint` expects. Every case runs in a process of its own; memory is the most that arrays take together,
the vector included, and for whole releases what the process has for itself; mapped files are not counted.

A virtual machine may take half a minute to give a gigabyte that was not used for some seconds. So that this is not
counted, the large arrays of the first table are in memory that is taken at the beginning and kept. (Where it is not,
the estimate takes as much longer as one copy does: exact answers are in the place of the counts.)

    python benchmarks/large_vectors.py [--sizes 8 16 32 50] [--huge]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import pairwise
from math import prod
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np

import hdmm
from hdmm import measure
from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import Dense, Kron, Total, kronecker
from hdmm.matrix import Identity as Each
from hdmm.matrix import exact as exactly
from hdmm.memory.limit import memory_allowed, memory_limit, physical_memory
from hdmm.operators.base import Proposal
from hdmm.plans.footprint import needed
from hdmm.privacy.calibrate import calibrate
from hdmm.selection.quantise import Quantised, quantise
from hdmm.strategy import Block, Strategy
from hdmm.strategy.block import REACH
from hdmm.strategy.integers import round_columns, round_lengths
from hdmm.text import text_table

AXES = "abcde"
NOISE = {"gaussian": hdmm.Budget(epsilon="1", delta="1e-6"), "laplace": hdmm.Budget(epsilon="1")}
NORM = {"gaussian": 2, "laplace": 1}
SMALL = 1 << 27
"""Cells that all runs of one case have together, unless one run has more."""


class Memory:
    """The most memory that the process has had for itself, looked up all the time in a thread."""

    def __init__(self) -> None:
        self.most = 0
        self._end = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._end.wait(0.01):
            lines = Path("/proc/self/status").read_text().splitlines()
            self.most = max(self.most, *(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")))

    def stop(self) -> int:
        """The most so far, in bytes."""
        self._end.set()
        self._thread.join()
        return self.most


def schema_of(c: int) -> hdmm.Schema:
    """Five attributes of c cells each."""
    return hdmm.Schema({name: range(c) for name in AXES})


def strategy_of(family: str, c: int, noise: str) -> Strategy:
    """An optimised strategy, rounded to integers as finely as five factors and the noise of their answers allow."""
    schema = schema_of(c)
    norm: Any = NORM[noise]
    if family == "marginal":
        encoded = hdmm.marginals(schema, up_to=3).encoded
        proposal = hdmm.operators.Marginal().propose(encoded, norm)
        assert isinstance(proposal, Proposal)
        quantised = quantise(proposal.strategy, encoded, norm)
        assert isinstance(quantised, Quantised)
        return quantised.strategy
    one = hdmm.Workload(hdmm.Schema(a=range(c))).add("prefixes", a=hdmm.Prefix()).encoded
    best = hdmm.operators.Kron().propose(one, norm)
    assert isinstance(best, Proposal)
    entries = best.strategy.blocks[0].factors[0].dense()
    for k in range(8, 0, -1):
        factor = Dense((round_columns if norm == 1 else round_lengths)(entries, k))
        block = Block(tuple(range(len(AXES))), (factor,) * len(AXES), Fraction(1, 2 ** (k * len(AXES))))
        if block.reach <= REACH:
            return Strategy(schema.sizes, (block,), "kron")
    raise ValueError("no precision is coarse enough")


def fill(x: np.ndarray) -> None:
    """Counts of few records in each cell, some of none."""
    random = np.random.default_rng(0)
    for start in range(0, x.size, 1 << 22):
        part = x[start : start + (1 << 22)]
        part[:] = random.integers(0, 4, part.size)


class Pool:
    """Memory for two large arrays, which are handed out again once nobody holds them."""

    def __init__(self, size: int) -> None:
        self._buffers = [np.full(8 * size, 1, np.uint8) for _ in range(2)]
        self.most = 0
        """The most bytes that were in use at a time."""

    def empty(self, size: int, dtype: np.dtype[Any]) -> np.ndarray:
        """An array whose elements are not set: of this memory if it is large, and some is free."""
        needed = size * dtype.itemsize
        used = [sys.getrefcount(buffer) > 3 for buffer in self._buffers]
        if 2 * needed < self._buffers[0].nbytes or needed > self._buffers[0].nbytes or all(used):
            return np.empty(size, dtype)
        self.most = max(self.most, (1 + sum(used)) * needed)
        return self._buffers[used.index(False)][:needed].view(dtype)


def run(family: str, c: int, noise: Any) -> list[Any]:
    """One row of the first table, with so much memory allowed that a billion cells need no work files."""
    with memory_allowed(4 * physical_memory() // 5):
        return timed(family, c, noise)


def timed(family: str, c: int, noise: Any) -> list[Any]:
    """The time and the memory of every step."""
    strategy = strategy_of(family, c, noise)
    pool = Pool(max([c ** len(AXES), *(block.queries for block in strategy.blocks)]))
    with mock.patch.object(kronecker, "empty", pool.empty), mock.patch.object(exactly, "empty", pool.empty):
        return timed_in(pool, strategy, f"{family}, {noise}", c, noise)


def timed_in(pool: Pool, strategy: Strategy, name: str, c: int, noise: Any) -> list[Any]:
    """The same, with large arrays in a pool of memory."""
    scales = calibrate(strategy.blocks, noise, NOISE[noise], hdmm.Unit().change(strategy.blocks, NORM[noise]))  # type: ignore[arg-type]
    cells, queries = c ** len(AXES), sum(block.queries for block in strategy.blocks)
    Kron([Each(2), Total(1 << 17)]).apply(np.ones(1 << 18))  # starts the threads once
    copies = moved = exact = measured = estimated = answered = np.inf
    tracemalloc.start()
    for _ in range(max(1, min(20, SMALL // cells))):
        x = pool.empty(cells, np.dtype(np.int64))
        fill(x)
        copies, moved = min(copies, copying(x)), min(moved, moving(x, pool.empty(cells, x.dtype)))
        pool.most = x.nbytes
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()
        start = perf_counter()
        with mock.patch.object(measure, "add_noise", lambda answers, kind, scale: answers):
            measuring(strategy, x, noise, scales.scales)
        exact = min(exact, perf_counter() - start)
        fill(x)
        start = perf_counter()
        answers = measuring(strategy, x, noise, scales.scales)
        measured = min(measured, perf_counter() - start)
        del x
        start = perf_counter()
        estimator = local_least_squares(strategy)
        state = estimator.reconstruct(answers, scales.variances)
        estimated = min(estimated, perf_counter() - start)
        start = perf_counter()
        asked = hdmm.Workload(schema_of(c)).add("one", a=hdmm.Identity()).add("two", b=hdmm.Prefix(), d=hdmm.Identity())
        for product in asked.encoded.products:
            estimator.answer(product, state)
        answered = min(answered, perf_counter() - start)
        del answers, state
        if tracemalloc.is_tracing():  # once is enough, and slows small cases down
            most = pool.most + tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    times = [copies, moved, exact, exact / copies, measured, estimated, estimated / copies, answered]
    return [name, c, cells, queries, *times, most / 1e9]


def copying(x: np.ndarray) -> float:
    """The seconds of copying a vector once per axis."""
    x[: 1 << 25].copy()  # takes the memory
    start = perf_counter()
    for _ in AXES:
        for piece in range(0, x.size, 1 << 25):
            x[piece : piece + (1 << 25)].copy()
    return perf_counter() - start


def moving(x: np.ndarray, room: np.ndarray) -> float:
    """The seconds of the same into memory that is there already."""
    start = perf_counter()
    for _ in AXES:
        np.copyto(room, x)
    return perf_counter() - start


def measuring(strategy: Strategy, x: np.ndarray, noise: Any, scales: Any) -> list[np.ndarray]:
    """The noisy answers, each block's from the smallest table that is there already; the vector may be used up."""
    n = round(x.size ** (1 / len(AXES)))
    tables = {tuple(range(len(AXES))): x}
    answers: dict[int, np.ndarray] = {}
    for place in sorted(range(len(strategy.blocks)), key=lambda place: -len(strategy.blocks[place].axes)):
        block = strategy.blocks[place]
        if block.axes not in tables:
            held = min((axes for axes in tables if set(block.axes) <= set(axes)), key=len)
            summed = Kron(Each(n) if axis in block.axes else Total(n) for axis in held)
            tables[block.axes] = summed.apply(tables[held])
        spare = len(strategy.blocks) == 1
        answers[place] = measure.noisy_answers(block, tables[block.axes], noise, scales[place], spare=spare)
    return [answers[place] for place in range(len(strategy.blocks))]


def whole(family: str, sizes: tuple[int, ...], noise: Any) -> list[Any]:
    """One row of the second table: a release from a small file over a large domain."""
    memory = Memory()
    schema = hdmm.Schema({f"a{place}": range(size) for place, size in enumerate(sizes)})
    names = list(schema)
    workload = hdmm.Workload(schema)
    for one, other in pairwise(names):
        workload = workload.add(f"{one}, {other}", {one: hdmm.Prefix(), other: hdmm.Prefix()})
    if family == "marginal":
        workload = hdmm.marginals(schema, up_to=len(sizes))
    operators = {"kron": hdmm.operators.Kron(), "marginal": hdmm.operators.Marginal()}
    chosen = operators.get(family) or hdmm.baselines.Identity()
    plan = hdmm.select(workload, noise=noise, operators=[chosen], restarts=1)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "people.csv")
        path.write_text(",".join(schema) + "\n" + (",".join(["1"] * len(sizes)) + "\n") * 1000)
        hdmm.release(plan, path, NOISE[noise], ledger=None, out=Path(directory, "out"))
    expected = needed(plan.mechanism.estimator, workload.encoded, memory_limit()).memory
    real = memory.stop()
    shape = "×".join(map(str, sizes))
    return [f"{family}, {noise}", shape, prod(sizes), real / 1e9, expected / 1e9, expected / real]


def main() -> None:
    """Run every case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[8, 16, 32, 50], help="cells of each attribute")
    parser.add_argument("--huge", action="store_true", help="also 64: a billion cells, 8 GB for each vector")
    parser.add_argument("--families", nargs="*", default=["kron gaussian", "kron laplace", "marginal gaussian"])
    parser.add_argument("--no-releases", action="store_true", help="leave the second table out")
    given = parser.parse_args()
    sizes = [*given.sizes, *([64] if given.huge else [])]
    cases = [(family, c, noise) for family, noise in map(str.split, given.families) for c in sizes]
    columns = "strategy,cells each,cells,answers,copies s,moved s,exact s,÷ copies,measure s,estimate s,÷ copies"
    cases = [case for case in cases if case[1] < 64 or case[2] != "laplace"]  # whose vectors grow: too large by then
    print(text_table([*columns.split(","), "tables s", "GB"], [alone(run, *case) for case in cases]))
    if given.no_releases:
        return
    shapes: list[tuple[str, tuple[int, ...], str]] = [
        ("identity", (64, 64, 64, 64), "laplace"),
        ("identity", (300, 300, 300), "laplace"),
        ("kron", (300, 300, 300), "gaussian"),
        ("marginal", (150, 150, 150), "gaussian"),
    ]
    print()
    columns = "strategy, domain, cells, peak GB, expected GB, ratio"
    print(text_table(columns.split(", "), [alone(whole, *shape) for shape in shapes]))


def alone(function: Any, *arguments: Any) -> list[Any]:
    """The function's result, from a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        row: list[Any] = pool.submit(function, *arguments).result()
    print(*(f"{value:.4g}" if isinstance(value, float) else value for value in row), file=sys.stderr)
    return row


if __name__ == "__main__":
    main()
