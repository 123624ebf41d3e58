"""Audit: the noise of one coordinate, or of one release, says nothing about that of another."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from hdmm.measure import add_noise
from hdmm.privacy.calibrate import NoiseKind
from tests.audit.statistics import LEVEL, normal_chance
from tests.audit.verdict import Audit, Verdict

Draw = Callable[[], np.ndarray]
"""The noise of one release: VECTORS vectors of WIDTH coordinates."""

VECTORS, WIDTH = 10, 8
SCALE, CUT, LARGE = Fraction(7, 3), 7, 2
"""Half of the noise is large."""


def run(make: Callable[[], Draw], vectors: int) -> Verdict:
    """Correlations between coordinates of a vector, and between vectors of successive releases.

    Of the noise, and of whether it is large. It is cut at three scales, so that no tail is left that could make a sum
    of thousands of products less normal than its thresholds take it to be.
    """
    draw = make()
    noise = np.stack([draw() for _ in range(vectors // VECTORS)])
    off = []
    for values in (np.clip(noise, -CUT, CUT), abs(noise) >= LARGE):
        unit = (values - values.mean(axis=(0, 1))) / values.std(axis=(0, 1))
        within = np.sum([release.T @ release for release in unit], axis=0) / np.sqrt(vectors)
        between = np.sum([one.T @ other for one, other in pairwise(unit)], axis=0) / np.sqrt(vectors - VECTORS)
        off += [within[np.triu_indices(WIDTH, 1)], between.reshape(-1)]
    return Verdict("p", normal_chance(np.concatenate(off)), ">=", LEVEL)


def fresh(kind: NoiseKind) -> Callable[[], Draw]:
    """Noise as `measure` draws it for a release."""
    return lambda: lambda: add_noise(np.zeros(VECTORS * WIDTH, np.int64), kind, SCALE).reshape(VECTORS, WIDTH)


def twice_in_a_release(kind: NoiseKind) -> Callable[[], Draw]:
    """The fault: the second half of the coordinates gets the noise of the first."""
    draw = fresh(kind)()
    return lambda: lambda: np.tile(draw()[:, : WIDTH // 2], 2)


def twice_in_a_row(kind: NoiseKind) -> Callable[[], Draw]:
    """The fault: every other release gets the noise of the one before."""

    def make() -> Draw:
        draw = fresh(kind)()
        kept: list[np.ndarray] = []

        def again() -> np.ndarray:
            if kept:
                return kept.pop()
            kept.append(draw())
            return kept[0]

        return again

    return make


AUDITS = [
    Audit(
        f"independent {kind} noise",
        run,
        fresh(kind),
        {"reused in a release": twice_in_a_release(kind), "reused in the next one": twice_in_a_row(kind)},
        60_000,
        10_000,
        "vectors",
    )
    for kind in ("laplace", "gaussian")
]
