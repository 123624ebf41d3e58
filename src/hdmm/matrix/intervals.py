"""Sums over intervals in linear time, for Prefix, Width and AllRange and their Grams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MIN_WIDE = 256
"""Columns from which adding whole rows is several times as fast as numpy's sums along columns."""


def running_sums(x: NDArray[Any]) -> NDArray[Any]:
    """The sums of x from the first row up to each row."""
    if x.ndim == 2 and abs(x.strides[0]) < abs(x.strides[1]):  # columns are contiguous, and stay so
        return np.cumsum(x.T, axis=1).T
    if x.ndim == 1 or x.shape[1] < _MIN_WIDE:
        return np.cumsum(x, axis=0)
    sums = np.empty(x.shape, np.result_type(x.dtype, np.int64))
    sums[0] = x[0]
    for row in range(1, len(x)):
        np.add(sums[row - 1], x[row], out=sums[row])
    return sums


def interval_sums(x: NDArray[Any], lows: NDArray[np.int64], highs: NDArray[np.int64]) -> NDArray[Any]:
    """For each interval, the sum of x from its low to its high end, both included."""
    running = np.concatenate([np.zeros_like(x[:1]), running_sums(x)])
    return running[highs + 1] - running[lows]


def interval_sums_t(y: NDArray[Any], lows: NDArray[np.int64], highs: NDArray[np.int64], size: int) -> NDArray[Any]:
    """The transpose of `interval_sums`: each interval's y is added to every cell between its ends."""
    steps = np.zeros((size + 1, *y.shape[1:]), y.dtype)
    np.add.at(steps, lows, y)
    np.subtract.at(steps, highs + 1, y)
    return running_sums(steps[:-1])


def interval_rows(lows: NDArray[np.int64], highs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The intervals as rows of zeros and ones."""
    cells = np.arange(size)
    return ((cells >= lows[:, None]) & (cells <= highs[:, None])).astype(np.int64)
