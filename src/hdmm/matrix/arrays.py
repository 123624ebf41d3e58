"""What all matrices share: the type of arrays, and how a vector multiplies the rows of one."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


def along(vector: Array, x: Array) -> Array:
    """A vector as a column that multiplies a vector or a matrix row by row."""
    return vector.reshape(-1, *[1] * (x.ndim - 1))
