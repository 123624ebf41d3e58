"""The exact largest column norm of a stack of Kronecker products, without enumerating its columns.

Cells of an attribute whose norms agree in every part are one class. A class that another one equals or exceeds in every
part (in parts of negative weight: equals or falls below) cannot hold the maximum. The rest is usually a handful of
classes per attribute, over which the maximum is taken exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm, prod

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.base import Matrix, Norm, Number

_MAX_COMBINATIONS = 1 << 22
"""Most combinations of classes of all attributes over which the maximum is taken."""
_MAX_CLASSES = 2048
"""Attributes with more classes keep them all."""


def stacked_norm(parts: Sequence[Sequence[Matrix]], weights: Sequence[Number], p: Norm) -> Number | None:
    """The largest over columns of Σ_j w_j ∏_i (norm of the column in factor i of part j); None for too many classes."""
    vectors, places = [], []
    for axis in range(len(parts[0])):
        distinct: dict[int, int] = {}
        norms: list[Array] = []
        place = []
        for part in parts:
            factor = part[axis]
            if id(factor) not in distinct:
                distinct[id(factor)] = len(norms)
                norms.append(factor.column_norms(p))
            place.append(distinct[id(factor)])
        vectors.append(np.stack(norms))
        places.append(place)
    return largest_sum(vectors, places, weights)


def largest_sum(
    vectors: Sequence[Array], places: Sequence[Sequence[int]], weights: Sequence[Number], *, monotone: bool = True
) -> Number | None:
    """The largest over all choices of one column per axis of Σ_j w_j ∏_i vectors[i][places[i][j], column].

    ``monotone`` means that no entry is negative, so that dominated columns can be left out. None if too many choices
    remain.
    """
    norms = []
    for axis, place in zip(vectors, places, strict=True):
        signs: list[set[bool]] = [set() for _ in axis]
        for row, weight in zip(place, weights, strict=True):
            signs[row].add(weight < 0)
        norms.append(_undominated(axis, signs) if monotone else axis)
    if prod(norm.shape[1] for norm in norms) > _MAX_COMBINATIONS:
        norms = [np.unique(norm, axis=1) for norm in norms]
    if prod(norm.shape[1] for norm in norms) > _MAX_COMBINATIONS:
        return None

    several = [axis for axis, norm in enumerate(norms) if norm.shape[1] > 1]
    whole = all(norm.dtype.kind == "i" for norm in norms) and all(isinstance(w, (int, Fraction)) for w in weights)
    scale = lcm(*(Fraction(w).denominator for w in weights)) if whole else 1
    dtype = np.dtype(object if whole else float)  # integers of any size
    totals: Array = np.zeros([1, *(norms[axis].shape[1] for axis in several)], dtype)
    for j, weight in enumerate(weights):
        # Never a scalar among numpy's operands: it would become an int64, and wrap around.
        product: Array = np.array([int(weight * scale) if whole else float(weight)], dtype)
        for norm, place in zip(norms, places, strict=True):
            values = norm[place[j]].astype(dtype)
            product = np.multiply.outer(product, values) if len(values) > 1 else product * values
        totals = totals + product
    largest = totals.max()
    if not whole:
        return float(largest)
    result = Fraction(int(largest), scale)
    return result.numerator if result.denominator == 1 else result


def _undominated(vectors: Array, signs: Sequence[set[bool]]) -> Array:
    """The distinct columns that no other equals or exceeds in every row (equals or falls below in negative rows)."""
    signed = [-row if negative else row for row, both in zip(vectors, signs, strict=True) for negative in both]
    gains = np.stack(signed)
    candidates = np.argsort(-gains.sum(axis=0), kind="stable")  # a later column cannot dominate an earlier one
    kept: list[int] = []
    while len(candidates):
        if len(kept) == _MAX_CLASSES:
            return vectors
        kept.append(int(candidates[0]))
        candidates = candidates[(gains[:, candidates] > gains[:, candidates[:1]]).any(axis=0)]
    return vectors[:, kept]
