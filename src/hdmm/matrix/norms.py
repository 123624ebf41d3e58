"""The exact largest column norm of a stack of Kronecker products, without enumerating its columns.

Cells of an attribute whose norms agree in every part are one class, and a class that another one equals or exceeds in
every part cannot hold the maximum (in parts of negative weight: equals or falls below). What is left is usually a
handful of classes per attribute, over which the maximum is taken exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm, prod

import numpy as np

from hdmm.matrix.arrays import Array
from hdmm.matrix.base import Matrix, Norm, Number

_LIMIT = 1 << 22
_CLASSES = 2048


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

    ``monotone`` says that no entry is negative, so that columns which others dominate can be left out. None where too
    many choices are left.
    """
    norms = []
    for axis, place in zip(vectors, places, strict=True):
        signs: list[set[bool]] = [set() for _ in axis]
        for row, weight in zip(place, weights, strict=True):
            signs[row].add(weight < 0)
        norms.append(_undominated(axis, signs) if monotone else axis)
    if prod(norm.shape[1] for norm in norms) > _LIMIT:
        norms = [np.unique(norm, axis=1) for norm in norms]
    if prod(norm.shape[1] for norm in norms) > _LIMIT:
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
            own = norm[place[j]].astype(dtype)
            product = np.multiply.outer(product, own) if len(own) > 1 else product * own
        totals = totals + product
    largest = totals.max()
    if not whole:
        return float(largest)
    result = Fraction(int(largest), scale)
    return result.numerator if result.denominator == 1 else result


def _undominated(vectors: Array, signs: Sequence[set[bool]]) -> Array:
    """The distinct columns that no other one equals or exceeds everywhere; where it counts negatively, falls below."""
    signed = [-row if negative else row for row, both in zip(vectors, signs, strict=True) for negative in both]
    gains = np.stack(signed)
    left = np.argsort(-gains.sum(axis=0), kind="stable")  # what comes later cannot dominate what comes before
    kept: list[int] = []
    while len(left):
        if len(kept) == _CLASSES:
            return vectors
        kept.append(int(left[0]))
        left = left[(gains[:, left] > gains[:, left[:1]]).any(axis=0)]
    return vectors[:, kept]
