"""Exact integer answers by floating-point products, which are many times faster than products of integers.

Floats hold integers up to 2^53 exactly, and sums that stay below it are exact in whatever order they are added. The
first factors act on the whole vector, as long as nothing can grow beyond that. The others act on a slab of it at a
time; before one of them would leave the exact range, numbers are split into low and high bits, which go on separately.
What becomes of a slab's exact answers is written in its place at once, so that one vector is all that is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import kronecker
from hdmm.matrix.arrays import Array
from hdmm.matrix.base import Matrix, largest_row_sum
from hdmm.matrix.compose import Kron
from hdmm.matrix.kronecker import Advance, Step, kron_apply, kron_into, work_size
from hdmm.matrix.leaf import Dense, Identity, Total
from hdmm.memory.workspace import empty
from hdmm.parallel import waves

Integers = NDArray[np.int64]

FLOAT_BITS, INTEGER_BITS = 53, 62
"""Bits within which numbers are exact: as floats and as integers."""
LOW_BITS = 40
"""Bits of the low part of an answer that 62 bits may not hold."""
_USUAL_BITS = 13
"""Bits that the answers of a factor of some tens of cells have beyond those of the counts, when it is rounded."""
_FEWEST_BITS = 4
"""Bits of a number that are worth a product of its own."""


@final
class Exact(NamedTuple):
    """Exact integers high·2^LOW_BITS + low; if there is no high part, low is all of them."""

    high: Integers | None
    low: Integers

    def whole(self) -> Array:
        """The integers themselves: as Python integers if there is a high part."""
        return self.low if self.high is None else self.high.astype(object) * (1 << LOW_BITS) + self.low


Finish = Callable[[Exact], Array]
"""What is made of exact answers."""


def exact_map(
    finish: Finish,
    matrix: Matrix,
    reach: int,
    counts: Integers,
    dtype: np.dtype[Any],
    *,
    overwrite: bool = False,
    on_progress: Advance | None = None,
) -> Array:
    """What ``finish`` makes of the exact answers, a piece at a time, as an array of a type of 8 bytes or of objects.

    ``reach`` bounds how many times the largest count an answer can be. With ``overwrite`` the counts may be lost, and
    their memory hold what is returned. How large the counts are decides only how many products are needed.
    """
    largest = int(counts.max(initial=0))
    bits, narrow = largest.bit_length(), largest * reach <= 1 << INTEGER_BITS
    if isinstance(matrix, Kron) and all(isinstance(factor, Identity) for factor in matrix.factors):
        room = counts if overwrite else empty(counts.size, np.dtype(np.int64))
        return _Tail([], [], bits, narrow).map(finish, counts, room, dtype, on_progress)
    if not isinstance(matrix, Kron) or not all(_sums_exactly(factor) for factor in matrix.factors):
        if narrow:
            answers = matrix.apply(counts)
            return _Tail([], [], bits, narrow).map(finish, answers, answers, dtype, on_progress)
        return finish(_by_bits(matrix, reach, counts)).astype(dtype, copy=False)
    first_half, second_half = _halves(on_progress)
    steps = matrix.steps
    reaches = [reach_of(factor) for factor in matrix.factors]
    head = _head(matrix.factors, reaches, bits)
    first = [*steps[:head], *(_identity(step.columns) for step in steps[head:])]
    size = max(work_size(first), prod(step.rows for step in steps))
    room = counts.view(float) if overwrite and size <= counts.size else empty(size, np.dtype(float))
    vector = kron_into(first, counts, room, on_progress=first_half)
    tail = _Tail(steps[head:], reaches[head:], bits + prod(reaches[:head]).bit_length(), narrow)
    return tail.map(finish, vector, room, dtype, second_half)


def reach_of(factor: Matrix) -> int:
    """Upper bound on |entry of the product| / max|entry of the vector|."""
    return int(largest_row_sum(factor.power(1)))


def slab_size(factors: Sequence[Matrix], largest: int) -> int:
    """The most elements of a slab, for counts up to the largest."""
    head = _head(factors, [_reach_when_rounded(factor) for factor in factors], largest.bit_length())
    return prod(max(factor.shape) for factor in factors[head:])


def _reach_when_rounded(factor: Matrix) -> int:
    """The reach of a factor; one that is not yet rounded to integers is taken for one of usual precision."""
    return reach_of(factor) if factor.dtype.kind == "i" else 1 << _USUAL_BITS


def _identity(size: int) -> Step:
    return Step(size, size, None)


def _halves(on_progress: Advance | None) -> tuple[Advance | None, Advance | None]:
    if on_progress is None:
        return None, None
    return (lambda part: on_progress(part / 2)), (lambda part: on_progress((1 + part) / 2))


def _sums_exactly(factor: Matrix) -> bool:
    """Whether products are plain sums, all of which floats hold exactly if they hold the largest.

    Others, such as ranges, are differences of running sums, which may be larger than any answer.
    """
    if not isinstance(factor, (Dense, Identity, Total)):
        return False
    return isinstance(factor, Identity) or reach_of(factor).bit_length() <= FLOAT_BITS - _FEWEST_BITS


def _fitting(reaches: Sequence[int], bits: int) -> int:
    """How many of the factors can act one after the other before numbers of this many bits leave the exact range."""
    count = 0
    while count < len(reaches) and bits + prod(reaches[: count + 1]).bit_length() <= FLOAT_BITS:
        count += 1
    return count


def _head(factors: Sequence[Matrix], reaches: Sequence[int], bits: int) -> int:
    """How many factors act on the whole vector: of those that fit, as few as leave slabs that a cache holds."""
    head = _fitting(reaches, bits)
    while head and prod(max(factor.shape) for factor in factors[head - 1 :]) <= kronecker.PIECE:
        head -= 1
    return head


@final
@dataclass(frozen=True)
class _Tail:
    """The last factors, which act on a slab of the vector at a time."""

    steps: Sequence[Step]
    reaches: Sequence[int]
    bits: int
    """Bits of the numbers in the vector."""
    narrow: bool
    """Whether 62 bits hold every answer."""

    def map(
        self, finish: Finish, vector: Array, room: Array, dtype: np.dtype[Any], on_progress: Advance | None
    ) -> Array:
        """Finish the exact answers of every slab, and write them in its place."""
        columns, rows = prod(step.columns for step in self.steps), prod(step.rows for step in self.steps)
        left = vector.size // columns
        size = left * rows
        out = np.empty(size, dtype) if dtype.kind == "O" else room.view(dtype)[:size]
        before, after = vector.reshape(left, columns), out.reshape(left, rows)
        chunk = max(1, kronecker.PIECE // max(rows, columns))
        slabs = [slice(start, min(start + chunk, left)) for start in range(0, left, chunk)]
        if rows > columns:  # as in kron_apply: nothing that was not read is lost
            slabs.reverse()

        def work(slab: slice) -> tuple[slice, Array]:
            return slab, finish(self._answers(before[slab])).reshape(-1, rows)

        done = 0
        # Slabs too large for a cache come one by one, so that few of them are in memory; threads then share each.
        with waves(size if chunk * rows <= kronecker.PIECE else 0) as run:
            for results in run(work, slabs):
                for slab, result in results:
                    after[slab] = result
                done += len(results)
                if on_progress is not None:
                    on_progress(done / len(slabs))
        return out

    def _answers(self, slab: Array) -> Exact:
        bits = min(self.bits, int(max(slab.max(), -slab.min())).bit_length()) if self.steps else self.bits
        return _joined(_parts(self.steps, self.reaches, slab, bits, 0), self.narrow)


def _parts(
    steps: Sequence[Step], reaches: Sequence[int], x: Array, bits: int, shift: int
) -> Iterator[tuple[Array, int]]:
    """Arrays, and how many bits to shift them, that add up to the product of the steps with each row of x."""
    act = _fitting(reaches, bits)
    if act:
        rest = prod(step.columns for step in steps[act:])
        whole = [_identity(len(x)), *steps[:act], _identity(rest)]
        x = kron_apply(whole, x.reshape(-1), np.dtype(float)).reshape(-1, rest)
        bits += prod(reaches[:act]).bit_length()
        steps, reaches = steps[act:], reaches[act:]
    if not steps:
        yield x, shift
        return
    width = FLOAT_BITS - reaches[0].bit_length()
    high = x * 2.0**-width
    np.floor(high, out=high)
    low = high * -(2.0**width)
    low += x
    yield from _parts(steps, reaches, low, width, shift)
    yield from _parts(steps, reaches, high, bits - width, shift + width)


def _joined(parts: Iterator[tuple[Array, int]], narrow: bool) -> Exact:
    """The sum of shifted parts; without a high part if ``narrow``."""
    high: Integers | None = None
    low: Integers | None = None
    for part, shift in parts:
        value: Integers = part.astype(np.int64, copy=False).reshape(-1)
        if narrow:
            shifted = value << shift if shift else value
            low = shifted if low is None else np.add(low, shifted, out=shifted if shift else None)
            continue
        below = max(LOW_BITS - shift, 0)
        upper = value >> below << max(shift - LOW_BITS, 0)
        lower = (value & ((1 << below) - 1)) << shift if below else np.zeros_like(value)
        high, low = (upper, lower) if high is None or low is None else (high + upper, low + lower)
    assert low is not None
    if high is not None:
        high += low >> LOW_BITS
        low &= (1 << LOW_BITS) - 1
    return Exact(high, low)


def _by_bits(matrix: Matrix, reach: int, counts: Integers) -> Exact:
    """Factors that are not written out: so few bits of the counts at a time that no answer is beyond an integer's."""
    width = INTEGER_BITS - reach.bit_length()
    shifts = range(0, int(counts.max()).bit_length(), width)
    parts = ((matrix.apply(counts >> shift & ((1 << width) - 1)), shift) for shift in shifts)
    return _joined(parts, narrow=False)
