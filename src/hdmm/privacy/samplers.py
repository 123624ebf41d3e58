"""Discrete Laplace and rounded Gaussian noise: exact laws, at millions of values per second.

Both are exact for the same reason; docs/noise.md has the whole argument, in the order of this file. A uniform real is
known by its first bits only, and a decision compares it with a number that is known within rigorous bounds. When these
bits decide for every continuation, the fast path takes the decision, for whole arrays; when they do not, the slow path
draws more bits and computes the number in ball arithmetic, until they do. So no decision is ever rounded:

- `Table` inverts a law on 0, 1, 2, … whose tail probabilities are known in ball arithmetic;
- `discrete_laplace` draws the digits of the magnitude, which are independent, each from a table;
- `rounded_gaussian` draws the cell of a normal real from a table, its place in the cell by rejection, and then rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import BudgetError, FaultError
from hdmm.privacy.stream import random_bytes, random_words

if TYPE_CHECKING:
    from flint import arb, fmpq

# A value leaves ±2**53, where floats stop being exact, with a probability below exp(-255) (Laplace) or exp(-2**14).
SCALE_LIMIT = 2**45

_BLOCK = 2**15  # values at a time: the working memory is a few MiB
_COARSE, _FINE = 16, 64  # bits of a uniform that a table looks at first, and next; the law is the same for any widths
_DIGIT = 8  # bits of a digit of the Laplace magnitude
_CELL = 6  # a cell of the normal law is 2**-6 wide
_PLACE = 55  # bits of a place in a cell: with the 9 bits of a cell's number below 8 they fill a word
_TEST = 32  # bits of the uniform in a rejection test
_MARGIN = 2.0**-30  # of a rejection test: above 2**-_TEST and every rounding error in it (docs/noise.md, 4.3)

# Reached with a probability below exp(-2**12), 2**-3900 and 2**-180: a source that gets there is broken.
_OUTCOMES, _LONGEST, _ROUNDS = 2**14, 2**12, 64


def discrete_laplace(scale: Fraction, count: int) -> NDArray[np.int64]:
    """Draw independent integers k with probability proportional to exp(-|k|/scale), exactly."""
    _check("scale", scale)
    return _in_blocks(lambda size: _laplace_block(scale, size), count)


def rounded_gaussian(sigma: Fraction, count: int) -> NDArray[np.int64]:
    """Draw independent normal reals with standard deviation sigma, each rounded to the nearest integer, exactly."""
    _check("sigma", sigma)
    return _in_blocks(lambda size: _gaussian_block(sigma, size), count)


def _check(name: str, value: Fraction) -> None:
    if value <= 0:
        raise BudgetError(f"{name}={value}: expected a positive fraction")
    if value > SCALE_LIMIT:
        raise BudgetError(f"{name}={value}: exceeds 2**45, and noisy counts would not be exact; raise epsilon")


def _in_blocks(draw: Callable[[int], NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    drawn = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BLOCK):
        drawn[start : start + _BLOCK] = draw(min(_BLOCK, count - start))
    return drawn


@final
@dataclass
class Uniform:
    """A uniform real in [0, 1) of which the first bits are known: it lies in [value, value + 1)/2**width."""

    value: int
    width: int

    def extend(self) -> None:
        """Draw 64 more bits."""
        if self.width > _LONGEST:
            raise _broken_source()
        self.value = self.value << 64 | int.from_bytes(random_bytes(8), "little")
        self.width += 64

    def below(self, number: arb) -> bool | None:
        """Say whether the real is below the number, or None where bits or ball leave it open."""
        scaled = number * 2**self.width
        # A comparison with a ball is true only when it is true for every number in the ball.
        return True if self.value + 1 <= scaled else False if self.value >= scaled else None


@final
@dataclass(frozen=True)
class Table:
    """A law on 0, 1, 2, … given by its tail: the outcome is how many of tail(1) > tail(2) > … exceed a uniform real.

    `floors` holds floor(tail(i)·2**_FINE) up to the first i where it is zero, in rising order. `guide` holds the
    outcome for each leading word of _COARSE bits, and -1 for those that leave it open.
    """

    tail: Callable[[int], arb]
    floors: NDArray[np.uint64]
    guide: NDArray[np.int16]

    @classmethod
    def of(cls, tail: Callable[[int], arb]) -> Table:
        """Tabulate a law, with certified floors."""
        found = [_certified_floor(tail, 1)]
        while found[-1] > 0:
            found.append(_certified_floor(tail, len(found) + 1))
        floors = np.array(found[::-1], dtype=np.uint64)
        within = np.bincount((floors >> np.uint64(_FINE - _COARSE)).astype(np.int64), minlength=2**_COARSE)
        guide = np.where(within > 0, -1, floors.size - np.cumsum(within))
        return cls(tail, floors, guide.astype(np.int16))

    def draw(self, count: int) -> NDArray[np.int64]:
        """Draw independent outcomes."""
        words = random_words(-(-count // 4)).view(np.uint16)[:count] >> np.uint16(16 - _COARSE)
        outcome: NDArray[np.int64] = self.guide[words].astype(np.int64)
        undecided = np.flatnonzero(outcome < 0)
        outcome[undecided] = self._refine(words[undecided].astype(np.uint64))
        return outcome

    def _refine(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Extend words from _COARSE to _FINE bits and return their outcomes."""
        more = np.uint64(_FINE - _COARSE)
        words = words << more | random_words(words.size) >> np.uint64(64) - more
        above = np.searchsorted(self.floors, words, side="right")
        outcome = np.asarray(self.floors.size - above, dtype=np.int64)
        for i in np.flatnonzero(np.searchsorted(self.floors, words, side="left") < above):
            outcome[i] = self._settle(Uniform(int(words[i]), _FINE))
        return outcome

    def _settle(self, uniform: Uniform) -> int:
        """Return the outcome of a uniform that the floors leave open."""
        low, high = 0, 1  # the real is below tail(low)
        while self._exceeds(high, uniform):
            low, high = high, 2 * high
            if high > _OUTCOMES:
                raise _broken_source()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._exceeds(middle, uniform) else (low, middle)
        return low

    def _exceeds(self, i: int, uniform: Uniform) -> bool:
        from flint import ctx

        while True:  # flint's precision is global: if another thread changes it, a ball is wider, never wrong
            with ctx.workprec(uniform.width + 64):
                verdict = uniform.below(self.tail(i))
            if verdict is not None:
                return verdict
            uniform.extend()


def _certified_floor(tail: Callable[[int], arb], i: int) -> int:
    """Return floor(tail(i)·2**_FINE), by balls that shrink until they leave one integer."""
    from flint import ctx

    for precision in (128, 256, 512, 1024, 2048):
        with ctx.workprec(precision):
            ball = tail(i) * 2**_FINE
            low, high = ball.lower().floor().unique_fmpz(), ball.upper().floor().unique_fmpz()
        if low is not None and high is not None and max(int(low), 0) == int(high):  # a probability is not negative
            return int(high)
    raise FaultError(f"the table of the noise's law could not be certified at entry {i}; report this as a bug")


@final
@dataclass(frozen=True)
class LaplaceTables:
    """The law of the discrete Laplace in parts: nonzero or not; the digits of |k| - 1, the highest first."""

    nonzero: Table
    digits: tuple[Table, ...]

    @classmethod
    def of(cls, scale: Fraction) -> LaplaceTables:
        """Choose the number of digits so that the highest, which is unbounded, is small."""
        places = 0
        while 4 * 2 ** (_DIGIT * places) < scale:
            places += 1
        decays = [2 ** (_DIGIT * place) / scale for place in range(places + 1)]
        low = [Table.of(_digit_tail(decay)) for decay in decays[:-1]]
        return cls(Table.of(_nonzero_tail(1 / scale)), (Table.of(_geometric_tail(decays[-1])), *low[::-1]))


_laplace_tables = lru_cache(maxsize=16)(LaplaceTables.of)


def _laplace_block(scale: Fraction, count: int) -> NDArray[np.int64]:
    tables = _laplace_tables(scale)
    magnitude = np.zeros(count, dtype=np.int64)
    for digit in tables.digits:
        magnitude = (magnitude << _DIGIT) + digit.draw(count)
    return _signs(count) * (magnitude + 1) * tables.nonzero.draw(count)


def _geometric_tail(decay: Fraction) -> Callable[[int], arb]:
    """Return the tail of the law P(d) ∝ exp(-d·decay) on 0, 1, 2, …"""
    from flint import arb

    rate = _rational(decay)
    return lambda i: arb(-i * rate).exp()


def _digit_tail(decay: Fraction) -> Callable[[int], arb]:
    """Return the tail of the law P(d) ∝ exp(-d·decay) on 0..base-1, written so that nothing cancels."""
    from flint import arb

    rate, base = _rational(decay), 2**_DIGIT
    return lambda i: arb(-i * rate).exp() * arb(min(i - base, 0) * rate).expm1() / arb(-base * rate).expm1()


def _nonzero_tail(decay: Fraction) -> Callable[[int], arb]:
    """Return the tail of a 0 or 1 that says whether k ≠ 0: tail(1) = 2p/(1+p), where p = exp(-decay)."""
    from flint import arb

    rate = _rational(decay)
    return lambda i: 2 / (1 + arb(rate).exp()) if i == 1 else arb(0)


def _gaussian_block(sigma: Fraction, count: int) -> NDArray[np.int64]:
    cells = _normal_cells().draw(count)
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
            return _signs(count) * magnitude
    raise _broken_source()


@lru_cache(maxsize=1)
def _normal_cells() -> Table:
    """Tabulate the cell of |N|, the i that has i ≤ |N|·2**_CELL < i + 1: its tail is erfc(i/(2**_CELL·√2))."""
    from flint import arb

    return Table.of(lambda i: (arb(i) / 2**_CELL / arb(2).sqrt()).erfc())


def _accept(
    cell: NDArray[np.int64], place: NDArray[np.uint64], test: NDArray[np.uint32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which places are certainly accepted, with probability exp(-t), and which are certainly rejected."""
    v = place * 2.0**-_PLACE
    t = v * (cell + v / 2) * 4.0**-_CELL
    q = t - t * t / 2  # q ≤ 1 - exp(-t) ≤ q + t³/6
    r = 1 - test * 2.0**-_TEST  # accept where one minus the uniform, which is at most r, exceeds 1 - exp(-t)
    return r >= q + t * t * t / 6 + _MARGIN, r <= q - _MARGIN


def _round(sigma: Fraction, position: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Round sigma·x, where x·2**(_PLACE + _CELL) is in [position, position + 1); say where that is certain."""
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
    high: NDArray[np.uint64] = x1 * y1 + (middle >> half) + ((x0 * y1 + (middle & low)) >> half)
    return high


def _finish(sigma: Fraction, cell: int, place: Uniform, test: Uniform) -> int:
    """Go on with one value that the fast path leaves open, until it is accepted and rounded."""
    for _ in range(_ROUNDS):
        if _accepted(cell, place, test):
            return _rounded(sigma, cell, place)
        place, test = Uniform(0, 0), Uniform(0, 0)
    raise _broken_source()


def _accepted(cell: int, place: Uniform, test: Uniform) -> bool:
    """Return whether test < exp(-t), where t = (cell + v/2)·v/4**_CELL and v is the place."""
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


def _signs(count: int) -> NDArray[np.int64]:
    bits = np.unpackbits(np.frombuffer(random_bytes(-(-count // 8)), dtype=np.uint8), count=count)
    return 1 - 2 * bits.astype(np.int64)


def _rational(number: Fraction) -> fmpq:
    from flint import fmpq

    return fmpq(number.numerator, number.denominator)


def _broken_source() -> FaultError:
    return FaultError("the random numbers repeat themselves; no noise was drawn: check the machine")
