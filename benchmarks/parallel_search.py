"""How much faster a search is on two processes, and on a Dask cluster of two workers, than on one: ratios in one run.

    python benchmarks/parallel_search.py [--restarts 20]

All three find the same plan. The first figure of each way includes starting its processes, the second does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter

import joblib

import hdmm
from hdmm.paper import workloads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--restarts", type=int, default=20)
    restarts = parser.parse_args().restarts
    workload = workloads.cps_prefix()
    plans = []

    def search(jobs: int | None) -> None:
        chosen = [hdmm.operators.MarginalPlus(), hdmm.operators.Kron()]
        plans.append(hdmm.select(workload, operators=chosen, restarts=restarts, jobs=jobs))

    search(1)  # everything is imported
    alone = seconds(lambda: search(1))
    print(f"CPS prefix marginals, Laplace, {restarts} restarts: {len(plans[-1].search)} tasks")
    print(f"{'one process':<24} {alone:7.1f} s")
    tell("two processes", alone, [seconds(lambda: search(2)) for _ in range(2)])
    from distributed import Client, LocalCluster

    begun = perf_counter()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,  # type: ignore[no-untyped-call]
        Client(cluster),  # type: ignore[no-untyped-call]
        joblib.parallel_config(backend="dask"),
    ):
        search(None)
        first = perf_counter() - begun
        tell("Dask, two workers", alone, [first, seconds(lambda: search(None))])
    budget = hdmm.Budget(1)
    assert len({plan.rmse(budget) for plan in plans}) == 1, "the plans differ"
    print(f"all of them found the same plan, RMSE {plans[0].rmse(budget):.4f} at ε = 1")


def seconds(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


def tell(name: str, alone: float, times: list[float]) -> None:
    ratios = " and ".join(f"{alone / time:.2f}×" for time in times)
    print(f"{name:<24} {' and '.join(f'{time:.1f}' for time in times)} s: {ratios} as fast as one process")


if __name__ == "__main__":
    main()
