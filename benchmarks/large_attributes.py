"""Attributes of very many values, end to end: plan, release of a CSV of a million records, answers, one by one.

For each number of values, question and noise a spec of one attribute is planned by each operator, saved, loaded and
released with all its tables; the release is loaded, and asked 10,000 random prefixes or 200 ranges. ε = 1, and
δ = 1e-6 under Gaussian noise.

- rmse: the predicted one; ratio: that to the least among the operators of this run
- found: the root mean square of the errors of these answers over their standard errors, and the share of their 95%
  intervals that hold the truth; both scatter, since these answers share their noise
- memory: the most that the process of a case had while it released, over what the plan said that it needs
- answer: milliseconds of the first answer to one range after loading, and of a later one

    python benchmarks/large_attributes.py [--values 16384 65536 1048576] [--operators HB Privelet] [--records 1000000]

Operators are those of hdmm.operators and hdmm.baselines by name; ``default`` is what hdmm.select tries by itself.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

import hdmm
from hdmm.memory import memory_limit
from hdmm.plans.footprint import needed

BUDGETS = {"gaussian": hdmm.Budget("1", "1e-6"), "laplace": hdmm.Budget("1")}
QUESTIONS = {"prefixes": hdmm.Prefix(), "ranges": hdmm.AllRange()}
ASKED = {"prefixes": 10_000, "ranges": 200}
HEADER = ("values", "question", "noise", "operator", "plan s", "rmse", "ratio", "release s", "memory", "MB", "found")
ROW = "{:>9} {:<9} {:<9} {:<10} {:>7} {:>8} {:>6} {:>10} {:>7} {:>6} {:>6} {:>7} {:>14}"


class Case(NamedTuple):
    """What one process does."""

    values: int
    question: str
    noise: hdmm.NoiseKind
    operator: str


class Found(NamedTuple):
    """What it found."""

    plan_seconds: float
    rmse: float
    release_seconds: float
    peak: float
    needed: float
    error: float
    covered: float
    first: float
    later: float


def run(case: Case, csv: Path) -> Found:
    """Plan, release, load and ask."""
    schema = hdmm.Schema(value=range(case.values))
    workload = hdmm.Workload(schema).add("q", value=QUESTIONS[case.question])
    operators = None if case.operator == "default" else [_operator(case.operator)]
    budget = BUDGETS[case.noise]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        start = perf_counter()
        hdmm.select(workload, case.noise, operators=operators).save(directory / "a.plan")
        plan_seconds = perf_counter() - start
        plan = hdmm.Plan.load(directory / "a.plan")
        start = perf_counter()
        hdmm.release(plan, csv, budget, ledger=None, out=directory / "out")
        release_seconds = perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        release = hdmm.Release.load(directory / "out")
        first, later = (_one_answer(release, case.values, number) for number in range(2))
        error, covered = _compared(release, csv, case)
    need = needed(plan.mechanism.estimator, plan.workload.encoded, memory_limit()).memory / 2**20
    return Found(plan_seconds, plan.rmse(budget), release_seconds, peak, need, error, covered, first, later)


def _operator(name: str) -> hdmm.operators.Operator:
    module = hdmm.operators if hasattr(hdmm.operators, name) else hdmm.baselines
    operator: hdmm.operators.Operator = getattr(module, name)()
    return operator


def _one_answer(release: hdmm.Release, values: int, number: int) -> float:
    """Milliseconds to ask for one range and to answer it."""
    start = perf_counter()
    asked = hdmm.Ranges([(values // 7 + number, values // 2 + number)])
    release.answer(hdmm.Workload(release.plan.workload.schema).add("one", value=asked))
    return 1e3 * (perf_counter() - start)


def _compared(release: hdmm.Release, csv: Path, case: Case) -> tuple[float, float]:
    """The root mean square of errors over standard errors, and how often intervals hold the truth."""
    ends = np.sort(np.random.default_rng(2).integers(0, case.values, (ASKED[case.question], 2)), axis=1)
    if case.question == "prefixes":
        ends[:, 0] = 0
    asked = hdmm.Workload(release.plan.workload.schema).add("some", value=hdmm.Ranges(ends.tolist()))
    table = release.answer(asked)["some"]
    answer, stderr, low, high = (table[column].to_numpy() for column in ("answer", "stderr", "low", "high"))
    running = np.cumsum(np.bincount(np.loadtxt(csv, np.int64, skiprows=1), minlength=case.values))
    truth = running[ends[:, 1]] - np.where(ends[:, 0] > 0, running[ends[:, 0] - 1], 0)
    error = float(np.sqrt(np.mean(((answer - truth) / stderr) ** 2)))
    return error, float(np.mean((low <= truth) & (truth <= high)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, nargs="+", default=[16_384, 65_536, 1_048_576])
    parser.add_argument("--operators", nargs="+", default=["HB", "H2", "Privelet"])
    parser.add_argument("--records", type=int, default=1_000_000)
    arguments = parser.parse_args()
    print(ROW.format(*HEADER, "covered", "answer ms"))
    with tempfile.TemporaryDirectory() as name:
        for values in arguments.values:
            csv = Path(name) / f"{values}.csv"
            drawn = np.random.default_rng(1).exponential(values / 10, arguments.records).astype(np.int64)
            csv.write_text("value\n" + "\n".join(map(str, np.minimum(drawn, values - 1).tolist())) + "\n")
            for question in QUESTIONS:
                for noise in BUDGETS:
                    _print_group([Case(values, question, noise, operator) for operator in arguments.operators], csv)


def _print_group(cases: list[Case], csv: Path) -> None:
    """The rows of one question, one process for each."""
    results: list[Found | str] = []
    for case in cases:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                results.append(pool.submit(run, case, csv).result())
            except hdmm.errors.HdmmError as error:
                results.append(str(error))
    least = min((found.rmse for found in results if isinstance(found, Found)), default=1.0)
    for case, found in zip(cases, results, strict=True):
        if isinstance(found, str):
            print(*case, found)
            continue
        numbers = [
            f"{found.plan_seconds:.1f}",
            f"{found.rmse:.2f}",
            f"{found.rmse / least:.3f}",
            f"{found.release_seconds:.1f}",
            f"{found.peak / found.needed:.2f}",
            f"{found.peak:.0f}",
            f"{found.error:.3f}",
            f"{found.covered:.1%}",
            f"{found.first:,.0f} {found.later:,.1f}",
        ]
        print(ROW.format(f"{case.values:,}", *case[1:], *numbers), flush=True)


if __name__ == "__main__":
    main()
