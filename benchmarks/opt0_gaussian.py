"""OPT_0 under Gaussian noise: the time to reach the same error as the paper's own method, in one run.

The paper's method (section 4.2) is L-BFGS on the entries of X below its diagonal, which is kept at 1, from the
normalised root of V; the gradient is −X⁻¹VX⁻¹, and a point where X is not positive definite has a large loss. It runs
until it is as good as the strategy that hdmm found, or until it gives up (>). hdmm solves each workload with its
structure, and with nothing but its Gram matrix written out; its gap is proved.

Last, large domains, where nothing quadratic is written out: the exact error, and its proved gap.

    python benchmarks/opt0_gaussian.py [--size 1024] [--limit 300] [--large 65536 1000000]
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from math import sqrt
from time import perf_counter

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from hdmm.matrix.axis_gram import AllRangeGram, AxisGram, DenseGram, PrefixGram
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import gaussian_sigma


class Enough(Exception):
    """The error is reached, or time is up."""


def textbook(V: np.ndarray, target: float, limit: float) -> tuple[float, float]:
    """The seconds that the paper's method takes to reach an error, and the error reached."""
    began = perf_counter()
    below = np.tri(len(V), dtype=bool, k=-1)
    best = np.inf

    def loss(entries: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        X = np.zeros((len(V), len(V)))
        X[below] = entries
        X += X.T
        np.fill_diagonal(X, 1)
        factor, failed = dpotrf(X)
        if failed:
            return 100 * best, np.zeros_like(entries)
        inverse = np.triu(dpotri(factor)[0])
        inverse += np.triu(inverse, 1).T
        value = float(np.sum(inverse * V))
        best = min(best, value)
        if best <= target or perf_counter() - began > limit:
            raise Enough
        gradient = -inverse @ V @ inverse
        return value, 2 * gradient[below]

    values, vectors = np.linalg.eigh(V)
    root = vectors * np.sqrt(np.clip(values, 0, None)) @ vectors.T
    norms = np.sqrt(np.diagonal(root))
    start = (root / np.multiply.outer(norms, norms))[below]
    with suppress(Enough):
        minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 10_000, "maxfun": 100_000})
    return perf_counter() - began, best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--limit", type=float, default=300, help="the most seconds for the paper's method")
    parser.add_argument("--large", type=int, nargs="*", default=[65536, 1_000_000], help="cells of large domains")
    arguments = parser.parse_args()
    n = arguments.size
    opt0_gaussian(PrefixGram(16))  # imports are not what is measured
    print(f"n = {n}; hdmm is the best of three runs\n")
    print(f"{'':24}{'error':>14}{'gap':>10}{'hdmm s':>9}{'paper s':>10}{'ratio':>10}")
    for name, gram in {"prefix": PrefixGram(n), "all ranges": AllRangeGram(n)}.items():
        V = gram.dense()
        taken = {}
        ways: dict[str, AxisGram] = {name: gram, f"{name}, written out": DenseGram(V)}
        for way, given in ways.items():
            seconds = np.inf
            for _ in range(3):
                began = perf_counter()
                solution = opt0_gaussian(given)
                seconds = min(seconds, perf_counter() - began)
            taken[way] = (seconds, solution)
        for way, (seconds, solution) in taken.items():
            assert solution.bound is not None
            spent, reached = textbook(V, solution.error, arguments.limit)
            mark = "" if reached <= solution.error else ">"
            ratio = f"{mark}{spent / seconds:.0f}×"
            gap = solution.error / solution.bound - 1
            print(
                f"{way:24}{solution.error:14.2f}{gap:10.1e}{seconds:9.2f}{mark + f'{spent:.1f}':>10}{ratio:>10}",
                flush=True,
            )
    print("\nlarge domains; the RMSE is at ε = 1, δ = 1e-6")
    print(f"{'':12}{'n':>11}{'seconds':>10}{'RMSE':>10}{'gap':>10}")
    sigma = gaussian_sigma(Budget(1, "1e-6"))
    for n in arguments.large:
        for name, gram, queries in (("all ranges", AllRangeGram(n), n * (n + 1) / 2), ("prefix", PrefixGram(n), n)):
            began = perf_counter()
            solution = opt0_gaussian(gram)
            spent = perf_counter() - began
            assert solution.bound is not None
            gap = solution.error / solution.bound - 1
            print(f"{name:12}{n:>11,}{spent:>10.1f}{sigma * sqrt(solution.error / queries):>10.3f}{gap:>10.1e}")


if __name__ == "__main__":
    main()
