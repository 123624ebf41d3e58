"""From records to published tables at size: the time of every stage, the memory, and the error beside the prediction.

Two workloads on the UCI Adult data (48,842 people, 14 attributes as codes; not part of this repository): all marginals
of at most three attributes, 21 million answers; and all of two attributes with prefixes on the five largest. With
--wide instead, all marginals of at most two attributes of 100,000 made-up records with 100 attributes of 10 values.
Gaussian noise, ε = 1, δ = 1e-6. Plan and release run in a process of their own, whose peak is shown. Then every
published answer is compared with the truth, counted here by numpy. Prefixes share noise, so that the RMSE of a single
release varies by 2.2% (standard deviation); that of 25 releases, the first of which is timed, varies by 0.5%.

    python benchmarks/adult.py [--data ../shared/data/adult.csv]
    python benchmarks/adult.py --wide
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

import hdmm
from hdmm.text import text_table

BUDGET = hdmm.Budget(epsilon="1", delta="1e-6")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult.csv"
BYTES, OFF = 4e9, 0.02
"""The most memory that a run may take, and by how much the observed error may be off the prediction."""

Records = dict[str, NDArray[np.int64]]
"""The code of every record, by attribute."""


@dataclass(frozen=True)
class Case:
    """A workload of marginals, and the time that it may take from records to tables."""

    name: str
    domain: dict[str, int]
    seconds: float
    k: int | None = None
    up_to: int | None = None
    prefix: tuple[str, ...] = ()
    releases: int = 1

    def workload(self) -> hdmm.Workload:
        """The workload itself."""
        schema = hdmm.Schema({name: range(size) for name, size in self.domain.items()})
        return hdmm.marginals(schema, self.k, up_to=self.up_to, prefix=self.prefix)


@dataclass(frozen=True)
class Run:
    """What a release took, and what was predicted."""

    plan: float
    release: float
    peak: float
    predicted: float


def end_to_end(case: Case, data: Path, folder: Path) -> Run:
    """Plan and release in this process; releases after the first are not timed."""
    start = perf_counter()
    plan = hdmm.select(case.workload(), "gaussian")
    planned = perf_counter()
    hdmm.release(plan, data, BUDGET, ledger=None, out=folder / "0")
    took = Run(planned - start, perf_counter() - planned, peak(), plan.rmse(BUDGET))
    for number in range(1, case.releases):
        hdmm.release(plan, data, BUDGET, ledger=None, out=folder / str(number))
    return took


def peak() -> float:
    """The most memory that this process had in use, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # the operating system's other figure starts from that of the parent process
        return 1024.0 * int(status.read_text().split("VmHWM:")[1].split()[0])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def compare(case: Case, records: Records, out: Path) -> tuple[int, float, float]:
    """Over all published answers: how many there are, their RMSE, and the share of intervals that hold the truth."""
    count, squared, covered = 0, 0.0, 0
    for stored in json.loads((out / "release.json").read_bytes())["content"]["tables"].values():
        table = parquet.read_table(out / stored["path"])
        names = table.column_names[:-4]
        answer, low, high = (table[name].to_numpy() for name in ("answer", "low", "high"))
        places = tuple(codes(table[name]) for name in names)
        true = truth(case, records, names)[places]
        count += len(answer)
        squared += float(np.sum((answer - true) ** 2))
        covered += int(np.sum((low <= true) & (true <= high)))
    return count, sqrt(squared / count), covered / count


def codes(labels: Any) -> NDArray[np.int64]:
    """The code that a label names: of a value, or of the last one of a prefix."""
    if labels.type != "string":
        return np.asarray(labels.to_numpy())
    return np.array([int(text.removeprefix("<= ")) for text in labels.to_pylist()])


def truth(case: Case, records: Records, names: list[str]) -> NDArray[np.int64]:
    """The marginal of some attributes as an array, cumulative where the case asks for it."""
    shape = [case.domain[name] for name in names]
    if not names:
        return np.array(len(next(iter(records.values()))))
    flat = np.ravel_multi_index([records[name] for name in names], shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    for axis, name in enumerate(names):
        counts = counts.cumsum(axis) if name in case.prefix else counts
    return counts


def run(case: Case, data: Path) -> bool:
    """Measure and print one case; whether its goals are kept."""
    rows = np.loadtxt(data, np.int64, delimiter=",", skiprows=1)
    with data.open() as file:
        records = dict(zip(file.readline().strip().split(","), rows.T, strict=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            took = pool.submit(end_to_end, case, data, folder).result()
        tables = list((folder / "0" / "tables").iterdir())
        size = sum(path.stat().st_size for path in tables)
        start = perf_counter()
        hdmm.Release.load(folder / "0")
        loaded = perf_counter() - start
        found = [compare(case, records, folder / str(number)) for number in range(case.releases)]
    count = found[0][0]
    observed = sqrt(sum(rmse**2 for _, rmse, _ in found) / len(found))
    covered = sum(share for *_, share in found) / len(found)
    size_text = f"{len(tables):,} tables, {size / 1e6:,.0f} MB of Parquet"
    print(f"{case.name}: {len(rows):,} records, {count:,} answers in {size_text}")
    stages = {"plan": took.plan, "release": took.release, "both": took.plan + took.release, "load and check": loaded}
    print(text_table(["stage", "seconds"], [(name, round(seconds, 1)) for name, seconds in stages.items()]))
    print(f"peak memory {took.peak / 1e9:.2f} GB; RMSE predicted {took.predicted:.2f}, observed {observed:.2f}", end="")
    print(f" ({observed / took.predicted - 1:+.2%}); {covered:.2%} of the 95% intervals hold the truth")
    kept = stages["both"] <= case.seconds and took.peak <= BYTES and abs(observed / took.predicted - 1) <= OFF
    goal = f"{case.seconds:.0f} s, {BYTES / 1e9:.0f} GB and an error within {OFF:.0%} of the prediction"
    print(f"the goal of {goal} is {'kept' if kept else 'MISSED'}\n", flush=True)
    return kept


def wide(folder: Path) -> tuple[Case, Path]:
    """A hundred attributes of ten values, each drawn around that of the attribute before it."""
    random, attributes, count = np.random.default_rng(0), 100, 100_000
    rows = np.zeros((count, attributes), np.int64)
    rows[:, 0] = random.integers(10, size=count)
    for place in range(1, attributes):
        rows[:, place] = (rows[:, place - 1] + random.binomial(9, 0.3, size=count)) % 10
    domain = {f"a{place}": 10 for place in range(attributes)}
    np.savetxt(folder / "wide.csv", rows, "%d", delimiter=",", header=",".join(domain), comments="")
    return Case("100 attributes, at most two at a time", domain, 300, up_to=2), folder / "wide.csv"


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="adult.csv, with adult-domain.json beside it")
    parser.add_argument("--wide", action="store_true", help="100 made-up attributes instead of Adult")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores\n")
    if given.wide:
        with tempfile.TemporaryDirectory() as folder:
            raise SystemExit(not run(*wide(Path(folder))))
    if not given.data.exists():
        print(f"{given.data}: there is no such file; say where adult.csv is with --data, or give --wide")
        return
    domain = json.loads(given.data.with_name("adult-domain.json").read_text())
    largest = tuple(sorted(domain, key=domain.__getitem__, reverse=True)[:5])
    cases = [
        Case("Adult, at most three at a time", domain, 180, up_to=3),
        Case("Adult, two at a time with prefixes", domain, 180, k=2, prefix=largest, releases=25),
    ]
    kept = [run(case, given.data) for case in cases]
    raise SystemExit(not all(kept))


if __name__ == "__main__":
    main()
