"""The sines and cosines in which the Grams of AllRange and Prefix are diagonal, and matrices of one kernel in them.

The bases are symmetric orthonormal matrices F, their own inverses: sin(πij/(n + 1)) over i, j = 1…n, and
cos(π(2i + 1)(2j + 1)/(4n + 2)) over i, j = 0…n−1. A matrix F·diag(w)·F has entries g(i − j) ∓ g(i + j + s), with one
even function g, the kernel: on sines it has the period 2n + 2, s is 2 and the sign −; on cosines g(2n + 1 − m) is
−g(m), s is 1 and the sign +. So few values say everything: those at 0…n + 1 on sines, and at 0…n on cosines.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hdmm.matrix.arrays import Array

Basis = Literal["sine", "cosine"]
EXTRA: dict[Basis, int] = {"sine": 2, "cosine": 1}
"""How many more values a kernel has than the basis has cells."""


def transform(basis: Basis, x: Array) -> Array:
    """The product of F with a vector, or with each column of a matrix."""
    from scipy import fft

    if basis == "sine":
        return fft.dst(x, 1, norm="ortho", axis=0)
    n = len(x)
    padded = np.concatenate([x, np.zeros((n + 1, *x.shape[1:]))])
    return fft.dct(padded, 2, axis=0)[1 : 2 * n : 2] / np.sqrt(2 * n + 1)


def kernel(basis: Basis, weights: Array) -> Array:
    """The kernel of F·diag(weights)·F: its values at 0, 1, …, as few as say everything."""
    from scipy import fft

    n = len(weights)
    if basis == "sine":
        return fft.dct(np.concatenate([[0.0], weights / 2, [0.0]]), 1) / (n + 1)
    spectrum = np.zeros(2 * n + 2)
    spectrum[1:-2:2] = weights
    return fft.dct(spectrum, 1)[: n + 1] / (2 * n + 1)


def weights_of(basis: Basis, values: Array) -> Array:
    """The weights w of a kernel."""
    from scipy import fft

    if basis == "sine":
        return fft.dct(values, 1)[1:-1]
    padded = np.concatenate([values, np.zeros(len(values))])
    return fft.dct(padded, 1)[1 : len(padded) - 1 : 2]


def at_sums(basis: Basis, values: Array) -> Array:
    """±g(m + s) for m = 0…2n − 2: the part of a matrix that depends on i + j."""
    if basis == "sine":
        n = len(values) - 2
        return -np.concatenate([values[2:], values[n:1:-1]])
    n = len(values) - 1
    return np.concatenate([values[1:], -values[n:1:-1]])


def period(basis: Basis, values: Array) -> Array:
    """A kernel at 0, 1, … until it repeats itself, on cosines with the other sign."""
    if basis == "sine":
        return np.concatenate([values, values[-2:0:-1]])
    return np.concatenate([values, -values[:0:-1]])


def folded(basis: Basis, x: Array) -> Array:
    """A vector over the cells, continued over a period as sines or cosines are."""
    zero = np.zeros(1, x.dtype)
    return np.concatenate([zero, x, zero, -x[::-1]] if basis == "sine" else [x, zero, -x[::-1]])


def wrap(basis: Basis) -> int:
    """The sign with which a period follows another."""
    return 1 if basis == "sine" else -1
