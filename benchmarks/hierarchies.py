"""Hierarchies over an attribute of very many values: seconds and RMSE of H2, HB and Privelet, Identity beside them.

For each case a spec of one attribute, all its prefixes or all its values, is planned and saved, loaded again, released
from a small CSV with margins for all answers, saved, and loaded. ε = 1, with δ = 1e-6 under Gaussian noise; the RMSE is
the predicted one, and the observed one of this release beside it. Memory is the most that the process of a case had.

    python benchmarks/hierarchies.py [--values 1048576]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np

import hdmm

BUDGETS = {"gaussian": hdmm.Budget("1", "1e-6"), "laplace": hdmm.Budget("1")}
OPERATORS = [hdmm.baselines.Identity(), hdmm.baselines.H2(), hdmm.baselines.HB(), hdmm.baselines.Privelet()]
QUESTIONS = {"prefixes": hdmm.Prefix(), "values": hdmm.Identity()}
RECORDS = 1_000
ROW = "{:<9} {:<9} {:<9}" + 6 * " {:>9}"


def case(number: int, question: str, noise: hdmm.NoiseKind, values: int) -> list[str]:
    """One row of the table."""
    operator, budget = OPERATORS[number], BUDGETS[noise]
    codes = np.random.default_rng(1).integers(0, values, RECORDS)
    counts = np.bincount(codes, minlength=values)
    truth = np.cumsum(counts) if question == "prefixes" else counts
    workload = hdmm.Workload(hdmm.Schema(value=range(values))).add("q", value=QUESTIONS[question])
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "people.csv").write_text("value\n" + "\n".join(map(str, codes)) + "\n")
        start = perf_counter()
        plan = hdmm.select(workload, noise, operators=[operator])
        plan.save(directory / "people.plan")
        selected = perf_counter() - start
        plan = hdmm.Plan.load(directory / "people.plan")
        start = perf_counter()
        hdmm.release(plan, directory / "people.csv", budget, ledger=None, out=directory / "out")
        released = perf_counter() - start
        start = perf_counter()
        table = hdmm.Release.load(directory / "out").table("q")
        loaded = perf_counter() - start
        observed = np.sqrt(np.mean((np.array(table["answer"]) - truth) ** 2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    seconds = [f"{count:.1f}" for count in (selected, released, loaded)]
    return [operator.name, question, noise, *seconds, f"{peak:,.0f}", f"{plan.rmse(budget):.2f}", f"{observed:.2f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=1 << 20)
    values = parser.parse_args().values
    print(f"{values:,} values, {RECORDS:,} records")
    print(ROW.format("strategy", "questions", "noise", "select s", "release s", "load s", "MB", "RMSE", "observed"))
    for question in QUESTIONS:
        for noise in BUDGETS:
            for number in range(len(OPERATORS)):
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # memory is that of one case
                    print(ROW.format(*pool.submit(case, number, question, noise, values).result()), flush=True)


if __name__ == "__main__":
    main()
