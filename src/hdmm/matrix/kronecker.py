"""The product of a Kronecker product with a vector: the paper's Algorithm 2, in one work buffer beside the input.

The paper reshapes and transposes a fresh vector for every factor. Here the factors act along their own axes of a row-
major array, a cache-sized piece at a time, and write back into the same buffer. So the input and one buffer are all
that is in memory, and an input that is no longer needed may be the buffer. Neighbouring factors act on a piece
together, so that the array goes through memory fewer times than it has axes. Factors that shrink the array act first.
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
"""Receives the share of the work that is done."""

PIECE = 1 << 18
"""Elements handled at a time: two megabytes stay in the cache, and are enough work for a BLAS call."""
_MIN_RUN = 64
"""Neighbouring elements that a piece should hold, as memory is read in runs."""


@final
@dataclass(frozen=True)
class Step:
    """One factor: its shape and its product with a matrix of columns; no function means the identity.

    A factor that is written out may also be given as an array, for BLAS to use without moving the columns.
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
        product = _act(_typed(steps, dtype), dtype, x.reshape(1, -1, trailing)).reshape(-1, *tail)
        return product.copy() if np.may_share_memory(product, x) else product
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
    groups = _groups(steps, trailing)
    done, total = 0, sum(prod(sizes) * trailing for sizes in _shapes(steps, groups)[:-1])
    for group in groups:
        left, right = prod(shape[: group.start]), prod(shape[group.stop :]) * trailing
        columns, rows = prod(shape[axis] for axis in group), prod(steps[axis].rows for axis in group)
        before = x[: left * columns * right].reshape(left, columns, right)
        after = buffer[: left * rows * right].reshape(left, rows, right)
        for share in _pass([steps[axis] for axis in group], before, after):
            if on_progress is not None:
                on_progress((done + share * before.size) / total)
        done += before.size
        for axis in group:
            shape[axis] = steps[axis].rows
        x = buffer
    return x[: prod(shape) * trailing]


def work_size(steps: Sequence[Step], trailing: int = 1) -> int:
    """How many elements the buffer of a product needs."""
    shapes = _shapes(steps, _groups(steps, trailing))
    return max(prod(shape) for shape in shapes[1:]) * trailing


def _groups(steps: Sequence[Step], trailing: int) -> list[range]:
    """Neighbouring factors that act together, in the order in which groups act.

    If all factors are identities, it is one group of none of them, which copies the vector.
    """

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
        if groups and axis >= last.stop and between and size * min(right, _MIN_RUN) <= PIECE:
            groups[-1] = together
        else:
            groups.append(range(axis, axis + 1))
        shape[axis] = steps[axis].rows
    return groups or [range(0)]


def _shapes(steps: Sequence[Step], groups: Sequence[range]) -> list[list[int]]:
    """The shape of the array before the first group and after each."""
    shapes = [[step.columns for step in steps]]
    for group in groups:
        shapes.append([steps[axis].rows if axis in group else size for axis, size in enumerate(shapes[-1])])
    return shapes


def _pass(steps: Sequence[Step], before: Array, after: Array) -> Iterator[float]:
    """Let a group of factors act on the middle axis of an array, yielding the share that is done."""
    act = partial(_act, _typed(steps, after.dtype), after.dtype)
    slab = max(before.shape[1], after.shape[1]) * before.shape[2]
    if slab <= PIECE:
        return map_slabs(act, before, after, PIECE // slab, before.size)
    return _map_columns(act, before, after)


def map_slabs(
    product: Callable[[Array], Array], before: Array, after: Array, chunk: int, elements: int
) -> Iterator[float]:
    """Write the product of each slab, ``chunk`` of them at a time, yielding the share that is done.

    ``before`` and ``after`` may share memory: a growing array is filled from its end and a shrinking one from its
    start, so that nothing is lost before it is read. Threads work if there are many ``elements``.
    """
    chunks = _slices(len(before), chunk)
    if after.shape[1] > before.shape[1]:
        chunks.reverse()
    # Only a slab that keeps its size is written over itself. Others wait until all slabs of the wave have been read.
    moving = after.shape[1] != before.shape[1] and np.may_share_memory(before, after)

    def work(slabs: slice) -> tuple[slice, Array] | None:
        result = product(before[slabs]).reshape(-1, *after.shape[1:])
        if moving:
            return slabs, result
        after[slabs] = result
        return None

    done = 0
    with waves(elements) as run:
        for results in run(work, chunks):
            for slabs, result in filter(None, results):
                after[slabs] = result
            done += len(results)
            yield done / len(chunks)


def _map_columns(act: Callable[[Array], Array], before: Array, after: Array) -> Iterator[float]:
    """Write the product of each slab, some of its columns at a time, yielding the share that is done."""
    left, columns, right = before.shape
    rows = after.shape[1]
    pieces = _slices(right, max(1, PIECE // max(rows, columns)))
    # A piece is written over itself only if rows keep their places: if slabs keep their size, or there is one only.
    copying = rows != columns and left > 1 and np.may_share_memory(before, after)
    done = 0
    with waves(before.size) as run:
        for place in range(left) if rows <= columns else reversed(range(left)):  # in the order of `map_slabs`
            source = before[place].copy() if copying else before[place]

            def work(piece: slice, source: Array = source, place: int = place) -> None:
                after[place, :, piece] = act(source[None, :, piece])[0]

            for results in run(work, pieces):
                done += len(results)
                yield done / (left * len(pieces))


def _slices(size: int, chunk: int) -> list[slice]:
    return [slice(start, min(start + chunk, size)) for start in range(0, size, chunk)]


def _typed(steps: Sequence[Step], dtype: np.dtype[Any]) -> list[Step]:
    """The steps with arrays in the type of the product, and without them if BLAS cannot multiply that type."""
    blas = dtype.kind == "f"
    return [
        Step(s.rows, s.columns, s.function, s.array.astype(dtype) if blas and s.array is not None else None)
        for s in steps
    ]


def _act(steps: Sequence[Step], dtype: np.dtype[Any], piece: Array) -> Array:
    """The product of a group of factors with the middle axis of a piece."""
    slabs, _, right = piece.shape
    product = np.ascontiguousarray(piece, dtype)
    left, rest = slabs, prod(step.columns for step in steps)
    for step in steps:
        rest //= step.columns
        block = product.reshape(left, step.columns, rest * right)
        if step.array is not None:
            product = block[:, :, 0] @ step.array.T if block.shape[2] == 1 else np.matmul(step.array, block)
        elif step.function is not None:
            moved = np.ascontiguousarray(block.swapaxes(0, 1)).reshape(step.columns, -1)
            product = np.ascontiguousarray(step.function(moved).reshape(step.rows, left, -1).swapaxes(0, 1), dtype)
        left *= step.rows
    return product.reshape(slabs, -1, right)
