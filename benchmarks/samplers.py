"""Exact noise per second and core, beside opendp's samplers: ratios in one run.

    python benchmarks/samplers.py

opendp draws the discrete Gaussian, another law than the rounded one that is drawn here.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from time import process_time

import opendp.prelude as dp

from hdmm.privacy.sampling.samplers import discrete_laplace, rounded_gaussian

SCALES = [Fraction(1), Fraction(10), Fraction(2001, 2), 2**20 + Fraction(1, 3), Fraction(1, 1000)]


def main() -> None:
    dp.enable_features("contrib")
    print(f"{'law':<18} {'scale':>14} {'million/s':>10} {'opendp':>10} {'ratio':>8}")
    for law, draw in (("discrete Laplace", discrete_laplace), ("rounded Gaussian", rounded_gaussian)):
        for scale in SCALES:
            ours = rate(partial(draw, scale), 2_000_000)
            theirs = rate(other(law, float(scale)), 20_000)
            line = f"{law:<18} {float(scale):>14.3f} {ours:>10.2f} {theirs:>10.3f} {ours / theirs:>7.0f}×"
            print(line, flush=True)


def other(law: str, scale: float) -> Callable[[int], object]:
    """opendp's noise on a vector of zeros."""
    laplace = law == "discrete Laplace"
    distance = dp.l1_distance(T=dp.i64) if laplace else dp.l2_distance(T=dp.f64)
    make = dp.m.make_laplace if laplace else dp.m.make_gaussian
    measurement = make(dp.vector_domain(dp.atom_domain(T=dp.i64)), distance, scale=scale)
    return lambda count: measurement([0] * count)


def rate(draw: Callable[[int], object], count: int) -> float:
    """Millions per second of this core's time, the best of three."""
    draw(10)
    best = float("inf")
    for _ in range(3):
        start = process_time()
        draw(count)
        best = min(best, process_time() - start)
    return count / best / 1e6


if __name__ == "__main__":
    main()
