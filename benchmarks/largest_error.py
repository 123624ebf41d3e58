"""The largest standard error of any answer under Gaussian noise, where the total is made small and where it is itself.

    python benchmarks/largest_error.py [--only Adult]

ε = 1, δ = 1e-6. The gap is that between the largest variance and a proved lower bound on it, where one is known.
"""

from __future__ import annotations

import argparse
from math import sqrt
from time import perf_counter

from hdmm import Budget, operators
from hdmm.estimators.least_squares import local_least_squares
from hdmm.objective import Objective
from hdmm.operators.base import Proposal
from hdmm.operators.minimax.search import least_worst
from hdmm.optimise.descent import DEFAULT
from hdmm.paper.errors import WORKLOADS
from hdmm.privacy.calibrate import gaussian_sigma


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only workloads whose name holds this text")
    only = parser.parse_args().only
    sigma = gaussian_sigma(Budget(1, "1e-6"))
    print(f"{'workload':<36} {'total':>10} {'largest':>10} {'gap':>10} {'seconds':>8}")
    for (dataset, name), build in WORKLOADS.items():
        if only not in f"{dataset} {name}":
            continue
        encoded = build().encoded
        objective = Objective.largest(encoded)
        assert objective.limits is not None
        total = operators.Residual().propose(encoded, 2)
        start = perf_counter()
        operator = operators.Kron() if len(encoded.products) == 1 else operators.Residual()
        found = least_worst(operator, encoded, objective.limits, 2, DEFAULT)
        seconds = perf_counter() - start
        assert isinstance(total, Proposal)
        assert isinstance(found, Proposal)
        before, after = (objective.value(local_least_squares(one.strategy), encoded, 2) for one in (total, found))
        gap = f"{after / found.bound - 1:10.1e}" if found.bound else f"{'':>10}"
        errors = f"{sigma * sqrt(before):10.2f} {sigma * sqrt(after):10.2f}"
        print(f"{dataset + ' ' + name:<36} {errors} {gap} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()
