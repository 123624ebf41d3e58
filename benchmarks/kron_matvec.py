"""Algorithm 2: the product of a Kronecker product with a vector, in time and memory.

Prints, for a domain of 64×64×64×64 cells in float64, the peak memory (input included) as a multiple of the vector, and
the time as a multiple of a plain copy of the vector in the same run. The textbook form, which keeps the paper's
reshapes and transposes, stands beside it.
"""

import argparse
import tracemalloc
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from hdmm.matrix import Dense, Kron, Prefix, Stack, Total
from hdmm.matrix import Identity as Each


def textbook(factors: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """The paper's Algorithm 2 as printed, in column-major order on the way in and row-major on the way out."""
    for factor in reversed(factors):
        x = (factor @ x.reshape(-1, factor.shape[1]).T).reshape(-1)
    return x


def peak(make: Callable[[], np.ndarray], run: Callable[[np.ndarray], np.ndarray]) -> float:
    """Bytes alive at most, the input included, as a multiple of the input."""
    tracemalloc.start()
    x = make()
    run(x)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / x.nbytes


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The best of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="the size of each of the four attributes")
    n = parser.parse_args().size
    rng = np.random.default_rng(0)
    dense = [rng.normal(size=(n, n)) for _ in range(4)]
    either = Stack([Each(n), Total(n)])
    cases: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "textbook, dense": lambda x: textbook(dense, x),
        "hdmm, dense": Kron([Dense(array) for array in dense]).apply,
        "hdmm, prefix": Kron([Prefix(n)] * 4).apply,
        "hdmm, identity ∪ total": Kron([either] * 4).apply,
    }

    def make() -> np.ndarray:
        return np.asarray(rng.random(n**4))

    x = make()
    np.testing.assert_allclose(cases["hdmm, dense"](x), cases["textbook, dense"](x), rtol=1e-6, atol=1e-6 * n**2)
    copy = seconds(x.copy)
    print(f"{n}^4 = {n**4:,} cells, vector {x.nbytes / 2**20:.0f} MiB, plain copy {copy * 1e3:.1f} ms")
    print(f"{'':24}{'peak memory / vector':>22}{'seconds':>10}{'time / copy':>13}")
    for name, run in cases.items():
        spent = seconds(partial(run, x), repeats=3)
        print(f"{name:24}{peak(make, run):>22.2f}{spent:>10.3f}{spent / copy:>13.1f}")


if __name__ == "__main__":
    main()
