"""Spacings of hats to try, and heights from a few numbers or from one for each hat.

The best spacings and heights for prefixes and for ranges look alike at every size: ratios between levels of about 20
or 17, heights a little larger midway between the knots of the next level, and a coarsest level whose heights fall
towards an end of the cells where few questions have their ends. See docs/math.md, section 15.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from math import ceil, log
from typing import final

import numpy as np

from hdmm.matrix import Array, Hats
from hdmm.matrix.hats import MAX_RATIO
from hdmm.matrix.pyramid import knots

_LARGEST_WASTE = 0.04
"""How far the last knot may lie beyond the cells, as a share of them."""
_WASTE_COST = 20.0
"""What this costs, beside squared logarithms of ratios."""
_NEAREST = 0.02
"""How near to an end the heights of the coarsest level still change, in its spacings."""
_REPEATED = 0.5
"""What it costs to have as many levels and pieces as likelier spacings, for each of these."""
_LEAST_CELL = 1e-4
"""The least weight of a cell."""
_SPREAD = 5
"""By how much spacings and ratios are varied."""


@final
@dataclass(frozen=True)
class Profile:
    """Where a search begins: which spacings are likely, and the numbers that heights are made of."""

    finest: float
    ratio: float
    pieces: float
    """Of the coarsest level."""
    bump: float
    """How much higher hats are midway between the knots of the next level."""
    top: float
    first: float
    """How the heights of the coarsest level fall towards the first cell."""
    last: float

    def numbers(self, n: int, spacings: tuple[int, ...]) -> Array:
        """The numbers that give the usual heights."""
        below = [(-0.17, 0.23), *[(-0.21, self.bump)] * (len(spacings) - 2)][: len(spacings) - 1]
        return np.array([*(number for pair in below for number in pair), self.top, self.first, self.last])


PREFIXES = Profile(19.5, 20.5, 6.0, 0.29, 0.35, 0.0, 0.30)
RANGES = Profile(16.0, 16.5, 11.0, 0.31, 0.10 + 0.33 * log(4), 0.33, 0.33)


def likely_spacings(n: int, profile: Profile, count: int) -> list[tuple[int, ...]]:
    """The most likely spacings for n cells."""
    usual = log(profile.finest) + log(profile.pieces)
    levels = (log(n) - usual) / log(profile.ratio) + 1
    found: dict[tuple[int, ...], float] = {}
    for number in sorted({max(1, int(levels)), max(1, ceil(levels))}):
        scale = log(n) / (usual + (number - 1) * log(profile.ratio))
        first, ratio, pieces = (log(value) * scale for value in (profile.finest, profile.ratio, profile.pieces))
        around = [_around(first), *[_around(ratio)] * (number - 1)]
        for factors in product(*around):
            spacings = tuple(int(spacing) for spacing in np.cumprod(factors))
            parts = -(-n // spacings[-1])
            waste = parts * spacings[-1] / n - 1
            if spacings[0] > n or not 1 <= parts <= MAX_RATIO or waste > max(_LARGEST_WASTE, spacings[0] / n):
                continue
            logs = [log(factor) for factor in factors]
            distance = (logs[0] - first) ** 2 + sum((other - ratio) ** 2 for other in logs[1:])
            distance += (log(parts) - pieces) ** 2 / 2 + _WASTE_COST * waste**2 + abs(scale - 1)
            found[spacings] = min(distance, found.get(spacings, distance))
    ranks: Counter[tuple[int, int]] = Counter()
    order: dict[tuple[int, ...], float] = {}
    for spacings in sorted(found, key=lambda spacings: (found[spacings], spacings)):
        kind = shape_kind(n, spacings)
        order[spacings] = found[spacings] + _REPEATED * ranks[kind]
        ranks[kind] += 1
    return sorted(order, key=lambda spacings: (order[spacings], spacings))[:count]


def shape_kind(n: int, spacings: tuple[int, ...]) -> tuple[int, int]:
    """The number of levels, and that of pieces of the coarsest one."""
    return len(spacings), -(-n // spacings[-1])


def _around(middle: float) -> range:
    center = round(float(np.exp(middle)))
    return range(max(2, center - _SPREAD), min(MAX_RATIO, center + _SPREAD) + 1)


def exponents(n: int, spacings: tuple[int, ...]) -> Array:
    """By what each number, a column, multiplies in the logarithms of all raw heights.

    There are two numbers for each level but the coarsest, and three for that.
    """
    counts = [knots(n, spacing) for spacing in spacings]
    matrix = np.zeros((sum(counts), 2 * len(spacings) + 1))
    start = 0
    for level, (spacing, count) in enumerate(zip(spacings[:-1], counts, strict=False)):
        place = np.arange(count) * spacing % spacings[level + 1] / spacings[level + 1]
        matrix[start : start + count, 2 * level] = 1
        matrix[start : start + count, 2 * level + 1] = 4 * place * (1 - place)
        start += count
    nearest = _NEAREST * spacings[-1] / n
    place = np.clip(np.arange(counts[-1]) * spacings[-1] / n, nearest, 1 - nearest)
    matrix[start:, -3:] = np.stack([np.ones(counts[-1]), np.log(place), np.log(1 - place)], axis=1)
    return matrix


@final
class Normalised:
    """Heights for columns that sum to 1, from raw ones for cells of weight 1.

    A hat cannot be divided by another sum for each cell. It is multiplied by the mean of their inverses over the knots
    of the finest level, weighted as the hat weighs them.
    """

    def __init__(self, n: int, spacings: tuple[int, ...]) -> None:
        self.n, self.spacings = n, spacings
        self._counts = [knots(n, spacing) for spacing in spacings]
        self._ends = np.cumsum(self._counts)[:-1]
        finest = spacings[0] * np.arange(self._counts[0])
        self._places = []
        for spacing, count in zip(spacings, self._counts, strict=True):
            left = np.minimum(finest // spacing, count - 2)
            self._places.append((left, finest / spacing - left))
        self._weights = np.maximum(self._over_hats(np.ones(len(finest))), np.finfo(float).tiny)

    def matrix(self, raw: Array) -> Hats | None:
        """The hats of raw heights, all levels one after the other; None if they leave too little for some cell."""
        heights = raw * self._over_hats(1 / (1 + self._over_knots(raw))) / self._weights
        try:
            matrix = Hats(self.n, self.spacings, np.split(heights, self._ends))
        except ValueError:
            return None
        return matrix if matrix.pyramid.cells.min() >= _LEAST_CELL else None

    def slopes(self, raw: Array, slopes: Array) -> Array:
        """Derivatives in the raw heights from those in the heights."""
        sums = 1 + self._over_knots(raw)
        means = self._over_hats(1 / sums) / self._weights
        return slopes * means - self._over_hats(self._over_knots(slopes * raw / self._weights) / sums**2)

    def raw(self, matrix: Hats) -> Array:
        """Raw heights that give about these hats."""
        heights = np.concatenate(matrix.heights)
        left = np.maximum(1 - self._over_knots(heights), _LEAST_CELL)
        return heights * self._weights / self._over_hats(left)

    def _over_knots(self, heights: Array) -> Array:
        """The sum of all hats at the knots of the finest level."""
        total = np.zeros(self._counts[0])
        for (left, share), level in zip(self._places, np.split(heights, self._ends), strict=True):
            total += level[left] * (1 - share) + level[left + 1] * share
        return total

    def _over_hats(self, values: Array) -> Array:
        """For each hat the sum of some values at the knots of the finest level, weighted as it weighs them."""
        return np.concatenate(
            [
                np.bincount(left, (1 - share) * values, count) + np.bincount(left + 1, share * values, count)
                for (left, share), count in zip(self._places, self._counts, strict=True)
            ]
        )
