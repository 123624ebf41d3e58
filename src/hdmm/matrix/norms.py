"""The exact largest column norm of a stack of Kronecker products, without enumerating its columns.

Cells of an attribute whose norms agree in every part are one class, and a class that another one equals or exceeds in
every part cannot hold the maximum. What is left is usually a handful of classes per attribute, over which the maximum
is taken exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm, prod

import numpy as np

from hdmm.matrix.base import Array, Matrix, Norm, Number

_LIMIT = 1 << 22


def stacked_norm(parts: Sequence[Sequence[Matrix]], weights: Sequence[Number], p: Norm) -> Number | None:
    """The largest over columns of Σ_j w_j ∏_i (norm of the column in factor i of part j); None for too many classes."""
    norms = []
    places = []
    for axis in range(len(parts[0])):
        distinct: dict[int, int] = {}
        vectors: list[Array] = []
        place = []
        for part in parts:
            factor = part[axis]
            if id(factor) not in distinct:
                distinct[id(factor)] = len(vectors)
                vectors.append(factor.column_norms(p))
            place.append(distinct[id(factor)])
        norms.append(_undominated(np.stack(vectors)))
        places.append(place)
    if prod(norm.shape[1] for norm in norms) > _LIMIT:
        return None

    whole = all(norm.dtype.kind == "i" for norm in norms) and all(isinstance(w, (int, Fraction)) for w in weights)
    scale = lcm(*(Fraction(w).denominator for w in weights)) if whole else 1
    totals: Array = np.zeros([norm.shape[1] for norm in norms], object if whole else float)
    for j, weight in enumerate(weights):
        product: Array = np.array(int(weight * scale) if whole else float(weight), totals.dtype)
        for norm, place in zip(norms, places, strict=True):
            product = np.multiply.outer(product, norm[place[j]].astype(totals.dtype))
        totals = totals + product
    largest = totals.max()
    if not whole:
        return float(largest)
    result = Fraction(int(largest), scale)
    return result.numerator if result.denominator == 1 else result


def _undominated(vectors: Array) -> Array:
    """The distinct columns that no other column equals or exceeds everywhere."""
    classes = np.unique(vectors, axis=1)
    if classes.shape[1] > 2048:
        return classes
    order = np.argsort(-classes.sum(axis=0), kind="stable")
    kept: list[int] = []
    for column in order:
        if not any((classes[:, other] >= classes[:, column]).all() for other in kept):
            kept.append(int(column))
    return classes[:, kept]
