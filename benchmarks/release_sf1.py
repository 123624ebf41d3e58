"""A release of the census tables SF1 from ten million made-up people: the time of every stage, and the memory.

The strategy is the optimised one and ε is 1. Making the people and choosing the strategy is not part of a release, and
is timed apart. The stages run one by one in a process of their own; then `hdmm.release` does all of them, with a
ledger, in another. The peaks are those of these two processes. The goal is 60 seconds and 4 GB on two cores.

    python benchmarks/release_sf1.py [--records 10000000]
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import hdmm
from hdmm.data import count, open_source
from hdmm.measure import add_noise, check_measurable, exact_answers
from hdmm.paper import census
from hdmm.plans.footprint import check_memory
from hdmm.text import text_table

BUDGET = hdmm.Budget(epsilon="1")
SECONDS, BYTES = 60, 4e9
PIECE = 500_000
COLUMNS: dict[str, tuple[list[str], list[float] | None]] = {
    "sex": (["M", "F"], None),
    "hispanic": (["false", "true"], [0.83, 0.17]),
    "white": (["false", "true"], [0.25, 0.75]),
    "black": (["false", "true"], [0.86, 0.14]),
    "native": (["false", "true"], [0.98, 0.02]),
    "asian": (["false", "true"], [0.94, 0.06]),
    "pacific": (["false", "true"], [0.99, 0.01]),
    "other": (["false", "true"], [0.93, 0.07]),
    "relationship": ([str(value) for value in range(17)], None),
    "age": ([str(value) for value in range(115)], None),
}
"""The columns of the census's people, the texts in them, and how often each occurs."""

Row = tuple[str, float, float]
"""A stage, its seconds, and the most memory that was in use so far, in bytes."""


def write(path: Path, records: int) -> None:
    """Write people with independent attributes, some at a time."""
    random = np.random.default_rng(0)
    *_, last = COLUMNS
    ends = {name: "\n" if name == last else "," for name in COLUMNS}
    texts = [np.array([text + ends[name] for text in column], "S") for name, (column, _) in COLUMNS.items()]
    steps = [None if weights is None else np.cumsum(weights)[:-1] for _, weights in COLUMNS.values()]
    with path.open("wb") as file:
        file.write(",".join(COLUMNS).encode() + b"\n")
        for start in range(0, records, PIECE):
            size = min(records - start, PIECE)
            drawn = [
                random.integers(len(text), size=size) if step is None else np.searchsorted(step, random.random(size))
                for text, step in zip(texts, steps, strict=True)
            ]
            fields = [text[which].view(np.uint8).reshape(size, -1) for text, which in zip(texts, drawn, strict=True)]
            grid = np.concatenate(fields, axis=1)
            file.write(grid[grid != 0].tobytes())


def peak() -> float:
    """The most memory that this process had in use, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # the operating system's other figure starts from that of the parent process
        return 1024.0 * int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def by_stages(plan_file: Path, data: Path, out: Path, records: int) -> list[Row]:
    """Do what `hdmm.release` does, without a ledger, and time each of its stages."""
    rows: list[Row] = []

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        start = perf_counter()
        yield
        rows.append((name, perf_counter() - start, peak()))

    with stage("load the plan"):
        plan = hdmm.Plan.load(plan_file)
    with stage("check and calibrate"):
        noise = plan.mechanism.calibrate(BUDGET)
        check_measurable(plan)
        check_memory(plan.mechanism.estimator, plan.workload.encoded)
    with stage("predict the margins"):
        for product in plan.workload.products:
            plan.accuracy(product.name, BUDGET)
    schema, blocks = plan.workload.schema, plan.mechanism.blocks
    tables = [tuple(schema.names[axis] for axis in block.axes) for block in blocks]
    with stage("count the records"):
        distinct = list(dict.fromkeys(tables))
        counts = dict(zip(distinct, count(open_source(data), schema, distinct, unit=plan.unit), strict=True))
    if any(table.sum() != records for table in counts.values()):
        raise SystemExit("not all people were counted")
    with stage("exact answers"):
        exact = [exact_answers(block, counts[table]) for block, table in zip(blocks, tables, strict=True)]
    with stage("noise"):
        pairs = zip(exact, noise.scales, strict=True)
        noisy = [add_noise(answers, noise.kind, scale) for answers, scale in pairs]
    with stage("reconstruct and write"):
        hdmm.Release(plan, BUDGET, tuple(noisy)).save(out)
    return rows


def as_a_whole(plan_file: Path, data: Path, out: Path) -> list[Row]:
    """Time `hdmm.release`, with a ledger and all."""
    plan = hdmm.Plan.load(plan_file)
    ledger = out.with_suffix(".db")
    hdmm.Ledger.create(ledger, BUDGET, plan.unit)
    start = perf_counter()
    hdmm.release(plan, data, BUDGET, ledger=ledger, out=out)
    return [("hdmm.release as a whole", perf_counter() - start, peak())]


def apart(run: Callable[..., list[Row]], *given: Any) -> list[Row]:
    """Run in a fresh process, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, *given).result()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as folder:
        data, plan_file = Path(folder) / "people.csv", Path(folder) / "sf1.plan"
        start = perf_counter()
        write(data, records)
        size = data.stat().st_size / 1e6
        print(f"{records:,} people, {size:,.0f} MB, made in {perf_counter() - start:.1f} s; {os.cpu_count()} cores")
        start = perf_counter()
        plan = hdmm.select(census.sf1(), "laplace")
        seconds = perf_counter() - start
        print(f"SF1, {plan.workload.query_count:,} queries: {plan.operator} chosen in {seconds:.1f} s,", end=" ")
        print(f"RMSE {plan.rmse(BUDGET):.2f} at ε = {BUDGET.epsilon}\n", flush=True)
        plan.save(plan_file)
        stages = apart(by_stages, plan_file, data, Path(folder) / "stages", records)
        whole = apart(as_a_whole, plan_file, data, Path(folder) / "whole")
    total = ("all stages", sum(seconds for _, seconds, _ in stages), stages[-1][2])
    shown = [(name, round(seconds, 2), round(memory / 1e9, 2)) for name, seconds, memory in (*stages, total, *whole)]
    print(text_table(["stage", "seconds", "GB at most"], shown))
    _, seconds, memory = whole[0]
    kept = seconds <= SECONDS and memory <= BYTES
    print(f"\nthe goal of {SECONDS} s and {BYTES / 1e9:.0f} GB is {'kept' if kept else 'MISSED'}")


if __name__ == "__main__":
    main()
