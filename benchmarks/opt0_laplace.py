"""OPT_0 under Laplace noise: an evaluation of the loss of p-Identity strategies and its gradient, and 100 iterations.

The textbook form follows the paper's formulas: C(A) = tr((AᵀA)⁻¹V) and −2A(AᵀA)⁻¹V(AᵀA)⁻¹, with (AᵀA)⁻¹ by Woodbury's
identity in four products of p·n² and temporaries of n × n. hdmm takes one product with V, which structured Grams turn
into running sums. Both take turns, and ratios are of the least times; 100 iterations run on all ranges with p = n/16.

Last, the whole search on a large domain, with the exact error of what it finds.

    python benchmarks/opt0_laplace.py [--size 4096] [--sizes 1024 4096 8192] [--large 65536]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from math import sqrt
from time import perf_counter

import numpy as np

from hdmm.matrix.axis_gram import AllRangeGram, AxisGram, DenseGram, PrefixGram
from hdmm.operators.opt0.coarse import CellBlocks
from hdmm.operators.opt0.laplace import opt0_laplace
from hdmm.optimise.projected import descend_projected


def textbook(V: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss and its gradient, with temporaries of the size of V."""
    scale = 1 + theta.sum(axis=0)
    R = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    C = V * scale * scale[:, None]
    M1 = R @ theta
    M2 = M1 @ C
    M3 = theta.T @ M2
    M4 = theta.T @ (M2 @ theta.T) @ M1
    Z = -(C - M3 - M3.T + M4) * scale * scale[:, None]
    by_diagonal = 2 * np.diagonal(Z) / scale
    by_rows = 2 * (theta / scale) @ Z
    by_scale = by_diagonal + (theta * by_rows).sum(axis=0)
    return float(np.trace(C) - np.trace(M3)), (by_rows - by_scale / scale) / scale


def seconds(*runs: Callable[[], object], repeats: int = 9) -> list[float]:
    """The least time of each, taking turns, after one turn to warm up: what others do on the machine only adds."""
    spent: list[list[float]] = [[] for _ in runs]
    for turn in range(repeats + 1):
        for run, times in zip(runs, spent, strict=True):
            start = perf_counter()
            run()
            if turn:
                times.append(perf_counter() - start)
    return [min(times) for times in spent]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096, help="cells of the domain for one evaluation")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1024, 4096, 8192], help="cells for 100 iterations")
    parser.add_argument("--large", type=int, nargs="*", default=[65536], help="cells of the largest domain")
    arguments = parser.parse_args()
    n: int = arguments.size
    p = n // 16
    theta = np.random.default_rng(0).random((p, n))
    grams: dict[str, AxisGram] = {"all ranges": AllRangeGram(n), "prefixes": PrefixGram(n)}
    print(f"one evaluation at n = {n:,}, p = {p}")
    print(f"{'':24}{'textbook, s':>14}{'hdmm, s':>10}{'ratio':>8}")
    for name, gram in grams.items():
        V = gram.dense()
        value, gradient = textbook(V, theta)
        for label, form in ((f"{name}, dense", DenseGram(V)), (name, gram)):
            blocks = CellBlocks.of(form)
            ours, slope = blocks.loss(theta)
            np.testing.assert_allclose(ours, value, rtol=1e-9)
            np.testing.assert_allclose(slope, gradient, atol=1e-7 * abs(gradient).max())
            slow, fast = seconds(partial(textbook, V, theta), partial(blocks.loss, theta))
            print(f"{label:24}{slow:>14.3f}{fast:>10.3f}{slow / fast:>8.1f}")
        del V
    print("\n100 iterations on all ranges, from a random start")
    print(f"{'n':>8}{'p':>6}{'seconds':>10}{'evaluations':>13}")
    for n in arguments.sizes:
        start = np.random.default_rng(0).random((n // 16, n))
        began = perf_counter()
        descent = descend_projected(CellBlocks.of(AllRangeGram(n)).loss, start, iterations=100)
        print(f"{n:>8,}{n // 16:>6}{perf_counter() - began:>10.1f}{descent.evaluations:>13}")
    print("\nthe whole search, and the RMSE at ε = 1")
    print(f"{'':12}{'n':>8}{'p':>6}{'seconds':>10}{'RMSE':>10}{'Identity':>10}")
    for n in arguments.large:
        for name, gram, queries in (("all ranges", AllRangeGram(n), n * (n + 1) / 2), ("prefixes", PrefixGram(n), n)):
            began = perf_counter()
            solution = opt0_laplace(gram)
            spent, p = perf_counter() - began, solution.matrix.shape[0] - n
            rmse, identity = (sqrt(2 * error / queries) for error in (solution.error, gram.trace()))
            print(f"{name:12}{n:>8,}{p:>6}{spent:>10.1f}{rmse:>10.2f}{identity:>10.2f}")


if __name__ == "__main__":
    main()
