"""Exact integer answers by floating-point products, which are many times faster than products of integers.

Floats hold integers up to 2^53 exactly, and sums that stay below it are exact in whatever order they are added. The
first factors act on the whole vector, as long as nothing can grow beyond that. The others act on one slab of it at a
time: before one of them would leave the exact range, numbers are split into low and high bits, which go on separately.
The finished answers of a slab are written in its place at once, so that only one vector is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import kronecker
from hdmm.matrix.arrays import Array
from hdmm.matrix.base import Matrix
from hdmm.matrix.compose import Kron
from hdmm.matrix.kronecker import Advance, Step, kron_apply, kron_into, map_slabs, work_size
from hdmm.matrix.leaf import Dense, Identity, Total
from hdmm.matrix.partition import Partition
from hdmm.memory.workspace import empty

Integers = NDArray[np.int64]

FLOAT_BITS = 53
"""Bits of the integers that floats hold exactly."""
INTEGER_BITS = 62
"""Bits of the answers that are computed as 64-bit integers."""
LOW_BITS = 40
"""Bits of the low part of an answer that INTEGER_BITS may not hold."""
_USUAL_BITS = 13
"""Bits by which a rounded factor of some tens of cells makes counts longer."""
_MIN_SPLIT_BITS = 4
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
"""From exact answers to what is returned, such as noisy ones."""


@final
class Shifted(NamedTuple):
    """A part of a sum: the integers values·2^shift."""

    values: Array
    shift: int


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
    """What ``finish`` makes of the exact answers, a slab at a time, as an array of a type of 8 bytes or of objects.

    ``reach`` is an upper bound on |answer| / max(count). With ``overwrite``, the counts may be lost and their memory
    may hold the result. The size of the counts affects only the number of products.
    """
    largest = int(counts.max(initial=0))
    bits, narrow = largest.bit_length(), largest * reach <= 1 << INTEGER_BITS
    answered = _Tail([], [], bits, narrow)
    if isinstance(matrix, Kron) and all(isinstance(factor, Identity) for factor in matrix.factors):
        room = counts if overwrite else empty(counts.size, np.dtype(np.int64))
        return answered.map(finish, counts, room, dtype, on_progress)
    if not isinstance(matrix, Kron) or not all(_sums_exactly(factor) for factor in matrix.factors):
        if narrow:
            answers = matrix.apply(counts)
            return answered.map(finish, answers, answers, dtype, on_progress)
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
    return factor.reach


def slab_size(factors: Sequence[Matrix], largest: int) -> int:
    """Most elements of a slab, if no count is above the largest."""
    head = _head(factors, [_reach_when_rounded(factor) for factor in factors], largest.bit_length())
    return prod(max(factor.shape) for factor in factors[head:])


def _reach_when_rounded(factor: Matrix) -> int:
    """The reach of a factor; for one that is not yet rounded to integers, a usual reach."""
    return reach_of(factor) if factor.dtype.kind == "i" else 1 << _USUAL_BITS


def _identity(size: int) -> Step:
    return Step(size, size, None)


def _halves(on_progress: Advance | None) -> tuple[Advance | None, Advance | None]:
    if on_progress is None:
        return None, None
    return (lambda share: on_progress(share / 2)), (lambda share: on_progress((1 + share) / 2))


def _sums_exactly(factor: Matrix) -> bool:
    """Whether products are plain sums, all of which floats hold exactly if they hold the largest.

    Others, such as ranges, are differences of running sums, which may be larger than any answer.
    """
    if isinstance(factor, (Dense, Partition, Total)):
        return reach_of(factor).bit_length() <= FLOAT_BITS - _MIN_SPLIT_BITS
    return isinstance(factor, Identity)


def _fitting(reaches: Sequence[int], bits: int) -> int:
    """How many of the factors can act one after the other before numbers of this many bits leave the exact range."""
    count = 0
    while count < len(reaches) and bits + prod(reaches[: count + 1]).bit_length() <= FLOAT_BITS:
        count += 1
    return count


def _head(factors: Sequence[Matrix], reaches: Sequence[int], bits: int) -> int:
    """How many factors act on the whole vector: of those that fit, the fewest that leave slabs of cache size."""
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
        chunk = max(1, kronecker.PIECE // max(rows, columns))
        # Slabs too large for a cache come one by one, so that few of them are in memory; threads then share each.
        elements = size if chunk * rows <= kronecker.PIECE else 0
        before, after = vector.reshape(left, columns), out.reshape(left, rows)
        for share in map_slabs(lambda slabs: finish(self._answers(slabs)), before, after, chunk, elements):
            if on_progress is not None:
                on_progress(share)
        return out

    def _answers(self, slabs: Array) -> Exact:
        bits = min(self.bits, int(max(slabs.max(), -slabs.min())).bit_length()) if self.steps else self.bits
        parts = _parts(self.steps, self.reaches, slabs, bits, 0)
        return Exact(None, _narrow_sum(parts)) if self.narrow else _wide_sum(parts)


def _parts(steps: Sequence[Step], reaches: Sequence[int], x: Array, bits: int, shift: int) -> Iterator[Shifted]:
    """Parts that add up to 2^shift times the product of the steps with each row of x, whose numbers have these bits."""
    fitting = _fitting(reaches, bits)
    if fitting:
        rest = prod(step.columns for step in steps[fitting:])
        acting = [_identity(len(x)), *steps[:fitting], _identity(rest)]
        x = kron_apply(acting, x.reshape(-1), np.dtype(float)).reshape(-1, rest)
        bits += prod(reaches[:fitting]).bit_length()
        steps, reaches = steps[fitting:], reaches[fitting:]
    if not steps:
        yield Shifted(x.astype(np.int64, copy=False).reshape(-1), shift)
        return
    width = FLOAT_BITS - reaches[0].bit_length()
    high = x * 2.0**-width
    np.floor(high, out=high)
    low = high * -(2.0**width)
    low += x
    yield from _parts(steps, reaches, low, width, shift)
    yield from _parts(steps, reaches, high, bits - width, shift + width)


def _narrow_sum(parts: Iterator[Shifted]) -> Integers:
    """The sum of parts that INTEGER_BITS hold."""
    total = next(parts).values  # the first part is never shifted
    for values, shift in parts:
        shifted = values << shift
        total = np.add(total, shifted, out=shifted)
    return total


def _wide_sum(parts: Iterable[Shifted]) -> Exact:
    """The sum of parts, with its high and its low bits apart."""
    high = low = np.zeros(1, np.int64)
    for values, shift in parts:
        below = max(LOW_BITS - shift, 0)  # bits of the values that go into the low part
        high = high + (values >> below << max(shift - LOW_BITS, 0))
        if below:
            low = low + ((values & ((1 << below) - 1)) << shift)
    return Exact(high + (low >> LOW_BITS), low & ((1 << LOW_BITS) - 1))


def _by_bits(matrix: Matrix, reach: int, counts: Integers) -> Exact:
    """Answers of factors that are not written out: a few bits of the counts at a time, so that integers hold them."""
    width = INTEGER_BITS - reach.bit_length()
    shifts = range(0, int(counts.max()).bit_length(), width)
    return _wide_sum(Shifted(matrix.apply(counts >> shift & ((1 << width) - 1)), shift) for shift in shifts)
