"""Rounded Gaussian noise: the cell of a normal real is drawn from a table, its place in the cell by rejection."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdmm.privacy.sampling.stream import random_words
from hdmm.privacy.sampling.tail_table import TailTable, Uniform, broken_source, signs

_CELL = 6  # a cell of the normal law is 2**-6 wide
_PLACE = 55  # bits of a place in a cell: with the 9 bits of a cell's number below 8 they fill a word
_TEST = 32  # bits of the uniform in a rejection test
_MARGIN = 2.0**-30  # of a rejection test: above 2**-_TEST and every rounding error in it (docs/noise.md, 4.3)
_ROUNDS = 64  # reached with a probability below 2**-180


def gaussian_block(sigma: Fraction, count: int) -> NDArray[np.int64]:
    """Draw normal reals with standard deviation sigma, each rounded to the nearest integer."""
    cells = normal_cells().draw(count)
    magnitude = np.empty(count, dtype=np.int64)
    pending = np.arange(count)
    for _ in range(_ROUNDS):
        cell = cells[pending]
        place = random_words(cell.size) >> np.uint64(64 - _PLACE)
        test = random_words(-(-cell.size // 2)).view(np.uint32)[: cell.size]
        inside = cell < 2 ** (64 - _PLACE)
        accepted, rejected = _accept(cell, place, test)
        value, certain = _round(sigma, (cell.astype(np.uint64) << np.uint64(_PLACE)) | place)
        done = inside & accepted & certain
        rejected &= inside
        magnitude[pending[done]] = value[done]
        for i in np.flatnonzero(~(done | rejected)):
            uniforms = Uniform(int(place[i]), _PLACE), Uniform(int(test[i]), _TEST)
            magnitude[pending[i]] = _finish(sigma, int(cell[i]), *uniforms)
        pending = pending[rejected]
        if not pending.size:
            return signs(count) * magnitude
    raise broken_source()


@lru_cache(maxsize=1)
def normal_cells() -> TailTable:
    """Tabulate the cell of |N|, the i that has i ≤ |N|·2**_CELL < i + 1: its tail is erfc(i/(2**_CELL·√2))."""
    from flint import arb

    return TailTable.of(lambda i: (arb(i) / 2**_CELL / arb(2).sqrt()).erfc())


def _accept(
    cell: NDArray[np.int64], place: NDArray[np.uint64], test: NDArray[np.uint32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which places are certainly accepted, with probability exp(-t), and which are certainly rejected."""
    v = place * 2.0**-_PLACE
    t = v * (cell + v / 2) * 4.0**-_CELL
    q = t - t * t / 2  # q ≤ 1 - exp(-t) ≤ q + t³/6
    r = 1 - test * 2.0**-_TEST  # accept if one minus the uniform, which is at most r, exceeds 1 - exp(-t)
    return r >= q + t * t * t / 6 + _MARGIN, r <= q - _MARGIN


def _round(sigma: Fraction, position: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Round sigma·x, where x·2**(_PLACE + _CELL) is in [position, position + 1); say which are certain."""
    exponent = 64 - int(sigma).bit_length()  # sigma·2**exponent is below 2**64
    shift = np.uint64(_PLACE + _CELL + exponent - 64 - 1)
    product = _high_product(position, int(sigma * 2**exponent))  # sigma·x is in [product, product + 3)/2**(shift + 1)
    low, high = (((end >> shift) + np.uint64(1)) >> np.uint64(1) for end in (product, product + np.uint64(2)))
    return low.astype(np.int64), low == high


def _high_product(words: NDArray[np.uint64], factor: int) -> NDArray[np.uint64]:
    """Return floor(words·factor/2**64), for a factor below 2**64."""
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    x1, x0 = words >> half, words & low
    y1, y0 = np.uint64(factor >> 32), np.uint64(factor & (2**32 - 1))
    middle = x1 * y0 + (x0 * y0 >> half)
    return x1 * y1 + (middle >> half) + ((x0 * y1 + (middle & low)) >> half)


def _finish(sigma: Fraction, cell: int, place: Uniform, test: Uniform) -> int:
    """Go on with one value that the fast path leaves open, until it is accepted and rounded."""
    for _ in range(_ROUNDS):
        if _accepted(cell, place, test):
            return _rounded(sigma, cell, place)
        place, test = Uniform(0, 0), Uniform(0, 0)
    raise broken_source()


def _accepted(cell: int, place: Uniform, test: Uniform) -> bool:
    """Return whether test < exp(-t), with t = (cell + v/2)·v/4**_CELL and v the place."""
    from flint import arb, ctx

    while True:
        with ctx.workprec(place.width + test.width + 64):
            v = arb(2 * place.value + 1, 1) / 2 ** (place.width + 1)  # holds [value, value + 1]/2**width
            verdict = test.below((-(cell + v / 2) * v / 4**_CELL).exp())
        if verdict is not None:
            return verdict
        place.extend()
        test.extend()


def _rounded(sigma: Fraction, cell: int, place: Uniform) -> int:
    """Return floor(sigma·x + 1/2) for x = (cell + place)/2**_CELL, in whole numbers."""
    while True:
        position = (cell << place.width) + place.value  # x is in [position, position + 1)/2**(place.width + _CELL)
        unit = sigma.denominator << place.width + _CELL + 1
        low, high = ((2 * sigma.numerator * end + unit // 2) for end in (position, position + 1))
        if low // unit == (high - 1) // unit:
            return low // unit
        place.extend()
