"""The product of a Kronecker product with a vector: the paper's Algorithm 2, in one work buffer beside the input.

The paper reshapes and transposes a fresh vector for every factor. Here each factor acts along its own axis of a row-
major array, a cache-sized piece at a time, and writes back into the same buffer, so that the input and one buffer are
all that is alive. Factors that shrink the array act first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_PIECE = 1 << 18
"""Elements handled at a time: two megabytes stay in the cache, and are enough work for a BLAS call."""


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
    shape = [step.columns for step in steps]
    if x.shape[0] != prod(shape):
        raise ValueError(f"x has {x.shape[0]} rows, expected {prod(shape)}")
    tail = x.shape[1:]
    trailing = prod(tail)
    dtype = np.result_type(dtype, x.dtype)
    active = [axis for axis, step in enumerate(steps) if step.function is not None]
    active.sort(key=lambda axis: steps[axis].rows / steps[axis].columns)
    final = prod(step.rows for step in steps) * trailing
    if not active:
        return x.astype(dtype, copy=True)

    sizes = []
    for axis in active:
        shape[axis] = steps[axis].rows
        sizes.append(prod(shape) * trailing)
    buffer = np.empty(max(sizes), dtype)

    shape = [step.columns for step in steps]
    source = np.ascontiguousarray(x).reshape(-1)
    for axis in active:
        step = steps[axis]
        left, right = prod(shape[:axis]), prod(shape[axis + 1 :]) * trailing
        before = source[: left * step.columns * right].reshape(left, step.columns, right)
        after = buffer[: left * step.rows * right].reshape(left, step.rows, right)
        _along_axis(step, before, after, in_place=source is buffer)
        shape[axis] = step.rows
        source = buffer
    result = buffer[:final]
    if 2 * final < buffer.size:
        result = result.copy()
    return result.reshape(-1, *tail)


def _along_axis(step: Step, before: Array, after: Array, *, in_place: bool) -> None:
    left, columns, right = before.shape
    rows = step.rows
    function = step.function
    assert function is not None
    if columns * right <= _PIECE:
        chunk = max(1, _PIECE // (columns * right))
        starts = range(0, left, chunk)
        # In place, a growing array is filled from its end and a shrinking one from its start: nothing unread is lost.
        for start in reversed(starts) if in_place and rows > columns else starts:
            piece = before[start : start + chunk]
            if step.array is not None and right == 1:  # vectors side by side: nothing needs to be moved
                after[start : start + chunk, :, 0] = piece[:, :, 0] @ step.array.T
                continue
            moved = np.ascontiguousarray(piece.swapaxes(0, 1)).reshape(columns, -1)
            after[start : start + chunk] = function(moved).reshape(rows, len(piece), right).swapaxes(0, 1)
        return
    # A piece of columns is written over itself only where rows keep their places: same size, or a single slab.
    chunk = right if in_place and rows != columns and left > 1 else max(1, _PIECE // columns)
    slabs = range(left)
    for slab in reversed(slabs) if in_place and rows > columns else slabs:
        for start in range(0, right, chunk):
            after[slab, :, start : start + chunk] = function(before[slab, :, start : start + chunk])
