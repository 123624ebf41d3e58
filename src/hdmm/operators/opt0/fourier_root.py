"""OPT_0 for Gaussian noise on large ordered domains: V^¼ with its columns normalised, and nothing of size n × n.

The Grams of AllRange and Prefix are diagonal in the sine and the cosine basis, so the strategy applies by fast
transforms (docs/math.md, section 4). Its error is Σ_ij c_i c_j V_ij Z_ij with c the column norms of V^¼ and Z = V^-½,
exactly.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array
from hdmm.matrix.axis_gram import AllRangeGram, ChainGram
from hdmm.matrix.fourier import Basis, Waves, WavesGram, kernel
from hdmm.operators.base import Solution
from hdmm.operators.opt0.tridiagonal import chain_dual

_DUAL_ACCURACY = 1e-5
"""How constant the dual weights make the diagonal of X: it decides how tight the bound is."""


def normalised_root(gram: ChainGram) -> Solution:
    """The column-normalised V^¼, its exact error in O(n log² n), and the dual bound."""
    basis, eigenvalues = _spectrum(gram)
    norms = np.sqrt(WavesGram(basis, np.sqrt(eigenvalues), np.ones(gram.n)).diagonal())
    strategy = Waves(basis, eigenvalues**0.25, 1 / norms)
    _, bound = chain_dual(gram, _DUAL_ACCURACY, 10)
    return Solution(strategy, _error(gram, norms), bound)


def _spectrum(gram: ChainGram) -> tuple[Basis, Array]:
    """The basis in which the Gram is diagonal, and its eigenvalues there."""
    return "sine" if isinstance(gram, AllRangeGram) else "cosine", gram.scale / (4 * np.sin(gram.angles()) ** 2)


def _error(gram: ChainGram, norms: Array) -> float:
    """Σ_ij c_i c_j V_ij Z_ij, where V_ij is a polynomial minus a multiple of |i − j|.

    AllRange, i and j from 1: (n + 1)·min(i, j) − ij, with min(i, j) = (i + j − |i − j|)/2; Z_ij = g(i − j) − g(i + j).
    Prefix, i and j from 0: n − max(i, j), with max(i, j) = (i + j + |i − j|)/2; Z_ij = g(i − j) + g(i + j + 1).
    """
    from scipy import fft

    n = gram.n
    basis, eigenvalues = _spectrum(gram)
    inverse_root = WavesGram(basis, 1 / np.sqrt(eigenvalues), np.ones(n))
    g = kernel(basis, inverse_root.weights)
    product = inverse_root.apply(norms)
    if basis == "sine":
        moments = np.arange(1, n + 1) * norms
        polynomial = (n + 1) * (moments @ product) - moments @ inverse_root.apply(moments)
        distance, sign, shift = (n + 1) / 2, -1, 2
    else:
        moments = np.arange(n) * norms
        polynomial = n * (norms @ product) - moments @ product
        distance, sign, shift = 0.5, 1, 1
    size = fft.next_fast_len(2 * n, real=True)
    correlations = fft.irfft(abs(fft.rfft(norms, size)) ** 2, size)[:n]
    differences = 2 * float(np.arange(n) * g[:n] @ correlations)
    sums = 2 * _sum_of_distances(norms, g[shift:])
    return float(polynomial - distance * (differences + sign * sums))


def _sum_of_distances(c: Array, g: Array) -> float:
    """Σ_{i<j} (j − i) c_i c_j g(i + j): every pair meets in the two halves of one block, where it is a convolution."""
    from scipy import fft

    size = 1 << (len(c) - 1).bit_length()
    c = np.concatenate([c, np.zeros(size - len(c))])
    g = np.concatenate([g, np.zeros(max(2 * size - len(g), 0))])[: 2 * size]
    total = 0.0
    half = size // 2
    while half:
        places = np.arange(2 * half).reshape(2, half)
        blocks = c.reshape(-1, 2, half)
        plain, placed = fft.rfft(blocks, 2 * half), fft.rfft(places * blocks, 2 * half)
        pairs = fft.irfft(plain[:, 0] * placed[:, 1] - placed[:, 0] * plain[:, 1], 2 * half)
        total += float(np.sum(pairs * g.reshape(-1, 4 * half)[:, half : 3 * half]))
        half //= 2
    return total
