"""Laws on 0, 1, 2, … that are drawn from exactly: a table for most draws, ball arithmetic for the rest.

A uniform real is known by its first bits only, and a decision compares it with a number that is known within rigorous
bounds. When these bits decide for every continuation, the fast path takes the decision, for whole arrays; when they do
not, the slow path draws more bits and computes the number in ball arithmetic, until they do. So no decision is ever
rounded (docs/noise.md, 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import FaultError
from hdmm.privacy.balls import precision
from hdmm.privacy.sampling.stream import random_bytes, random_words

if TYPE_CHECKING:
    from flint import arb

_COARSE = 16  # bits of a uniform that a table looks at first; the law is the same for any width
_FINE = 64  # bits that it looks at next
_OUTCOMES = 2**14  # reached with a probability below exp(-2**12): a source that gets there is broken
_LONGEST = 2**12  # bits of a uniform, exceeded with a probability below 2**-3900: likewise


@final
@dataclass
class Uniform:
    """A uniform real in [0, 1) of which the first bits are known: it lies in [value, value + 1)/2**width."""

    value: int
    width: int

    def extend(self) -> None:
        """Draw 64 more bits."""
        if self.width > _LONGEST:
            raise broken_source()
        self.value = self.value << 64 | int.from_bytes(random_bytes(8), "little")
        self.width += 64

    def below(self, number: arb) -> bool | None:
        """Say whether the real is below the number, or None if bits or ball leave it open."""
        scaled = number * 2**self.width
        # A comparison with a ball is true only when it is true for every number in the ball.
        return True if self.value + 1 <= scaled else False if self.value >= scaled else None


@final
@dataclass(frozen=True)
class TailTable:
    """A law on 0, 1, 2, … given by its tail: the outcome is how many of tail(1) > tail(2) > … exceed a uniform real.

    `floors` holds floor(tail(i)·2**_FINE) up to the first i at which it is zero, in rising order. `guide` holds the
    outcome for each leading word of _COARSE bits, and -1 for those that leave it open.
    """

    tail: Callable[[int], arb]
    floors: NDArray[np.uint64]
    guide: NDArray[np.int16]

    @classmethod
    def of(cls, tail: Callable[[int], arb]) -> TailTable:
        """Tabulate a law, with certified floors."""
        falling = [_certified_floor(tail, 1)]
        while falling[-1] > 0:
            falling.append(_certified_floor(tail, len(falling) + 1))
        floors = np.array(falling[::-1], dtype=np.uint64)
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
                raise broken_source()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._exceeds(middle, uniform) else (low, middle)
        return low

    def _exceeds(self, i: int, uniform: Uniform) -> bool:
        while True:
            with precision(uniform.width + 64):
                verdict = uniform.below(self.tail(i))
            if verdict is not None:
                return verdict
            uniform.extend()


def _certified_floor(tail: Callable[[int], arb], i: int) -> int:
    """Return floor(tail(i)·2**_FINE), by balls that shrink until they leave one integer."""
    for bits in (128, 256, 512, 1024, 2048):
        with precision(bits):
            scaled = tail(i) * 2**_FINE
            low, high = scaled.lower().floor().unique_fmpz(), scaled.upper().floor().unique_fmpz()
        if low is not None and high is not None and max(int(low), 0) == int(high):  # a probability is not negative
            return int(high)
    raise FaultError(f"the table of the noise's law could not be certified at entry {i}; report this as a bug")


def signs(count: int) -> NDArray[np.int64]:
    """Draw independent signs."""
    bits = np.unpackbits(np.frombuffer(random_bytes(-(-count // 8)), dtype=np.uint8), count=count)
    return 1 - 2 * bits.astype(np.int64)


def broken_source() -> FaultError:
    """The error for an event of probability below 2⁻³⁹⁰⁰."""
    return FaultError("the random source appears broken; no noise was drawn: check the machine")
