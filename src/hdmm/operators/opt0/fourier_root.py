"""OPT_0 for Gaussian noise on large ordered domains: V^¼ with its columns normalised, and nothing of size n × n.

The Grams of AllRange and Prefix are diagonal in the sine and the cosine basis; those of other sets of intervals nearly
are. So the root is that of V's diagonal there, and a folded convolution. Its error is computed exactly, and the better
basis wins (docs/math.md, section 16).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hdmm.estimators.inverse import error
from hdmm.matrix import Array, AxisGram, Folded
from hdmm.matrix.axis_gram import AllRangeGram, ChainGram, PrefixGram, SumGram
from hdmm.matrix.fourier import EXTRA, Basis, kernel, transform, weights_of
from hdmm.matrix.intervals import Intervals, Squares
from hdmm.operators.base import Solution
from hdmm.operators.opt0.tridiagonal import chain_dual

_DUAL_ACCURACY = 1e-5
"""How constant the dual weights make the diagonal of X: it decides how tight the bound is."""
_LEAST_SHARE = 1e-3
"""The least share of a wave in the workload, relative to the median one: waves that nobody asks for are measured too,
so that the strategy has an inverse."""
_ROUNDING = 1e-12
"""More than rounding may add to a sum of positive numbers, relative to it."""
_BASES: tuple[Basis, ...] = ("sine", "cosine")


def normalised_root(gram: AxisGram, squares: Squares) -> Solution:
    """The best column-normalised root of a Gram that is a sum of squares, with its exact error and a lower bound."""
    bases: tuple[Basis, ...] = _BASES
    match gram:
        case AllRangeGram():
            bases = ("sine",)
        case PrefixGram():
            bases = ("cosine",)
    candidates = []
    for basis in bases:
        matrix = _root(basis, spectrum(basis, squares, gram.size))
        candidates.append(Solution(matrix, error(matrix, gram)))
    return replace(min(candidates, key=lambda candidate: candidate.error), bound=lower_bound(gram) or None)


def lower_bound(gram: AxisGram) -> float:
    """A bound on the error of every strategy: that of a chain's dual, the sum over a sum's terms, or 0 if unknown."""
    match gram:
        case ChainGram():
            return chain_dual(gram, _DUAL_ACCURACY, 10)[1]
        case SumGram(terms) if all(coefficient > 0 for coefficient, _ in terms):
            return sum(coefficient * lower_bound(term) for coefficient, term in terms)
    pair = gram.two_eigenvalues()
    if pair is not None:
        rest, constant = (max(value, 0.0) for value in pair)
        return float(((gram.size - 1) * np.sqrt(rest) + np.sqrt(constant)) ** 2 / gram.size * (1 - _ROUNDING))
    squares = gram.as_squares()
    if squares is None or squares.vectors.size or not _disjoint(squares.intervals):
        return 0.0
    # Over one cell of each interval the questions are single cells, and the variance of none is below 1.
    return float(squares.interval_weights.sum() * (1 - _ROUNDING))


def _disjoint(intervals: Intervals) -> bool:
    """Whether no cell is in two intervals, and none is empty."""
    order = np.argsort(intervals.lows)
    lows, highs = intervals.lows[order], intervals.highs[order]
    return bool((highs >= lows).all() and (lows[1:] > highs[:-1]).all())


def _root(basis: Basis, spectrum: Array) -> Folded:
    """The matrix with these eigenvalues to the power ¼, and columns of length 1."""
    values = kernel(basis, np.maximum(spectrum, _LEAST_SHARE * np.median(spectrum)) ** 0.25)
    norms = Folded(basis, values, np.ones(len(spectrum))).norms
    return Folded(basis, values, 1 / np.sqrt(norms))


def spectrum(basis: Basis, squares: Squares, n: int) -> Array:
    """The diagonal of a Gram in a basis: for each wave, how much of it the queries see."""
    (lows, highs), weights = squares.intervals, squares.interval_weights
    filled = highs >= lows
    starts, ends, weights = lows[filled], highs[filled] + 1, weights[filled]
    # A wave's sum over an interval is a difference of two waves at its ends over 2·sin(ω/2); its square is a sum of
    # waves at sums and differences of the ends.
    sign, shift = (1, 1) if basis == "sine" else (-1, 0)
    places = [2 * starts + shift, 2 * ends + shift, ends - starts, starts + ends + shift]
    shares = [sign * weights / 2, sign * weights / 2, -weights, -sign * weights]
    sums = _waves(basis, np.concatenate([[0], *places]), np.concatenate([[weights.sum()], *shares]), n)
    angles = np.arange(1, n + 1) / (n + 1) if basis == "sine" else np.arange(1, 2 * n, 2) / (2 * n + 1)
    scale = 2 / (n + 1) if basis == "sine" else 4 / (2 * n + 1)
    seen = scale * sums / (2 * np.sin(np.pi / 2 * angles)) ** 2
    for vector, weight in zip(squares.vectors.T, squares.vector_weights, strict=True):
        seen += weight * transform(basis, vector) ** 2
    return seen


def _waves(basis: Basis, places: Array, shares: Array, n: int) -> Array:
    """For every wave ω the sum of shares·cos(ω·places)."""
    length = 2 * n + 2 if basis == "sine" else 2 * n + 1
    turns, places = np.divmod(places, length)
    mirrored = 2 * places > length
    if basis == "cosine":  # each turn, and each mirror, changes the sign
        shares = np.where((turns + mirrored) % 2 == 1, -shares, shares)
    places = np.where(mirrored, length - places, places)
    values = np.bincount(places, weights=shares, minlength=n + EXTRA[basis]).astype(float)
    values[1 : n + 1] /= 2  # these count at both sides of a period
    return weights_of(basis, values)
