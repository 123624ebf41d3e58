"""The product of a Kronecker product with a vector: the paper's Algorithm 2, in one work buffer beside the input.

The paper reshapes and transposes a fresh vector for every factor. Here the factors act along their own axes of a row-
major array, a cache-sized piece at a time, and write back into the same buffer, so that the input and one buffer are
all that is alive; an input that is no longer needed may be the buffer. Neighbouring factors act on a piece together,
so that the array goes through memory fewer times than it has axes. Factors that shrink the array act first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.memory.workspace import empty
from hdmm.parallel import waves

Advance = Callable[[float], None]

PIECE = 1 << 18
"""Elements handled at a time: two megabytes stay in the cache, and are enough work for a BLAS call."""
_RUN = 64
"""Elements that lie together in memory should be read together."""


@final
@dataclass(frozen=True)
class Step:
    """One factor: its shape and its product with a matrix of columns; no function means the identity.

    A factor that is written out may be given as an array besides, for BLAS to use where the columns lie.
    """

    rows: int
    columns: int
    function: Callable[[Array], Array] | None
    array: Array | None = None


def kron_apply(steps: Sequence[Step], x: Array, dtype: np.dtype[Any]) -> Array:
    """(A₁ ⊗ … ⊗ A_d) x, for a vector x or for each column of a matrix x."""
    if x.shape[0] != prod(step.columns for step in steps):
        raise ValueError(f"x has {x.shape[0]} rows, expected {prod(step.columns for step in steps)}")
    tail = x.shape[1:]
    trailing = prod(tail)
    dtype = np.result_type(dtype, x.dtype)
    final_size = prod(step.rows for step in steps) * trailing
    if prod(max(step.rows, step.columns) for step in steps) * trailing <= PIECE:
        found = _act(_typed(steps, dtype), dtype, x.reshape(1, -1, trailing)).reshape(-1, *tail)
        return found.copy() if np.may_share_memory(found, x) else found
    buffer = empty(work_size(steps, trailing), dtype)
    result = kron_into(steps, np.ascontiguousarray(x).reshape(-1), buffer, trailing)
    if 2 * final_size < buffer.size:
        result = result.copy()
    return result.reshape(-1, *tail)


def kron_into(
    steps: Sequence[Step], x: Array, buffer: Array, trailing: int = 1, on_progress: Advance | None = None
) -> Array:
    """The product, at the beginning of a buffer of at least :func:`work_size`, which may be the input's own memory.

    The input is a vector, or a matrix of ``trailing`` columns, row by row.
    """
    shape = [step.columns for step in steps]
    groups = _groups(steps, trailing) or [range(0)]
    in_place = np.may_share_memory(x, buffer)
    done, total = 0, sum(prod(sizes) * trailing for sizes in _shapes(steps, groups)[:-1])
    for group in groups:
        left, right = prod(shape[: group.start]), prod(shape[group.stop :]) * trailing
        columns, rows = prod(shape[axis] for axis in group), prod(steps[axis].rows for axis in group)
        before = x[: left * columns * right].reshape(left, columns, right)
        after = buffer[: left * rows * right].reshape(left, rows, right)
        for part in _pass([steps[axis] for axis in group], before, after, in_place=in_place):
            if on_progress is not None:
                on_progress((done + part * before.size) / total)
        done += before.size
        for axis in group:
            shape[axis] = steps[axis].rows
        x, in_place = buffer, True
    return x[: prod(shape) * trailing]


def work_size(steps: Sequence[Step], trailing: int = 1) -> int:
    """How many elements the buffer of a product needs."""
    shapes = _shapes(steps, _groups(steps, trailing) or [range(0)])
    return max(prod(shape) for shape in shapes[1:]) * trailing


def _groups(steps: Sequence[Step], trailing: int) -> list[range]:
    """Neighbouring factors that act together, in the order in which groups act."""

    def order(axis: int) -> tuple[float, int]:
        ratio = steps[axis].rows / steps[axis].columns
        return (ratio, axis) if 2 * ratio <= 1 else (1 if ratio < 1 else 2, axis)

    groups: list[range] = []
    shape = [step.columns for step in steps]
    for axis in sorted((axis for axis, step in enumerate(steps) if step.function is not None), key=order):
        last = groups[-1] if groups else range(0)
        together = range(last.start, axis + 1)
        size = prod(max(shape[place], steps[place].rows) for place in together)
        right = prod(shape[axis + 1 :]) * trailing
        between = all(steps[place].function is None for place in range(last.stop, axis))
        if groups and axis >= last.stop and between and size * min(right, _RUN) <= PIECE:
            groups[-1] = together
        else:
            groups.append(range(axis, axis + 1))
        shape[axis] = steps[axis].rows
    return groups


def _shapes(steps: Sequence[Step], groups: Sequence[range]) -> list[list[int]]:
    """The shape of the array before the first group and after each."""
    shapes = [[step.columns for step in steps]]
    for group in groups:
        shapes.append([steps[axis].rows if axis in group else size for axis, size in enumerate(shapes[-1])])
    return shapes


def _pass(steps: Sequence[Step], before: Array, after: Array, *, in_place: bool) -> Iterator[float]:
    """Let a group of factors act on the middle axis of an array, yielding the share that is done."""
    left, columns, right = before.shape
    rows = after.shape[1]
    act = partial(_act, _typed(steps, after.dtype), after.dtype)
    largest = max(rows, columns)
    slabs: Sequence[slice]
    with waves(before.size) as run:
        if largest * right <= PIECE:
            chunk = PIECE // (largest * right)
            slabs = [slice(start, min(start + chunk, left)) for start in range(0, left, chunk)]
            # In place, a growing array is filled from its end and a shrinking one from its start: nothing that was not
            # read is lost.
            if in_place and rows > columns:
                slabs = slabs[::-1]
            moving = in_place and rows != columns

            def whole(slab: slice) -> tuple[slice, Array | None]:
                result = act(before[slab])
                if moving:
                    return slab, result
                after[slab] = result
                return slab, None

            done = 0
            for results in run(whole, slabs):
                for slab, result in results:
                    if result is not None:
                        after[slab] = result
                done += len(results)
                yield done / len(slabs)
            return
        # A piece of columns is written over itself only where rows keep their places: same size, or a single slab.
        apart = in_place and rows != columns and left > 1
        chunk = max(1, PIECE // largest)
        runs = [slice(start, min(start + chunk, right)) for start in range(0, right, chunk)]
        order = range(left)
        for number, place in enumerate(reversed(order) if in_place and rows > columns else order):
            source = before[place].copy() if apart else before[place]

            def work(piece: slice, source: Array = source, place: int = place) -> None:
                after[place, :, piece] = act(source[None, :, piece])[0]

            for index, _ in enumerate(run(work, runs)):
                yield (number + (index + 1) / len(runs)) / left
        yield 1.0


def _typed(steps: Sequence[Step], dtype: np.dtype[Any]) -> list[Step]:
    """Arrays in the type of the product, and only where BLAS multiplies them."""
    blas = dtype.kind == "f"
    return [
        Step(s.rows, s.columns, s.function, s.array.astype(dtype) if blas and s.array is not None else None)
        for s in steps
    ]


def _act(steps: Sequence[Step], dtype: np.dtype[Any], piece: Array) -> Array:
    """The product of a group of factors with the middle axis of a piece."""
    slabs, _, right = piece.shape
    found = np.ascontiguousarray(piece, dtype)
    left, rest = slabs, prod(step.columns for step in steps)
    for step in steps:
        rest //= step.columns
        block = found.reshape(left, step.columns, rest * right)
        if step.array is not None:
            found = block[:, :, 0] @ step.array.T if block.shape[2] == 1 else np.matmul(step.array, block)
        elif step.function is not None:
            moved = np.ascontiguousarray(block.swapaxes(0, 1)).reshape(step.columns, -1)
            found = np.ascontiguousarray(step.function(moved).reshape(step.rows, left, -1).swapaxes(0, 1), dtype)
        left *= step.rows
    return found.reshape(slabs, -1, right)
